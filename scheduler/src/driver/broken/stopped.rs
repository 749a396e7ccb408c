//! An instance that is stopped because of a bug or of a row that cannot be read: what is known of
//! it, and what people are shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Salvaged;
use engine::desired::Desired;
use schema::api::{Cause, Explanation};
use schema::cause::CauseCode;
use schema::id::{JobId, RuntimeName};
use schema::status::{JobKind, Status};
use schema::time::Timestamp;

use super::super::Refusal;
use super::super::intake::PreparedEvent;
use super::super::world::InstanceEntry;
use crate::names::InstanceNames;
use crate::store::{InstanceRow, LoadedInstance, Unreadable};

/// The way out, for people.
const WAY_OUT: &str = "`pvnctl services retry` starts it anew: fetch then decides, or a person \
                       where there is no fetch";

/// The same where a person may have paused it, as far as anybody knows.
const WAY_OUT_PAUSED: &str = "`pvnctl services retry` starts it anew, as PAUSED because nobody \
                              knows any more whether it was; `pvnctl services resume` then lets \
                              fetch decide, or a person where there is no fetch";

/// The same where nobody but a person can tell what belongs into the row.
const BY_HAND: &str = "somebody mends that row by hand: stop the daemon, change it with `sqlite3 \
                       FILE` (`pvn-scheduler backup` before), and start it again";

/// An instance that stands still.
#[derive(Debug, Clone)]
pub(in crate::driver) struct Stopped {
    pub(in crate::driver) names: Arc<InstanceNames>,
    pub(in crate::driver) runtime: RuntimeName,
    pub(in crate::driver) revision: i64,
    /// Its state as it is stored.
    pub(super) stored: String,
    /// What can still be said of it.
    pub(super) known: Salvaged,
    pub(super) why: String,
    pub(super) since: Timestamp,
    /// What its jobs told meanwhile; one end for each at most.
    pub(super) told: BTreeMap<JobId, PreparedEvent>,
    /// What else of it cannot be read.
    pub(super) damage: UnreadableParts,
}

/// What of an instance cannot be read beside its state.
#[derive(Debug, Clone, Default)]
pub(super) struct UnreadableParts {
    /// Whether only a change of the database by hand mends it; until then its row is not written.
    pub(super) needs_hand: bool,
    /// Whether nobody knows if a person had paused it.
    pub(super) forgot_pause: bool,
    /// Its jobs that may run, and whose rows cannot be read.
    pub(super) jobs: Vec<JobId>,
    /// Numbers of pending actions that cannot be read.
    pub(super) actions: Vec<i64>,
}

impl Stopped {
    /// One whose row cannot be used. What is known of it is read from the pieces.
    pub(in crate::driver) fn unreadable(
        loaded: LoadedInstance,
        why: String,
        desired: Option<Box<Desired>>,
        observer: bool,
        now: Timestamp,
    ) -> Self {
        let LoadedInstance {
            application,
            service,
            channel,
            runtime,
            revision,
            stored,
            gone,
            damage,
            ..
        } = loaded;
        let pieces: serde_json::Value = serde_json::from_str(&stored).unwrap_or_default();
        let piece = |name: &str| pieces.get(name).cloned().unwrap_or_default();
        // Nobody can say that it is not paused, unless the row could be read so far; nor what
        // somebody wants of whom only that can be read that they want something.
        let wish: Result<Option<_>, _> = serde_json::from_value(piece("observe_wish"));
        let forgot_pause = !pieces.is_object() || wish.is_err();
        let known = Salvaged {
            desired: serde_json::from_value(piece("desired")).ok().or(desired),
            paused: piece("paused").as_bool().unwrap_or(forgot_pause),
            paused_by: piece("paused_by").as_str().map(ToOwned::to_owned),
            pause_reason: piece("pause_reason").as_str().map(ToOwned::to_owned),
            pause_is_assumed: forgot_pause,
            observer,
            observe_wish: wish.unwrap_or_default(),
            deleted: gone || piece("deleted").as_bool().unwrap_or(false),
            flying: None,
            unsettled: serde_json::from_value(piece("unsettled")).ok(),
            unsettled_in: serde_json::from_value(piece("unsettled_in")).ok(),
        };
        let names = Arc::new(InstanceNames { application, service, channel });
        let damage = UnreadableParts {
            needs_hand: damage.is_some_and(|damage| damage.needs_hand),
            forgot_pause,
            ..UnreadableParts::default()
        };
        Self {
            names,
            runtime,
            revision,
            stored,
            known,
            why,
            since: now,
            told: BTreeMap::new(),
            damage,
        }
    }

