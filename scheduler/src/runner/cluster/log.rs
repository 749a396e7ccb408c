//! The log of a container that did not deliver, or not to the end: the one thing that says what an
//! image without a wrapper printed, and where a wrapper that reaches nobody, or nobody any more,
//! left its report. Called once a job is over, or silent.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::LogParams;
use schema::id::BlobId;
use schema::report::Report;
use schema::report::line::LINE_LIMIT_BYTES;
use schema::spool::Stream;
use schema::wire::{REPORT_MARK, TOKEN_VARIABLE, WORDS_MARK};

use super::follow::JobFollower;
use crate::delivery::StreamTaken;
use crate::runner::evidence::{self, OutcomeEvidence};

/// Most bytes that are kept of a log: its head. A node keeps no more than 10 MiB of one by itself
/// (`containerLogMaxSize`).
const KEPT_LIMIT_BYTES: usize = 8 << 20;

/// Longest marked line that is looked at: its JSON, and mark, job and MAC.
const MARKED_LIMIT_BYTES: usize = LINE_LIMIT_BYTES + 1024;

/// What a node counts as a line when it is asked for the last ones: a runtime writes a long line in
/// pieces, and each counts. Source: `max_container_log_line_size` of containerd, 16 KiB; the buffer
/// of conmon, which CRI-O uses, 8 KiB.
const NODE_LINE_BYTES: usize = 8 << 10;

/// Lines at the end of a log among which a wrapper's marked line is, the longest one too: it says
/// little afterwards.
const MARKED_LINES: i64 = 20 + MARKED_LIMIT_BYTES.div_ceil(NODE_LINE_BYTES) as i64;

/// How long a log is asked for again that cannot be read at once, as while its node's kubelet is
/// restarted.
const READ_WITHIN: Duration = Duration::from_secs(20);

/// Piece in which it is read.
const PIECE_BYTES: usize = 256 << 10;

impl JobFollower {
    /// Adds what the log says, and keeps what was printed.
    pub(super) async fn read_log(
        &self,
        pod: &Pod,
        mut learned: OutcomeEvidence,
    ) -> OutcomeEvidence {
        if let Err(why) = self.keep_log(pod, &mut learned).await {
            tracing::warn!(
                job = %self.job, why,
                "the log of a job on a cluster cannot be read; its end is told without it"
            );
            if learned.is_of_another_end() {
                self.replace_output(Vec::new()).await;
            }
            if learned.is_of_another_end() || !self.inner.delivery.was_heard(self.job) {
                let words = |whose: &str| {
                    self.hidden
                        .hide(&format!("pvn: what {whose} printed is not known: {why}\n"))
                        .into_bytes()
                };
                self.keep(Stream::Stderr, words("this job")).await;
                if !self.record.is_apply {
                    // Where it is looked for, and other words for each job: a yes to what nobody
                    // has seen is for this one fetch.
                    self.keep(Stream::Stdout, words(&self.job.to_string())).await;
                }
            }
        }
        learned
    }

    /// Keeps what was printed before its Pod, which has it, is ended: the next life of the daemon
    /// may find that gone. What cannot be read now can be when the container has ended.
    pub(super) async fn keep_log_early(&self, pod: &Pod, report: &Report) {
        let mut learned =
            OutcomeEvidence { line: Some(Box::new(report.clone())), ..OutcomeEvidence::default() };
        if let Err(why) = self.keep_log(pod, &mut learned).await {
            tracing::debug!(
                job = %self.job, why,
                "the log of a job on a cluster cannot be read yet"
            );
        }
    }

    /// Adds the report in the marked line, and keeps what was printed: as standard output where
    /// nothing was uploaded, or where it is another one than what went through a wrapper, for
    /// nobody kept the two streams apart; else what is missing of a stream by that report.
    async fn keep_log(&self, pod: &Pod, learned: &mut OutcomeEvidence) -> Result<(), String> {
        let params =
            LogParams { container: Some(self.record.container.clone()), ..LogParams::default() };
        let (head, line) = self.log(pod, &params, KEPT_LIMIT_BYTES, READ_WITHIN).await?;
        learned.line = learned.line.take().or(line);
        let replaces = learned.is_of_another_end();
        let was_heard = self.inner.delivery.was_heard(self.job);
        // Of a script without a sign of its wrapper a message tells a part only.
        let report = learned
            .line
            .as_ref()
            .or(learned.message.as_ref().filter(|_| was_heard))
            .filter(|_| !replaces);
        let lacking = match report {
            Some(report) => self.inner.delivery.lacking(self.job, report).await,
            None => Vec::from_iter(Some(Stream::Stdout).filter(|_| replaces || !was_heard)),
        };
        if lacking.is_empty() {
            return Ok(());
        }
        let is_whole = head.len() < KEPT_LIMIT_BYTES;
        let mut shown = self.hidden.hide_head(without_marked(&head), is_whole);
        // A mask in each of many short lines is longer than what it hides.
        shown.truncate(KEPT_LIMIT_BYTES);
        match report {
            Some(report) => self.fill(&lacking, shown, report).await,
            None if replaces => self.replace_output(shown).await,
            None => self.keep(Stream::Stdout, shown).await,
        }
        Ok(())
    }

