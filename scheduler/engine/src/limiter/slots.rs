//! What one instance wants and holds in the lanes.

use schema::id::{InstanceId, JobId, ServiceId};
use schema::time::Timestamp;

use super::line::Waiter;

/// What an instance wants and holds, by lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct InstanceSlots {
    pub(super) service: Option<ServiceId>,
    pub(super) wants: [Option<Want>; 3],
    pub(super) holds: [Option<Hold>; 3],
    /// The apply that was given up and may still run.
    pub(super) given_up: Option<Hold>,
    pub(super) is_deleted: bool,
    pub(super) cap: Option<(usize, u32)>,
}

/// A place that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Want {
    pub(super) runtime: usize,
    pub(super) since: Timestamp,
    /// Among those of one moment first come is first served: services that are released together
    /// go in the order of their release, whose rows lie side by side.
    pub(super) turn: u64,
}

impl Want {
    pub(super) fn waiter(self, instance: InstanceId) -> Waiter {
        (self.since, self.turn, instance)
    }
}

/// A place that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) runtime: usize,
    pub(super) since: Timestamp,
    pub(super) job: JobId,
}
