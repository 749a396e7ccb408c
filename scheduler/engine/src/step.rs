//! One event, one instance: what it is afterwards and what is to be done.

use schema::time::Timestamp;

use crate::action::Action;
use crate::event::Event;
use crate::state::State;

/// Takes one event into account. Total and deterministic; every event in every state has an answer.
pub fn step(mut state: State, event: Event, now: Timestamp) -> (State, Vec<Action>) {
    state.seen_at = state.seen_at.max(now);
    match event {
        Event::Desired(desired) => {
            state.deleted = false;
            state.desired = Some(desired);
        }
        Event::Deleted => state.deleted = true,
        Event::Pause(paused) => state.paused = paused,
        Event::Observe(observer) => state.observer = observer,
        _ => {}
    }
    (state, Vec::new())
}

/// When `Event::Tick` would change something, if it ever would by itself. Always later than the last step's instant.
pub fn next_wake(state: &State) -> Option<Timestamp> {
    state.standing.next_action_at.filter(|at| *at > state.seen_at)
}