    /// Keeps what a log has of these streams, of which not all came: exactly, where that can be
    /// told. Else both streams together stand in the place of the first one, unless more of
    /// that came.
    async fn fill(&self, lacking: &[Stream], log: Vec<u8>, report: &Report) {
        let exact: Vec<_> = lacking
            .iter()
            .filter_map(|stream| Some((*stream, alone(&log, *stream, report)?, true)))
            .collect();
        let mixed =
            lacking.first().map(|stream| (*stream, log, false)).filter(|_| exact.is_empty());
        for (stream, printed, is_exact) in exact.into_iter().chain(mixed) {
            if let Err(error) = self.inner.delivery.fill(self.job, stream, printed, is_exact).await
            {
                tracing::warn!(job = %self.job, %error, "the log of a job could not be kept");
            }
        }
    }

    /// The report that a wrapper wrote into its log because it reaches nobody; it goes on trying,
    /// and nobody has to wait for that.
    pub(super) async fn marked_line(&self, pod: &Pod) -> Option<Box<Report>> {
        let params = LogParams {
            container: Some(self.record.container.clone()),
            tail_lines: Some(MARKED_LINES),
            ..LogParams::default()
        };
        // A log that cannot be read now can be when the container has ended.
        self.log(pod, &params, 0, Duration::ZERO).await.ok()?.1
    }

    /// So much of the head of a log, and the report in its last marked line. Without the job's
    /// token no line counts: anybody could have written it.
    async fn log(
        &self,
        pod: &Pod,
        params: &LogParams,
        head_limit: usize,
        within: Duration,
    ) -> Result<(Vec<u8>, Option<Box<Report>>), String> {
        let (pods, name) = (self.pods(), pod.name_any());
        let asked = self.ask(within, "reading its log", || pods.log_stream(&name, params)).await;
        let mut stream = std::pin::pin!(asked.map_err(|refused| refused.why().to_owned())?);
        let token = self.record.token.as_deref().unwrap_or_default();
        let mut marked = MarkedLineFinder::new(|line| {
            evidence::in_line(line, &self.job, token).filter(|_| !token.is_empty())
        });
        let mut head = Vec::new();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = stream.read(&mut piece).await.map_err(|error| error.to_string())?;
            if read == 0 {
                return Ok((head, marked.end()));
            }
            let room = head_limit.saturating_sub(head.len()).min(read);
            head.extend_from_slice(&piece[..room]);
            marked.take(&piece[..read]);
        }
    }

    /// Keeps it in the place of what a wrapper uploaded, which was a part of it.
    async fn replace_output(&self, log: Vec<u8>) {
        if let Err(error) = self.inner.delivery.replace_output(self.job, log).await {
            tracing::warn!(job = %self.job, %error, "the log of a job could not be kept");
        }
    }

    /// Keeps it where the wrapper would have put it.
    async fn keep(&self, stream: Stream, log: Vec<u8>) {
        let delivery = &self.inner.delivery;
        let token = self.record.token.as_ref().and_then(|text| delivery.check(text).ok());
        let Some(upload) = token.and_then(|token| delivery.admit(&token)) else { return };
        match upload.append(stream, 0, log).await {
            Ok(StreamTaken::Next(_)) => {}
            Ok(_) => tracing::debug!(job = %self.job, "the log of a job came after its output"),
            Err(error) => {
                tracing::warn!(job = %self.job, %error, "the log of a job could not be kept")
            }
        }
    }
}

/// Looks for marked lines in a log that comes in pieces. Of other lines nothing is kept.
struct MarkedLineFinder<F> {
    read: F,
    /// The present line, as far as it may be one.
    line: Vec<u8>,
    is_other: bool,
    found: Option<Box<Report>>,
}

impl<F: Fn(&str) -> Option<Box<Report>>> MarkedLineFinder<F> {
    fn new(read: F) -> Self {
        Self { read, line: Vec::new(), is_other: false, found: None }
    }

    fn take(&mut self, piece: &[u8]) {
        let mut lines = piece.split(|byte| *byte == b'\n');
        self.go_on(lines.next().unwrap_or_default());
        for line in lines {
            self.end_line();
            self.go_on(line);
        }
    }

