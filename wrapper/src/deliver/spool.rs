//! The spool directory of a run that is delivered over HTTP: what `pvn-wrapper resume DIR` needs
//! when this process is killed. Called by `deliver` and `resume`. A local job's directory is
//! another thing: see [`schema::spool`].
//!
//! ```text
//! <dir>/            mode 0700
//!   spool.pvn-lock  locked as long as somebody writes or delivers; the kernel lets go of it. Says that all of this is ours
//!   run.json        whose it is and where it goes; no token. Before the command starts
//!   stdout, stderr  as stored so far, from the moment that a stream is large or old enough to be watched
//!   files/NAME      declared outputs, copied
//!   report.json.new room for the report, taken before the command starts, whatever fills the disk afterwards
//!   report.json     by rename, after everything else; its absence says that the end is not known
//! ```
//!
//! What always holds: what is not delivered is emptied by nobody but whoever delivers it.
//! `run.json` stands from before the start until all is delivered, and a later run takes another
//! directory (`<dir>.1`, `<dir>.2` and so on). The one exception is a run of the same job whose end
//! nobody saw: the scheduler takes one report of a job, and that of the later run says more. And
//! nothing is written or removed in a directory that had something in it and no such lock: people
//! have files called `stdout` too.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use schema::id::BlobId;
use schema::report::Report;
use schema::spool::{CLAIM, FILES, REPORT, REPORT_TEMPORARY, Stream};
use serde::{Deserialize, Serialize};

use crate::room::ReportReserve;
use crate::writer::say;
use crate::{copying, store};

/// The one name that nobody else uses: where it is, the names below are ours.
const LOCK: &str = "spool.pvn-lock";
const RUN: &str = "run.json";

/// Where the spool is within a directory of others' files.
const WITHIN: &str = "pvn-spool";

/// What a file system has in it when it is new, ext4 for example: no file of anybody's.
const LOST_AND_FOUND: &str = "lost+found";

/// Most directories beside the one that is named, each with something that nobody delivered:
/// beyond, a run does without a disk.
const PLACES_LIMIT: u32 = 100;

/// Largest report or `run.json` that is read back, 64 MiB: a report with a structured document of 8
/// MiB is far below.
const TEXT_LIMIT_BYTES: u64 = 64 << 20;

/// Whose output it is and where it goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpoolAddress {
    /// The scheduler's address.
    pub(crate) url: String,
    /// The job's id.
    pub(crate) job: String,
    /// Most bytes kept of a stream.
    pub(crate) max_output_bytes: u64,
    /// Wall time of the start, nanoseconds since 1970, as decimal text.
    pub(crate) start_timestamp_ns: String,
}

/// A directory that is ours as long as this lives.
#[derive(Debug)]
pub(crate) struct Spool {
    directory: PathBuf,
    room: ReportReserve,
    _lock: File,
}

/// Why a directory cannot be delivered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("{0} is the spool directory of a local job: its scheduler collects it by itself")]
    Local(String),
    #[error("a wrapper still delivers {0}; wait for its end")]
    Busy(String),
    #[error(
        "{0} holds nothing that a wrapper left: it has no `run.json` beside a `spool.pvn-lock`"
    )]
    Nothing(String),
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, io::Error),
}