    /// One of whose jobs or pending actions rows cannot be read. `is_there` says of a job in flight
    /// whether its row can.
    pub(in crate::driver) fn damaged(
        kept: InstanceEntry,
        why: String,
        rows: &[&Unreadable],
        is_there: &dyn Fn(JobId) -> bool,
        now: Timestamp,
    ) -> Self {
        let missing: Vec<_> =
            kept.state.jobs_in_flight().filter(|job| !is_there(job.id)).cloned().collect();
        let mut stopped = Self::of(kept, why, now);
        for job in missing {
            stopped.damage.jobs.push(job.id);
            if job.kind == JobKind::Apply {
                (stopped.known.unsettled, stopped.known.unsettled_in) =
                    (Some(job.id), Some(job.runtime));
            }
        }
        stopped.note_rows(rows);
        stopped
    }

    /// These rows of it cannot be read, nor its state, which would say what runs.
    pub(in crate::driver) fn note_damage(&mut self, rows: &[&Unreadable]) {
        self.note_rows(rows);
        if self.known.flying.is_none() && self.known.unsettled.is_none() {
            self.known.unsettled = self.damage.jobs.first().copied();
        }
    }

    fn note_rows(&mut self, rows: &[&Unreadable]) {
        for row in rows {
            self.damage.actions.extend(row.action);
            if let Some(job) = row.job
                && !self.damage.jobs.contains(&job)
            {
                self.damage.jobs.push(job);
            }
        }
    }

    /// Its jobs whose rows cannot be read.
    pub(in crate::driver) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.damage.jobs.iter().copied()
    }

    /// The apply of it that may run and has no row which says so, with the runtime in which it
    /// holds a place: the one that is known, or else the instance's.
    pub(super) fn may_run(&self) -> Option<(JobId, &RuntimeName, Timestamp)> {
        Some((
            self.known.unsettled?,
            self.known.unsettled_in.as_ref().unwrap_or(&self.runtime),
            self.since,
        ))
    }

    /// Whether nobody but a person can tell what belongs into its row.
    pub(in crate::driver) fn needs_hand(&self) -> bool {
        self.damage.needs_hand
    }

    /// The way out, for people.
    fn way_out(&self) -> &'static str {
        match self.damage {
            UnreadableParts { needs_hand: true, .. } => BY_HAND,
            UnreadableParts { forgot_pause: true, .. } => WAY_OUT_PAUSED,
            _ => WAY_OUT,
        }
    }

    pub(super) fn of(kept: InstanceEntry, why: String, now: Timestamp) -> Self {
        let state = &kept.state;
        let known = Salvaged {
            desired: state.desired().cloned().map(Box::new),
            paused: state.is_paused(),
            paused_by: state.paused_by().map(ToOwned::to_owned),
            pause_reason: state.pause_reason().map(ToOwned::to_owned),
            pause_is_assumed: false,
            observer: state.is_observer(),
            observe_wish: state.observe_wish().cloned().map(Box::new),
            deleted: state.is_deleted(),
            flying: None,
            unsettled: state.unsettled(),
            unsettled_in: state.unsettled_in().cloned(),
        };
        let stored = kept.row().state;
        Self {
            names: kept.names,
            runtime: kept.runtime,
            revision: kept.revision,
            stored,
            known,
            why,
            since: now,
            told: BTreeMap::new(),
            damage: UnreadableParts::default(),
        }
    }

    /// `application/service in channel: why`, for whoever watches over the daemon.
    pub(in crate::driver) fn line(&self) -> String {
        format!("{}: {}", self.names.label(), self.why)
    }

    /// In a sentence.
    pub(super) fn message(&self) -> String {
        format!("{}; nothing is started for it until {}", self.why, self.way_out())
    }

    /// The row after one more commit.
    pub(in crate::driver) fn row(&self) -> InstanceRow {
        let desired = self.known.desired.as_ref();
        InstanceRow {
            id: self.names.instance(),
            service: self.names.service.0,
            channel: self.names.channel.0,
            runtime: self.runtime.clone(),
            state: self.stored.clone(),
            revision: self.revision,
            release: desired.map(|desired| desired.release),
            desired_version: desired.map(|desired| desired.version.clone()),
            status: Status::Broken,
            reason: None,
            message: self.message(),
            since: self.since,
            next_wake: None,
        }
    }

    pub(in crate::driver) fn refusal(&self) -> Refusal {
        Refusal::Conflict(format!(
            "{} is BROKEN ({}) until {}",
            self.names.label(),
            self.why,
            self.way_out()
        ))
    }

    pub(in crate::driver) fn explain(&self) -> Explanation {
        let cause = |code, message| Cause { code, message, since: Some(self.since), until: None };
        let causes = vec![
            cause(CauseCode::Broken, self.why.clone()),
            cause(CauseCode::WaitsForPerson, format!("ends when {}", self.way_out())),
        ];
        Explanation {
            status: Status::Broken,
            reason: None,
            message: self.message(),
            causes,
            next: Vec::new(),
        }
    }
}
