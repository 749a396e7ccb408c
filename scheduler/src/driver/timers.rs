//! When which instance is due. Entries are never taken back: one that no longer matches its
//! instance is dropped when its turn comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schema::id::InstanceId;
use schema::time::Timestamp;

/// The due times of all instances.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Timestamp, InstanceId)>>,
}

impl Timers {
    /// Notes that the instance is due then.
    pub(super) fn set(&mut self, at: Timestamp, instance: InstanceId) {
        self.heap.push(Reverse((at, instance)));
    }

    /// The earliest due time; perhaps of an entry that no longer counts.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out the earliest entry if it is due.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, InstanceId)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Drops what no longer counts when it is most of what is held, so that instances that change
    /// often leave no heap of old entries behind.
    pub(super) fn compact(
        &mut self,
        instances: usize,
        counts: impl Fn(Timestamp, InstanceId) -> bool,
    ) {
        if self.heap.len() > 64 + 4 * instances {
            let mut kept = std::mem::take(&mut self.heap).into_vec();
            kept.retain(|Reverse((at, instance))| counts(*at, *instance));
            kept.sort_unstable();
            kept.dedup();
            self.heap = kept.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_earliest_first_and_what_is_not_stays() {
        let mut timers = Timers::default();
        let id = |byte| InstanceId::from_bytes([byte; 16]);
        for (at, byte) in [(30, 3), (10, 1), (20, 2)] {
            timers.set(Timestamp::from_millis(at), id(byte));
        }
        let mut due = Vec::new();
        while let Some((_, instance)) = timers.pop_due(Timestamp::from_millis(20)) {
            due.push(instance);
        }
        assert_eq!(due, [id(1), id(2)]);
        assert_eq!(timers.next(), Some(Timestamp::from_millis(30)));
    }

    #[test]
    fn old_entries_do_not_pile_up() {
        let mut timers = Timers::default();
        let id = InstanceId::from_bytes([1; 16]);
        for at in 0..1000 {
            timers.set(Timestamp::from_millis(at), id);
            timers.compact(1, |kept, _| kept == Timestamp::from_millis(at));
        }
        assert!(timers.heap.len() <= 68);
        assert!(timers.heap.iter().any(|Reverse((at, _))| *at == Timestamp::from_millis(999)));
    }
}
