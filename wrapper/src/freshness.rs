//! Whether a declared output is this run's: what lay there before and was not written is not handed
//! over. Called by `run`, which looks before the start, and by `outputs`, which asks after the end.
//!
//! It is known by the file's identity and its time of change (`st_ctime`), which every write,
//! truncation, rename and link sets and no program can choose: a command that writes the same bytes
//! again has written, and so has one that puts the old time of modification back (`cp -p`). Nothing
//! is moved or removed for it: what lies there may be somebody's, and a command may build on
//! it. A command that changes only the owner or the mode of a file counts as one that wrote it.
//!
//! A way to an old file is no writing: neither a symlink, to it or to a directory on the way
//! (`current -> releases/2`), nor a second name (`ln`), which sets the time of change too. That of
//! a file with several names is asked for when it was modified or made.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::args::DeclaredOutput;
use crate::locks::Locks;
use crate::thread_result::ThreadResult;

/// How often, and how many times, we look whether the clock of file times has moved on. It does at
/// least every 10 ms (`CONFIG_HZ` of 100); a time that lies ahead is not waited for.
const TICK: Duration = Duration::from_millis(1);
const TICKS: u32 = 20;
const COARSE_TICKS: u32 = 2_000;

/// A time as the file system tells it: seconds since 1970, and nanoseconds.
type Moment = (i64, i64);

/// Which file, in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    links: u64,
    modified: Moment,
    changed: Moment,
}

/// What lay where outputs are declared, before the start.
#[derive(Default)]
pub(crate) struct Before {
    versions: Vec<Option<Version>>,
    /// When, on the clock of file times.
    at: Moment,
    /// When, on the clocks of file systems that we could ask, by their devices: that of a server
    /// may go another way.
    clocks: Vec<(u64, Moment)>,
}

impl Before {
    /// Looks. Returns when a write from now on has another time than anything that is there.
    pub(crate) fn look(outputs: &[DeclaredOutput], locks: &Locks) -> Self {
        let begun = now();
        let versions: Vec<_> = outputs
            .iter()
            .map(|output| std::fs::metadata(&output.path).ok().as_ref().map(Version::of))
            .collect();
        let (seconds, nanoseconds) =
            versions.iter().flatten().map(|version| version.changed).max().unwrap_or(begun);
        // A file system that knows whole seconds alone, or every other one (FAT), may give the same
        // time again for so long.
        let (until, ticks) = if nanoseconds == 0 {
            ((seconds + 1, 999_999_999), COARSE_TICKS)
        } else {
            ((seconds, nanoseconds), TICKS)
        };
        let mut ticks = 0..ticks;
        while until.max(begun) >= now() && ticks.next().is_some() {
            ThreadResult::<()>::new().sleep(None, TICK);
        }
        Self { versions, at: now(), clocks: locks.clocks() }
    }

    /// Whether the file that output number `which` is now was not written since.
    pub(crate) fn is_older(&self, which: usize, file: &Metadata) -> bool {
        let version = Version::of(file);
        match self.versions.get(which).copied().flatten() {
            Some(before) if before == version => true,
            // It got another name, and that is all.
            Some(before) if before.is_same_file(&version) => {
                version.links > before.links && version.modified == before.modified
            }
            _ => {
                let at = self
                    .clocks
                    .iter()
                    .find(|(device, _)| *device == version.device)
                    .map_or(self.at, |(_, at)| *at);
                version.changed < at
                    || (version.links > 1
                        && version.modified < at
                        && made(file).is_none_or(|made| made < at))
            }
        }
    }
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            links: metadata.nlink(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// When the file was made, where the file system knows that.
fn made(file: &Metadata) -> Option<Moment> {
    let since = file.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((since.as_secs().cast_signed(), since.subsec_nanos().into()))
}

/// The time that a file gets which is written now.
fn now() -> Moment {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::RealtimeCoarse);
    (tv_sec, tv_nsec)
}
