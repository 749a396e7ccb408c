//! What a job printed, as lines of HTML: as its page begins, and as more comes while it runs. Both
//! streams are read as one, by the order in which the wrapper read them. Called by `jobs`.

use axum::response::sse::Event;
use futures::Stream;
use pages::ansi::AnsiPainter;
use pages::{PrintedOutput, StreamMerge};
use schema::api::Job;
use schema::spool::Stream as JobStream;
use schema::target::PlacedJob;
use serde::Deserialize;

use crate::http::Api;
use crate::http::api::{placed, read_output};
use crate::http::error::{Error, Result};
use crate::http::followed_job::FollowedJob;
use crate::http::limits::OUTPUT_EVENT_BYTES;

/// Bytes of each stream that a job's page begins with: some thousand lines. Of a longer one these
/// are its last.
const SHOWN_BYTES: u64 = 256 << 10;

/// Most lines of a stream that it begins with: a browser lays out some thousand at once.
const SHOWN_LINES: usize = 5_000;

/// Looks for which lines wait to be told whether stdout or stderr came first, before they are shown
/// in any order: longer than the wrapper waits before it writes that down.
const LOOKS_FOR_ORDER: u32 = 4;

/// Full pieces after which a page that follows is so far behind that it is shown the end instead:
/// no browser lays out what a command can print.
const PIECES_BEHIND: u32 = 32;

/// What the ids of lines begin with, stream by stream.
const PREFIXES: [char; 2] = ['o', 'e'];

/// Up to where a page has shown both streams: bytes, and the numbers of the lines that come next
/// where they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct OutputPlace {
    stdout: u64,
    stderr: u64,
    /// Of stdout; 0 is unknown.
    o: u64,
    /// Of stderr; 0 is unknown.
    e: u64,
}

impl OutputPlace {
    /// As the id of an event.
    fn id(self) -> String {
        let Self { stdout, stderr, o, e } = self;
        format!("{stdout},{stderr},{o},{e}")
    }

    /// What [`Self::id`] says.
    pub(super) fn read(id: &str) -> Option<Self> {
        let mut numbers = id.split(',').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self { stdout: next()?, stderr: next()?, o: next()?, e: next()? })
    }
}

/// What a job printed so far.
pub(super) async fn printed(api: &Api, job: &Job) -> Result<PrintedOutput> {
    let placed = placed(api, job).await?;
    let is_over = job.status.is_final();
    let mut shown = Vec::new();
    for stream in JobStream::ALL {
        shown.push(StreamEnd::read(api, job, &placed, stream).await?);
    }
    let order = (api.orders)(placed, job.report.clone().map(Box::new), 0).await;
    let order = order.unwrap_or_default();
    let mut merge = StreamMerge::after([shown[0].begins(job), shown[1].begins(job)]);
    merge.learn(&order);
    let mut painters =
        [0, 1].map(|at: usize| AnsiPainter::new(PREFIXES[at], (shown[at].begin == 0).then_some(1)));
    let mut html = String::new();
    let mut left = [0, 1].map(|at: usize| shown[at].bytes.as_slice());
    while let Some((stream, length)) = merge.take(left.map(count), true) {
        let at = stream as usize;
        html.push_str(&painters[at].paint(split(&mut left[at], length), false));
    }
    if is_over {
        painters.iter_mut().for_each(|painter| html.push_str(&painter.paint(&[], true)));
    }
    let place = place([0, 1].map(|at: usize| shown[at].end()), &painters);
    let OutputPlace { stdout, stderr, o, e } = place;
    let live = format!("/jobs/{}/live?stdout={stdout}&stderr={stderr}&o={o}&e={e}", job.id);
    Ok(PrintedOutput {
        html,
        notes: notes(job, &shown, order.is_empty()),
        numbered: shown.iter().all(|one| one.begin == 0),
        live: (!is_over).then_some(live),
    })
}

fn count(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

/// Takes the first `length` of these bytes.
fn split<'a>(bytes: &mut &'a [u8], length: u64) -> &'a [u8] {
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
    let (first, rest) = bytes.split_at(length);
    *bytes = rest;
    first
}

fn notes(job: &Job, shown: &[StreamEnd], is_order_unknown: bool) -> Vec<String> {
    let is_over = job.status.is_final();
    if shown.iter().all(|one| one.bytes.is_empty()) {
        let nothing = if is_over { "Nothing was printed." } else { "Nothing yet." };
        return vec![nothing.to_owned()];
    }
    let cut = JobStream::ALL.into_iter().zip(shown).filter(|(_, one)| one.begin > 0);
    let cut = cut.map(|(stream, one)| {
        format!(
            "The first {} bytes of {} are left out; download has them.",
            one.begin,
            stream.as_str()
        )
    });
    let gaps = shown.iter().filter_map(|one| one.gap(job));
    let is_mixed = is_over && is_order_unknown && shown.iter().all(|one| !one.bytes.is_empty());
    let mixed = "Nobody wrote down in which order both streams came: stdout stands first.";
    cut.chain(gaps).chain(is_mixed.then(|| mixed.to_owned())).collect()
}

