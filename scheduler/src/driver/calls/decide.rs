//! Whether a yes or a no may be taken for the question that is open: who says it, and what was seen
//! when it was said. Called by `calls`.

use engine::event::Event;
use engine::state::Approval;
use schema::api::{DecisionRequest, decision_flags};
use schema::status::{ApprovalStatus, Decision, JobKind};

use crate::driver::world::InstanceEntry;
use crate::driver::{Caller, Refusal};
use crate::names::InstanceNames;

/// Which approval is meant, and whether it is still about what the person saw.
pub(super) fn decision(
    kept: &InstanceEntry,
    request: DecisionRequest,
    decision: Decision,
    caller: &Caller,
    label: &str,
) -> Result<Event, Refusal> {
    let named = request.approval.as_deref();
    let is_meant = |approval: &&Approval| named.is_none_or(|name| is_named(approval, name));
    // A yes can be taken back; where something is asked, a no without a name is for that.
    let given: Vec<&Approval> = match decision {
        Decision::Reject if !kept.state.pending_approvals().any(|approval| is_meant(&approval)) => {
            kept.state.given_approvals().collect()
        }
        Decision::Reject | Decision::Approve => Vec::new(),
    };
    let mut pending = kept.state.pending_approvals().chain(given).filter(is_meant);
    let Some(approval) = pending.next() else {
        return Err(nothing_to_decide(kept, named, decision, label));
    };
    if let Some(other) = pending.next() {
        return Err(Refusal::Conflict(format!(
            "two approvals can be meant for {label}; name one of them: {} or {}",
            approval.id, other.id
        )));
    }
    seen(&request, decision, approval, kept)?;
    if approval.votes.iter().any(|vote| vote.who == caller.who && vote.decision == decision) {
        let yes = approval.yes().count();
        return Err(Refusal::Conflict(format!(
            "{} has said yes to {} of {label} already: {yes} of {} people; somebody else has to \
             say it, too",
            caller.who, approval.id, approval.needed
        )));
    }
    Ok(Event::Decided {
        approval: approval.id,
        who: caller.who.clone(),
        decision,
        reason: request.reason,
    })
}

/// That nothing is asked (any more) of what is meant, and what became of it.
fn nothing_to_decide(
    kept: &InstanceEntry,
    named: Option<&str>,
    decision: Decision,
    label: &str,
) -> Refusal {
    let other = kept.state.pending_approvals().next().map_or_else(String::new, |other| {
        let plan = other
            .plan_digest()
            .map_or_else(String::new, |digest| format!(" for the plan {digest}"));
        format!("; {} is asked{plan} now: {}", other.id, look(&kept.names))
    });
    let past = kept
        .state
        .approvals()
        .iter()
        .rev()
        .find(|approval| named.is_none_or(|name| is_named(approval, name)));
    let used = match kept.state.jobs_in_flight().find(|job| job.kind == JobKind::Apply) {
        Some(job) if decision == Decision::Reject => {
            format!("; apply {} is under way, `pvnctl jobs cancel {}` stops it", job.id, job.id)
        }
        _ => String::new(),
    };
    let is_replaced = |past: &Approval| {
        past.status == ApprovalStatus::Expired
            && kept.state.pending_approvals().any(|now| now.is_asked_in_place_of(past))
    };
    Refusal::Conflict(match (past, named) {
        (Some(past), Some(name)) if is_replaced(past) => format!(
            "fetch has found another plan for {label} since `{name}` was asked{used}{other}"
        ),
        (Some(past), Some(name)) => format!(
            "`{name}` is not pending for {label} any more, it is {}{}{used}{other}",
            past.status,
            by(past)
        ),
        (None, Some(name)) => format!("no approval `{name}` is pending for {label}{other}"),
        (Some(past), None) => format!(
            "no approval is pending for {label}; the last one asked for is {}{used}",
            past.status
        ),
        (None, None) => format!(
            "no approval is pending for {label}; `pvnctl services explain` says what it waits \
             for"
        ),
    })
}

