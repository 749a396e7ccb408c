//! What is left to be delivered when the command has ended: the report, and where the rest is. Made
//! by `deliver` and by `resume`, used up by `courier`.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::report::{INLINE_LIMIT_BYTES, Report};
use schema::spool::Stream;

/// The end of a run.
pub(crate) struct Last {
    /// As it is sent: a stream that the scheduler may have some of does not ride in it.
    pub(crate) report: Report,
    pub(crate) streams: [Rest; 2],
    /// Declared outputs that are to be sent, and where they are.
    pub(crate) files: Vec<(String, PathBuf)>,
    pub(crate) all_files: Vec<(String, PathBuf)>,
}

/// One stream, complete.
pub(crate) struct Rest {
    pub(crate) place: LastBytes,
    pub(crate) length: u64,
    /// Whether it rides in the report.
    pub(crate) inline: bool,
}

/// Where its bytes are.
pub(crate) enum LastBytes {
    Memory(Vec<u8>),
    File(PathBuf),
}

impl Last {
    /// `report` as made for everybody; `attempted`: of which streams the scheduler may have some.
    pub(crate) fn new(
        mut report: Report,
        places: [(LastBytes, u64); 2],
        attempted: [bool; 2],
        files: Vec<(String, PathBuf)>,
    ) -> Self {
        let inlines = [&mut report.stdout_inline, &mut report.stderr_inline];
        let mut inline = [false; 2];
        for ((text, attempted), inline) in inlines.into_iter().zip(attempted).zip(&mut inline) {
            if attempted {
                *text = None;
            }
            *inline = text.is_some();
        }
        let [stdout, stderr] = places;
        let rest = |(place, length): (LastBytes, u64), inline| Rest { place, length, inline };
        Self {
            report,
            streams: [rest(stdout, inline[0]), rest(stderr, inline[1])],
            all_files: files.clone(),
            files,
        }
    }

    /// Whether a stream rides in the report.
    pub(crate) fn is_inline(&self) -> bool {
        self.streams.iter().any(|rest| rest.inline)
    }

    /// The scheduler wants this stream by itself: it rides in no report any more, and what rode is
    /// what is sent.
    pub(crate) fn no_longer_inline(&mut self, stream: Stream) {
        let rest = &mut self.streams[stream as usize];
        rest.inline = false;
        if let Some(bytes) = inline(&self.report, stream) {
            rest.place = LastBytes::Memory(bytes);
        }
        match stream {
            Stream::Stdout => self.report.stdout_inline = None,
            Stream::Stderr => self.report.stderr_inline = None,
        }
    }

    /// The report as JSON.
    pub(crate) fn text(&self) -> Vec<u8> {
        serde_json::to_vec(&self.report).expect("a report is JSON")
    }
}

/// What rides in a report of a stream, as bytes.
pub(crate) fn inline(report: &Report, stream: Stream) -> Option<Vec<u8>> {
    let text = match stream {
        Stream::Stdout => report.stdout_inline.as_ref(),
        Stream::Stderr => report.stderr_inline.as_ref(),
    }?;
    STANDARD.decode(text).ok().filter(|bytes| bytes.len() <= INLINE_LIMIT_BYTES)
}
