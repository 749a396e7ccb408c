//! Where an answer counts: one to a shared approval does in all channels of the service that name
//! it. Asked by whoever takes an answer, for the limits of who gives it, and by whoever shows the
//! question.

use schema::id::ApprovalId;
use schema::status::ApprovalKind;

use crate::desired::Gate;
use crate::state::{Approval, State};

impl State {
    /// Whether an answer to this approval of `asked`, which is this channel or another one of the
    /// same service, counts in this one: it is asked here too, or will be.
    pub fn hears(&self, asked: &Self, approval: ApprovalId) -> bool {
        let is_it = |one: &&Approval| one.id == approval;
        let Some(found) = asked.approvals().iter().find(is_it) else { return false };
        let is_same = |gate: &Gate| match gate {
            Gate::SharedApproval { name, .. } => found.name.as_ref() == Some(name),
            Gate::ChannelsStable { .. } | Gate::ManualApproval { .. } => false,
        };
        let will_ask = found.kind == ApprovalKind::Shared
            && !self.is_deleted()
            && self.desired().is_some_and(|desired| desired.gates.iter().any(is_same));
        will_ask || self.approvals().iter().any(|one| is_it(&one) && !one.over)
    }
}
