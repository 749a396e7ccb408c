//! Puts declared inputs (`--in PATH=REF`) in place before the start. Called by `main`; when one
//! cannot be had nothing is run.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use schema::spool;

use crate::args::DeclaredInput;
use crate::copying::copy;
use crate::deliver::client::RequestFault;
use crate::spawn::{Environment, SpawnRefusal};
use crate::writer::say;

pub(crate) use self::fetch::fetch;

use self::aside::Aside;
use self::held::PinnedFile;
use self::said::NamedDigest;

mod aside;
mod fetch;
mod held;
mod said;

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

enum InputFault {
    Here(io::Error),
    There(RequestFault),
    /// It may be another one, or a part.
    Not(SpawnRefusal),
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
