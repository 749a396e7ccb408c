//! How an instance looks from outside: the parts of `schema::api::Instance` that the engine knows.
//! Called by the driver, which adds names and ids.

use schema::api::{self, ApprovalVote};

use crate::state::{Approval, DriftRecord, State};

/// Approvals asked for, newest first, as the API shows them.
pub fn approvals(state: &State) -> Vec<api::Approval> {
    state.approvals().iter().rev().map(approval).collect()
}

/// One approval as the API shows it.
pub fn approval(approval: &Approval) -> api::Approval {
    api::Approval {
        id: approval.id,
        kind: approval.kind,
        name: approval.name.clone(),
        description: approval.description.clone(),
        release: approval.asked_for.as_ref().map(|(release, _)| *release),
        version: approval.asked_for.as_ref().map(|(_, version)| version.clone()),
        status: approval.status,
        plan_digest: approval.plan_digest().map(|fingerprint| fingerprint.to_string()),
        explanation: approval.explanation.clone(),
        needed: approval.needed,
        by: approval
            .votes
            .iter()
            .map(|vote| ApprovalVote {
                who: vote.who.clone(),
                when: vote.at,
                decision: vote.decision,
                reason: vote.reason.clone(),
            })
            .collect(),
        requested_at: approval.requested_at,
        expires_at: approval.expires_at,
    }
}

/// That its window is lifted, as the API shows it.
pub fn window_lift(state: &State) -> Option<api::LiftedWindow> {
    state.window_lift().map(|lift| api::LiftedWindow {
        who: lift.who.clone(),
        at: lift.at,
        until: lift.until,
        reason: lift.reason.clone(),
    })
}

/// The drift that there is, as the API shows it.
pub fn drift(state: &State) -> Option<api::Drift> {
    let DriftRecord { fingerprint, what, first_seen, last_seen, count, acknowledged } =
        state.drift()?;
    let acknowledged = acknowledged.as_ref().map(|known| api::Acknowledgement {
        who: known.who.clone(),
        at: known.at,
        until: known.until,
        reason: known.reason.clone(),
    });
    Some(api::Drift {
        fingerprint: *fingerprint,
        what: what.clone(),
        first_seen: *first_seen,
        last_seen: *last_seen,
        count: *count,
        acknowledged,
    })
}
