//! An observation comes in: what is known afterwards. The one way for all of them, from the end of
//! a fetch (`finish.rs`) and from a watch; and the freshness of a watch, which has no end that
//! anybody could wait for. Called by the step.
//!
//! A watch tells by itself. What orders its words against what pvn does is no clock but its
//! generation: another one begins whenever what was told so far no longer counts (another release,
//! other commands, the end of an apply, a person who asks), whoever watches looks anew for it, and
//! what an older one still tells changes nothing.

use std::time::Duration;

use schema::id::JobId;
use schema::log_kind::LogKind;
use schema::output::RuntimeObject;
use schema::time::Timestamp;

use crate::action::{Action, log};
use crate::desired::WatchPolicy;
use crate::duration::duration;
use crate::observation::{
    Blame, Observation, ObservationError, ObservationSource, ObservedWorld, WorldReport,
};
use crate::observed::{Verdict, verdict};
use crate::state::{Finding, State, Work};

impl State {
    /// Takes an observation in.
    pub(crate) fn take_in(&mut self, observation: Observation, out: &mut Vec<Action>) {
        let Observation { source, at, result } = observation;
        match result {
            Ok(report) => self.found(source, at, report, out),
            Err(error) => self.missed(source, at, error, out),
        }
        self.observed.told(fetch_of(source));
    }

    /// Something was seen.
    fn found(
        &mut self,
        source: ObservationSource,
        at: Timestamp,
        report: WorldReport,
        out: &mut Vec<Action>,
    ) {
        let was_fresh = self.observed.is_fresh();
        let job = fetch_of(source);
        let verdict = verdict(&report.world, self.version_in_words());
        let objects = objects_of(report.world).unwrap_or_default();
        self.observed.see(job, objects, report.doubt, at);
        let finding = match verdict {
            Verdict::Clean => Finding::Clean,
            Verdict::Pending(what) => Finding::Pending(what),
            Verdict::Broken(what) => Finding::Broken(what),
            Verdict::Work(reason, what) => {
                let WorldReport { fingerprint, plan, explanation, may_destroy, is_cut, .. } =
                    report;
                let work = Work {
                    reason,
                    what,
                    job,
                    fingerprint,
                    plan,
                    explanation,
                    may_destroy,
                    stale_plan: false,
                    is_cut,
                };
                let (who, id) = named(source);
                self.see_drift(&work, (who, &id), at, out);
                self.keep_or_take(work)
            }
        };
        let was_on_its_way = !matches!(self.observed.finding(), Finding::Nothing | Finding::Clean);
        if finding == Finding::Clean && was_on_its_way && !self.observed.objects().is_empty() {
            // What getInfo told after the apply was of objects that had not arrived.
            self.tell_now(at);
        }
        self.observed.conclude(finding, at);
        if self.work().is_some() {
            // Once for each apply, by the first that looks after it.
            if let Some(times) = self.without_effect().filter(|_| !was_fresh) {
                let message = self.without_effect_in_words(times);
                let count = times.to_string();
                out.push(log(LogKind::ApplyWithoutEffect, None, message, &[("count", &count)]));
            }
            self.rebind(out);
        } else {
            let is_clean = *self.observed.finding() == Finding::Clean;
            self.approvals.withdraw_for_nothing_to_do(is_clean);
        }
    }

    /// While people are asked about a plan or have approved it, another observation with the same
    /// fingerprint changes nothing: the plan that was shown is the one that runs. After an
    /// apply has found it stale, the new one takes its place.
    fn keep_or_take(&mut self, new: Work) -> Finding {
        let keeps = self.plan_is_bound()
            && self.work().is_some_and(|old| old.fingerprint == new.fingerprint && !old.stale_plan);
        if keeps { self.observed.finding().clone() } else { Finding::Work(Box::new(new)) }
    }

