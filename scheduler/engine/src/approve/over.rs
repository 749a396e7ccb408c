//! How approvals go out of force: expired, withdrawn because the work, the commands or the gates
//! are others, used up, or history. What is said, and how many people the config wants, holds for
//! all that starts from then on; an apply that runs goes on. Called by the step; what that does to
//! the list is [`Approvals`](crate::state::Approvals)' to say.

use schema::id::ApprovalId;
use schema::log_kind::LogKind;
use schema::status::ApprovalKind;
use schema::time::Timestamp;

use super::{Asker, about, before_apply, expiry, name_of, question};
use crate::action::Action;
use crate::state::{Approval, State};

impl State {
    /// Takes approvals out of force that were asked or given too long ago; a fetch then looks again
    /// before anybody is asked again.
    pub(crate) fn expire(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        let expired = self.approvals.expire(now);
        if expired.is_empty() {
            return;
        }
        out.extend(expired.into_iter().map(|approval| {
            let what = format!("{} has expired", name_of(approval));
            about(LogKind::ApprovalExpired, None, what, approval)
        }));
        self.look_in_time(now);
    }

    /// Other work was found than the one that was asked about: approvals bound to that are
    /// withdrawn, and those of the release that are still asked show the new work.
    pub(crate) fn rebind(&mut self, out: &mut Vec<Action>) {
        let (binds_manual, who_looks) = (self.binds_manual(), self.who_looks());
        let Some(work) = self.observed.work() else { return };
        let withdrawn = self.approvals.rebind(work, binds_manual);
        let why = format!("{who_looks} has found other work than what was said yes to");
        out.extend(withdrawn.into_iter().map(|approval| is_withdrawn(approval, &why)));
    }

    /// The commands changed: what was approved is not what would run, and what was shown to whoever
    /// is about to answer is not what is asked about. A yes that an apply has used stays as it
    /// was.
    pub(crate) fn withdraw_for_commands(&mut self, out: &mut Vec<Action>) {
        self.withdraw_kinds(
            &[ApprovalKind::Apply, ApprovalKind::Manual, ApprovalKind::Shared],
            out,
        );
    }

    /// The commands of another channel changed, which shares approvals with this one.
    pub(crate) fn withdraw_for_others(&mut self, out: &mut Vec<Action>) {
        if !self.has_arrived() {
            self.withdraw_kinds(&[ApprovalKind::Shared], out);
        }
    }

    fn withdraw_kinds(&mut self, kinds: &[ApprovalKind], out: &mut Vec<Action>) {
        let was_used = self.rollout.has_arrived() || self.rollout.attempts().is_some();
        let withdrawn = self.approvals.withdraw_for_commands(kinds, was_used);
        let why = "the config has other commands than what was said yes to";
        out.extend(withdrawn.into_iter().map(|approval| is_withdrawn(approval, why)));
    }

    /// The same release under other gates: what no gate asks for any more is history, and what is
    /// asked for needs as many people as the config now says, for all that starts from now on.
    /// A decision that the release has passed stands, and one for a single apply while that
    /// runs.
    pub(crate) fn regate(&mut self, now: Timestamp) {
        let settled = self.settled_approvals();
        let Some(desired) = self.desired.as_deref() else { return };
        let askers = (0..desired.gates.len()).map(Asker::Gate).chain(before_apply(desired));
        let questions: Vec<_> = askers.filter_map(|asker| question(desired, asker)).collect();
        self.approvals.ask_instead(&questions, &settled, expiry(Some(desired), now));
    }

    /// The token of this person was revoked: a yes of theirs opens nothing that is still shut. A no
    /// stands, as it is on the safe side.
    pub(crate) fn disown(&mut self, who: &str, now: Timestamp, out: &mut Vec<Action>) {
        let settled = self.settled_approvals();
        let expires_at = expiry(self.desired(), now);
        let disowned = self.approvals.disown(who, &settled, expires_at);
        out.extend(disowned.into_iter().map(|approval| {
            let what = format!(
                "the yes of {who} to {} counts no more, as the token was revoked: {} of {} people",
                name_of(approval),
                approval.yes().count(),
                approval.needed
            );
            about(LogKind::ApprovalWithdrawn, None, what, approval)
        }));
    }

    /// Those that nothing changes any more: decided, and the release has passed them, or the single
    /// apply that they are for runs.
    fn settled_approvals(&self) -> Vec<ApprovalId> {
        let running = self
            .main
            .as_deref()
            .filter(|job| job.started_at.is_some())
            .map_or(&[][..], |job| &job.uses);
        self.approvals.settled(self.has_arrived(), running)
    }
}

/// That an approval is withdrawn to which somebody had said something.
fn is_withdrawn(approval: &Approval, why: &str) -> Action {
    let what = format!("{} is withdrawn: {why}", name_of(approval));
    about(LogKind::ApprovalWithdrawn, None, what, approval)
}
