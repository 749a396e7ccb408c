//! Puts declared inputs (`--in PATH=REF`) in place before the start. Called by `main`; when one
//! cannot be had nothing is run.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use schema::{spool, wire};

use crate::args::DeclaredInput;
use crate::copying::copy;
use crate::deliver::DeliveryThreads;
use crate::deliver::backoff::Backoff;
use crate::deliver::client::{JobClient, RequestFault};
use crate::live::Live;
use crate::signals;
use crate::spawn::{Environment, SpawnRefusal};
use crate::thread_result::ThreadResult;
use crate::writer::say;

use self::aside::Aside;
use self::held::PinnedFile;
use self::said::NamedDigest;

mod aside;
mod held;
mod said;

/// How often an input is fetched of which nobody can tell that it is whole or that it is the right
/// one: once more, for something between may have had one bad moment; then a person must look.
const TRIES: u32 = 2;

/// How often we look whether the inputs are there, beside being told.
const LOOK: Duration = Duration::from_secs(1);

/// How long the thread that fetches may take to notice that its time is over.
const SLACK: Duration = Duration::from_millis(200);

/// Inputs that lie in place. When this goes they are taken away again, so that no other job finds
/// them there, and what lay there before comes back.
#[derive(Default)]
pub(crate) struct Placed(Vec<PlacedInput>);

struct PlacedInput {
    path: PathBuf,
    /// The file that we put there.
    ours: Option<PinnedFile>,
    /// What lay there before.
    aside: Option<Aside>,
    /// Directories on the way that were not there, the deepest first.
    made: Vec<PathBuf>,
}

impl Placed {
    /// Has `place` put all inputs in place; when that fails none is left.
    pub(crate) fn place(
        inputs: &[DeclaredInput],
        place: impl FnOnce(&[DeclaredInput]) -> Result<(), SpawnRefusal>,
    ) -> Result<Self, SpawnRefusal> {
        if inputs.is_empty() {
            return Ok(Self::default());
        }
        let mut placed = Self::default();
        for input in inputs {
            placed.0.push(PlacedInput::make(input).map_err(|error| cannot_place(input, &error))?);
        }
        let result = place(inputs);
        placed.0.iter_mut().for_each(PlacedInput::note);
        result.map(|()| placed)
    }
}

impl PlacedInput {
    /// Clears the path: an input that a killed run left there goes, anything else is moved aside,
    /// so that nothing of its owner's is lost whatever was killed before.
    fn make(input: &DeclaredInput) -> io::Result<Self> {
        let path = input.path.clone();
        let on_the_way = path.ancestors().skip(1).take_while(|above| {
            !above.as_os_str().is_empty() && std::fs::symlink_metadata(above).is_err()
        });
        let made = on_the_way.map(Path::to_owned).collect();
        let (aside, noted) = (beside(&path, ".pvn-before"), beside(&path, ".pvn-placed"));
        let found = std::fs::symlink_metadata(&path).ok().map(|found| found.file_type());
        let there = found.is_some_and(|found| found.is_file() || found.is_symlink());
        if found.is_some() && !there {
            // A device or a socket is of use to others meanwhile; what is moved away and back again
            // is another one to them.
            return Err(io::Error::other(
                "what lies there is no file; an input takes the place of a file or of nothing",
            ));
        }
        let is_left_over = told(&path)
            .is_some_and(|found| std::fs::read_to_string(&noted).is_ok_and(|text| text == found));
        let has_aside = std::fs::symlink_metadata(&aside).is_ok();
        let is_aside = if is_left_over {
            std::fs::remove_file(&path)?;
            has_aside
        } else if there {
            if has_aside {
                let kept = free_name(&aside)?;
                std::fs::rename(&aside, &kept)?;
                say(&format!(
                    "what a run that was killed moved away from {} is in {}",
                    path.display(),
                    kept.display()
                ));
            }
            std::fs::rename(&path, &aside)?;
            true
        } else {
            has_aside
        };
        Ok(Self { path, ours: None, aside: is_aside.then(|| Aside::at(aside)), made })
    }

    /// Notes what was put there, also for whoever comes after a run that is killed.
    fn note(&mut self) {
        let is_file = std::fs::symlink_metadata(&self.path).is_ok_and(|there| there.is_file());
        self.ours = PinnedFile::at(&self.path).ok().filter(|_| is_file);
        if let Some(ours) = told(&self.path) {
            // Where it cannot be written, the file counts as its owner's and is kept.
            let _ = std::fs::write(beside(&self.path, ".pvn-placed"), ours);
        }
    }
}

