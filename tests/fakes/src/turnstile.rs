//! Where a call waits until a test lets it on, so that what comes in the middle of it comes there.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longest wait: then a call goes on by itself, so that nobody waits for a test that is over.
const LONGEST: Duration = Duration::from_secs(60);

/// Before or after a call has acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Before,
    After,
}

#[derive(Debug, Default)]
struct Turns {
    waiting: usize,
    opened: u64,
}

/// One place to wait at; its clones are the same place.
#[derive(Debug, Clone, Default)]
pub struct Turnstile(Arc<(Mutex<Turns>, Condvar)>);

impl Turnstile {
    /// Waits until it is opened.
    pub(crate) fn pass(&self) {
        let (turns, changed) = &*self.0;
        let mut turns = turns.lock().unwrap();
        turns.waiting += 1;
        let opened = turns.opened;
        let waited = changed.wait_timeout_while(turns, LONGEST, |turns| turns.opened == opened);
        waited.unwrap().0.waiting -= 1;
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.0.0.lock().unwrap().waiting
    }

    /// Lets all of them on.
    pub fn open(&self) {
        self.0.0.lock().unwrap().opened += 1;
        self.0.1.notify_all();
    }
}
