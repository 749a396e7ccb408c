//! A person leaves the drift of an instance as it is for a while: what is meant by that, and when
//! it is refused.

use engine::event::Event;
use engine::limits::ACKNOWLEDGED_AT_MOST;
use engine::state::DriftAcknowledgement;
use schema::api::AcknowledgeRequest;
use schema::time::Timestamp;

use super::super::world::InstanceEntry;
use super::super::{Caller, Refusal};

/// The event that does it.
///
/// # Errors
/// What is missing or wrong in the request, or that there is no such drift (any more).
pub(super) fn acknowledgement(
    kept: &InstanceEntry,
    request: AcknowledgeRequest,
    caller: &Caller,
    now: Timestamp,
) -> Result<Event, Refusal> {
    let (label, target) = (kept.names.label(), kept.names.target());
    let AcknowledgeRequest { fingerprint, until, reason, end } = request;
    let drift = kept.state.drift();
    if end {
        let is_known = drift.is_some_and(|drift| drift.acknowledged.is_some());
        return match is_known {
            true => Ok(Event::EndAcknowledged { who: caller.who.clone() }),
            false => Err(Refusal::Conflict(format!(
                "nobody has acknowledged the drift of {label}; `pvnctl services explain {target}` \
                 tells how it stands"
            ))),
        };
    }
    let fingerprint = fingerprint.ok_or_else(|| {
        invalid("`fingerprint` is missing: that of the drift which is to be left as it is")
    })?;
    let until = until.ok_or_else(|| {
        invalid("`until` is missing: until when it is left as it is, as in 2027-01-31T00:00:00Z")
    })?;
    if until <= now {
        return Err(invalid(&format!(
            "`until` is over: {until}, and it is {now}; name a later one"
        )));
    }
    let latest = now.plus(ACKNOWLEDGED_AT_MOST);
    if until > latest {
        return Err(invalid(&format!(
            "`until` is {until}, and drift is acknowledged until {latest} at most; what is to stay \
             for ever is left out by the fetch"
        )));
    }
    match drift {
        Some(drift) if drift.fingerprint == fingerprint => {
            let by = DriftAcknowledgement { who: caller.who.clone(), at: now, until, reason };
            Ok(Event::Acknowledge { fingerprint, by })
        }
        Some(drift) => Err(Refusal::Conflict(format!(
            "the drift of {label} is another one by now: {}; look at it with `pvnctl services \
             explain {target}`, and acknowledge {} if it is to stay",
            drift.what, drift.fingerprint
        ))),
        None if kept.state.has_drifted() => Err(Refusal::Conflict(format!(
            "nothing tells this drift of {label} from other drift, so it would not be known again: \
             have its fetch print what it found, or leave a `plan-explanation`"
        ))),
        None => Err(Refusal::Conflict(format!(
            "{label} has not drifted since its release arrived; `pvnctl services explain {target}` \
             tells how it stands"
        ))),
    }
}

fn invalid(why: &str) -> Refusal {
    Refusal::Invalid(why.to_owned())
}