    /// Nothing was seen: nothing that was known changes.
    fn missed(
        &mut self,
        source: ObservationSource,
        at: Timestamp,
        error: ObservationError,
        out: &mut Vec<Action>,
    ) {
        let ObservationError { why, blame } = error;
        let (key, id) = named(source);
        let sentence = match source {
            ObservationSource::Job(job) => format!("fetch {job} {why}"),
            ObservationSource::Watch(_) => format!("the watch {why}"),
        };
        if self.observed.miss(sentence.clone(), blame, at) {
            let kind = match source {
                ObservationSource::Job(_) => LogKind::JobEnded,
                ObservationSource::Watch(_) => LogKind::WatchFailed,
            };
            out.push(log(kind, None, sentence, &[(key, &id)]));
        }
    }
}

fn fetch_of(source: ObservationSource) -> Option<JobId> {
    match source {
        ObservationSource::Job(job) => Some(job),
        ObservationSource::Watch(_) => None,
    }
}

/// `None` where something else than objects was compared.
fn objects_of(world: ObservedWorld) -> Option<Vec<RuntimeObject>> {
    match world {
        ObservedWorld::Objects(objects) => Some(objects),
        ObservedWorld::AsDesired | ObservedWorld::Work(_) => None,
    }
}

/// How the log names whoever saw it.
fn named(source: ObservationSource) -> (&'static str, String) {
    match source {
        ObservationSource::Job(job) => ("job", job.to_string()),
        ObservationSource::Watch(generation) => ("watch", generation.to_string()),
    }
}

// ---- the watch ----

impl State {
    /// The generation of the watch that is wanted now, if one is: whoever watches looks anew when
    /// this has changed, and says it with what it tells. None is wanted while the instance is
    /// paused, as no fetch is.
    pub fn watch_generation(&self) -> Option<u64> {
        self.observed.watch().map(|_| self.watches)
    }

    /// Somebody tells what was seen. What a job saw its end tells; what is of another generation is
    /// late.
    pub(crate) fn observation(
        &mut self,
        observation: Observation,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        match observation.source {
            ObservationSource::Job(_) => {}
            ObservationSource::Watch(generation) if self.watch_generation() == Some(generation) => {
                let at = observation.at.min(now);
                self.heard(Observation { at, ..observation }, now, out);
            }
            ObservationSource::Watch(_) => {}
        }
    }

    fn heard(&mut self, observation: Observation, now: Timestamp, out: &mut Vec<Action>) {
        let Some(desired) = self.desired() else { return };
        let fresh_for = desired.observe.watch().map(WatchPolicy::counts_for);
        self.observed.heard(fresh_for, observation.result.is_ok(), now);
        match observation.result {
            // What it sees while an apply runs is on its way: it decides nothing, the generation
            // that begins at the end does.
            Ok(report) if self.applying() => {
                self.observed.glimpse(objects_of(report.world), observation.at);
            }
            result => self.take_in(Observation { result, ..observation }, out),
        }
    }

    /// What was told so far counts no more for what comes next; and none begins where none is
    /// wanted. `fresh_for`: [`WatchPolicy::counts_for`].
    pub(crate) fn begin_watch(&mut self, fresh_for: Duration, now: Timestamp) {
        let wanted = Some(fresh_for).filter(|_| !self.paused && !self.deleted);
        self.watches = self.watches.saturating_add(u64::from(wanted.is_some()));
        self.observed.begin_watch(wanted, now);
    }

    /// The same for what comes again and again: a generation of which nothing was heard yet, and
    /// not for too long, is young enough. Who asks more often than it takes to look would never
    /// get an answer.
    pub(crate) fn begin_watch_in_time(&mut self, fresh_for: Duration, now: Timestamp) {
        if !self.observed.watch_is_young() {
            self.begin_watch(fresh_for, now);
        }
    }

    /// Nothing was heard for as long as what was told counts: an error like any other, and nothing
    /// is applied on what was told before.
    pub(crate) fn mind_silence(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        let Some(fresh_for) =
            self.desired().and_then(|desired| desired.observe.watch()).map(WatchPolicy::counts_for)
        else {
            return;
        };
        let Some(heard_at) = self.observed.fall_silent(fresh_for, now) else { return };
        let why = format!("was not heard of for {}", duration(fresh_for));
        let error = ObservationError { why, blame: Blame::Surroundings };
        self.missed(ObservationSource::Watch(self.watches), heard_at, error, out);
    }
}
