//! An observation comes in: what is known afterwards. The one way for all of them, from the end of
//! a fetch (`finish.rs`) and from a watch; and the freshness of a watch, which has no end that
//! anybody could wait for. Called by the step.
//!
//! A watch tells by itself. What orders its words against what pvn does is no clock but its
//! generation: another one begins whenever what was told so far no longer counts (another release,
//! other commands, the end of an apply, a person who asks), whoever watches looks anew for it, and
//! what an older one still tells changes nothing.

use std::time::Duration;

use schema::log_kind::LogKind;
use schema::time::Timestamp;

use crate::action::{Action, log};
use crate::desired::WatchPolicy;
use crate::duration::duration;
use crate::observation::{
    Blame, Observation, ObservationError, ObservationSource, ObservedWorld, WorldReport,
};
use crate::observed::{Verdict, verdict};
use crate::state::{Finding, State, WatchState, Work};

impl State {
    /// Takes an observation in.
    pub(crate) fn take_in(&mut self, observation: Observation, out: &mut Vec<Action>) {
        let Observation { source, at, result } = observation;
        match result {
            Ok(report) => self.found(source, at, report, out),
            Err(error) => self.missed(source, at, error, out),
        }
        // A fetch of before the question is no answer to it.
        self.look.asked &= match source {
            ObservationSource::Job(job) => self.look.of_before.take() == Some(job),
            ObservationSource::Watch(_) => false,
        };
    }

    /// Something was seen.
    fn found(
        &mut self,
        source: ObservationSource,
        at: Timestamp,
        report: WorldReport,
        out: &mut Vec<Action>,
    ) {
        let was_work = self.work().is_some();
        let job = match source {
            ObservationSource::Job(job) => Some(job),
            ObservationSource::Watch(_) => None,
        };
        self.look.answered(at);
        let is_of_before = job.is_some() && self.look.of_before == job;
        self.look.fresh = !is_of_before || self.look.of_before_is_fresh;
        self.look.other_commands = false;
        self.look.doubt = report.doubt;
        let verdict = verdict(&report.world, self.version_in_words());
        self.look.objects = match report.world {
            ObservedWorld::Objects(objects) => objects,
            ObservedWorld::AsDesired | ObservedWorld::Work(_) => Vec::new(),
        };
        let finding = match verdict {
            Verdict::Clean => Finding::Clean,
            Verdict::Pending(what) => Finding::Pending(what),
            Verdict::Broken(what) => Finding::Broken(what),
            Verdict::Work(reason, what) => {
                if self.pursuit.arrived && !was_work {
                    let seen_by = named(source);
                    let data = [(seen_by.0, seen_by.1.as_str()), ("reason", reason.as_str())];
                    out.push(log(LogKind::DriftFound, None, format!("drift: {what}"), &data));
                }
                let WorldReport { fingerprint, plan, explanation, is_cut, .. } = report;
                self.keep_or_take(Work {
                    reason,
                    what,
                    job,
                    fingerprint,
                    plan,
                    explanation,
                    stale_plan: false,
                    is_cut,
                })
            }
        };
        let was = std::mem::replace(&mut self.look.finding, finding);
        if !was.is_as(&self.look.finding) || self.look.since.is_none() {
            self.look.since = Some(at);
        }
        if self.work().is_some() {
            self.rebind(out);
        } else {
            let is_clean = self.look.finding == Finding::Clean;
            self.approvals.withdraw_for_nothing_to_do(is_clean);
        }
    }

    /// While people are asked about a plan or have approved it, another observation with the same
    /// fingerprint changes nothing: the plan that was shown is the one that runs. After an
    /// apply has found it stale, the new one takes its place.
    fn keep_or_take(&mut self, new: Work) -> Finding {
        let keeps = self.plan_is_bound()
            && self.work().is_some_and(|old| old.fingerprint == new.fingerprint && !old.stale_plan);
        if keeps { self.look.finding.clone() } else { Finding::Work(Box::new(new)) }
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
        let look = &mut self.look;
        look.misses = look.misses.saturating_add(u32::from(blame != Blame::Person));
        if look.misses == 1 {
            look.missed_since.get_or_insert(at);
            let kind = match source {
                ObservationSource::Job(_) => LogKind::JobEnded,
                ObservationSource::Watch(_) => LogKind::WatchFailed,
            };
            out.push(log(kind, None, sentence.clone(), &[(key, &id)]));
        }
        look.error = Some(sentence);
        match blame {
            Blame::Command => look.failures = look.failures.saturating_add(1),
            Blame::Surroundings => look.misfires = look.misfires.saturating_add(1),
            Blame::Person => {}
        }
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
        self.look.watch.as_ref().map(|_| self.watches)
    }

    /// Somebody tells what was seen. What a job saw its end tells; what is of another generation is
    /// late.
    pub(crate) fn observed(
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
        if let (Some(watch), Some(fresh_for)) = (&mut self.look.watch, fresh_for) {
            (watch.heard_at, watch.stale_at) = (now, now.plus(fresh_for));
            watch.is_answered |= observation.result.is_ok();
        }
        self.look.silent_since = None;
        match observation.result {
            // What it sees while an apply runs is on its way: it decides nothing, the generation
            // that begins at the end does.
            Ok(report) if self.applying() => {
                self.look.answered(observation.at);
                if let ObservedWorld::Objects(objects) = report.world {
                    self.look.objects = objects;
                }
            }
            result => self.take_in(Observation { result, ..observation }, out),
        }
    }

    /// What was told so far counts no more for what comes next; and none begins where none is
    /// wanted. `fresh_for`: [`WatchPolicy::counts_for`].
    pub(crate) fn begin_watch(&mut self, fresh_for: Duration, now: Timestamp) {
        let wanted = Some(fresh_for).filter(|_| !self.paused && !self.deleted);
        self.watches = self.watches.saturating_add(u64::from(wanted.is_some()));
        self.look.watch = wanted.map(|fresh_for| WatchState {
            heard_at: now,
            stale_at: now.plus(fresh_for),
            is_answered: false,
        });
    }

    /// The same for what comes again and again: a generation of which nothing was heard yet, and
    /// not for too long, is young enough. Who asks more often than it takes to look would never
    /// get an answer.
    pub(crate) fn begin_watch_in_time(&mut self, fresh_for: Duration, now: Timestamp) {
        let is_young = self.look.watch.as_ref().is_some_and(|watch| !watch.is_answered)
            && self.look.silent_since.is_none();
        if !is_young {
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
        let Some(watch) = self.look.watch.as_mut().filter(|watch| watch.stale_at <= now) else {
            return;
        };
        watch.stale_at = now.plus(fresh_for);
        let heard_at = watch.heard_at;
        self.look.silent_since.get_or_insert(heard_at);
        self.look.fresh = false;
        self.look.asked = false;
        let why = format!("was not heard of for {}", duration(fresh_for));
        let error = ObservationError { why, blame: Blame::Surroundings };
        self.missed(ObservationSource::Watch(self.watches), heard_at, error, out);
    }
}
