//! Every limit and deadline of the engine that no config sets, in one place, each with its reason.

use std::time::Duration;

/// Instants a little out of order (events that crossed in a queue) are no clock that was set back:
/// for so long the latest instant seen counts on.
pub const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// Looks in a row without an answer after which a converged instance no longer counts as such.
/// Source: rule 2 of docs/convergence.md.
pub const MISSES_UNTIL_UNSEEN: u32 = 3;

/// Failures of fetch in a row after which an instance that waits for its answer is FAILED: one or
/// two are a registry or a network that was away for a moment, three are somebody's to mend. As
/// many as make a converged instance one that was not seen. Source: rule 2 of docs/convergence.md.
pub const FAILURES_UNTIL_FAILED: u32 = 3;

/// Least time for which what a watch told counts: whatever a row says, no tight loop of errors.
pub const SHORTEST_FRESHNESS: Duration = Duration::from_secs(1);

/// Shortest pause between an apply that left work behind and the next one: whatever the config
/// says, no tight loop.
pub const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// Applies in a row that succeeded, with work left after each, from which on that is told as what
/// it is: the effect of one may be late, and the second repairs what came between. Three of them
/// say that apply and fetch do not mean the same.
pub const WITHOUT_EFFECT: u32 = 3;

/// Most grace periods between two applies without effect; the pause doubles up to that. Eight of
/// the usual ten minutes are often enough for what no apply has mended, and soon enough for what
/// was mended elsewhere.
pub const WITHOUT_EFFECT_GRACES: u32 = 8;

/// Longest time for which a drift is acknowledged at once: a year. What is to stay for ever belongs
/// into the fetch, which can leave it out.
pub const ACKNOWLEDGED_AT_MOST: Duration = Duration::from_secs(366 * 86_400);

/// For how long an apply window is lifted where nobody says: an incident's first hour.
pub const WINDOW_LIFTED_FOR: Duration = Duration::from_secs(3_600);

/// Longest time for which an apply window is lifted at once: a day. What is to be so for longer
/// belongs into the config.
pub const WINDOW_LIFTED_AT_MOST: Duration = Duration::from_secs(86_400);

/// The exit code with which a fetch in mode EXIT_CODE says that there is work to do, unless its
/// config names others. Source: docs/commands.md.
pub const USUAL_WORK_EXIT_CODE: i32 = 2;

/// Longest wait for a job to start, from the decision; a longer timeout of its own takes its place.
/// Source: rule 13 of docs/convergence.md.
pub const START_DEADLINE: Duration = Duration::from_secs(600);

/// How long after a job's own timeout the engine itself stops it: the wrapper asks, kills after 10
/// s, drains for 4 s and reports; the rest is for a slow disk.
pub const OVERTIME: Duration = Duration::from_secs(60);

/// How long after a stop a job may stay silent until its end is unknown: kill-after, drain and
/// report of a job that heeds nothing, and 30 s of a Pod's termination before them.
pub const STOP_DEADLINE: Duration = Duration::from_secs(120);

/// The termination of a Pod that is a part of [`STOP_DEADLINE`]: a command whose place gives it
/// longer has so much more. Source: `terminationGracePeriodSeconds` of core/v1.
pub const USUAL_GRACE: Duration = Duration::from_secs(30);

/// Longest that a command is given to end after a stop: a day. Whatever its place says, people hear
/// of one that does not.
pub const STOP_GRACE_LIMIT: Duration = Duration::from_secs(86_400);

/// How far the clock of the place where a job runs may be behind ours: what ended by it so much
/// before the job was asked to stop ended by itself, however late that is heard. As
/// `runner::cluster` has it of a node's clock.
pub const CLOCKS_APART: Duration = Duration::from_secs(10);

/// How long an apply waits for a place before people are told that a limit is full. Below it,
/// waiting is the driver taking its turn.
pub const LANE_PATIENCE: Duration = Duration::from_millis(500);

/// How long a daemon that comes back listens before a deadline ends a job: its end may have been
/// written down long ago.
pub const RECOVERY: Duration = Duration::from_secs(60);

/// Most fetches of one instance that were given up and may still run: no other is started beside as
/// many. Each holds a process or a Pod that nobody could end.
pub const LINGERING_FETCHES: usize = 3;
