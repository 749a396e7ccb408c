//! How many jobs may run at a time. Set by whoever starts the engine.

/// How many jobs of one kind may be in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// In the whole daemon, at least 1.
    pub total: u32,
    /// In one runtime, at least 1; `None` = a fair share, see [`SHARE`](super::SHARE). For apply
    /// the runtime's `maxConcurrency` counts as well.
    pub per_runtime: Option<u32>,
}

/// The limits of the three lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub fetch: Limit,
    /// For applies.
    pub apply: Limit,
    /// For getInfos.
    pub get_info: Limit,
}
