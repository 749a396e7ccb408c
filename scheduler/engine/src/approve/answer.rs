//! What people say to what they are asked. Called by the step.

use schema::id::ApprovalId;
use schema::log_kind::LogKind;
use schema::status::{ApprovalStatus, Decision};
use schema::time::Timestamp;

use super::{about, expiry, name_of, shared_id};
use crate::action::Action;
use crate::state::{State, Vote};

impl State {
    /// A person decided. One vote a person, the last one counts; a rejection ends it; an approval
    /// that is over, or by which the release has arrived, is past deciding. What is said holds
    /// for all that starts from now on: an apply that runs goes on.
    pub(crate) fn decide(
        &mut self,
        id: ApprovalId,
        who: String,
        decision: Decision,
        reason: Option<String>,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let known = self.approvals.iter().position(|approval| approval.id == id && !approval.over);
        let Some(at) = known.or_else(|| self.foresee_shared(id, now)) else { return };
        let expires_at = expiry(self.desired(), now);
        let version = self.desired().map(|desired| desired.version.clone()).unwrap_or_default();
        let is_past = self.is_past(self.approvals[at].kind);
        let approval = &mut self.approvals[at];
        let open = match approval.status {
            ApprovalStatus::Pending => true,
            ApprovalStatus::Approved => decision == Decision::Reject && !is_past,
            ApprovalStatus::Rejected | ApprovalStatus::Expired => false,
        };
        if !open || approval.votes.iter().any(|vote| vote.who == who && vote.decision == decision) {
            return;
        }
        approval.votes.retain(|vote| vote.who != who);
        approval.votes.push(Vote { who: who.clone(), at: now, decision, reason });
        let yes = approval.yes().count();
        let plan =
            approval.plan_digest().map_or_else(String::new, |digest| format!(", plan {digest}"));
        let what = format!("{} of {version}{plan}", name_of(approval));
        let sentence = if decision == Decision::Reject {
            approval.status = ApprovalStatus::Rejected;
            approval.expires_at = None;
            format!("{who} rejects {what}")
        } else if yes >= approval.needed as usize {
            approval.status = ApprovalStatus::Approved;
            approval.expires_at = expires_at;
            format!("{who} approves {what}: it is given")
        } else {
            format!("{who} approves {what}: {yes} of {} people", approval.needed)
        };
        out.push(about(LogKind::ApprovalDecided, Some(who), sentence, approval));
    }

    /// Somebody decided on a shared approval that another instance of the release asks for already:
    /// it counts here too.
    fn foresee_shared(&mut self, id: ApprovalId, now: Timestamp) -> Option<usize> {
        if self.deleted
            || self.has_arrived()
            || self.approvals.iter().any(|approval| approval.id == id && !approval.over)
        {
            return None;
        }
        let desired = self.desired()?;
        let mut shared = desired
            .gates
            .iter()
            .enumerate()
            .filter(|(_, gate)| gate.is_shared())
            .filter_map(|(at, gate)| gate.asks(at));
        let question =
            shared.find(|question| shared_id(desired, question.name.unwrap_or_default()) == id)?;
        let mut made = self.make(desired, &question, now);
        if !self.look.fresh {
            // What was found before is not what this is about.
            (made.fingerprint, made.explanation) = (None, None);
        }
        self.add(made);
        self.approvals.iter().position(|approval| approval.id == id)
    }
}
