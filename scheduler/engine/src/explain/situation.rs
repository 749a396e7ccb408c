//! The first part of an explanation: what became of the release, what is known, and the situation
//! with what would end it. A part of [`super::explain`].

use schema::cause::CauseCode;
use schema::id::{ChannelName, JobId};
use schema::status::JobKind;
use schema::time::Timestamp;

use super::{CauseChain, brings_back, ways_out};
use crate::converge::Situation;
use crate::state::Finding;
use crate::step::duration;

impl CauseChain<'_> {
    /// From what is so to what would end it.
    pub(super) fn main(&mut self) {
        // The instant that the stored status was decided at, so that both tell the same.
        let situation = self.state.situate(self.state.seen_at());
        self.release(&situation);
        self.known(&situation);
        self.situation(&situation);
    }

    /// That the release did not converge in time, and what came of that.
    fn release(&mut self, situation: &Situation) {
        let state = self.state;
        if state.pursuit.stuck {
            let deadline =
                state.desired().and_then(|desired| desired.progress_deadline).unwrap_or_default();
            let text = format!(
                "{} did not converge within its progress deadline of {}; that ends once it does, \
                 which is still tried unless the rest says otherwise, or by a new release, \
                 `pvnctl services rollback`, or `pvnctl services retry`",
                self.version(),
                duration(deadline)
            );
            self.say(CauseCode::Stuck, text, self.since(), None);
            if let Some(why) = &state.pursuit.rollback_refused {
                self.say(
                    CauseCode::RollbackRefused,
                    format!("autoRollback takes nothing back: {why}"),
                    None,
                    None,
                );
            }
        }
        if let Some(back) = state.rolled_back().filter(|_| *situation != Situation::Deleted) {
            let text = format!(
                "{} did not converge within its progress deadline of {}, so autoRollback took the \
                 channel back to {}; a new release ends that",
                back.from,
                duration(back.deadline),
                back.to
            );
            self.say(CauseCode::RolledBack, text, Some(back.at), None);
        }
    }

    /// What is known, before what it waits for.
    fn known(&mut self, situation: &Situation) {
        if matches!(situation, Situation::Deleted | Situation::NoRelease) {
            return;
        }
        let state = self.state;
        match &state.look.finding {
            Finding::Work(work) => {
                self.say(CauseCode::WorkFound, work.what.clone(), state.look.since, None)
            }
            Finding::Broken(what) => {
                self.say(CauseCode::ObjectFailed, what.clone(), state.look.since, None)
            }
            Finding::Pending(what) => {
                self.say(CauseCode::ObjectPending, what.clone(), state.look.since, None)
            }
            Finding::Clean | Finding::Nothing => {}
        }
        if let Some(doubt) =
            state.look.doubt.as_ref().filter(|_| *situation != Situation::Converged)
        {
            self.say(CauseCode::DoubtfulFetch, doubt.clone(), state.look.since, None);
        }
        if *situation == Situation::Unseen {
            self.say(
                CauseCode::NotSeen,
                format!("it was converged when {} last answered", state.who_looks()),
                state.look.answered_at,
                None,
            );
        }
        if let Some(error) = &state.look.error {
            let tries = if state.look.misses > 1 {
                format!("{} times in a row; ", state.look.misses)
            } else {
                String::new()
            };
            let silent_by = state.look.watch.as_ref().map(|watch| watch.stale_at);
            match state.look.silent_since {
                Some(since) => {
                    let text = format!(
                        "{tries}{error}, and nothing is applied on what it told before; ends when \
                         it is heard of again, and `pvnctl services retry` has it look anew"
                    );
                    self.say(CauseCode::NotHeard, text, Some(since), silent_by);
                }
                None => {
                    let until = state.look.due.or(silent_by);
                    self.say(
                        CauseCode::FetchFailed,
                        format!("{tries}{error}"),
                        state.look.missed_since,
                        until,
                    );
                }
            }
        }
    }

    fn situation(&mut self, situation: &Situation) {
        let (state, since) = (self.state, self.since());
        match situation {
            Situation::Deleted => {
                let back = brings_back(self.around.target, state.had());
                let text = format!(
                    "a config took the release channel away; once the config has it again, {back}"
                );
                self.say(CauseCode::Deleted, text, since, None);
            }
            Situation::NoRelease => self.no_release(),
            Situation::Paused => {
                let paused = state.paused_in_words();
                self.say(
                    CauseCode::Paused,
                    format!(
                        "{paused}: neither fetch nor apply starts until `pvnctl services resume`"
                    ),
                    since,
                    None,
                );
                // Who takes over has to know what it was paused for.
                if state.ended_badly() {
                    self.apply_end();
                }
            }
            Situation::Applying | Situation::Ask(_) => {}
            Situation::Converged => self.converged(),
            Situation::Unseen
            | Situation::Unlooked
            | Situation::Pending
            | Situation::Broken
            | Situation::Looking => self.looks(),
            Situation::Cancelled => self.cancelled(),
            Situation::Unsettled(job) => self.unsettled(*job),
            Situation::ApplyFailed(at) => {
                self.apply_end();
                self.again(
                    &format!("apply is tried again if {} then still sees work", state.who_looks()),
                    *at,
                );
            }
            Situation::ApplyUnknown(at) => {
                self.apply_end();
                self.again(
                    &format!(
                        "{} decides; apply comes again if it then still sees work",
                        state.who_looks()
                    ),
                    *at,
                );
            }
            Situation::Retrying(at) => {
                self.apply_end();
                self.say(
                    CauseCode::BackOff,
                    "the next attempt comes by the retry policy".into(),
                    None,
                    Some(*at),
                );
            }
            Situation::Misfired(at) => {
                self.apply_end();
                self.say(
                    CauseCode::BackOff,
                    "the surroundings are to blame: another try to start it comes by itself".into(),
                    None,
                    Some(*at),
                );
            }
            Situation::Grace(until) => {
                self.apply_end();
                let who = match state.look.watch {
                    Some(_) => "the watch goes on",
                    None => "fetch polls",
                };
                let text = format!(
                    "the effect of an apply may take its time: {who}, and apply comes again if it \
                     then still sees work"
                );
                self.say(CauseCode::GracePeriod, text, None, Some(*until));
            }
            Situation::Observing => self.observing(),
            Situation::Upstream(channels) => {
                channels.iter().for_each(|channel| self.upstream(channel))
            }
            Situation::Approval(at) | Situation::Rejected(at) => {
                self.approval(&state.approvals[*at])
            }
            Situation::WindowShut(opens_at) => self.window_shut(*opens_at),
            Situation::Ready(_) => self.waits_for_place(JobKind::Apply, state.pursuit.ready_since),
        }
    }

    fn no_release(&mut self) {
        let (state, since) = (self.state, self.since());
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
        if state.paused {
            let text = format!(
                "{}: what is released waits until `pvnctl services resume`",
                state.paused_in_words()
            );
            self.say(CauseCode::Paused, text, None, None);
        }
    }

    fn converged(&mut self) {
        let (state, since, version) = (self.state, self.since(), self.version());
        if let Some(desired) = state.desired().filter(|desired| !desired.observe.looks()) {
            let (is, again) = if desired.apply_id.is_some() {
                (
                    "has the `applyId` of what was applied last, or was itself applied",
                    "a release with another `applyId` applies",
                )
            } else {
                ("was applied", "a new release applies again")
            };
            let text = format!(
                "{version} {is}; the runtime has no fetch, so nobody looks for drift; {again}"
            );
            self.say(CauseCode::Converged, text, since, None);
            return self.left_behind();
        }
        let text = if state.is_outdated() {
            format!("{version} {}", state.outdated_in_words())
        } else {
            format!("{version} is as desired; {} keeps looking for drift", state.who_looks())
        };
        self.say(CauseCode::Converged, text, since, None);
        if let Some(doubt) = &state.look.doubt {
            self.say(CauseCode::DoubtfulFetch, doubt.clone(), state.look.answered_at, None);
        }
        self.left_behind();
    }

    /// What is missing now although the apply succeeded, and fetch may not look for.
    fn left_behind(&mut self) {
        if let Some(left) = &self.state.left_behind {
            self.say(CauseCode::LeftBehind, left.clone(), None, None);
        }
    }

    fn cancelled(&mut self) {
        let (state, since) = (self.state, self.since());
        self.apply_end();
        if let Some(job) = state.given_up().next() {
            self.lingers(job, since);
        }
        let text = match state.unsettled {
            Some(job) => self.unsettled_way_out(job),
            None => format!(
                "no other apply starts until {}",
                ways_out(state, "`pvnctl services retry`", "nothing left to do")
            ),
        };
        self.say(CauseCode::WaitsForPerson, text, since, None);
    }

    fn unsettled(&mut self, job: JobId) {
        let since = self.since();
        if self.state.pursuit.chain.as_ref().is_some_and(|chain| chain.job == job) {
            self.apply_end();
        }
        self.lingers(job, since);
        self.say(CauseCode::WaitsForPerson, self.unsettled_way_out(job), since, None);
    }

    fn observing(&mut self) {
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

    /// Of one channel for which it waits.
    fn upstream(&mut self, channel: &ChannelName) {
        let (state, version) = (self.state, self.version());
        let at = match state.upstream.get(channel) {
            Some(other) => format!("is converged at {other}"),
            None => "is not converged".to_owned(),
        };
        let text = match state.taken_back_in(channel) {
            Some(back) => format!(
                "channel `{channel}` {at}: {version} did not converge there within its progress \
                 deadline of {}, and autoRollback took it back at {}; ends with a new release \
                 that converges there{}",
                duration(back.deadline),
                back.at,
                self.past_what_was_taken_back(channel),
            ),
            None => format!(
                "channel `{channel}` {at}; ends when it is converged at {version}, {}",
                self.upstream_way_out(channel)
            ),
        };
        self.say(CauseCode::UpstreamUnstable, text, self.since(), None);
    }

    /// What brings the channel to the version of this one, as the end of a sentence.
    fn upstream_way_out(&self, channel: &ChannelName) -> String {
        let (service, version) = (self.service_in_words(), self.version());
        let pursued = (self.around.pursued)(channel);
        if pursued.as_ref().is_some_and(|there| there.version == version) {
            return format!(
                "which was released there too: `pvnctl services explain {service} --channel \
                 {channel}` says what that waits for"
            );
        }
        let last = match &pursued {
            Some(there) if there.is_rollback => {
                return format!(
                    "and it was taken back to {}{}",
                    there.version,
                    self.past_what_was_taken_back(channel)
                );
            }
            Some(there) => format!("and {} is what was released there last", there.version),
            None => "and nothing was released there".to_owned(),
        };
        let all = self.together();
        // A push would bring what this one was taken back from.
        let command = match self.state.desired().is_some_and(|desired| desired.is_rollback) {
            true => format!(
                "take all of them back with `pvnctl services rollback {service} --to {version} \
                 --channels {all}`"
            ),
            false => format!(
                "release to all of them with `pvnctl services push {service} --channels {all}`"
            ),
        };
        format!("{last}: {command}, or change the precondition")
    }

    /// The ways on from a channel that was taken back to an earlier version, as the end of a
    /// sentence: this one goes back too, or what was wrong is mended. A push alone would apply
    /// the same again.
    fn past_what_was_taken_back(&self, channel: &ChannelName) -> String {
        let (service, all) = (self.service_in_words(), self.together());
        let own = self.around.target.split_once(" --channel ").map_or("", |(_, own)| own);
        let back = (self.around.pursued)(channel).map_or_else(String::new, |there| {
            format!(
                "; `pvnctl services rollback {service} --to {} --channels {own}` takes this one \
                 back too",
                there.version
            )
        });
        format!(
            "{back}; once what was wrong is mended, also in the config, which a push brings \
             along, `pvnctl services push {service} --channels {all}` releases to all of them \
             (without `--param`: with the values that each channel has)"
        )
    }

    /// The channels to which one release has to go, as a command has them.
    fn together(&self) -> String {
        let names: Vec<String> = (self.around.together)().iter().map(ToString::to_string).collect();
        names.join(",")
    }

    /// What names the service in a command.
    fn service_in_words(&self) -> &str {
        self.around
            .target
            .split_once(" --channel ")
            .map_or(self.around.target, |(service, _)| service)
    }

    fn window_shut(&mut self, opens_at: Option<Timestamp>) {
        let (state, since) = (self.state, self.since());
        self.apply_end();
        let Some(at) = opens_at else {
            let text = "the schedule of the apply window has no instant left; change it in the \
                        runtime's config";
            return self.say(CauseCode::WindowShut, text.into(), since, None);
        };
        self.say(
            CauseCode::WindowShut,
            "the apply window is shut until then".into(),
            since,
            Some(at),
        );
        if let Some(approval) = state.lapses_before(at) {
            self.say(
                CauseCode::ApprovalLapses,
                state.lapses(at).unwrap_or_default(),
                Some(approval.requested_at),
                approval.expires_at,
            );
        }
    }

    fn since(&self) -> Option<Timestamp> {
        Some(self.state.standing().since)
    }

    /// The one that is desired.
    fn version(&self) -> &str {
        self.state.desired().map_or("", |desired| desired.version.as_str())
    }
}
