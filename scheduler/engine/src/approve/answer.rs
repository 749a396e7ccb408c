//! What people say to what they are asked. Called by the step.

use schema::id::ApprovalId;
use schema::log_kind::LogKind;
use schema::status::{ApprovalStatus, Decision};
use schema::time::Timestamp;

use super::{about, expiry, name_of, shared_id};
use crate::action::Action;
use crate::desired::Question;
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
        if self.approvals.in_force(id).is_none() {
            self.foresee_shared(id, now);
        }
        let Some(approval) = self.approvals.in_force(id) else { return };
        let (is_past, expires_at) = (self.is_past(approval.kind), expiry(self.desired(), now));
        let vote = Vote { who: who.clone(), at: now, decision, reason };
        let Some(approval) = self.approvals.decide(id, vote, is_past, expires_at) else { return };
        let version = self.desired.as_deref().map_or("", |desired| &desired.version);
        let plan =
            approval.plan_digest().map_or_else(String::new, |digest| format!(", plan {digest}"));
        let what = format!("{} of {version}{plan}", name_of(approval));
        let sentence = match approval.status {
            ApprovalStatus::Rejected => format!("{who} rejects {what}"),
            ApprovalStatus::Approved => format!("{who} approves {what}: it is given"),
            ApprovalStatus::Pending | ApprovalStatus::Expired => {
                let yes = approval.yes().count();
                format!("{who} approves {what}: {yes} of {} people", approval.needed)
            }
        };
        out.push(about(LogKind::ApprovalDecided, Some(who), sentence, approval));
    }

    /// Somebody decided on a shared approval that another instance of the release asks for already:
    /// it counts here too.
    fn foresee_shared(&mut self, id: ApprovalId, now: Timestamp) {
        if self.deleted || self.has_arrived() {
            return;
        }
        let Some(desired) = self.desired() else { return };
        let gates = desired.gates.iter().enumerate().filter(|(_, gate)| gate.is_shared());
        let is_it =
            |question: &Question<'_>| shared_id(desired, question.name.unwrap_or_default()) == id;
        let asked = gates.filter_map(|(at, gate)| gate.asks(at)).find(is_it);
        let Some(mut made) = asked.map(|question| self.make(desired, &question, now)) else {
            return;
        };
        if !self.observed.is_fresh() {
            // What was found before is not what this is about.
            (made.fingerprint, made.explanation) = (None, None);
        }
        self.add(made);
    }
}
