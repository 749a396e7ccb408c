// What a page cannot do without script: follow changes, tick its ages, keys. Everything that reads
// and every form works without it. Nothing here makes markup of data: pages and lines come from the
// daemon, which has escaped them.
"use strict";

// The daemon tells many changes together as one; here they are no more than this many looks.
const LOOK_AGAIN_MS = 100;
// A stream that was lost or refused comes back after pauses from the first to the last of these,
// each twice the one before and by chance up to half as long, so that a thousand pages do not come
// at the same time.
const COME_BACK_MS = 1000;
const LONGEST_PAUSE_MS = 30000;
// The daemon gives a sign of life each 15 s: a connection that is silent for so long is dead.
const SILENCE_MS = 50000;
// A browser has six connections to a host over HTTP/1.1, for all its windows together: so many may be
// streams, and the others load pages.
const PLACES = 4;
// Most lines of a log that a page holds.
const LINES = 20000;

const main = () => document.getElementById("main");

// --- Ages: `3m20s ago`, `in 20s`; as schema::when says them.
function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(s / 3600);
  const d = Math.floor(s / 86400);
  const two = (a, x, b, y) => a + x + (b ? b + y : "");
  if (d >= 3) return d + "d";
  if (h >= 10) return h + "h";
  if (h >= 1) return two(h, "h", m % 60, "m");
  if (m >= 10) return m + "m";
  if (m >= 1) return two(m, "m", s % 60, "s");
  return s + "s";
}
// Against the daemon's clock, which may differ from this machine's.
let ahead = Date.now() - Date.parse(document.body.dataset.now || new Date().toISOString());
function tick() {
  const now = Date.now() - ahead;
  for (const time of document.querySelectorAll("time[data-told]")) {
    const at = Date.parse(time.dateTime);
    const told = time.dataset.told === "ago" ? span(now - at) + " ago"
      : time.dataset.told === "for" ? span(now - at)
      : at <= now ? "now" : "in " + span(at - now + 999);
    if (time.textContent !== told) time.textContent = told;
  }
}

// --- A new page into the old one: what is the same stays, with its scroll, focus and selection.
function same(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");
}
function attributes(from, to) {
  for (const { name, value } of [...to.attributes]) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    // A person opened it.
    if (!to.hasAttribute(name) && !(name === "open" && from.nodeName === "DETAILS")) from.removeAttribute(name);
  }
}
function become(from, to) {
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  if (from.hasAttribute("data-keep")) return;
  // What somebody types, or is about to answer, is theirs.
  if (from.matches("input, textarea, select")) {
    if (from !== document.activeElement && from.type === "hidden") attributes(from, to);
    return;
  }
  attributes(from, to);
  let at = from.firstChild;
  for (const next of [...to.childNodes]) {
    let found = at;
    if (next.id) {
      found = [...from.children].find((child) => child.id === next.id) || null;
      if (found && found !== at) from.insertBefore(found, at);
    }
    if (found && same(found, next)) {
      const after = found.nextSibling;
      become(found, next);
      at = after;
    } else {
      from.insertBefore(document.importNode(next, true), at);
    }
  }
  while (at) {
    const after = at.nextSibling;
    at.remove();
    at = after;
  }
}

// --- A plan is not swapped under whoever reads it: where another is asked about by now the old one
// stays, without its buttons, until somebody asks for the new one.
function hold(next) {
  for (const old of document.querySelectorAll("[data-asks]")) {
    const section = old.closest("section"), buttons = section.querySelectorAll("form button");
    const now = [...next.querySelectorAll("[data-asks]")].filter((one) => one.dataset.asks === old.dataset.asks);
    const swapped = now.length > 0 && !now.some((one) => one.dataset.plan === old.dataset.plan);
    const told = section.querySelector(".swapped");
    section.toggleAttribute("data-keep", swapped);
    for (const button of buttons) button.disabled = swapped;
    if (!swapped && told) told.remove();
    if (!swapped) continue;
    if (!told) {
      const notice = document.createElement("p"), show = document.createElement("button");
      notice.className = "notice t-waiting swapped";
      notice.setAttribute("role", "alert");
      notice.textContent = "Another plan is asked about by now. ";
      show.type = "button";
      show.textContent = "Show it";
      show.addEventListener("click", () => location.reload());
      notice.append(show);
      section.append(notice);
    }
    now[0].closest("section").replaceWith(section.cloneNode(true));
  }
}

