//! What jobs print, in a real browser, whatever they print: the page stays small and the browser
//! alive.

use tests::browser::Browser;
use tests::scheduler::{Scheduler, Start};

use crate::pages::sign_in;

/// A service whose apply prints what `command` says.
fn printing(test: &str, command: &str) -> Option<(Scheduler, Browser)> {
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    let browser = Browser::start(test, scheduler.url())?;
    let command = serde_json::to_string(command).expect("a text has a JSON form");
    scheduler.apply(&format!(
        "runtime: {{name: loud, custom: {{proxyRuntime: {{runtime: local}}, apply: {{taskConfig: \
         {{program: {{name: print, entrypoint: [sh, -c], cmd: [{command}]}}}}}}}}}}\n---\n\
         application: {{name: app, releaseChannels: [{{name: only, runtimes: [{{runtime: \
         loud}}]}}]}}\n---\nservice: {{name: web, application: app}}\n"
    ));
    scheduler.ok(&["services", "push", "web", "--app", "app"]);
    let job = scheduler.jobs("web", "apply");
    let job = job.first().expect("a release is applied")["id"].clone();
    browser.open(&format!("/jobs/{}", job.as_str().expect("an id is text")));
    sign_in(&browser, &scheduler.token());
    // That nobody was signed in before.
    browser.complaints();
    Some((scheduler, browser))
}

/// Markup, text from right to left, thousands of changes of colour, and what steers a terminal: all
/// of it is text in its own line.
#[test]
fn hostile_output_stays_text_in_its_line() {
    let command = r#"i=0; while [ $i -lt 3000 ]; do printf '\033[3%dm\033[1m' $((i % 8)); i=$((i+1)); done
        printf 'bomb\n\033[0m<img src=x onerror="document.title=1"></pre><script>document.title=2</script>\n'
        printf '\342\200\256reversed\342\200\254 \327\251\327\234\n\033]0;title\007\033[2J\033[1;1Hlast\n'"#;
    let Some((_scheduler, browser)) = printing("hostile_output_stays_text_in_its_line", command)
    else {
        return;
    };
    browser.shows(".head", "Succeeded");
    let printed = browser.shows("#log", "last");
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[0], "bomb");
    assert!(lines[1].starts_with("<img src=x") && lines[1].contains("</script>"), "{}", lines[1]);
    assert!(lines[2].starts_with("reversed") && lines.len() == 4, "{lines:?}");
    let title = browser.script("return document.title");
    assert!(title.as_str().is_some_and(|title| title.contains("apply of web")), "{title}");
    let wide = browser.script("return document.documentElement.scrollWidth - innerWidth");
    assert!(wide.as_i64().is_some_and(|wide| wide <= 0), "{wide}");
    assert_eq!(browser.complaints(), [""; 0], "no script ran and nothing was asked for");
}

/// A log of 200 MB: the page shows its end, and stays small while it runs and afterwards.
#[test]
fn a_huge_log_leaves_the_page_small() {
    let command = "yes 'a line of some length, as commands print them' | head -c 200000000; echo; echo the end";
    let Some((_scheduler, browser)) = printing("a_huge_log_leaves_the_page_small", command) else {
        return;
    };
    browser.shows(".head", "Succeeded");
    let last = "return document.querySelector('#log').lastElementChild.textContent";
    tests::wait::until("the page to show the end", || {
        (browser.script(last) == "the end").then_some(())
    });
    let held = browser.script("return document.querySelectorAll('#log .l').length");
    assert!(held.as_u64().is_some_and(|lines| lines <= 20_000), "{held}");
    browser.script("location.reload()");
    browser.shows("#output", "bytes of stdout are left out");
    assert_eq!(browser.script(last), "the end");
    let bytes = browser.script("return new Blob([document.documentElement.outerHTML]).size");
    assert!(bytes.as_u64().is_some_and(|bytes| bytes < 1 << 20), "{bytes}");
    assert_eq!(browser.complaints(), [""; 0]);
}