impl Spool {
    /// Makes the directory, or takes one over that an earlier run left and that holds nothing which
    /// others want. Where it does, or another wrapper uses it, or it is another user's, it is
    /// left alone, and one beside it is made. In a directory of others' files it is one within
    /// that.
    pub(crate) fn make(directory: &Path, about: &SpoolAddress) -> io::Result<Self> {
        let (mut kept, mut said) = (None, false);
        let directory =
            if is_others(directory) { directory.join(WITHIN) } else { directory.to_owned() };
        for place in std::iter::once(directory.clone())
            .chain((1..=PLACES_LIMIT).map(|number| beside(&directory, number)))
        {
            let mut spool = match if has_others_files(&place) {
                Err(io::ErrorKind::WouldBlock.into())
            } else {
                Self::lock(&place)
            } {
                Ok(spool) => spool,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied
                    ) =>
                {
                    kept = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if spool.is_wanted(about)? {
                let shown = place.display();
                if !std::mem::replace(&mut said, true) {
                    say(&format!(
                        "{shown} holds what was not delivered of another run; it is kept: \
                         `pvn-wrapper resume {shown}` delivers it"
                    ));
                }
                kept = Some(io::Error::other(format!(
                    "{PLACES_LIMIT} more beside it are kept too: `pvn-wrapper resume` delivers \
                     them"
                )));
                continue;
            }
            spool.clear();
            spool.write(RUN, &serde_json::to_vec(about)?)?;
            spool.room = ReportReserve::take(&spool.directory);
            return Ok(spool);
        }
        Err(kept.unwrap_or_else(|| io::ErrorKind::WouldBlock.into()))
    }

    /// Whether it holds what a run left that somebody wants delivered, or is a local job's.
    fn is_wanted(&self, own: &SpoolAddress) -> io::Result<bool> {
        if self.directory.join(CLAIM).try_exists()? {
            return Ok(true);
        }
        let Some(text) = self.read(RUN)? else { return Ok(false) };
        let has_report = self.directory.join(REPORT).try_exists()?;
        Ok(match serde_json::from_slice::<SpoolAddress>(&text) {
            Ok(left) => has_report || (left.url, left.job) != (own.url.clone(), own.job.clone()),
            // Cut off while it was written, which is before anything else is.
            Err(_) => has_report || Stream::ALL.iter().any(|stream| self.stream(*stream).exists()),
        })
    }

    /// Whether a run that is not delivered may put its streams there: it is a directory of nobody's
    /// files, no spool, and not in use.
    pub(crate) fn is_free(directory: &Path) -> bool {
        !is_others(directory) && ![LOCK, CLAIM].iter().any(|name| directory.join(name).exists())
    }

    fn lock(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        if std::fs::symlink_metadata(directory)?.uid() != rustix::process::geteuid().as_raw() {
            // Somebody may have put symlinks there that lead elsewhere.
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        let mut options = File::options();
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
        let lock = options
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(directory.join(LOCK))?;
        match lock.try_lock() {
            // Whoever had it may have removed it meanwhile with all the rest.
            Ok(()) if !store::is_at(&lock, &directory.join(LOCK)) => {
                Err(io::Error::from(io::ErrorKind::WouldBlock))
            }
            Ok(()) => Ok(Self {
                directory: directory.to_owned(),
                room: ReportReserve::default(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(io::Error::from(io::ErrorKind::WouldBlock)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes over what a killed wrapper left.
    pub(crate) fn open(directory: &Path) -> Result<(Self, SpoolAddress), OpenError> {
        let shown = directory.display().to_string();
        if directory.join(CLAIM).exists() {
            return Err(OpenError::Local(shown));
        }
        let unreadable = |error: io::Error| OpenError::Unreadable(shown.clone(), error);
        if has_others_files(directory) || !directory.join(RUN).try_exists().map_err(unreadable)? {
            return Err(OpenError::Nothing(shown));
        }
        let spool = match Self::lock(directory) {
            Ok(spool) => spool,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(OpenError::Busy(shown));
            }
            Err(error) => return Err(unreadable(error)),
        };
        // Delivered and removed while we waited for the lock.
        let Some(text) = spool.read(RUN).map_err(unreadable)? else {
            return Err(OpenError::Nothing(shown));
        };
        let about = serde_json::from_slice(&text).map_err(|error| unreadable(error.into()))?;
        Ok((spool, about))
    }

    /// Where it is.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of a stream.
    pub(crate) fn stream(&self, stream: Stream) -> PathBuf {
        self.directory.join(stream.as_str())
    }

    /// The file of a declared output.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(FILES).join(name)
    }

    /// Keeps what `from` gives as a declared output, and says where and what it was. A copy, and no
    /// second name for the file: whoever writes into it next would change what is delivered,
    /// and removing the name would look as if somebody had.
    pub(crate) fn keep(&self, name: &str, from: impl Read) -> io::Result<(PathBuf, BlobId)> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.directory.join(FILES))?;
        let to = self.file(name);
        match copying::copy(from, &mut new(&to)?) {
            Ok(blob) => Ok((to, blob)),
            Err(error) => {
                // Whoever resumes would take a part of it for all of it, and the report may need
                // the room.
                let _ = std::fs::remove_file(&to);
                Err(error)
            }
        }
    }

    /// Puts the report in place, whole or not at all as far as a killed process goes;
    /// [`Self::sync`] is for the rest. Where there is no room for all of it, without the
    /// streams that it carries; those that are `nowhere_else` count as lost in it.
    pub(crate) fn report(&mut self, report: &Report, nowhere_else: [bool; 2]) -> io::Result<()> {
        // What is kept is what somebody delivers later; who delivers now does not wait for it.
        self.room.put(&self.directory, report, nowhere_else, Duration::ZERO)
    }

    /// Sees to it that what is here outlives the machine.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let names = Stream::ALL.iter().map(|stream| stream.as_str()).chain([RUN, REPORT]);
        let files = std::fs::read_dir(self.directory.join(FILES))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        for path in names.map(|name| self.directory.join(name)).chain(files) {
            match File::open(&path) {
                Ok(file) => file.sync_all()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        File::open(&self.directory)?.sync_all()
    }

    /// The report that was left, if it is whole.
    pub(crate) fn left_report(&self) -> io::Result<Option<Report>> {
        // One that a crash of the machine cut says nothing.
        Ok(self.read(REPORT)?.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// Everything is delivered, or nobody wants it.
    pub(crate) fn remove(self) {
        self.clear();
        // What cannot be removed has nobody else to remove it; a mounted directory stays.
        let _ = std::fs::remove_file(self.directory.join(LOCK));
        let _ = std::fs::remove_dir(&self.directory);
    }

    /// Removes what is ours in it and nothing else: others may have put things beside it meanwhile.
    fn clear(&self) {
        // First what says that the rest is wanted: who is killed on the way leaves nothing that
        // looks like another run's.
        for name in [RUN, REPORT, REPORT_TEMPORARY]
            .into_iter()
            .chain(Stream::ALL.iter().map(|stream| stream.as_str()))
        {
            let _ = std::fs::remove_file(self.directory.join(name));
        }
        for stream in Stream::ALL {
            let _ = std::fs::remove_file(store::ordered(&self.stream(stream)));
        }
        let _ = std::fs::remove_dir_all(self.directory.join(FILES));
    }

    fn write(&self, name: &str, text: &[u8]) -> io::Result<()> {
        new(&self.directory.join(name))?.write_all(text)
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match File::open(self.directory.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(file) => {
                let mut text = Vec::new();
                file.take(TEXT_LIMIT_BYTES).read_to_end(&mut text)?;
                Ok(Some(text))
            }
        }
    }
}

/// Whether a spool has no place in this directory: others' files are in it, or may be soon, because
/// the command starts there. Says so, and where it is instead.
fn is_others(directory: &Path) -> bool {
    let is_where_we_are = || match (std::env::current_dir(), directory.canonicalize()) {
        (Ok(here), Ok(there)) => here.starts_with(there),
        _ => false,
    };
    if directory.join(LOCK).exists() || !(has_others_files(directory) || is_where_we_are()) {
        return false;
    }
    let shown = directory.display();
    let why = "holds other files, or is where the command starts, and stays as it is";
    say(&format!("{shown} {why}; what is to be delivered is in {shown}/{WITHIN} until then"));
    true
}

/// Whether there is something in it, and it never was a spool: then nothing in it is ours, whatever
/// it is called.
fn has_others_files(directory: &Path) -> bool {
    // What cannot be listed is found out by who makes something there.
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    let names: Vec<_> = entries
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name != LOST_AND_FOUND)
        .collect();
    !names.is_empty() && !names.iter().any(|name| name == LOCK || name == CLAIM)
}

/// A new file of ours in the place of an earlier one, whatever that leads to.
fn new(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::options().write(true).create_new(true).mode(0o600).open(path),
    }
}

/// The directory number `number` beside this one.
fn beside(directory: &Path, number: u32) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
