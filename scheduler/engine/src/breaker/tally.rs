//! How the last tries of the instances of one runtime ended, of one kind of job, within a window.

use std::collections::{BTreeMap, BTreeSet};

use schema::id::InstanceId;
use schema::time::Timestamp;

use super::{FAILING_AT_LEAST, FAILING_WITHIN};

/// One entry for each instance that has tried within the window: how its last try ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tally {
    last: BTreeMap<InstanceId, (Timestamp, bool)>,
    /// The same by time, for what leaves the window.
    order: BTreeSet<(Timestamp, InstanceId)>,
    failed: usize,
}

impl Tally {
    /// A try of this instance ended then.
    pub(super) fn record(&mut self, instance: InstanceId, failed: bool, at: Timestamp) {
        let since = at.minus(FAILING_WITHIN);
        while let Some((_, old)) = self.order.first().copied().filter(|(then, _)| *then < since) {
            self.remove(old);
        }
        self.remove(instance);
        self.last.insert(instance, (at, failed));
        self.order.insert((at, instance));
        self.failed += usize::from(failed);
    }

    fn remove(&mut self, instance: InstanceId) {
        if let Some((at, failed)) = self.last.remove(&instance) {
            self.order.remove(&(at, instance));
            self.failed -= usize::from(failed);
        }
    }

    /// How many failed, and of how many, if those are so many that it is no accident.
    pub(super) fn many_failing(&self) -> Option<(usize, usize)> {
        let is_many = self.failed >= FAILING_AT_LEAST && self.failed * 2 >= self.last.len();
        is_many.then_some((self.failed, self.last.len()))
    }
}
