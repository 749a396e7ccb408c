//! A run that is delivered over HTTP: its spool, and how long its end is tried to be told. Called
//! by `hand_over`.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use schema::report::{Report, line};

use crate::deliver::courier::DeliveryOutcome;
use crate::deliver::spool::{Spool, SpoolAddress};
use crate::deliver::{DeliveryThreads, DeliveryWait};
use crate::last::{Last, LastBytes};
use crate::last_words;
use crate::store::{KeptBytes, KeptStream, LazyDirectory};
use crate::writer::say;

/// How long before its place ends it a wrapper gives up delivering: for the report in the log, a
/// slow disk, and clocks that differ a little.
const ENDS_BEFORE: Duration = Duration::from_secs(10);

/// The shortest time in which delivering is tried all the same, as for one whose clock is far
/// ahead.
const LEAST_TIME: Duration = Duration::from_secs(5);

/// A delivery, before and after the start.
pub(crate) struct Http {
    pub(super) delivery: DeliveryThreads,
    pub(super) deliver_for: Duration,
    /// When its place ends us at the latest, milliseconds since 1970 by the scheduler's clock.
    pub(super) ended_by_ms: Option<i64>,
    /// Where the spool is to be.
    pub(super) directory: LazyDirectory,
    pub(super) about: SpoolAddress,
    pub(super) spool: Option<Spool>,
}

impl Http {
    pub(super) fn make_spool(&self) -> io::Result<Spool> {
        Spool::make(&self.directory.path()?, &self.about)
    }

    pub(super) fn hand_over(
        mut self,
        report: Report,
        streams: [KeptStream; 2],
        is_within_a_line: bool,
        to_send: Vec<(String, PathBuf)>,
    ) {
        let attempted = self.delivery.ended(time_to_deliver(self.deliver_for, self.ended_by_ms));
        let (job, tokens) = (self.delivery.target.job.clone(), self.delivery.target.tokens.clone());
        let last_words = || match tokens.current() {
            Ok(token) => {
                last_words::marked_line(&line::write(&job, &token, &report), is_within_a_line)
            }
            Err(why) => say(&format!(
                "the report is not written into the log, where nobody could believe it: {why}"
            )),
        };
        let nowhere_else = streams.each_ref().map(KeptStream::is_in_memory);
        let last = Last::new(
            report.clone(),
            streams.map(|kept| (LastBytes::of(kept.place), kept.kept)),
            attempted,
            to_send,
        );
        if self.spool.is_none() {
            // One that was refused before the start had none; now there may be something to keep.
            self.spool = self.make_spool().ok();
        }
        let unkept =
            self.spool.as_mut().and_then(|spool| spool.report(&last.report, nowhere_else).err());
        if let Some(error) = &unkept {
            say(&format!("the report is not kept until it is delivered: {error}"));
        }
        let url = self.delivery.target.url.clone();
        let outcome =
            self.delivery.finish(last, &DeliveryWait::of_a_run(self.spool.as_ref(), &last_words));
        match (outcome, self.spool) {
            (DeliveryOutcome::Delivered, Some(spool)) => spool.remove(),
            (DeliveryOutcome::Delivered, None) => {}
            (DeliveryOutcome::Over(why), spool) => {
                say(&format!(
                    "nothing more is delivered: the scheduler says that the job is over: {why}"
                ));
                if let Some(spool) = spool {
                    spool.remove();
                }
            }
            (DeliveryOutcome::GaveUp(why), Some(spool)) => {
                let at = spool.directory().display();
                let kept = match unkept {
                    None => format!("it is kept: `pvn-wrapper resume {at}` tries again"),
                    Some(error) => format!(
                        "nor could it be kept: {error}. How the command ended only this log \
                         tells; `pvn-wrapper resume {at}` delivers what there is of its output"
                    ),
                };
                say(&format!("the report was not delivered to {url}: {why}; {kept}"));
            }
            (DeliveryOutcome::GaveUp(why), None) => {
                say(&format!("the report was not delivered to {url}: {why}"))
            }
        }
    }
}

impl LastBytes {
    fn of(place: KeptBytes) -> Self {
        match place {
            KeptBytes::Memory(bytes) => Self::Memory(bytes),
            KeptBytes::File(path) => Self::File(path),
        }
    }
}

/// For how long delivering is tried from now on: so that this process ends by itself before its
/// place ends it, which on a cluster takes the container's log away, with the report in it. Where
/// the clocks differ the report leaves by the log too soon, or as it did.
fn time_to_deliver(deliver_for: Duration, ended_by_ms: Option<i64>) -> Duration {
    let now_ms = SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    let left =
        |by: i64| Duration::from_millis(u64::try_from(by.saturating_sub(now_ms)).unwrap_or(0));
    ended_by_ms.map_or(deliver_for, |by| {
        deliver_for.min(left(by).saturating_sub(ENDS_BEFORE).max(LEAST_TIME))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivering_ends_before_the_place_ends_everything() {
        let now_ms = i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
        let usual = Duration::from_secs(900);
        let check = |ended_by_ms: Option<i64>, least: u64, most: u64| {
            let time = time_to_deliver(usual, ended_by_ms);
            assert!(
                time >= Duration::from_secs(least) && time <= Duration::from_secs(most),
                "{ended_by_ms:?}: {time:?}"
            );
        };
        check(None, 900, 900);
        check(Some(now_ms + 60_000), 45, 50);
        check(Some(now_ms + 3_600_000), 900, 900);
        // A clock far ahead, and numbers that nobody gives.
        for past in [now_ms + 5_000, 0, i64::MIN] {
            check(Some(past), 5, 5);
        }
        assert_eq!(
            time_to_deliver(Duration::from_secs(1), Some(0)),
            Duration::from_secs(1),
            "who wants less has less"
        );
    }
}
