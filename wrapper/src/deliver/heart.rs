//! Signs of life, every five seconds, on a thread and a connection of their own: an upload that is
//! slow must not look like a wrapper that is dead. Called by `courier` once a run is no longer a
//! short one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use schema::wire::HEARTBEAT_EVERY_MS;

use super::client::{JobClient, RequestFault};
use crate::live::Live;

/// Starts it. Without a thread to be had there are no signs of life; the pieces of the streams are
/// some too.
pub(crate) fn start(client: &Arc<JobClient>, live: &Arc<Live>) {
    let (client, live) = (Arc::clone(client), Arc::clone(live));
    // It ends with the process; nothing waits for it.
    let _ = std::thread::Builder::new()
        .name("heart".to_owned())
        .stack_size(super::STACK_BYTES)
        .spawn(move || beat(&client, &live));
}

fn beat(client: &JobClient, live: &Live) {
    let every = Duration::from_millis(HEARTBEAT_EVERY_MS);
    loop {
        // A fault of our own costs one sign of life; without any the scheduler would give the job
        // up.
        let told = catch_unwind(AssertUnwindSafe(|| client.heartbeat()));
        let wait = match told.unwrap_or(Ok(())) {
            Ok(())
            | Err(RequestFault::Never(_) | RequestFault::TooLarge(_))
            | Err(RequestFault::Again { after: None, .. }) => every,
            Err(RequestFault::Again { after: Some(after), .. }) => after.clamp(every, 12 * every),
            Err(RequestFault::Over(why)) => return live.over(&why),
        };
        if !live.beat(wait) {
            return;
        }
    }
}
