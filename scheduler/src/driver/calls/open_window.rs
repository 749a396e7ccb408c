//! A person lets one release start outside its apply window: what is meant by that, and when it is
//! refused.

use std::time::Duration;

use engine::event::Event;
use engine::limits::{WINDOW_LIFTED_AT_MOST, WINDOW_LIFTED_FOR};
use engine::state::WindowLift;
use schema::api::OpenWindowRequest;
use schema::time::Timestamp;

use super::super::world::InstanceEntry;
use super::super::{Caller, Refusal};

/// The event that does it.
///
/// # Errors
/// What is missing or wrong in the request, or that there is nothing to lift (any more).
pub(super) fn opening(
    kept: &InstanceEntry,
    request: OpenWindowRequest,
    caller: &Caller,
    now: Timestamp,
) -> Result<Event, Refusal> {
    let (label, target) = (kept.names.label(), kept.names.target());
    let OpenWindowRequest { version, reason, for_seconds, end } = request;
    if end {
        return match kept.state.window_lift() {
            Some(_) => Ok(Event::EndWindowLift { who: caller.who.clone() }),
            None => Err(Refusal::Conflict(format!(
                "nobody has lifted the apply window of {label}; `pvnctl services explain {target}` \
                 tells how it stands"
            ))),
        };
    }
    let reason = reason.map(|reason| reason.trim().to_owned()).unwrap_or_default();
    if reason.is_empty() {
        return Err(invalid("`reason` is missing: why this cannot wait for the window"));
    }
    let time = for_seconds.map_or(WINDOW_LIFTED_FOR, Duration::from_secs);
    if time.is_zero() || time > WINDOW_LIFTED_AT_MOST {
        return Err(invalid(&format!(
            "`forSeconds` is {}, and a window is lifted for 1 to {} seconds; what is to be so for \
             longer is another `window` in the config",
            time.as_secs(),
            WINDOW_LIFTED_AT_MOST.as_secs()
        )));
    }
    let Some(desired) = kept.state.desired() else {
        return Err(Refusal::Conflict(format!(
            "{label} has no release yet; make one with `pvnctl services push`"
        )));
    };
    if let Some(other) = version.filter(|version| *version != desired.version) {
        return Err(Refusal::Conflict(format!(
            "{label} is to be {} by now, not {other}; look at that with `pvnctl services explain \
             {target}`, and lift the window for it if it cannot wait either",
            desired.version
        )));
    }
    if desired.apply.window.is_none() {
        return Err(Refusal::Conflict(format!(
            "the applies of {label} have no window, so there is none to lift; `pvnctl services \
             explain {target}` tells what it waits for"
        )));
    }
    if !kept.state.has_window_to_lift() {
        return Err(Refusal::Conflict(format!(
            "{label} is as desired at {}, so nothing waits for its window; make the release first, \
             or have it looked at with `pvnctl services refresh {target}`",
            desired.version
        )));
    }
    let (who, until) = (caller.who.clone(), now.plus(time));
    Ok(Event::LiftWindow(Box::new(WindowLift { who, at: now, until, reason })))
}

fn invalid(why: &str) -> Refusal {
    Refusal::Invalid(why.to_owned())
}
