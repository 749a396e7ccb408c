//! Writes down in which order pieces of the two streams were read, so that a combined view is
//! right; [`schema::spool`] has the format. Called by `supervise` after each read. Bounded, and
//! never in the way: what cannot be written is not known.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use schema::spool::{LIVE_AFTER_MS, ORDER, ORDER_LIMIT_BYTES, Stream, order_record};

/// Records that wait are written when they are so many bytes, or this old.
const BATCH_BYTES: usize = 4096;
const BATCH: Duration = Duration::from_millis(LIVE_AFTER_MS);

/// The order so far.
#[derive(Default)]
pub(crate) struct OutputOrder {
    to: OrderSink,
    /// What was read last; of one stream as long as only that is read.
    last: Option<(Stream, u64)>,
    waiting: Vec<u8>,
    written: u64,
    write_at: Option<Instant>,
}

#[derive(Default)]
enum OrderSink {
    /// Nobody wants to know.
    #[default]
    Nobody,
    /// Made when there is something to tell.
    Path(PathBuf),
    File(File),
}

impl OutputOrder {
    /// Into this directory, which is there when there is anything to tell.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self {
            to: directory
                .map_or(OrderSink::Nobody, |directory| OrderSink::Path(directory.join(ORDER))),
            ..Self::default()
        }
    }

    /// The next bytes that were read are of this stream.
    pub(crate) fn add(&mut self, stream: Stream, length: u64, now: Instant) {
        if length == 0 || matches!(self.to, OrderSink::Nobody) {
            return;
        }
        match &mut self.last {
            Some((last, sum)) if *last == stream => *sum = sum.saturating_add(length),
            last => {
                if let Some((stream, length)) = last.replace((stream, length)) {
                    order_record(stream, length, &mut self.waiting);
                    self.write_at = self.write_at.or(now.checked_add(BATCH));
                }
            }
        }
        if self.waiting.len() >= BATCH_BYTES {
            self.write();
        }
    }

    /// Writes what has waited long enough.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.write_at.is_some_and(|at| now >= at) {
            self.write();
        }
    }

    /// When to call [`Self::tick`].
    pub(crate) fn next(&self) -> Option<Instant> {
        self.write_at
    }

    /// Both streams have ended. Of one stream alone there is nothing to tell.
    pub(crate) fn finish(&mut self) {
        if matches!(self.to, OrderSink::Path(_)) && self.waiting.is_empty() {
            return;
        }
        if let Some((stream, length)) = self.last.take() {
            order_record(stream, length, &mut self.waiting);
        }
        self.write();
    }

    fn write(&mut self) {
        self.write_at = None;
        if let OrderSink::Path(path) = &self.to {
            let made =
                File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
            self.to = made.map_or(OrderSink::Nobody, OrderSink::File);
        }
        let waiting = std::mem::take(&mut self.waiting);
        let OrderSink::File(file) = &mut self.to else { return };
        self.written += waiting.len() as u64;
        if self.written > ORDER_LIMIT_BYTES || file.write_all(&waiting).is_err() {
            self.to = OrderSink::Nobody;
        }
    }
}

#[cfg(test)]
mod tests {
    use schema::spool::order_pieces;

    use super::*;

    fn written(directory: &tempfile::TempDir) -> Vec<(Stream, u64)> {
        order_pieces(&std::fs::read(directory.path().join(ORDER)).unwrap_or_default()).collect()
    }

    #[test]
    fn pieces_of_one_stream_in_a_row_are_one() {
        let directory = tempfile::tempdir().unwrap();
        let mut order = OutputOrder::new(Some(directory.path().to_owned()));
        let now = Instant::now();
        for (stream, length) in [
            (Stream::Stdout, 3),
            (Stream::Stdout, 4),
            (Stream::Stderr, 0),
            (Stream::Stderr, 5),
            (Stream::Stdout, 1),
        ] {
            order.add(stream, length, now);
        }
        order.tick(order.next().unwrap());
        assert_eq!(
            written(&directory),
            [(Stream::Stdout, 7), (Stream::Stderr, 5)],
            "those who read along see what is certain"
        );
        order.finish();
        assert_eq!(
            written(&directory),
            [(Stream::Stdout, 7), (Stream::Stderr, 5), (Stream::Stdout, 1)]
        );
    }

    #[test]
    fn of_one_stream_alone_there_is_nothing_to_tell() {
        let directory = tempfile::tempdir().unwrap();
        let mut order = OutputOrder::new(Some(directory.path().to_owned()));
        order.add(Stream::Stderr, 3, Instant::now());
        order.finish();
        assert!(!directory.path().join(ORDER).exists());
    }

    #[test]
    fn the_order_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let mut order = OutputOrder::new(Some(directory.path().to_owned()));
        for _ in 0..ORDER_LIMIT_BYTES {
            order.add(Stream::Stdout, 1, Instant::now());
            order.add(Stream::Stderr, 1, Instant::now());
        }
        order.finish();
        let length = std::fs::metadata(directory.path().join(ORDER)).unwrap().len();
        assert!(length <= ORDER_LIMIT_BYTES && length > ORDER_LIMIT_BYTES / 2, "{length}");
    }
}