let looking = false, again = false;
async function look() {
  if (looking) {
    again = true;
    return;
  }
  looking = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.getElementById("main");
    if (answer.status === 401) return location.reload();
    if (next) {
      hold(next);
      become(main(), next);
      const top = page.querySelector(".top"), own = document.querySelector(".top");
      if (top && own) become(own, top);
      if (page.body.dataset.now) ahead = Date.now() - Date.parse(page.body.dataset.now);
      tick();
    }
    if (standing === "offline") tell("");
  } catch {
    tell("offline");
  } finally {
    setTimeout(() => {
      looking = false;
      if (again) {
        again = false;
        look();
      }
    }, LOOK_AGAIN_MS);
  }
}
// What a person is told of the connection: "offline", "unfollowed", or nothing while it follows.
let standing = "";
function tell(what) {
  standing = what;
  // What is sent meanwhile would be lost with what was typed.
  for (const form of main().querySelectorAll("form[method=post]")) form.inert = what === "offline";
  for (const id of ["offline", "unfollowed"]) {
    const told = document.getElementById(id);
    if (told) told.hidden = id !== what;
  }
}

// --- Streams. A page that nobody sees holds none; one that was lost or refused comes back by itself.
const streams = [];
// Takes one of the places that all windows of this browser share, if one is free. Where a browser has
// no locks (over plain HTTP from another machine) nobody counts.
function takePlace(taken, refused) {
  const place = { leave: () => { place.isLeft = true; } };
  if (!navigator.locks) {
    taken();
    return place;
  }
  const hold = (lock) => {
    if (!lock || place.isLeft) return place.isLeft;
    taken();
    return new Promise((done) => { place.leave = () => done(true); });
  };
  (async () => {
    for (let at = 0; at < PLACES; at += 1) {
      if (await navigator.locks.request("pvn-stream-" + at, { ifAvailable: true }, hold)) return;
    }
    refused();
  })();
  return place;
}
// `address` says where it goes on, `hears` has a function for each event, and `told` may have some
// for its own fate: `lost`, with whether it was refused, `back`, before it is tried again, `found`.
function stream(address, hears, told = {}) {
  const one = { source: null, place: null, pause: COME_BACK_MS, waits: 0, heard: 0, isOver: false };
  const call = (what, ...given) => told[what] && told[what](...given);
  one.close = () => {
    clearTimeout(one.waits);
    if (one.source) one.source.close();
    if (one.place) one.place.leave();
    one.source = one.place = null;
  };
  one.end = () => {
    one.isOver = true;
    one.close();
  };
  one.lose = (wasRefused) => {
    one.close();
    if (one.isOver) return;
    call("lost", wasRefused);
    one.waits = setTimeout(() => {
      if (!document.hidden) call("back");
      one.open();
    }, one.pause * (0.5 + Math.random() / 2));
    one.pause = Math.min(2 * one.pause, LONGEST_PAUSE_MS);
  };
  one.open = () => {
    if (one.isOver || one.place || document.hidden) return;
    clearTimeout(one.waits);
    one.place = takePlace(one.connect, () => one.lose(true));
  };
  one.connect = () => {
    const source = one.source = new EventSource(address());
    one.heard = Date.now();
    source.onopen = () => call("found");
    for (const [name, hear] of Object.entries({ alive: () => {}, ...hears })) {
      source.addEventListener(name, (event) => {
        one.heard = Date.now();
        one.pause = COME_BACK_MS;
        hear(event);
      });
    }
    // A browser that was refused does not come back; those that were cut off would, all at once.
    source.onerror = () => one.lose(source.readyState === EventSource.CLOSED);
  };
  streams.push(one);
  one.open();
  return one;
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && streams.length > 0) look();
  for (const one of streams) {
    if (document.hidden) one.close();
    else one.open();
  }
});

