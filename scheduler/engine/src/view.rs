//! How an instance looks from outside: the parts of `schema::api::Instance` that the engine knows.
//! Called by the driver, which adds names and ids.

use schema::api::{self, ApprovalVote, GateAhead};
use schema::id::ChannelName;
use schema::status::{GateKind, Reason};

use crate::converge::ShutGate;
use crate::describe::{HeldUpBy, WayOut};
use crate::desired::Gate;
use crate::state::{Approval, DriftRecord, ObserveWish, State};

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
        channels: Vec::new(),
    }
}

/// What the next apply waits for, as the API shows it: what the description of the situation says
/// would end it, with the gates that come after that one.
pub fn waits_for(state: &State) -> Vec<GateAhead> {
    // At the instant that the stored status was decided at, so that both tell the same.
    let at = state.seen_at();
    let situation = state.situate(at);
    let described = situation.describe(state, at);
    let is_full = described.reason == Some(Reason::ConcurrencyLimitExceeded);
    let wish = state.observe_wish().map(observed);
    match (described.way_out, situation.held_up_by()) {
        (WayOut::Resume, _) => vec![paused(state)],
        (WayOut::Place, _) if is_full => vec![ahead(GateKind::Place, "a place".to_owned())],
        (_, HeldUpBy::ObserverMode) if wish.is_none() => Vec::new(),
        (_, HeldUpBy::Gate | HeldUpBy::ObserverMode) => {
            let gates = state.shut_gates(at).map(|gate| state.ahead(&gate));
            wish.into_iter().chain(gates).collect()
        }
        (_, HeldUpBy::Nothing | HeldUpBy::Person | HeldUpBy::Apply) => Vec::new(),
        (_, HeldUpBy::LostJob | HeldUpBy::Lane | HeldUpBy::Surroundings | HeldUpBy::Release) => {
            wish.into_iter().collect()
        }
    }
}

/// The channels that have to be converged at the same version before its first apply.
pub fn upstream(state: &State) -> Vec<ChannelName> {
    let gates = state.desired().map_or(&[][..], |desired| &desired.gates);
    gates.iter().flat_map(Gate::upstream).cloned().collect()
}

/// What an approval is called to which the config gives no name.
const UNNAMED: &str = "approval";

fn ahead(kind: GateKind, words: String) -> GateAhead {
    GateAhead { kind, words, opens_at: None }
}

fn paused(state: &State) -> GateAhead {
    let by = state.paused_by().map_or_else(String::new, |who| format!(" by {who}"));
    ahead(GateKind::Pause, format!("paused{by}"))
}

fn observed(wish: &ObserveWish) -> GateAhead {
    ahead(GateKind::Observe, format!("observed by {}", wish.who))
}

impl State {
    fn ahead(&self, gate: &ShutGate) -> GateAhead {
        match gate {
            ShutGate::Unmet(unmet) => {
                let names: Vec<&str> = unmet.channels().iter().map(ChannelName::as_str).collect();
                ahead(GateKind::Channels, format!("stable: {}", names.join(", ")))
            }
            ShutGate::Ask(asker) => {
                let name = self.asked_as(*asker).unwrap_or(UNNAMED);
                ahead(GateKind::Approval, format!("{name}: not asked yet"))
            }
            ShutGate::Approval(at) => {
                let approval = &self.approvals[*at];
                let name = approval.name.as_deref().unwrap_or(UNNAMED);
                let (yes, needed) = (approval.yes().count(), approval.needed);
                ahead(GateKind::Approval, format!("{name}: {yes} of {needed}"))
            }
            ShutGate::Rejected(at) => {
                let name = self.approvals[*at].name.as_deref().unwrap_or(UNNAMED);
                ahead(GateKind::Rejected, format!("{name}: rejected"))
            }
            ShutGate::Window(Some(opens_at)) => GateAhead {
                opens_at: Some(*opens_at),
                ..ahead(GateKind::Window, "window opens".to_owned())
            },
            ShutGate::Window(None) => ahead(GateKind::Window, "window never opens".to_owned()),
        }
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

/// That a person wants it to be observed only, as the API shows it.
pub fn observed_only(state: &State) -> Option<api::ObservedOnly> {
    state.observe_wish().map(|wish| api::ObservedOnly {
        who: wish.who.clone(),
        since: wish.since,
        reason: wish.reason.clone(),
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
