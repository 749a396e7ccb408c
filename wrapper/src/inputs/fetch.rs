//! Fetches inputs from the scheduler, again and again until their time is over. Called by `inputs`.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use schema::wire;

use super::said::NamedDigest;
use super::{InputFault, cannot_place, cannot_tell, make, not_there, temporary};
use crate::args::DeclaredInput;
use crate::deliver::DeliveryThreads;
use crate::deliver::backoff::Backoff;
use crate::deliver::client::{JobClient, RequestFault};
use crate::live::Live;
use crate::signals;
use crate::spawn::{Environment, SpawnRefusal};
use crate::thread_result::ThreadResult;

/// How often an input is fetched of which nobody can tell that it is whole or that it is the right
/// one: once more, for something between may have had one bad moment; then a person must look.
const TRIES: u32 = 2;

/// How often we look whether the inputs are there, beside being told.
const LOOK: Duration = Duration::from_secs(1);

/// How long the thread that fetches may take to notice that its time is over.
const SLACK: Duration = Duration::from_millis(200);

/// Fetches every input from the scheduler, within so long, however slowly they come. On a thread,
/// so that a TERM is heard meanwhile.
pub(crate) fn fetch(
    inputs: &[DeclaredInput],
    delivery: &DeliveryThreads,
    environment: &Environment,
    most: Duration,
) -> Result<(), SpawnRefusal> {
    if inputs.is_empty() {
        return Ok(());
    }
    let said = inputs
        .iter()
        .map(|input| NamedDigest::of(input, environment, None))
        .collect::<Result<Vec<_>, _>>()?;
    let done = ThreadResult::new();
    let wanted = Arc::new(InputDemand(Mutex::new(true)));
    let deadline = Instant::now().checked_add(most);
    let (all, target, live) =
        (inputs.to_vec(), delivery.target.clone(), Arc::clone(&delivery.live));
    let thread = {
        let (done, wanted) = (Arc::clone(&done), Arc::clone(&wanted));
        move || {
            let fetch = || {
                fetch_all(
                    &all,
                    &said,
                    &DeliveryThreads::client(&target, &live),
                    &live,
                    deadline,
                    &wanted,
                )
            };
            done.of(fetch, || {
                Err(SpawnRefusal::ours(
                    "cannot fetch the inputs: a fault of the wrapper's own".to_owned(),
                ))
            });
        }
    };
    let spawned = std::thread::Builder::new()
        .name("inputs".to_owned())
        .stack_size(crate::deliver::STACK_BYTES)
        .spawn(thread);
    let surroundings = |why: String| SpawnRefusal {
        surroundings: true,
        ..SpawnRefusal::ours(format!("cannot fetch the inputs: {why}"))
    };
    let faulty = |error: io::Error| surroundings(error.to_string());
    spawned.map_err(faulty)?;
    let signals = signals::descriptor().map_err(faulty)?;
    loop {
        if let Some(outcome) = done.take() {
            return outcome;
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A little more than the thread has, which knows better what is wrong.
        let is_late =
            left.is_some_and(|left| left.is_zero()) && !done.sleep(None, SLACK) && !done.is_there();
        if is_late || done.sleep(Some(&signals), left.unwrap_or(LOOK).min(LOOK)) {
            wanted.no_longer();
            inputs.iter().for_each(|input| drop(std::fs::remove_file(temporary(&input.path))));
            if is_late {
                let why =
                    delivery.live.failing().unwrap_or_else(|| "they came too slowly".to_owned());
                return Err(surroundings(format!(
                    "not all of them came within {:.1} s: {why}",
                    most.as_secs_f64()
                )));
            }
            return Err(SpawnRefusal::ours(
                "asked to stop before the command was started".to_owned(),
            ));
        }
    }
}

/// Whether the inputs are still wanted. The thread that fetches them outlives a stop, which gives
/// their paths back to others.
struct InputDemand(Mutex<bool>);

impl InputDemand {
    fn no_longer(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// Does it while they are wanted, or not at all.
    fn then<T>(&self, place: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *wanted { place() } else { Err(io::Error::other("asked to stop before it arrived")) }
    }
}

fn fetch_all(
    inputs: &[DeclaredInput],
    said: &[NamedDigest],
    client: &JobClient,
    live: &Live,
    deadline: Option<Instant>,
    wanted: &InputDemand,
) -> Result<(), SpawnRefusal> {
    let mut backoff = Backoff::default();
    for (input, said) in inputs.iter().zip(said) {
        let mut tries = 0;
        loop {
            let (why, after) = match fetch_one(input, said, client, wanted) {
                Ok(()) => break,
                Err(InputFault::Here(error)) => return Err(cannot_place(input, &error)),
                Err(InputFault::Not(refusal)) => {
                    tries += 1;
                    if tries == TRIES {
                        return Err(refusal);
                    }
                    (refusal.why, None)
                }
                Err(InputFault::There(RequestFault::Never(why))) => {
                    return Err(not_there(input, &format!(" ({why})")));
                }
                Err(InputFault::There(RequestFault::Over(why))) => {
                    return Err(SpawnRefusal::ours(format!(
                        "nothing is run: the scheduler says that the job is over: {why}"
                    )));
                }
                Err(InputFault::There(RequestFault::Again { why, after })) => (why, after),
                Err(InputFault::There(RequestFault::TooLarge(why))) => (why, None),
            };
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let what = format!(
                    "cannot fetch `{}` for {}: {why}",
                    input.reference,
                    input.path.display()
                );
                return Err(SpawnRefusal { surroundings: true, ..SpawnRefusal::ours(what) });
            }
            let wait = backoff.next(after);
            let left = deadline
                .map_or(wait, |deadline| deadline.saturating_duration_since(Instant::now()));
            live.back_off(wait.min(left), false, &why);
        }
    }
    if live.is_cancelled() {
        return Err(SpawnRefusal::ours("nothing is run: the scheduler asks to stop".to_owned()));
    }
    Ok(())
}

fn fetch_one(
    input: &DeclaredInput,
    said: &NamedDigest,
    client: &JobClient,
    wanted: &InputDemand,
) -> Result<(), InputFault> {
    let temporary = temporary(&input.path);
    let whole = wanted.then(|| make(&input.path, &temporary)).map_err(InputFault::Here).and_then(
        |mut file| {
            let arrived = client.input(&input.reference, &mut file).map_err(InputFault::There)?;
            let said = said
                .clone()
                .and(wire::BLOB_HEADER, arrived.named, input)
                .map_err(InputFault::Not)?;
            if !said.is_anything() && !arrived.has_length {
                let why = format!(
                    "it came with neither {} nor Content-Length, so nobody can tell whether that \
                     is all of it; have the proxy between pass the scheduler's headers on",
                    wire::BLOB_HEADER
                );
                return Err(InputFault::Not(cannot_tell(input, &why)));
            }
            said.check(arrived.blob, input).map_err(InputFault::Not)?;
            wanted.then(|| std::fs::rename(&temporary, &input.path)).map_err(InputFault::Here)
        },
    );
    if whole.is_err() {
        // It may never have been made.
        let _ = std::fs::remove_file(&temporary);
    }
    whole
}
