//! The directory of one job that uploads: what was agreed with it, what has come, and the report
//! once it is accepted. Blocks on the disk. Called by the rest of [`super`], one caller at a time.
//!
//! ```text
//! uploads/<job id>/    mode 0700, made before the job is started anywhere
//!   order.json         what the job may see, and its token's terms; synced, so that a job that was started is known
//!                      after a crash of the machine too
//!   started            when the first sign of life came
//!   cancel             there once the job is to be stopped
//!   stdout, stderr     what has come
//!   files/NAME         declared files, complete; parts/NAME, those that come in pieces; new/N, those that come whole
//!   report.json        the accepted report, by rename, after all that it names is in the blob store
//! ```

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use schema::id::{BlobId, JobId};
use schema::report::{Report, StructuredKind};
use schema::spool::{Stream, is_output_name};
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::growing::{Appended, GrowingFile};
use crate::removal::remove_all;
use crate::room::DiskRoom;

/// Most bytes of one stream that are kept, whatever `--max-output` the job was given: 64 times the
/// wrapper's default, and more than anybody reads. A job that has to print more has to keep it
/// elsewhere.
pub const STREAM_LIMIT_BYTES: u64 = 4 << 30;

/// Most bytes of all declared files of a job: plans and their like have a few megabytes.
pub const FILES_LIMIT_BYTES: u64 = 4 << 30;

/// Most declared files of a job: each is an `--out` that somebody wrote.
pub const FILES_LIMIT: usize = 64;

/// Room that uploads leave on the disk, for the database beside them: it needs little, and without
/// it nothing can be decided any more.
const ROOM_BYTES: u64 = 64 << 20;

/// The same of files. Less than what the database leaves when it decides nothing any more, so that
/// what runs then can still hand over what it has.
const ROOM_FILES: u64 = 64;

const ORDER: &str = "order.json";
const STARTED: &str = "started";
const CANCEL: &str = "cancel";
const HELD: &str = "held";
const REPORT: &str = "report.json";
const FILES: &str = "files";
const PARTS: &str = "parts";
const NEW: &str = "new";

/// What was agreed with a job when it was handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct JobTerms {
    pub(super) job: JobId,
    pub(super) attempt: u32,
    /// When its token ends.
    pub(super) expires_at: Option<Timestamp>,
    /// What `--in` can name.
    pub(super) inputs: Vec<(String, BlobId)>,
    /// What it is to print, if a document.
    #[serde(default)]
    pub(super) expect: Option<StructuredKind>,
    /// Whether its report alone does not end it: whoever put the wrapper into the image may run
    /// more beside it, so that the job is over when its container is.
    #[serde(default)]
    pub(super) ends_with_its_container: bool,
}

/// What became of a piece of a declared file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileTaken {
    /// More is wanted, from this byte on.
    Next(u64),
    Complete(BlobId),
    /// The piece starts beyond what is held.
    Gap(u64),
    /// It is more than is kept; why, for people.
    TooMuch(String),
    /// The job is over.
    Over,
}

/// The directory, with what is known of its files.
#[derive(Debug)]
pub(super) struct Staging {
    path: PathBuf,
    streams: [GrowingFile; 2],
    files: BTreeMap<String, GrowingFile>,
    parts: BTreeMap<String, GrowingFile>,
    /// Nothing new is taken any more: what is here may have become blobs, which never change.
    closed: bool,
    /// Lengths of the streams at which their rest was asked for before.
    asked: [Option<u64>; 2],
}

impl Staging {
    /// Makes the directory of a job, or finds the one that was made before; then its order is the
    /// one of that time.
    pub(super) fn make(path: PathBuf, order: JobTerms) -> io::Result<(Self, JobTerms)> {
        if let Some(found) = Self::read_order(&path)? {
            return Ok((Self::open(path)?, found));
        }
        // What is left of a start that a crash cut short.
        remove_all(&path)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        write(&path, ORDER, &order, true)?;
        File::open(path.parent().expect("it is in the directory of all uploads"))?.sync_all()?;
        Ok((Self::open(path)?, order))
    }

    /// The order in a directory; `None` when there is none that can be read.
    pub(super) fn read_order(path: &Path) -> io::Result<Option<JobTerms>> {
        read(&path.join(ORDER))
    }

