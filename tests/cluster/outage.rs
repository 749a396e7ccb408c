//! Stopping one part of the cluster for a while. A test asks by holding a lock, and the keeper,
//! whose child the part is, kills it and starts it again when the lock is free: at the latest when
//! the test's process has ended, however it ended.

use std::fs::{self, File};
use std::io;
use std::time::{Duration, Instant};

use super::layout::Layout;
use super::{Alone, failed};

/// Longest wait until a part is down: the keeper looks twice a second.
const DOWN_WITHIN: Duration = Duration::from_secs(20);
/// Longest wait until everything works again.
const UP_WITHIN: Duration = Duration::from_secs(120);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// A part that can be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    ApiServer,
    /// The kubelet; its containers go on without it.
    Kubelet,
}

impl Part {
    pub(super) const ALL: [Self; 2] = [Self::ApiServer, Self::Kubelet];

    /// Its program.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ApiServer => "kube-apiserver",
            Self::Kubelet => "kubelet",
        }
    }

    /// Held by whoever wants it stopped.
    fn lock(self, layout: &Layout) -> io::Result<File> {
        layout.lock_file(&format!("stop-{}.lock", self.name()))
    }

    /// Whether somebody wants it stopped.
    pub(super) fn is_to_stop(self, layout: &Layout) -> io::Result<bool> {
        match self.lock(layout)?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(fs::TryLockError::WouldBlock) => Ok(true),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A part that is stopped; started again, and waited for, when this is dropped.
#[derive(Debug)]
pub struct Outage<'a> {
    part: Part,
    alone: &'a Alone,
    since: Instant,
    asked: Option<File>,
}

impl<'a> Outage<'a> {
    pub(super) fn begin(alone: &'a Alone, part: Part) -> Result<Self, String> {
        let asked =
            part.lock(&alone.layout).map_err(failed("the lock of a part cannot be opened"))?;
        asked.lock().map_err(failed("the lock of a part cannot be taken"))?;
        let mut outage = Self { part, alone, since: Instant::now(), asked: Some(asked) };
        let down = alone.layout.down(part.name());
        if !outage.becomes(DOWN_WITHIN, || down.exists()) {
            return Err(format!(
                "the keeper does not stop the {}; if another checkout started it, end it with \
                 tests/cluster/down",
                part.name()
            ));
        }
        outage.since = Instant::now();
        Ok(outage)
    }

    /// Waits until it has lasted this long.
    pub fn lasts(&self, time: Duration) {
        while let Some(left) = time.checked_sub(self.since.elapsed()).filter(|left| !left.is_zero())
        {
            std::thread::park_timeout(left);
        }
    }

    /// Starts it again and waits until everything works as before.
    ///
    /// # Panics
    /// When it does not.
    pub fn end(mut self) {
        self.put_back().unwrap_or_else(|why| panic!("{why}"));
    }

    fn put_back(&mut self) -> Result<(), String> {
        // Letting go of the lock is what the keeper waits for.
        if self.asked.take().is_none() {
            return Ok(());
        }
        let down = self.alone.layout.down(self.part.name());
        if self.becomes(UP_WITHIN, || !down.exists()) {
            return Ok(());
        }
        Err(format!("the {} is not back after {} s", self.part.name(), UP_WITHIN.as_secs()))
    }

    fn becomes(&self, within: Duration, is_so: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        while !is_so() {
            if start.elapsed() > within {
                return false;
            }
            std::thread::park_timeout(PAUSE);
        }
        true
    }
}

impl Drop for Outage<'_> {
    #[expect(clippy::print_stderr, reason = "the test fails already, or would not know")]
    fn drop(&mut self) {
        if let Err(why) = self.put_back() {
            eprintln!("{why}");
        }
    }
}
