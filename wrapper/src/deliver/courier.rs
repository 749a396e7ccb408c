//! Carries everything to the scheduler: pieces of the streams while the command runs, then the
//! rest, the files and the report. One thread; called by `deliver`.
//!
//! What always holds: it goes on from where the scheduler says that it is, so whatever breaks
//! where, nothing is missing and nothing counts twice; it stops when the scheduler says that the
//! job is over, or when the time for delivering is.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schema::id::BlobId;
use schema::spool::Stream;
use schema::wire::{HEARTBEAT_EVERY_MS, PIECE_LIMIT_BYTES, UPLOAD_LIMIT_BYTES, Wanted};

use super::backoff::Backoff;
use super::client::{FileAnswer, JobClient, ReportAnswer, RequestBody, RequestFault};
use super::heart;
use super::progress::DeliveryProgress;
use crate::last::{Last, LastBytes};
use crate::live::{Live, NextAction, PendingBytes, StreamPiece};

/// Smallest body that is tried when somebody between us and the scheduler refuses larger ones
/// (413): proxies that limit bodies take a page's form at least.
const SMALLEST_BYTES: u64 = 16 << 10;

/// How it came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeliveryOutcome {
    /// The scheduler has the report and all that it names.
    Delivered,
    /// The scheduler wants nothing of this job: why.
    Over(String),
    /// There was no more time: what failed last.
    GaveUp(String),
}

struct Courier<'a> {
    client: &'a Arc<JobClient>,
    live: &'a Arc<Live>,
    began: Instant,
    beating: bool,
    backoff: Backoff,
    /// Of each stream, where the scheduler is.
    at: [u64; 2],
    /// How it gets on there.
    progress: [DeliveryProgress; 2],
    /// Largest body that is sent.
    most: u64,
    /// Whether that is to be asked, for a request broke.
    unsure: [bool; 2],
}

/// Carries until all is delivered, or nothing more can be. `resumed`: another process may have
/// carried a part already.
pub(crate) fn run(client: &Arc<JobClient>, live: &Arc<Live>, resumed: bool) -> DeliveryOutcome {
    let (at, unsure) = ([0; 2], [resumed; 2]);
    let (progress, most) = (Default::default(), UPLOAD_LIMIT_BYTES as u64);
    let mut courier = Courier {
        client,
        live,
        began: Instant::now(),
        beating: false,
        backoff: Backoff::default(),
        at,
        progress,
        most,
        unsure,
    };
    if live.is_long() {
        courier.beat();
    }
    courier
        .stream()
        .and_then(|()| courier.rest(*live.last()))
        .err()
        .unwrap_or(DeliveryOutcome::Delivered)
}