    /// Takes up a directory.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        remove_all(&path.join(NEW))?;
        for directory in [FILES, PARTS, NEW] {
            DirBuilder::new().recursive(true).mode(0o700).create(path.join(directory))?;
        }
        let [stdout, stderr] =
            Stream::ALL.map(|stream| GrowingFile::open(path.join(stream.as_str())));
        let (files, parts) = (list(&path.join(FILES))?, list(&path.join(PARTS))?);
        let closed = path.join(REPORT).exists();
        Ok(Self { path, streams: [stdout?, stderr?], files, parts, closed, asked: [None; 2] })
    }

    /// Where a stream of a job is while it comes.
    pub(super) fn stream_path(directory: &Path, stream: Stream) -> PathBuf {
        directory.join(stream.as_str())
    }

    /// Where declared files that come whole are until they are complete.
    pub(super) fn new_path(directory: &Path, number: u64) -> PathBuf {
        directory.join(NEW).join(number.to_string())
    }

    /// Notes when the first sign of life came.
    pub(super) fn note_started(directory: &Path, at: Timestamp) -> io::Result<()> {
        write(directory, STARTED, &at, false)
    }

    /// When it came.
    pub(super) fn started_at(directory: &Path) -> Option<Timestamp> {
        // Unreadable is as good as not there: the next sign is taken for the first.
        read(&directory.join(STARTED)).ok().flatten()
    }

    /// Notes that the job is to be stopped.
    pub(super) fn note_cancel(directory: &Path) -> io::Result<()> {
        File::create(directory.join(CANCEL)).map(drop)
    }

    /// Whether it was noted.
    pub(super) fn is_cancelled(directory: &Path) -> bool {
        directory.join(CANCEL).exists()
    }

    /// Notes that its report does not end the job before its container has ended. Synced with the
    /// report, which is kept later.
    pub(super) fn note_held(directory: &Path) -> io::Result<()> {
        File::create(directory.join(HELD)).map(drop)
    }

    /// Whether it was noted.
    pub(super) fn is_held(directory: &Path) -> bool {
        directory.join(HELD).exists()
    }

    /// The accepted report.
    pub(super) fn report(directory: &Path) -> io::Result<Option<Box<Report>>> {
        read(&directory.join(REPORT))
    }

    /// Keeps the accepted report; synced when its sender is told so before the driver has stored
    /// it.
    pub(super) fn keep_report(&mut self, report: &Report, is_synced: bool) -> io::Result<()> {
        write(&self.path, REPORT, report, is_synced)?;
        if is_synced { File::open(&self.path)?.sync_all() } else { Ok(()) }
    }

    /// Takes nothing new any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// What is held of a stream.
    pub(super) fn stream(&mut self, stream: Stream) -> &mut GrowingFile {
        &mut self.streams[stream as usize]
    }

    /// The same, and at which length its rest was asked for before.
    pub(super) fn stream_and_asked(
        &mut self,
        stream: Stream,
    ) -> (&mut GrowingFile, &mut Option<u64>) {
        (&mut self.streams[stream as usize], &mut self.asked[stream as usize])
    }

    /// A declared file that is complete.
    pub(super) fn file(&mut self, name: &str) -> Option<&mut GrowingFile> {
        self.files.get_mut(name)
    }

    /// Forgets a declared file, so that it can come again from its first byte on.
    pub(super) fn drop_file(&mut self, name: &str) -> io::Result<()> {
        [self.files.remove(name), self.parts.remove(name)]
            .into_iter()
            .flatten()
            .try_for_each(|mut held| held.clear())
    }

    /// Takes a piece of a stream; `None` when the job is over.
    pub(super) fn append(
        &mut self,
        stream: Stream,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<Option<Appended>> {
        if self.closed {
            // Nothing is new in what is held already.
            let length = self.stream(stream).length();
            return Ok((offset.saturating_add(bytes.len() as u64) <= length)
                .then_some(Appended::Next(length)));
        }
        self.check_room()?;
        self.stream(stream).append(offset, bytes, STREAM_LIMIT_BYTES).map(Some)
    }

    /// Takes a stream anew, in the place of what came of it. `number` is one of
    /// [`Staging::new_path`].
    pub(super) fn replace(&mut self, stream: Stream, number: u64, bytes: &[u8]) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        self.check_room()?;
        let mut came = GrowingFile::new(Self::new_path(&self.path, number));
        if let Err(error) = came
            .append(0, bytes, STREAM_LIMIT_BYTES)
            .and_then(|_| came.rename(Self::stream_path(&self.path, stream)))
        {
            // What there is of it goes with the job.
            let _ = came.clear();
            return Err(error);
        }
        self.streams[stream as usize] = came;
        Ok(())
    }

    /// Takes a piece of a declared file of `total` bytes.
    pub(super) fn append_file(
        &mut self,
        name: &str,
        offset: u64,
        total: u64,
        bytes: &[u8],
    ) -> io::Result<FileTaken> {
        if self.closed {
            return Ok(FileTaken::Over);
        }
        if let Some(why) = self.too_much(name, total) {
            return Ok(FileTaken::TooMuch(why));
        }
        if offset.saturating_add(bytes.len() as u64) > total {
            return Ok(FileTaken::TooMuch(format!(
                "the piece of `{name}` goes beyond its Upload-Length of {total} bytes"
            )));
        }
        self.check_room()?;
        // The last piece again, because its answer was lost.
        if offset > 0
            && !self.parts.contains_key(name)
            && let Some(held) = self.files.get_mut(name).filter(|held| held.length() == total)
        {
            return held.digest().map(FileTaken::Complete);
        }
        let path = self.path.join(PARTS).join(name);
        let part = match self.parts.entry(name.to_owned()) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(GrowingFile::open(path)?)
            }
        };
        if part.length() > total {
            // Of another upload under this name.
            part.clear()?;
        }
        match part.append(offset, bytes, total)? {
            Appended::Next(next) if next == total => {
                self.complete_part(name).map(FileTaken::Complete)
            }
            Appended::Next(next) => Ok(FileTaken::Next(next)),
            Appended::Gap(next) | Appended::Full(next) => Ok(FileTaken::Gap(next)),
        }
    }

    fn complete_part(&mut self, name: &str) -> io::Result<BlobId> {
        let part = self.parts.remove(name).expect("it was just written");
        self.complete(name, part)
    }

    /// Takes a declared file that came whole.
    pub(super) fn take_file(&mut self, name: &str, came: GrowingFile) -> io::Result<FileTaken> {
        if self.closed {
            return Ok(FileTaken::Over);
        }
        if let Some(why) = self.too_much(name, came.length()) {
            return Ok(FileTaken::TooMuch(why));
        }
        self.complete(name, came).map(FileTaken::Complete)
    }

    fn complete(&mut self, name: &str, mut came: GrowingFile) -> io::Result<BlobId> {
        let digest = came.digest()?;
        came.rename(self.path.join(FILES).join(name))?;
        self.files.insert(name.to_owned(), came);
        Ok(digest)
    }

    fn too_much(&self, name: &str, total: u64) -> Option<String> {
        let names = self.files.keys().chain(self.parts.keys()).filter(|other| *other != name);
        let names: std::collections::BTreeSet<_> = names.collect();
        if names.len() >= FILES_LIMIT {
            return Some(format!("a job may upload {FILES_LIMIT} files, and `{name}` is one more"));
        }
        let others = self
            .files
            .iter()
            .chain(&self.parts)
            .filter(|(other, _)| *other != name)
            .map(|(_, held)| held.length())
            .sum::<u64>();
        (others.saturating_add(total) > FILES_LIMIT_BYTES).then(|| {
            format!(
                "the files of a job may have {FILES_LIMIT_BYTES} bytes together, and `{name}` \
                 with {total} is more than is left"
            )
        })
    }

    /// Refuses more on a disk that is as good as full. A disk that does not tell is tried.
    fn check_room(&self) -> io::Result<()> {
        let Some(room) = DiskRoom::on(&self.path) else { return Ok(()) };
        if room.is_enough(ROOM_BYTES, ROOM_FILES) {
            return Ok(());
        }
        let left = DiskRoom { bytes: ROOM_BYTES, files: room.files.map(|_| ROOM_FILES) };
        Err(io::Error::new(
            io::ErrorKind::StorageFull,
            format!(
                "the disk that holds {} has {room} left and uploads leave {left} to the database; \
                 make room",
                self.path.display()
            ),
        ))
    }
}

fn list(directory: &Path) -> io::Result<BTreeMap<String, GrowingFile>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if let Some(name) = entry.file_name().to_str().filter(|name| is_output_name(name)) {
            found.insert(name.to_owned(), GrowingFile::open(entry.path())?);
        }
    }
    Ok(found)
}

/// A JSON file, when it is there and whole.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a JSON file, which appears whole.
fn write(directory: &Path, name: &str, value: &impl Serialize, sync: bool) -> io::Result<()> {
    let temporary = directory.join(format!("{name}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    if sync {
        file.sync_all()?;
    }
    fs::rename(temporary, directory.join(name))?;
    if sync { File::open(directory)?.sync_all() } else { Ok(()) }
}
