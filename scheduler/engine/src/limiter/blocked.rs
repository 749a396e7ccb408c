//! What [`super::ConcurrencyLimiter`] say of a place that is not free: who has it. For explain.

use schema::id::{InstanceId, JobId, RuntimeName};
use schema::time::Timestamp;

/// Who has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The instance.
    pub instance: InstanceId,
    /// Its job.
    pub job: JobId,
    /// Since when.
    pub since: Timestamp,
    /// Whether the job was given up and may still run. Such an apply keeps its place where the
    /// config counts applies (`maxConcurrency`), because people use that as a lock; the
    /// daemon's own places it does not take.
    pub is_given_up: bool,
    /// Whether its channel has left the config, so that nobody can ask for a retry there before it
    /// is back.
    pub is_deleted: bool,
}

/// Why a place is not free yet, for explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocked {
    /// As many jobs of this kind are in flight in the runtime as may be.
    Runtime {
        /// The runtime.
        runtime: RuntimeName,
        /// Its limit.
        limit: u32,
        /// The first [`HOLDERS_SHOWN`] of those who have a place, longest first.
        holders: Vec<Holder>,
        /// How many have a place.
        held: usize,
        /// How many have waited longer in the runtime.
        ahead: usize,
    },
    /// The runtime has its fair share; what is free is kept for others.
    Share {
        /// The runtime.
        runtime: RuntimeName,
        /// Places in the whole daemon.
        limit: u32,
        /// Those that are free.
        free: usize,
        /// The first [`HOLDERS_SHOWN`] of those who have a place, longest first.
        holders: Vec<Holder>,
        /// How many have a place.
        held: usize,
    },
    /// As many jobs of this kind are in flight in the whole daemon as may be.
    Daemon {
        /// The limit.
        limit: u32,
        /// The runtimes that hold most, at most [`HOLDERS_SHOWN`], with the number of their places
        /// and who has had one longest.
        holders: Vec<(RuntimeName, usize, Holder)>,
    },
    /// There is room, and what piled up while the daemon was down is let through at a bounded pace.
    Pace,
    /// There is room; it is a matter of moments.
    NotBlocked,
}

/// Most holders that [`super::ConcurrencyLimiter::blocked`] names.
pub const HOLDERS_SHOWN: usize = 5;