/// Where the painters are, when they were given the streams up to these bytes.
fn place(ends: [u64; 2], painters: &[AnsiPainter; 2]) -> OutputPlace {
    let whole = |at: usize| ends[at].saturating_sub(painters[at].held_bytes() as u64);
    let line = |at: usize| painters[at].number().unwrap_or(0);
    OutputPlace { stdout: whole(0), stderr: whole(1), o: line(0), e: line(1) }
}

/// The end of what a stream holds.
#[derive(Debug)]
struct StreamEnd {
    /// Where it begins in what is kept of the stream, at the beginning of a line.
    begin: u64,
    bytes: Vec<u8>,
    stream: JobStream,
}

impl StreamEnd {
    async fn read(api: &Api, job: &Job, placed: &PlacedJob, stream: JobStream) -> Result<Self> {
        let mut begin = length(api, job, placed, stream).await?.saturating_sub(SHOWN_BYTES);
        let shown = usize::try_from(SHOWN_BYTES).unwrap_or(usize::MAX);
        let mut bytes = read_output(api, job, placed, stream, begin, shown).await?;
        let cut = if begin > 0 { cut_at(&bytes) } else { 0 };
        let cut = cut.max(lines_from(&bytes, SHOWN_LINES));
        bytes.drain(..cut);
        begin += cut as u64;
        Ok(Self { begin, bytes, stream })
    }

    fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    /// What of it nobody kept, in words.
    fn gap(&self, job: &Job) -> Option<String> {
        let gap = job.report.as_ref()?.gap(self.stream, self.end())?;
        Some(format!("{gap}, and the download has them neither."))
    }

    /// Where it begins in all that was printed, of which a job that is over may have lost a part
    /// before its end.
    fn begins(&self, job: &Job) -> u64 {
        let printed = job.report.as_ref().map(|report| match self.stream {
            JobStream::Stdout => report.stdout_bytes,
            JobStream::Stderr => report.stderr_bytes,
        });
        printed.map_or(self.begin, |all| all.saturating_sub(self.bytes.len() as u64))
    }
}

/// Where the first line begins that is whole, or of a long one the first character.
fn cut_at(bytes: &[u8]) -> usize {
    let looked_at = &bytes[..bytes.len() / 2];
    match looked_at.iter().position(|byte| *byte == b'\n') {
        Some(at) => at + 1,
        None => bytes.iter().take_while(|byte| (0x80..0xc0).contains(*byte)).count(),
    }
}

/// Where the last so many lines begin.
fn lines_from(bytes: &[u8], most: usize) -> usize {
    let mut ends = (0..bytes.len().saturating_sub(1)).rev().filter(|at| bytes[*at] == b'\n');
    ends.nth(most.saturating_sub(1)).map_or(0, |at| at + 1)
}

/// How many bytes of a stream there are by now, as few as possible of them read: twice as far until
/// there are none, then halves.
async fn length(api: &Api, job: &Job, placed: &PlacedJob, stream: JobStream) -> Result<u64> {
    let is_there = async |at: u64| {
        Ok::<_, Error>(!read_output(api, job, placed, stream, at, 1).await?.is_empty())
    };
    let (mut there, mut beyond) = (0, SHOWN_BYTES);
    while is_there(beyond).await? {
        (there, beyond) = (beyond, beyond.saturating_mul(2));
    }
    if there == 0 {
        // What fits into the page is read whole.
        return Ok(beyond);
    }
    while beyond - there > 1 {
        let middle = there + (beyond - there) / 2;
        if is_there(middle).await? { there = middle } else { beyond = middle }
    }
    Ok(beyond)
}

/// One page that follows a job: events `lines` with HTML that the daemon has escaped, and `end`.
pub(super) struct LineFollower {
    followed: FollowedJob,
    merge: StreamMerge,
    painters: [AnsiPainter; 2],
    /// Up to which byte each stream, and the order, was read.
    read: [u64; 2],
    order_read: u64,
    /// What was read of each stream and waits to be shown.
    waiting: [Vec<u8>; 2],
    /// Looks for which it has waited.
    looks: u32,
    /// Full pieces, one after the other.
    pieces: u32,
    is_over: bool,
}

impl LineFollower {
    /// One that has shown everything up to `from`.
    pub(super) async fn new(api: &Api, job: Job, from: OutputPlace) -> Result<Self> {
        let placed = placed(api, &job).await?;
        let OutputPlace { stdout, stderr, o, e } = from;
        let painter =
            |at: usize, line: u64| AnsiPainter::new(PREFIXES[at], (line > 0).then_some(line));
        Ok(Self {
            followed: FollowedJob::new(api, job, placed),
            merge: StreamMerge::after([stdout, stderr]),
            painters: [painter(0, o), painter(1, e)],
            read: [stdout, stderr],
            order_read: 0,
            waiting: [Vec::new(), Vec::new()],
            looks: 0,
            pieces: 0,
            is_over: false,
        })
    }

    pub(super) fn events(self) -> impl Stream<Item = Event> + Send {
        futures::stream::unfold(self, |mut follower| async move {
            let event = follower.next().await?;
            Some((event, follower))
        })
    }

