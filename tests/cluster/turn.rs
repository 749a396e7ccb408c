//! Whose turn it is: tests share the cluster, and one that stops a part of it has it alone. Across
//! threads, processes and checkouts, by locks that end with whoever holds them.
//!
//! What always holds: who comes first gets it first, so that neither kind waits for ever for the
//! other; every wait ends, and says whom it waits for.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::layout::{self, Layout};

/// Longest wait: far above what the slowest tests of several checkouts take together.
const TURN_WITHIN: Duration = Duration::from_secs(900);
/// How long a test waits before it says for whom.
const SAID_AFTER: Duration = Duration::from_secs(15);
/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Whether others may use the cluster at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// They may.
    Shared,
    /// They may not.
    Alone,
}

/// A turn; over when it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _turn: File,
    _name: File,
    named: PathBuf,
}

impl Drop for Turn {
    fn drop(&mut self) {
        // What is left is taken for what it is: nobody holds its lock.
        let _left = fs::remove_file(&self.named);
    }
}

impl Turn {
    /// Waits for a turn of the test of this name.
    ///
    /// # Errors
    /// Who has it still when the longest wait is over, or what is wrong with the files.
    pub(super) fn take(layout: &Layout, test: &str, kind: Kind) -> Result<Self, String> {
        let failed = |error: io::Error| format!("the locks of its users cannot be used: {error}");
        let holders = layout.cache().join(layout::HOLDERS);
        fs::create_dir_all(&holders).map_err(failed)?;
        let (queue, turn) = (
            layout.lock_file(layout::QUEUE).map_err(failed)?,
            layout.lock_file(layout::TURNS).map_err(failed)?,
        );
        let mut patience = Patience { test, holders: &holders, since: Instant::now(), said: false };
        // Whoever is next keeps the door shut for those that come later.
        patience.wait(|| queue.try_lock())?;
        patience.wait(|| match kind {
            Kind::Shared => turn.try_lock_shared(),
            Kind::Alone => turn.try_lock(),
        })?;
        let named = holders.join(format!("{test} ({})", std::process::id()));
        let name = File::create(&named).map_err(failed)?;
        name.lock().map_err(failed)?;
        Ok(Self { _turn: turn, _name: name, named })
    }
}

struct Patience<'a> {
    test: &'a str,
    holders: &'a Path,
    since: Instant,
    said: bool,
}

impl Patience<'_> {
    fn wait(
        &mut self,
        mut try_lock: impl FnMut() -> Result<(), TryLockError>,
    ) -> Result<(), String> {
        loop {
            match try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    return Err(format!("the locks of its users cannot be used: {error}"));
                }
            }
            let waited = self.since.elapsed();
            if waited > TURN_WITHIN {
                return Err(format!(
                    "{} had no turn within {} s; these have it: {}",
                    self.test,
                    TURN_WITHIN.as_secs(),
                    self.live()
                ));
            }
            if waited > SAID_AFTER && !self.said {
                self.said = true;
                // Past the test runner's capture, so that a person sees it.
                let _nobody_reads = writeln!(
                    io::stderr(),
                    "{} waits for its turn at the cluster after {}",
                    self.test,
                    self.live()
                );
            }
            std::thread::park_timeout(PAUSE);
        }
    }

    /// The tests that have a turn, for people.
    fn live(&self) -> String {
        let mut live = Vec::new();
        for entry in fs::read_dir(self.holders).into_iter().flatten().flatten() {
            let is_held = File::open(entry.path())
                .is_ok_and(|name| matches!(name.try_lock_shared(), Err(TryLockError::WouldBlock)));
            if is_held {
                live.push(entry.file_name().to_string_lossy().into_owned());
            } else {
                // Of one that was killed.
                let _gone = fs::remove_file(entry.path());
            }
        }
        if live.is_empty() { "one that has just come".to_owned() } else { live.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::wait;

    #[test]
    fn who_wants_the_cluster_alone_waits_for_those_before_and_is_not_overtaken() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        let (first, second) = (
            Turn::take(&layout, "first", Kind::Shared).unwrap(),
            Turn::take(&layout, "second", Kind::Shared).unwrap(),
        );
        let (order, took) = mpsc::channel();
        let queue = layout.lock_file(layout::QUEUE).unwrap();
        std::thread::scope(|scope| {
            let (layout, taken) = (&layout, order.clone());
            scope.spawn(move || {
                let _turn = Turn::take(layout, "alone", Kind::Alone).unwrap();
                taken.send("alone").unwrap();
            });
            wait::until("the one to be next", || match queue.try_lock() {
                Err(TryLockError::WouldBlock) => Some(()),
                _ => queue.unlock().ok().and(None),
            });
            scope.spawn(move || {
                let _turn = Turn::take(layout, "later", Kind::Shared).unwrap();
                order.send("later").unwrap();
            });
            drop(first);
            assert_eq!(
                took.try_recv(),
                Err(mpsc::TryRecvError::Empty),
                "the second one is still there"
            );
            drop(second);
        });
        assert_eq!(took.iter().collect::<Vec<_>>(), ["alone", "later"]);
    }

    #[test]
    fn whoever_waits_can_say_for_whom() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        let holders = layout.cache().join(layout::HOLDERS);
        let live = || {
            Patience { test: "me", holders: &holders, since: Instant::now(), said: false }.live()
        };
        let turn = Turn::take(&layout, "some_test", Kind::Shared).unwrap();
        fs::write(holders.join("killed (1)"), "").unwrap();
        assert_eq!(live(), format!("some_test ({})", std::process::id()));
        drop(turn);
        assert_eq!(live(), "one that has just come");
    }
}