// --- Changes, as the daemon commits them.
function follow() {
  const where = document.body.dataset.live;
  if (!where) return;
  let last = document.body.dataset.revision;
  const changes = stream(() => where + (where.includes("?") ? "&" : "?") + "after=" + last, {
    change: (event) => {
      last = event.lastEventId;
      look();
    },
  }, {
    lost: (wasRefused) => tell(wasRefused ? "unfollowed" : "offline"),
    // What it cannot hear of it sees, and whether it is signed in still.
    back: look,
    found: () => tell(""),
  });
  setInterval(() => {
    if (changes.source && Date.now() - changes.heard > SILENCE_MS) {
      for (const one of streams) one.lose(false);
    }
  }, COME_BACK_MS);
}

// --- A job's output, line by line.
const log = () => document.getElementById("log");
// Lines that were taken off the top, by stream: those that stay keep their numbers.
const gone = { o: 0, e: 0 };
function add(html) {
  const pane = log(), follows = document.getElementById("follow").checked;
  pane.insertAdjacentHTML("beforeend", html);
  let cut = false;
  while (pane.childElementCount > LINES) {
    gone[pane.firstElementChild.classList.contains("e") ? "e" : "o"] += 1;
    pane.firstElementChild.remove();
    cut = true;
  }
  if (cut) pane.style.counterReset = `o ${gone.o} e ${gone.e}`;
  sift();
  if (follows) pane.scrollTop = pane.scrollHeight;
}
function output() {
  const section = document.querySelector("[data-output]");
  if (!section) return;
  let address = section.dataset.output;
  // Where it goes on is the id of what it heard last, which the daemon reads back.
  const goOn = (event) => {
    const names = ["stdout", "stderr", "o", "e"], places = event.lastEventId.split(",");
    if (places.length !== names.length) return;
    const query = names.map((name, at) => name + "=" + places[at]).join("&");
    address = address.split("?")[0] + "?" + query;
  };
  const lines = stream(() => address, {
    lines: (event) => {
      goOn(event);
      add(JSON.parse(event.data));
    },
    // More than a page can hold: from here on it shows the end.
    skipped: () => {
      log().textContent = "";
      log().classList.remove("numbered");
    },
    end: (event) => {
      lines.end();
      add(JSON.parse(event.data));
      look();
    },
  }, {
    lost: (wasRefused) => tell(wasRefused ? "unfollowed" : "offline"),
    found: () => tell(""),
  });
}
// Leaves out lines without what somebody looks for. They keep counting.
let sought = "";
function sift() {
  for (const line of log().children) {
    line.classList.toggle("out", sought !== "" && !line.textContent.toLowerCase().includes(sought));
  }
}
function logTools() {
  const wrap = document.getElementById("wrap");
  if (!wrap) return;
  document.getElementById("tools").hidden = false;
  // What it came to is at its end.
  if (!location.hash) log().scrollTop = log().scrollHeight;
  wrap.addEventListener("change", () => log().classList.toggle("wrap", wrap.checked));
  const find = document.getElementById("find"), follow = document.getElementById("follow");
  find.addEventListener("input", () => {
    sought = find.value.toLowerCase();
    sift();
  });
  // Whoever scrolls up reads; at the end it goes on.
  log().addEventListener("scroll", () => {
    const pane = log();
    follow.checked = pane.scrollTop + pane.clientHeight >= pane.scrollHeight - 40;
  });
  // A line's number is its address.
  log().addEventListener("click", (event) => {
    const line = event.target.closest(".l");
    if (line && line.id && event.offsetX < 60 && !String(getSelection())) location.hash = line.id;
  });
}

// --- Keys: `/` searches, `g` and a letter goes, `j` and `k` walk, Enter opens.
let going = false;
function rows() {
  return [...document.querySelectorAll("[data-row]")];
}
function walk(step) {
  const all = rows(), at = all.findIndex((row) => row.classList.contains("at"));
  const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
  if (!next) return;
  all.forEach((row) => row.classList.remove("at"));
  next.classList.add("at");
  const link = next.querySelector("a");
  if (link) link.focus();
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (going) {
    going = false;
    const link = document.querySelector(`.top nav a[data-key="${CSS.escape(event.key)}"]`);
    if (link) link.click();
    return;
  }
  const search = document.getElementById("search");
  if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "g") {
    going = true;
    setTimeout(() => { going = false; }, 1500);
  } else if (event.key === "j") walk(1);
  else if (event.key === "k") walk(-1);
});

tick();
setInterval(tick, 1000);
output();
follow();
logTools();
