//! Whether a scheduler that says where to go on from gets any further. Called by `courier` for each
//! stream and file.
//!
//! One that lost something goes back once, and gets it again at once. One that goes back again and
//! again, without having got further between, would be asked as fast as it answers.

use std::time::Duration;

use super::backoff::Backoff;

/// How far it came, and how often it went back since.
#[derive(Debug, Default)]
pub(crate) struct DeliveryProgress {
    farthest: u64,
    falls: u32,
    backoff: Backoff,
}

impl DeliveryProgress {
    /// It was at `before` and is at `at`: how long to wait before it is asked again, if at all.
    pub(crate) fn moved(&mut self, before: u64, at: u64) -> Option<Duration> {
        if at > self.farthest {
            self.farthest = at;
            self.falls = 0;
            self.backoff.reset();
        } else if at < before {
            self.falls = self.falls.saturating_add(1);
            return (self.falls > 1).then(|| self.backoff.next(None));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_back_once_is_not_kept_waiting_and_who_gets_nowhere_is() {
        let mut progress = DeliveryProgress::default();
        assert_eq!(
            [progress.moved(0, 5), progress.moved(5, 0), progress.moved(0, 5)],
            [None; 3],
            "it lost something"
        );
        assert!(progress.moved(5, 0).is_some(), "and again");
        assert_eq!(progress.moved(0, 3), None, "on the way");
        assert!(progress.moved(3, 0).is_some());
        assert_eq!([progress.moved(0, 6), progress.moved(6, 0)], [None; 2], "it got further");
    }
}