    /// The next event. A fault ends the stream; the browser comes back with the last id it saw.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if self.is_over {
                return None;
            }
            let is_more = self.look().await?;
            self.pieces = if is_more { self.pieces + 1 } else { 0 };
            if self.pieces >= PIECES_BEHIND {
                self.go_to_the_end().await?;
                return Some(Event::default().event("skipped").data("to the end"));
            }
            // Whatever was printed is there when the job is seen as ended.
            let at_once =
                self.followed.job.status.is_final() && !is_more || self.looks >= LOOKS_FOR_ORDER;
            let html = self.lines(at_once);
            if !html.is_empty() {
                self.looks = 0;
                let ends = [0, 1].map(|at: usize| self.read[at] - self.waiting[at].len() as u64);
                let id = place(ends, &self.painters).id();
                return Event::default().event("lines").id(id).json_data(&html).ok();
            }
            if self.followed.job.status.is_final() && !is_more {
                self.is_over = true;
                let rest =
                    self.painters.each_mut().map(|painter| painter.paint(&[], true)).concat();
                return Event::default().event("end").json_data(&rest).ok();
            }
            if !is_more {
                self.followed.wait().await?;
                let has_waited = self.waiting.iter().any(|bytes| !bytes.is_empty());
                self.looks = if has_waited { self.looks + 1 } else { 0 };
            }
        }
    }

    /// Leaves out what lies before the end.
    async fn go_to_the_end(&mut self) -> Option<()> {
        for (at, stream) in JobStream::ALL.into_iter().enumerate() {
            let FollowedJob { api, job, placed, .. } = &self.followed;
            let end = StreamEnd::read(api, job, placed, stream).await.ok()?;
            if end.begin > self.read[at] {
                self.read[at] = end.begin;
                self.painters[at] = AnsiPainter::new(PREFIXES[at], None);
            } else {
                self.read[at] -= self.waiting[at].len() as u64;
            }
            self.waiting[at].clear();
        }
        self.merge = StreamMerge::after(self.read);
        (self.order_read, self.pieces) = (0, 0);
        Some(())
    }

    /// Reads more of both streams and of their order; whether there may be more still.
    async fn look(&mut self) -> Option<bool> {
        let mut is_more = false;
        for (at, stream) in JobStream::ALL.into_iter().enumerate() {
            let room = OUTPUT_EVENT_BYTES.saturating_sub(self.waiting[at].len());
            if room == 0 {
                is_more = true;
                self.looks = LOOKS_FOR_ORDER;
                continue;
            }
            let FollowedJob { api, job, placed, .. } = &self.followed;
            let bytes = read_output(api, job, placed, stream, self.read[at], room).await.ok()?;
            is_more |= bytes.len() == room;
            self.read[at] += bytes.len() as u64;
            self.waiting[at].extend(bytes);
        }
        // After the streams: what it tells of is there.
        let FollowedJob { api, job, placed, .. } = &self.followed;
        let report = job.report.clone().map(Box::new);
        let order = (api.orders)(placed.clone(), report, self.order_read).await.ok()?;
        self.order_read += order.len() as u64;
        self.merge.learn(&order);
        Some(is_more)
    }

    /// The lines that are known to come next.
    fn lines(&mut self, at_once: bool) -> String {
        let mut html = String::new();
        let mut left = self.waiting.each_ref().map(Vec::as_slice);
        while let Some((stream, length)) = self.merge.take(left.map(count), at_once) {
            let at = stream as usize;
            html.push_str(&self.painters[at].paint(split(&mut left[at], length), false));
        }
        let left = left.map(<[u8]>::len);
        for (waiting, left) in self.waiting.iter_mut().zip(left) {
            waiting.drain(..waiting.len() - left);
        }
        html
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_at_a_character_and_a_shorter_one_left_out() {
        assert_eq!(cut_at(b"rest\nline\nline\n"), 5);
        assert_eq!(cut_at("äx".as_bytes()), 0);
        assert_eq!(cut_at(&"äxxxxxxxxx\n".as_bytes()[1..]), 1, "what is left is no line at all");
        assert_eq!(cut_at(&[b'x'; 9]), 0);
        assert_eq!(cut_at(b""), 0);
    }

    #[test]
    fn of_many_short_lines_the_last_are_shown() {
        assert_eq!(lines_from(b"a\nb\nc\n", 2), 2);
        assert_eq!(lines_from(b"a\nb\nc", 2), 2);
        assert_eq!(lines_from(b"a\nb\nc", 3), 0);
        assert_eq!(lines_from(b"\n\n\n", 1), 2);
        assert_eq!(lines_from(b"", 1), 0);
    }

    #[test]
    fn a_place_is_read_back_and_nothing_else_is_one() {
        let place = OutputPlace { stdout: 1, stderr: u64::MAX, o: 0, e: 7 };
        assert_eq!(OutputPlace::read(&place.id()), Some(place));
        for id in ["", "1,2", "1,2,3", "1,2,3,x", "-1,2,3,4"] {
            assert_eq!(OutputPlace::read(id), None, "{id}");
        }
    }
}
