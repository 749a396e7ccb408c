//! What an explanation says of that which led to where the instance is.

use schema::cause::CauseCode;
use schema::id::JobId;
use schema::status::JobKind;
use schema::time::Timestamp;

use super::CauseChain;
use crate::describe::Because;
use crate::duration::duration;
use crate::limits::WITHOUT_EFFECT_GRACES;
use crate::state::{ApplyEnd, Finding, WatchState};

impl CauseChain<'_> {
    /// Says it, if there is something to say.
    pub(super) fn because(&mut self, because: Because) {
        let state = self.state;
        match because {
            Because::Stuck => self.stuck(),
            Because::RollbackRefused => self.rollback_refused(),
            Because::RolledBack => self.rolled_back(),
            Because::Found => self.found(),
            Because::Doubted(since) => {
                if let Some(doubt) = state.observed.doubt() {
                    self.say(CauseCode::DoubtfulFetch, doubt.to_owned(), since, None);
                }
            }
            Because::NotSeen => self.say(
                CauseCode::NotSeen,
                format!("it was converged when {} last answered", state.who_looks()),
                state.observed.answered_at(),
                None,
            ),
            Because::WithoutEffect(times) => {
                let text = format!(
                    "{}; mend one of both; the pause before the next apply doubles each time, up \
                     to {WITHOUT_EFFECT_GRACES} grace periods, and `pvnctl services retry` does \
                     not wait for it",
                    state.without_effect_in_words(times)
                );
                self.say(CauseCode::WithoutEffect, text, None, None);
            }
            Because::NotAnswered => self.not_answered(),
            Because::ApplyEnded => self.apply_end(),
            Because::Lingers(job) => self.lingers(job),
            Because::Paused => {
                let text = format!(
                    "{}: what is released waits until `pvnctl services resume`",
                    state.paused_in_words()
                );
                self.say(CauseCode::Paused, text, None, None);
            }
            Because::LeftBehind => self.left_behind(),
            Because::LeftUpstream => self.left_upstream(),
            Because::Lapses(by) => self.lapses(by),
        }
    }

    /// That the release did not converge in time.
    fn stuck(&mut self) {
        let state = self.state;
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
    }

    fn rollback_refused(&mut self) {
        let Some(why) = self.state.rollout.rollback_refused() else { return };
        let text = format!("autoRollback takes nothing back: {why}");
        self.say(CauseCode::RollbackRefused, text, None, None);
    }

    fn rolled_back(&mut self) {
        let Some(back) = self.state.rolled_back() else { return };
        let text = format!(
            "{} did not converge within its progress deadline of {}, so autoRollback took the \
             channel back to {}; a new release ends that",
            back.from,
            duration(back.deadline),
            back.to
        );
        self.say(CauseCode::RolledBack, text, Some(back.at), None);
    }

    fn found(&mut self) {
        let (code, what) = match self.state.observed.finding() {
            Finding::Work(work) => (CauseCode::WorkFound, &work.what),
            Finding::Broken(what) => (CauseCode::ObjectFailed, what),
            Finding::Pending(what) => (CauseCode::ObjectPending, what),
            Finding::Clean | Finding::Nothing => return,
        };
        self.say(code, what.clone(), self.state.observed.since(), None);
    }

    fn not_answered(&mut self) {
        let look = &self.state.observed;
        let Some(error) = look.error() else { return };
        let tries = match look.misses() {
            0 | 1 => String::new(),
            misses => format!("{misses} times in a row; "),
        };
        let silent_by = look.watch().map(WatchState::stale_at);
        match look.silent_since() {
            Some(since) => {
                let text = format!(
                    "{tries}{error}, and nothing is applied on what it told before; ends when it \
                     is heard of again, and `pvnctl services retry` has it look anew"
                );
                self.say(CauseCode::NotHeard, text, Some(since), silent_by);
            }
            None => {
                let (text, until) = (format!("{tries}{error}"), look.due().or(silent_by));
                self.say(CauseCode::FetchFailed, text, look.missed_since(), until);
            }
        }
    }

    fn apply_end(&mut self) {
        let Some(attempts) = self.state.rollout.attempts() else { return };
        let Some(end) = attempts.end() else { return };
        let code = match end {
            ApplyEnd::Succeeded | ApplyEnd::SucceededLeaving(_) => CauseCode::Applied,
            ApplyEnd::Retryable(_) | ApplyEnd::RetryableSaying(..) => CauseCode::RetryableExit,
            ApplyEnd::Misfired(_) => CauseCode::NotStarted,
            ApplyEnd::Failed(_) => CauseCode::ApplyFailed,
            ApplyEnd::Unknown(_) => CauseCode::ApplyUnknown,
            ApplyEnd::Cancelled(_) => CauseCode::Cancelled,
        };
        let (others, in_a_row) = (attempts.other_commands_in_words(), attempts.in_a_row_in_words());
        let text = format!(
            "apply {} (attempt {}){others} {}{in_a_row}",
            attempts.job(),
            attempts.attempt(),
            end.in_words()
        );
        self.say(code, text, Some(attempts.ended_at()), None);
        if matches!(end, ApplyEnd::SucceededLeaving(_)) {
            self.left_behind();
        }
    }

    fn left_behind(&mut self) {
        if let Some(left) = &self.state.left_behind {
            self.say(CauseCode::LeftBehind, left.clone(), None, None);
        }
    }

    pub(super) fn lingers(&mut self, job: JobId) {
        let (code, kind) = match self.state.given_up_kind(job) {
            JobKind::Apply => (CauseCode::ApplyUnsettled, JobKind::Apply),
            kind @ (JobKind::Fetch | JobKind::GetInfo) => (CauseCode::FetchUnsettled, kind),
        };
        let text = format!(
            "{kind} {job} was given up and nobody has said that it is gone; an apply beside it \
             could do harm"
        );
        self.say(code, text, self.since(), None);
    }

    fn left_upstream(&mut self) {
        let state = self.state;
        let version = state.version_in_words();
        for (channel, at) in state.left_upstream() {
            let text = format!(
                "channel `{channel}` was converged at {version}, for which this one waited, and \
                 is at {at} by now: a yes lets {version} go on here all the same"
            );
            self.say(CauseCode::UpstreamLeft, text, None, None);
        }
    }

    fn lapses(&mut self, by: Timestamp) {
        let state = self.state;
        if let Some(approval) = state.lapses_before(by) {
            self.say(
                CauseCode::ApprovalLapses,
                state.lapses(by).unwrap_or_default(),
                Some(approval.requested_at),
                approval.expires_at,
            );
        }
    }
}
