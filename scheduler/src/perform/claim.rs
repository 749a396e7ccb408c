//! Who may have a decided start: the task that hands it to the runner, or the loop that withdraws
//! it. Whoever comes first has it, so that nothing starts whose withdrawal is being stored.

use std::sync::atomic::{AtomicU8, Ordering};

const WAITS: u8 = 0;
const HANDED: u8 = 1;
const WITHDRAWN: u8 = 2;

#[derive(Debug, Default)]
pub struct StartClaim(AtomicU8);

impl StartClaim {
    /// For the runner. `false` when it was withdrawn.
    pub(super) fn hand_over(&self) -> bool {
        self.turn(WAITS, HANDED)
    }

    /// For the loop: from now on nobody hands it over. `false` when a runner has it.
    pub fn withdraw(&self) -> bool {
        self.turn(WAITS, WITHDRAWN) || self.is_withdrawn()
    }

    /// The withdrawal was not stored, or is not needed: it waits again.
    pub fn restore(&self) {
        self.turn(WITHDRAWN, WAITS);
    }

    /// Whether it was withdrawn.
    pub fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::SeqCst) == WITHDRAWN
    }

    fn turn(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_of_the_two_has_it() {
        let claim = StartClaim::default();
        assert!(claim.withdraw() && !claim.hand_over());
        claim.restore();
        assert!(claim.hand_over() && !claim.withdraw());
        claim.restore();
        assert!(!claim.withdraw(), "what a runner has is not given back");
    }
}