impl Courier<'_> {
    fn beat(&mut self) {
        if !self.beating {
            self.beating = true;
            heart::start(self.client, self.live);
        }
    }

    /// What the streams bring, until the command has ended.
    fn stream(&mut self) -> Result<(), DeliveryOutcome> {
        loop {
            match self.live.next(self.at) {
                NextAction::Send(piece) => self.piece(piece)?,
                NextAction::Ended => return Ok(()),
                NextAction::Over(why) => return Err(DeliveryOutcome::Over(why)),
            }
        }
    }

    /// One piece, once. When it did not arrive whole, what follows is another one.
    fn piece(
        &mut self,
        StreamPiece { stream, offset, length, bytes }: StreamPiece,
    ) -> Result<(), DeliveryOutcome> {
        let which = stream as usize;
        if self.unsure[which] {
            let answer = self.client.offset(stream);
            let Some(at) = self.settle(answer)? else { return Ok(()) };
            self.is_at(stream, at)?;
            self.unsure[which] = false;
            if at != offset {
                return Ok(());
            }
        }
        let length = length.min(self.most);
        let body = match &bytes {
            PendingBytes::File(file) => RequestBody::File { file, from: offset, length },
            PendingBytes::Memory(bytes) => RequestBody::Bytes(
                &bytes[..bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX))],
            ),
        };
        let answer = match self.client.patch(stream, offset, body) {
            Ok(wanted) if wanted == offset => Err(RequestFault::Again {
                why: format!(
                    "the scheduler takes no more of {} than {offset} bytes",
                    stream.as_str()
                ),
                after: None,
            }),
            Err(RequestFault::TooLarge(_)) if self.goes_smaller(length) => return Ok(()),
            other => other,
        };
        match self.settle(answer)? {
            Some(wanted) => self.is_at(stream, wanted)?,
            None => self.unsure[which] = true,
        }
        Ok(())
    }

    /// The scheduler wants the stream from here on.
    fn is_at(&mut self, stream: Stream, at: u64) -> Result<(), DeliveryOutcome> {
        let before = std::mem::replace(&mut self.at[stream as usize], at);
        let wait = self.progress[stream as usize].moved(before, at);
        self.wait(
            wait,
            &format!("the scheduler goes back to byte {at} of {} again and again", stream.as_str()),
        )
    }

    /// Whether a body of this length can be sent in smaller ones; then it is from now on.
    fn goes_smaller(&mut self, length: u64) -> bool {
        if length <= SMALLEST_BYTES {
            return false;
        }
        self.most = (length / 4).max(SMALLEST_BYTES);
        true
    }

    /// Waits, if there is something to wait for.
    fn wait(&self, wait: Option<Duration>, why: &str) -> Result<(), DeliveryOutcome> {
        match wait {
            Some(wait) if !self.live.back_off(wait, true, why) => Err(self
                .live
                .is_over()
                .map_or_else(|| DeliveryOutcome::GaveUp(why.to_owned()), DeliveryOutcome::Over)),
            _ => Ok(()),
        }
    }

    /// What is left when the command has ended.
    fn rest(&mut self, mut last: Last) -> Result<(), DeliveryOutcome> {
        let mut refused = false;
        loop {
            for stream in Stream::ALL {
                self.rest_of(stream, &last)?;
            }
            while let Some((name, path)) = last.files.first().cloned() {
                self.file(&mut last, &name, &path)?;
                last.files.remove(0);
            }
            let answer = self.client.report(&last.text());
            if matches!(answer, Err(RequestFault::TooLarge(_))) && last.is_inline() {
                Stream::ALL.into_iter().for_each(|stream| last.no_longer_inline(stream));
                continue;
            }
            let Some(told) = self.settle(answer)? else { continue };
            let wanted = match told {
                ReportAnswer::Accepted => return Ok(()),
                ReportAnswer::Wanted(wanted) => wanted,
            };
            // Once is a scheduler that has lost something; again and again is one that cannot be
            // pleased.
            if refused {
                let why = format!("the scheduler refuses the report: {}", in_words(&wanted));
                self.settle::<()>(Err(RequestFault::Again { why, after: None }))?;
            }
            refused = true;
            self.back_to(wanted, &mut last);
        }
    }

    /// The scheduler wants this again.
    fn back_to(&mut self, wanted: Wanted, last: &mut Last) {
        for (stream, from) in Stream::ALL.into_iter().zip([wanted.stdout, wanted.stderr]) {
            if let Some(from) = from {
                self.at[stream as usize] = from;
                self.unsure[stream as usize] = false;
                last.no_longer_inline(stream);
            }
        }
        last.again(&wanted.files);
    }

    fn rest_of(&mut self, stream: Stream, last: &Last) -> Result<(), DeliveryOutcome> {
        let rest = &last.streams[stream as usize];
        if rest.inline {
            return Ok(());
        }
        let all = match &rest.place {
            LastBytes::File(path) => {
                let file = File::open(path).map_err(|error| {
                    DeliveryOutcome::GaveUp(format!("cannot read {} back: {error}", path.display()))
                })?;
                Ok(Arc::new(file))
            }
            LastBytes::Memory(held) => Err(held),
        };
        while self.at[stream as usize] < rest.length {
            let offset = self.at[stream as usize];
            let length = (rest.length - offset).min(PIECE_LIMIT_BYTES as u64);
            let bytes = match &all {
                Ok(file) => PendingBytes::File(Arc::clone(file)),
                Err(held) => PendingBytes::Memory(part(held, offset, length)),
            };
            self.piece(StreamPiece { stream, offset, length, bytes })?;
        }
        Ok(())
    }

    fn file(
        &mut self,
        last: &mut Last,
        name: &str,
        path: &std::path::Path,
    ) -> Result<(), DeliveryOutcome> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (total, file) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                last.lost(name, &format!("cannot read {} back: {error}", path.display()));
                return Ok(());
            }
        };
        let (mut offset, mut progress) = (0, DeliveryProgress::default());
        let mut wrong = 0;
        loop {
            let length = (total - offset).min(self.most);
            let answer = match self.client.file(name, &file, offset, length, total) {
                Err(RequestFault::TooLarge(_)) if self.goes_smaller(length) => continue,
                Err(RequestFault::Never(why)) => {
                    last.lost(name, &format!("the scheduler does not take it: {why}"));
                    return Ok(());
                }
                Ok(FileAnswer::Wanted(wanted)) if wanted >= total || wanted == offset => {
                    Err(RequestFault::Again {
                        why: format!(
                            "the scheduler takes no more of the file `{name}` than {offset} bytes"
                        ),
                        after: None,
                    })
                }
                other => other,
            };
            match self.settle(answer)? {
                None => {}
                Some(FileAnswer::Wanted(wanted)) => {
                    let wait = progress.moved(offset, wanted);
                    offset = wanted;
                    self.wait(
                        wait,
                        &format!(
                            "the scheduler goes back to byte {wanted} of the file `{name}` again \
                             and again"
                        ),
                    )?;
                }
                Some(FileAnswer::Whole(blob))
                    if last.blob(name).is_none_or(|ours| ours == blob) =>
                {
                    return Ok(());
                }
                // Damaged on the way, or changed under our hands.
                Some(FileAnswer::Whole(_)) if wrong < 2 => {
                    wrong += 1;
                    offset = 0;
                }
                Some(FileAnswer::Whole(blob)) => {
                    last.lost(
                        name,
                        &format!("its content changed while it was handed over ({blob} arrived)"),
                    );
                    return Ok(());
                }
            }
        }
    }

    /// Takes an answer in: `None` when the same is to be done again, after the wait that it takes.
    fn settle<T>(&mut self, answer: Result<T, RequestFault>) -> Result<Option<T>, DeliveryOutcome> {
        if self.began.elapsed() >= Duration::from_millis(HEARTBEAT_EVERY_MS) {
            // A short run with much to deliver.
            self.beat();
        }
        let (why, after) = match answer {
            Ok(value) => {
                self.backoff.reset();
                self.live.succeeded();
                return Ok(Some(value));
            }
            Err(RequestFault::Over(why)) => {
                self.live.over(&why);
                return Err(DeliveryOutcome::Over(why));
            }
            Err(RequestFault::Again { why, after }) => (why, after),
            Err(RequestFault::Never(why)) => (why, None),
            Err(RequestFault::TooLarge(why)) => {
                let hint = "something between here and the scheduler refuses what cannot be made \
                            smaller; raise its limit for bodies of requests";
                (format!("{why}: {hint}"), None)
            }
        };
        let wait = self.backoff.next(after);
        let running = self.live.is_running();
        if self.live.back_off(wait, after.is_none(), &why) {
            if running && !self.live.is_running() {
                // People wait now: start anew with short waits.
                self.backoff.reset();
            }
            return Ok(None);
        }
        Err(self.live.is_over().map_or(DeliveryOutcome::GaveUp(why), DeliveryOutcome::Over))
    }
}

impl Last {
    /// These files are to be sent again, as far as they can be.
    fn again(&mut self, names: &[String]) {
        let known: Vec<_> =
            self.all_files.iter().filter(|(name, _)| names.contains(name)).cloned().collect();
        self.files.extend(known);
    }

    fn blob(&self, name: &str) -> Option<BlobId> {
        self.report.files.iter().find(|file| file.name == name)?.content_blob_id
    }

    /// A file cannot be handed over: the report says so instead.
    fn lost(&mut self, name: &str, why: &str) {
        self.report.lose(name, why);
    }
}

fn part(held: &[u8], offset: u64, length: u64) -> Vec<u8> {
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(held.len());
    let until = from.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)).min(held.len());
    held[from..until].to_owned()
}

fn in_words(wanted: &Wanted) -> String {
    let stream =
        |name: &str, from: Option<u64>| from.map(|from| format!("{name} from byte {from}"));
    let parts =
        [stream("stdout", wanted.stdout), stream("stderr", wanted.stderr)].into_iter().flatten();
    let files = wanted.files.iter().map(|name| format!("the file `{name}`"));
    format!("it wants {}", parts.chain(files).collect::<Vec<_>>().join(", "))
}
