//! In which order open pages are told to look: as if one core made all of them, one after the
//! other. Many that change at once, or never stop changing, then take turns instead of the machine;
//! one that changes alone has its turn at once. Called by `pages::live`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Longest wait for a turn, whoever takes turns and goes away: twice what a thousand pages of a
/// service each need.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The turns of all pages, which show everything or one service: whoever looks at one waits for no
/// crowd that looks at everything. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct PageTurns {
    pub(super) of_everything: LookTurns,
    pub(super) of_services: LookTurns,
}

/// One row of turns; clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct LookTurns(Arc<Mutex<Option<Instant>>>);

impl LookTurns {
    /// Takes the next turn of a look that takes so long: how long it has to wait for it.
    pub(super) fn take(&self, look: Duration, now: Instant) -> Duration {
        // Whole after a panic, too: each change is one.
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = free.map_or(now, |free| free.clamp(now, now + LONGEST_WAIT));
        *free = Some(begins + look);
        begins - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_millis(5);

    #[test]
    fn one_alone_waits_for_nobody_and_many_wait_for_each_other() {
        let (turns, now) = (LookTurns::default(), Instant::now());
        let waits: Vec<_> = (0..1000).map(|_| turns.clone().take(LOOK, now)).collect();
        assert_eq!(waits[0], Duration::ZERO);
        assert!(waits.iter().zip(&waits[1..]).all(|(one, next)| *next == *one + LOOK));
        assert_eq!(turns.take(LOOK, now + 1000 * LOOK), Duration::ZERO, "nobody is before it");
        assert_eq!(turns.take(LOOK, now + 1000 * LOOK), LOOK);
        let last = (0..10_000).map(|_| turns.take(LOOK, now)).max();
        assert_eq!(last, Some(LONGEST_WAIT), "however many took a turn");
    }
}
