//! The engine, asked so that a panic in it stops one instance and nothing else. Called by `broken`
//! and the batch.

use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::State;
use engine::action::Action;

/// What the engine makes, with every invariant checked. A panic in there is a broken invariant too.
///
/// # Errors
/// What is broken.
pub(in crate::driver) fn guarded(
    make: impl FnOnce() -> (State, Vec<Action>),
) -> Result<(State, Vec<Action>), String> {
    let made = unwound(make)?;
    sound(&made.0).map(|()| made)
}

/// Whether every invariant holds.
///
/// # Errors
/// What is broken.
pub(in crate::driver) fn sound(state: &State) -> Result<(), String> {
    unwound(|| state.check())?.map_err(|broken| broken.to_string())
}

pub(super) fn unwound<T>(make: impl FnOnce() -> T) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(made) => Ok(made),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("the engine panicked: {}", text.unwrap_or("no reason given")))
        }
    }
}
