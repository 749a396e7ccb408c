//! What an explanation says would end it: time, a look, a command, another channel, a place.

use schema::cause::CauseCode;
use schema::id::JobId;
use schema::status::JobKind;
use schema::time::Timestamp;

use super::person::ways_out;
use super::{CauseChain, brings_back};
use crate::converge::Situation;
use crate::describe::{WayOut, stops_once_more};
use crate::limits::LINGERING_FETCHES;

impl CauseChain<'_> {
    pub(super) fn way_out(&mut self, way_out: WayOut<'_>) {
        let (state, who) = (self.state, self.state.who_looks());
        match way_out {
            WayOut::EndOfApply | WayOut::Question => {}
            WayOut::Converged => self.converged(),
            WayOut::Unacknowledged(until) => self.unacknowledged(until),
            WayOut::Restored => self.restored(),
            WayOut::FirstRelease => self.first_release(),
            WayOut::Resume => self.resume(),
            WayOut::Look => self.looks(),
            WayOut::PersonAgrees => self.person_agrees(),
            WayOut::Gone(job) => self.gone(job),
            WayOut::StillWork(at) => {
                self.again(&format!("apply is tried again if {who} then still sees work"), at);
            }
            WayOut::Decided(at) => {
                let what = format!("{who} decides; apply comes again if it then still sees work");
                self.again(&what, at);
            }
            WayOut::TriedAgain => self.waits_for_person(
                "ends with `pvnctl services retry` or a new release".to_owned(),
                None,
            ),
            WayOut::NextAttempt(at) => {
                self.backs_off("the next attempt comes by the retry policy", at);
            }
            WayOut::NextTry(at) => self.backs_off(
                "the surroundings are to blame: another try to start it comes by itself",
                at,
            ),
            WayOut::EffectShows(until) => self.effect_shows(until),
            WayOut::ObserverEnds => self.observer_ends(),
            WayOut::Met(unmet) => {
                unmet.channels().iter().for_each(|channel| self.upstream(channel));
                if let Some((code, text)) = unmet.way_out() {
                    self.say(code, text, self.since(), None);
                }
            }
            WayOut::Answer(at) => self.approval(&state.approvals[at]),
            WayOut::WindowOpens(opens_at) => self.window_opens(opens_at),
            WayOut::Place => self.place_of_apply(),
        }
    }

    fn place_of_apply(&mut self) {
        let state = self.state;
        self.breaker();
        if state.held.as_ref().is_none_or(|held| held.width > 0) {
            self.waits_for_place(JobKind::Apply, state.rollout.ready_since());
        }
    }

    /// That the applies of its runtime are held.
    pub(super) fn breaker(&mut self) {
        let state = self.state;
        if let Some(held) = &state.held {
            let runtime = state.desired().map_or("", |desired| desired.runtime.as_str());
            let text = format!(
                "applies of runtime `{runtime}` {}; then one is tried, two, four and so on, until \
                 the first that fails; a release, other commands or `pvnctl services retry` \
                 begins that at once, and `pvnctl runtimes resume {runtime}` ends it",
                held.in_words()
            );
            self.say(CauseCode::FleetBreaker, text, Some(held.since), Some(held.until));
        }
    }

    fn unacknowledged(&mut self, until: Timestamp) {
        let Some(drift) = self.state.drift() else { return };
        let Some(known) = &drift.acknowledged else { return };
        let text = format!(
            "drift that {} is left as it is and told to nobody, found {} times since {}; other \
             drift is repaired as ever; ends then, with a new release, or with `pvnctl services \
             acknowledge {} --end`",
            known.in_words(),
            drift.count,
            drift.first_seen,
            self.around.target
        );
        self.say(CauseCode::DriftAcknowledged, text, Some(known.at), Some(until));
    }

    fn restored(&mut self) {
        let back = brings_back(self.around.target, self.state.had());
        let text = format!(
            "the release channel or the service was taken away; once a config has it again, {back}"
        );
        self.say(CauseCode::Deleted, text, self.since(), None);
    }

    pub(super) fn resume(&mut self) {
        let text = format!(
            "{}: neither fetch nor apply starts until `pvnctl services resume`",
            self.state.paused_in_words()
        );
        self.say(CauseCode::Paused, text, self.since(), None);
    }

    fn first_release(&mut self) {
        let since = self.since();
        let all = self.together();
        let push = match all.contains(',') {
            false => "`pvnctl services push` makes one".to_owned(),
            true => format!(
                "`pvnctl services push {} --channels {all}` makes one, in all the channels that \
                 have to have it too",
                self.service_in_words()
            ),
        };
        self.say(CauseCode::NoRelease, format!("there is no release yet; {push}"), since, None);
    }

    fn converged(&mut self) {
        let (state, since, version) = (self.state, self.since(), self.version());
        let text = if let Some(desired) = state.desired().filter(|_| !state.is_looked_at()) {
            let (is, again) = if desired.apply_id.is_some() {
                (
                    "has the `applyId` of what was applied last, or was itself applied",
                    "a release with another `applyId` applies",
                )
            } else {
                ("was applied", "a new release applies again")
            };
            format!("{version} {is}; the runtime has no fetch, so nobody looks for drift; {again}")
        } else if state.is_outdated() {
            format!("{version} {}", state.outdated_in_words())
        } else {
            format!("{version} is as desired; {} keeps looking for drift", state.who_looks())
        };
        self.say(CauseCode::Converged, text, since, None);
    }

    /// What is seen next decides.
    fn looks(&mut self) {
        let state = self.state;
        if state.main.is_some() {
            return; // told beside
        }
        if let Some(watch) = state.observed.watch() {
            let text = "what the watch tells next decides; no fetch is run. If nothing is heard \
                        of it by then, that is told as an error";
            self.say(
                CauseCode::WatchAwaited,
                text.into(),
                Some(watch.heard_at()),
                Some(watch.stale_at()),
            );
            return;
        }
        if state.fetches_linger() {
            let jobs: Vec<String> = state.lingering.iter().map(JobId::to_string).collect();
            let text = format!(
                "{LINGERING_FETCHES} fetches were given up and may still run ({}); no other \
                 starts beside them, which ends when the runner says that they are gone, or with \
                 `pvnctl services retry`",
                jobs.join(", ")
            );
            self.say(CauseCode::FetchUnsettled, text, None, None);
            return;
        }
        match state.observed.due() {
            Some(due) if state.wants.fetch.is_some() => {
                self.waits_for_place(JobKind::Fetch, Some(due))
            }
            Some(due) => self.say(
                CauseCode::FetchDue,
                "the next fetch tells how things are".into(),
                None,
                Some(due),
            ),
            None => {
                let text = "the fetch's schedule has no instant left; `pvnctl services retry` \
                            looks now, another pollSchedule keeps looking";
                self.say(CauseCode::NoFetchDue, text.into(), None, None);
            }
        }
    }

    fn person_agrees(&mut self) {
        let ways = ways_out(self.state, "`pvnctl services retry`", "nothing left to do");
        self.waits_for_person(format!("no other apply starts until {ways}"), self.since());
    }

    fn gone(&mut self, job: JobId) {
        self.waits_for_person(gone_in_words(job), self.since());
    }

    fn waits_for_person(&mut self, text: String, since: Option<Timestamp>) {
        self.say(CauseCode::WaitsForPerson, text, since, None);
    }

    fn again(&mut self, what: &str, at: Timestamp) {
        let once = self
            .state
            .conditions(at)
            .map_or_else(String::new, |conditions| format!(", once {conditions}"));
        let text = format!("{what}{once}; `pvnctl services retry` does not wait for the time");
        self.say(CauseCode::GracePeriod, text, None, Some(at));
        if at <= self.state.seen_at() {
            self.looks();
        }
    }

    fn backs_off(&mut self, what: &str, until: Timestamp) {
        self.say(CauseCode::BackOff, what.to_owned(), None, Some(until));
    }

    fn effect_shows(&mut self, until: Timestamp) {
        let who = match self.state.observed.watch() {
            Some(_) => "the watch goes on",
            None => "fetch polls",
        };
        let text = format!(
            "the effect of an apply may take its time: {who}, and apply comes again if it then \
             still sees work"
        );
        self.say(CauseCode::GracePeriod, text, None, Some(until));
    }

    fn observer_ends(&mut self) {
        if !self.state.is_observer() {
            return; // told beside: it is a person's wish
        }
        let then = self
            .state
            .conditions(self.now)
            .map_or_else(String::new, |conditions| format!(", and then once {conditions}"));
        let text = format!(
            "observer mode: it looks and never applies; ends with a start of the scheduler \
             without it, or, where its data was restored from a backup, with `pvn-scheduler \
             activate`{then}"
        );
        self.say(CauseCode::Observer, text, self.since(), None);
    }

    /// Whoever looks has to know that a person wants it to be observed only, wherever it stands.
    pub(super) fn only_observed(&mut self, situation: &Situation) {
        let state = self.state;
        let Some(wish) = state.observe_wish().filter(|_| !state.is_deleted()) else { return };
        let then = match situation {
            Situation::Observing => state.conditions(self.now),
            _ => None,
        };
        let then =
            then.map_or_else(String::new, |conditions| format!(", and then once {conditions}"));
        let text = format!(
            "{}: it is looked at, no apply starts and nobody is asked; ends with `pvnctl services \
             resume`, which looks first{then}",
            wish.in_words()
        );
        self.say(CauseCode::Observer, text, Some(wish.since), None);
    }

    fn window_opens(&mut self, opens_at: Option<Timestamp>) {
        let text = match opens_at {
            Some(at) => format!(
                "the apply window is shut until {}; where {} cannot wait, `pvnctl services \
                 open-window {} --reason TEXT` lifts it for this version alone",
                self.state.in_window_zone(at),
                self.version(),
                self.around.target
            ),
            None => "the schedule of the apply window has no instant left; change it in the \
                     runtime's config"
                .to_owned(),
        };
        self.say(CauseCode::WindowShut, text, self.since(), opens_at);
    }

    /// Whoever looks has to know that it may be applied outside its window, by whom and why.
    pub(super) fn window_lifted(&mut self) {
        let Some(lift) = self.state.window_lift() else { return };
        let text = format!(
            "{}; every other gate counts as ever; ends then, once {} has arrived, with a new \
             release, or with `pvnctl services open-window {} --end`",
            lift.in_words(self.version()),
            self.version(),
            self.around.target
        );
        self.say(CauseCode::WindowLifted, text, Some(lift.at), Some(lift.until));
    }
}

/// What ends that a job was given up and may still run.
pub(super) fn gone_in_words(job: JobId) -> String {
    format!(
        "ends when the runner says that it is gone ({}), or when `pvnctl services retry` takes \
         the responsibility for another apply beside it",
        stops_once_more(job)
    )
}