/// Who decided it, for whoever comes second.
fn by(approval: &Approval) -> String {
    let who: Vec<_> = approval.votes.iter().map(|vote| vote.who.as_str()).collect();
    if who.is_empty() { String::new() } else { format!(" by {}", who.join(" and ")) }
}

/// Whether the person saw what is decided on: a yes names its plan, so that none is given to what
/// came meanwhile.
fn seen(
    request: &DecisionRequest,
    decision: Decision,
    approval: &Approval,
    kept: &InstanceEntry,
) -> Result<(), Refusal> {
    let names = &kept.names;
    // Also one of no bytes, as a client of before names it.
    if request
        .plan_digest
        .as_ref()
        .is_some_and(|seen| approval.fingerprint.is_some_and(|now| *seen == now.to_string()))
    {
        // Its name is the same in every release.
        let is_named = request.approval.as_ref().is_some_and(|id| *id == approval.id.to_string());
        return if decision == Decision::Approve && !is_named {
            tells_apart(approval, kept)
        } else {
            Ok(())
        };
    }
    let now = approval.plan_digest().map(|digest| digest.to_string());
    let (label, look) = (names.label(), look(names));
    match (&request.plan_digest, now) {
        (Some(seen), Some(now)) => Err(Refusal::Conflict(format!(
            "the plan of {label} is not {seen} any more but {now}: {look}"
        ))),
        (Some(seen), None) => Err(Refusal::Conflict(format!(
            "{label} asks about no plan, and not about {seen}: {look}"
        ))),
        (None, Some(now)) if decision == Decision::Approve && !request.any_plan => {
            Err(Refusal::Invalid(format!(
                "`planDigest` is missing: say which plan of {label} you have seen (it is {now} \
                 now), or `anyPlan: true` for whichever it is"
            )))
        }
        // It may have come since somebody looked and saw nothing.
        (None, None)
            if decision == Decision::Approve
                && !request.any_plan
                && request.approval.as_deref() != Some(&approval.id.to_string()) =>
        {
            Err(Refusal::Invalid(format!(
                "`approval` is missing: say which question of {label} you have seen (it is {} \
                 now), or `anyPlan: true` for whatever is asked",
                approval.id
            )))
        }
        (None, _) => Ok(()),
    }
}

/// Whether a digest alone names what was looked at. That of what fetch saw is often the same from
/// release to release, and that of a `plan-explanation` which does not show all that is released:
/// once it stood for another question, the yes may be meant for that one.
fn tells_apart(approval: &Approval, kept: &InstanceEntry) -> Result<(), Refusal> {
    let is_other = |old: &&Approval| {
        old.id != approval.id
            && old.fingerprint == approval.fingerprint
            && (old.other_commands || old.asked_for != approval.asked_for)
    };
    let Some(old) = kept.state.approvals().iter().rev().find(is_other) else { return Ok(()) };
    let version = |approval: &Approval| {
        approval
            .asked_for
            .as_ref()
            .map_or("another release", |(_, version)| version.as_str())
            .to_owned()
    };
    let (was, now) = match old.asked_for == approval.asked_for {
        true => (
            format!("other commands of {}", version(old)),
            format!("those that {} has now", version(approval)),
        ),
        false => (version(old), version(approval)),
    };
    let same = match approval.explanation {
        Some(_) => "the `plan-explanation` says the same of both",
        None => "fetch leaves no `plan-explanation`",
    };
    let digest = approval.plan_digest().map(|digest| digest.to_string());
    Err(Refusal::Conflict(format!(
        "{} was asked about for {was}, too, and {} asks for {now}: {same}, so the digest alone \
         does not tell which was looked at; {}, then `pvnctl services approve {} {}`",
        digest.as_deref().unwrap_or("this"),
        kept.names.label(),
        look(&kept.names),
        kept.names.target(),
        decision_flags(approval.id, digest.as_deref())
    )))
}

fn look(names: &InstanceNames) -> String {
    format!(
        "look at it again with `pvnctl services get {} --app {}` before you decide",
        names.service.1, names.application.1
    )
}

fn is_named(approval: &Approval, name: &str) -> bool {
    approval.id.to_string() == name || approval.name.as_deref() == Some(name)
}
