//! Waits until services have converged: `services wait`, `--wait` elsewhere, and `dev
//! --until-converged`. What is so is judged by a pure function over the whole state; the loop only
//! looks again and again, so nothing can be missed.

mod beneath;
mod goal;
mod progress;
mod words;

use std::collections::VecDeque;
use std::slice::from_ref;
use std::time::Duration;

use schema::api::Service;
use tokio::time::Instant;

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

pub use goal::{FailedIn, Goal, GoalVerdict, Pursued, is_looked_at_again};
pub use progress::WaitProgress;
pub use words::open;

/// How often to look: a person sees no delay, and the server answers thousands of these a second.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long a look has that begins right before the timeout: without it the last one could not be
/// answered.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Goals that are still open and looked at in one go. Thousands are released at once; asking for
/// all of them several times a second would take the time from the scheduler that is to converge
/// them. The next look goes on with the others.
const OPEN_AT_A_TIME: usize = 64;

/// Waits until every goal has converged, each once. Shows progress on stderr. Bears a server that
/// goes away and comes back; one that was never reached is an error at once, where no release was
/// made there.
///
/// # Errors
/// With exit code 2 when a channel FAILED, 3 at the timeout, 1 when it can never come or the server
/// refuses.
pub async fn until_converged(
    client: &Client,
    mut goals: Vec<Goal>,
    timeout: Duration,
    console: &mut Console,
) -> Result<(), Failure> {
    // Whoever waits wants to know how it ends, also where nobody reads what is said on the way
    // (`2>&1 | head -1`).
    console.go_on_unread();
    let deadline = Instant::now() + timeout;
    let mut progress = WaitProgress::default();
    // Whoever made a release has reached the server.
    let mut reached = goals.iter().any(|goal| goal.pursued.is_some());
    let mut lost = false;
    let mut seen: Vec<Option<Service>> = goals.iter().map(|_| None).collect();
    let mut open: VecDeque<usize> = (0..goals.len()).collect();
    loop {
        let mut still_open = Vec::new();
        while still_open.len() < OPEN_AT_A_TIME
            && let Some(index) = open.pop_front()
        {
            let Ok(looked) = in_time(deadline, goals[index].look(client)).await else {
                progress.finish(console, &goals, &seen)?;
                return Err(words::silent(client, timeout, reached));
            };
            let (goal, seen) = (&goals[index], &mut seen[index]);
            match looked {
                Ok(service) => {
                    reached = true;
                    if std::mem::take(&mut lost) {
                        progress.say(console, &format!("{} is back", client.server()))?;
                    }
                    for channel in goal.gone(seen.as_ref(), &service) {
                        progress.once(console, words::gone(&service, &channel))?;
                    }
                    let verdict = goal.judge(&service);
                    let service = seen.insert(service);
                    match verdict {
                        GoalVerdict::Converged => {}
                        GoalVerdict::Waiting => still_open.push(index),
                        GoalVerdict::Failed(channels) => {
                            let failed = Some(service.clone());
                            progress.finish(console, from_ref(goal), from_ref(&failed))?;
                            return Err(words::failed(service, &channels));
                        }
                        GoalVerdict::Never(why) => {
                            let failed = words::failed_before(client, goal, service);
                            let failed = in_time(deadline, failed).await.ok().flatten();
                            return Err(failed.unwrap_or_else(|| Failure::user(why)));
                        }
                    }
                }
                Err(failure) if failure.passes(reached) => {
                    still_open.push(index);
                    if !std::mem::replace(&mut lost, true) {
                        progress.say(console, &format!("{failure}; still trying"))?;
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
        progress.look(still_open.iter().map(|index| &goals[*index]), client, console).await;
        open.extend(still_open);
        progress.show(console, &goals, &seen)?;
        if open.is_empty() {
            return progress.finish(console, &goals, &seen);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            progress.finish(console, &goals, &seen)?;
            return Err(match lost {
                true => words::silent(client, timeout, reached),
                false => words::timed_out(&goals, &seen, timeout),
            });
        }
        tokio::time::sleep(LOOK_EVERY.min(left)).await;
    }
}

/// What comes of it before the timeout, however long a server takes that is silent.
async fn in_time<T>(
    deadline: Instant,
    asked: impl Future<Output = T>,
) -> Result<T, tokio::time::error::Elapsed> {
    tokio::time::timeout_at(deadline.max(Instant::now() + LAST_LOOK), asked).await
}