impl Drop for PlacedInput {
    fn drop(&mut self) {
        // Another file there is what the command made in its place.
        if self.ours.as_ref().is_some_and(|ours| ours.is_at(&self.path)) {
            let _ = std::fs::remove_file(&self.path);
        }
        let _ = std::fs::remove_file(beside(&self.path, ".pvn-placed"));
        // Those in which the command left something stay.
        let _ = self.made.iter().try_for_each(std::fs::remove_dir);
        let Some(aside) = &self.aside else { return };
        let shown = self.path.display();
        match aside.put_back(&self.path) {
            Ok(None) => {}
            Ok(Some(kept)) => say(&format!("what lay at {shown} before is in {}", kept.display())),
            Err(error) => say(&format!(
                "what lay at {shown} before was removed by the command from {} and cannot be put \
                 back: {error}",
                aside.path.display()
            )),
        }
    }
}

/// The hidden name beside a path that ends in `suffix`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(suffix);
    path.with_file_name(name)
}

/// Most files that killed runs moved away from one path and nobody looked after.
const ASIDES_LIMIT: u32 = 100;

/// The first of `NAME.1`, `NAME.2` and so on that is free.
fn free_name(name: &Path) -> io::Result<PathBuf> {
    let numbered = |number: u32| {
        let mut path = name.as_os_str().to_owned();
        path.push(format!(".{number}"));
        PathBuf::from(path)
    };
    let free =
        (1..=ASIDES_LIMIT).map(numbered).find(|path| std::fs::symlink_metadata(path).is_err());
    free.ok_or_else(|| {
        io::Error::other(format!(
            "{ASIDES_LIMIT} runs that were killed left files like {}.1; look after them",
            name.display()
        ))
    })
}

/// How the file that lies there is written down, if it is a regular one: with its time of change,
/// since an owner who writes it anew writes into the same file.
fn told(path: &Path) -> Option<String> {
    let there = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some(format!("{} {} {} {}\n", there.dev(), there.ino(), there.ctime(), there.ctime_nsec()))
}

/// Puts every input in place from the spool directory of the local job that we are part of.
pub(crate) fn place(
    inputs: &[DeclaredInput],
    job: Option<&Path>,
    environment: &Environment,
) -> Result<(), SpawnRefusal> {
    for input in inputs {
        let Some(job) = job else {
            let why = format!(
                "there is no scheduler to ask for `{}` (`--in {}=…`): within a job only its \
                 outermost wrapper can, which has the token; give the flag to that one",
                input.reference,
                input.path.display(),
            );
            return Err(SpawnRefusal::ours(why));
        };
        let from = job.join(spool::INPUTS).join(&input.reference);
        // It links to the name of its blob; from a daemon of before, to the blob.
        let linked = std::fs::read_link(&from).ok().and_then(|to| to.to_str()?.parse().ok());
        let said =
            NamedDigest::of(input, environment, Some(job))?.and("the scheduler", linked, input)?;
        copy_in(&from, input, &said).map_err(|wrong| match wrong {
            InputFault::Here(error)
                if error.kind() == io::ErrorKind::NotFound && !from.exists() =>
            {
                not_there(input, "")
            }
            InputFault::Here(error) => cannot_place(input, &error),
            InputFault::Not(refusal) => refusal,
            InputFault::There(_) => unreachable!("nothing is asked for"),
        })?;
    }
    Ok(())
}

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

enum InputFault {
    Here(io::Error),
    There(RequestFault),
    /// It may be another one, or a part.
    Not(SpawnRefusal),
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

fn cannot_tell(input: &DeclaredInput, why: &str) -> SpawnRefusal {
    SpawnRefusal::ours(format!(
        "nothing is run: `{}` (`--in {}=…`) is not what it should be: {why}",
        input.reference,
        input.path.display()
    ))
}

fn not_there(input: &DeclaredInput, detail: &str) -> SpawnRefusal {
    SpawnRefusal::ours(format!(
        "the scheduler has no `{}` for this job: the fetch that found the work made no such \
         output, or it is no longer kept (`--in {}=…`){detail}",
        input.reference,
        input.path.display()
    ))
}

fn cannot_place(input: &DeclaredInput, error: &io::Error) -> SpawnRefusal {
    SpawnRefusal::ours(format!(
        "cannot put `{}` into {}: {error}",
        input.reference,
        input.path.display()
    ))
}

/// What an input is called until it is whole.
fn temporary(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".pvn-{}", std::process::id()));
    PathBuf::from(name)
}

/// A new file, the command's own, and the directories above it.
fn make(to: &Path, temporary: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(parent) = to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    File::options().write(true).create(true).truncate(true).mode(0o600).open(temporary)
}

fn copy_in(from: &Path, input: &DeclaredInput, said: &NamedDigest) -> Result<(), InputFault> {
    let temporary = temporary(&input.path);
    let mut source = File::open(from).map_err(InputFault::Here)?;
    let copied = make(&input.path, &temporary)
        .and_then(|mut file| copy(&mut source, &mut file))
        .map_err(InputFault::Here);
    let placed = copied
        .and_then(|blob| said.check(blob, input).map_err(InputFault::Not))
        .and_then(|()| std::fs::rename(&temporary, &input.path).map_err(InputFault::Here));
    if placed.is_err() {
        // It may never have been made.
        let _ = std::fs::remove_file(&temporary);
    }
    placed
}