    fn go_on(&mut self, part: &[u8]) {
        if self.is_other {
            return;
        }
        self.line.extend_from_slice(part);
        let known = self.line.len().min(REPORT_MARK.len());
        self.is_other = self.line[..known] != REPORT_MARK.as_bytes()[..known]
            || self.line.len() > MARKED_LIMIT_BYTES;
        if self.is_other {
            self.line = Vec::new();
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !std::mem::take(&mut self.is_other) && line.len() > REPORT_MARK.len() {
            // The last one counts: the wrapper writes it after the command has ended.
            self.found = (self.read)(&String::from_utf8_lossy(&line)).or(self.found.take());
        }
    }

    fn end(mut self) -> Option<Box<Report>> {
        self.end_line();
        self.found
    }
}

/// What people are shown of a log: a marked line is between a wrapper and us, whether or not it
/// counts.
fn without_marked(log: &[u8]) -> Vec<u8> {
    log.split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !line.starts_with(REPORT_MARK.as_bytes()))
        .flatten()
        .copied()
        .collect()
}

/// What of a log the command wrote to one of its streams, where that can be told: without the
/// wrapper's own words, which differ from run to run, and without the other stream, when the
/// wrapper's report holds that, it has the digest that the report gives.
fn alone(log: &[u8], stream: Stream, report: &Report) -> Option<Vec<u8>> {
    let (digest, other_bytes, other) = match stream {
        Stream::Stdout => (report.stdout_blob_id?, report.stderr_bytes, &report.stderr_inline),
        Stream::Stderr => (report.stderr_blob_id?, report.stdout_bytes, &report.stdout_inline),
    };
    let other =
        if other_bytes == 0 { Vec::new() } else { STANDARD.decode(other.as_ref()?).ok()? };
    let text = |line: &[u8]| line.strip_suffix(b"\n").unwrap_or(line).to_owned();
    let mut others = other.split_inclusive(|byte| *byte == b'\n').peekable();
    let is_its = |line: &&[u8]| {
        let is_of_other = others.next_if(|next| text(next) == text(line)).is_some();
        !is_of_other && !line.starts_with(WORDS_MARK.as_bytes())
    };
    let mut printed: Vec<u8> =
        log.split_inclusive(|byte| *byte == b'\n').filter(is_its).flatten().copied().collect();
    if BlobId::of(&printed) != digest {
        // Before its own words the wrapper ends a line that the command left open.
        printed.pop_if(|last| *last == b'\n');
    }
    (BlobId::of(&printed) == digest).then_some(printed)
}

/// The job's token among the variables that reach us.
pub(super) fn token(reach: &[(String, String)]) -> Option<String> {
    reach.iter().find(|(key, _)| key == TOKEN_VARIABLE).map(|(_, text)| text.clone())
}

#[cfg(test)]
mod tests {
    use schema::id::JobId;
    use schema::report::line;

    use super::*;

    #[test]
    fn marked_lines_are_not_shown() {
        let log = format!("one\n{REPORT_MARK} a b c\ntwo {REPORT_MARK}\n\n{REPORT_MARK} d");
        assert_eq!(
            without_marked(log.as_bytes()),
            format!("one\ntwo {REPORT_MARK}\n\n").as_bytes()
        );
        assert_eq!(without_marked(b"one\r\ntwo"), b"one\r\ntwo");
    }

    #[test]
    fn a_marked_line_is_found_however_long_it_is_and_however_it_is_cut() {
        let job = JobId::derive(&[b"x"]);
        let report = |code: i32, bytes: usize| Report {
            exit_code: Some(code),
            hostname: "h".repeat(bytes),
            ..Report::default()
        };
        let lines = [(1, 10), (2, 3 << 20)]
            .map(|(code, bytes)| line::write(&job.to_string(), "t", &report(code, bytes)));
        let other = format!("pvn-wrapper-rep\n\n{REPORT_MARK}\n> {}", lines[0]);
        let log = format!("before\n{}{other}{}{other}after", lines[0], lines[1]);
        for piece in [7, 4096, PIECE_BYTES] {
            let mut marked = MarkedLineFinder::new(|line| evidence::in_line(line, &job, "t"));
            log.as_bytes().chunks(piece).for_each(|piece| marked.take(piece));
            assert_eq!(marked.end().unwrap().exit_code, Some(2), "in pieces of {piece}");
        }
        let mut marked = MarkedLineFinder::new(|line| evidence::in_line(line, &job, "t"));
        marked.take(lines[0].trim_end().as_bytes());
        assert_eq!(marked.end().unwrap().exit_code, Some(1), "also without its newline");
    }

    #[test]
    fn of_a_line_without_an_end_nothing_is_kept() {
        let mut marked = MarkedLineFinder::new(|_| None);
        marked.take(REPORT_MARK.as_bytes());
        for _ in 0..=MARKED_LIMIT_BYTES / PIECE_BYTES {
            marked.take(&[b'x'; PIECE_BYTES]);
        }
        assert!(marked.is_other && marked.line.capacity() == 0);
    }
}
