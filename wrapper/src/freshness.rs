//! Whether a declared output is this run's: what lay there before and was not written is not handed over. Called by `run`, which
//! looks before the start, and by `outputs`, which asks after the end.
//!
//! It is known by the file's identity and its time of change (`st_ctime`), which every write, truncation, rename and link sets and
//! no program can choose: a command that writes the same bytes again has written, and so has one that puts the old time of
//! modification back (`cp -p`). Nothing is moved or removed for it: what lies there may be somebody's, and a command may build on
//! it. A command that changes only the owner or the mode of a file counts as one that wrote it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::args::Output;
use crate::deliver::done::Done;

/// How often, and how many times, we look whether the clock of file times has moved on. It does at least every 10 ms (`CONFIG_HZ`
/// of 100); a time that lies ahead is not waited for.
const TICK: Duration = Duration::from_millis(1);
const TICKS: u32 = 20;
const COARSE_TICKS: u32 = 2_000;

/// Which file, in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

/// What lay where outputs are declared, before the start.
#[derive(Default)]
pub(crate) struct Before {
    versions: Vec<Option<Version>>,
    /// When, on the clock of file times.
    at: (i64, i64),
}

impl Before {
    /// Looks. Returns when a write from now on has another time than anything that is seen.
    pub(crate) fn look(outputs: &[Output]) -> Self {
        let versions: Vec<_> = outputs.iter().map(|output| std::fs::metadata(&output.path).ok().as_ref().map(Version::of)).collect();
        let youngest = versions.iter().flatten().map(|version| version.changed).max();
        if let Some((seconds, nanoseconds)) = youngest {
            // A file system that knows whole seconds alone, or every other one (FAT), may give the same time again for so long.
            let (until, ticks) =
                if nanoseconds == 0 { ((seconds + 1, 999_999_999), COARSE_TICKS) } else { ((seconds, nanoseconds), TICKS) };
            let mut ticks = 0..ticks;
            while until >= now() && ticks.next().is_some() {
                Done::<()>::new().sleep(None, TICK);
            }
        }
        Self { versions, at: now() }
    }

    /// Whether the file that output number `which` is now, at `path`, was written since.
    pub(crate) fn is_older(&self, which: usize, path: &Path, file: &Metadata) -> bool {
        let version = Version::of(file);
        if self.versions.get(which).is_some_and(|before| *before == Some(version)) {
            return true;
        }
        // A link made by this run to a file that it did not write.
        std::fs::symlink_metadata(path).is_ok_and(|link| link.is_symlink()) && version.changed < self.at
    }
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino(), changed: (metadata.ctime(), metadata.ctime_nsec()) }
    }
}

/// The time that a file gets which is written now.
fn now() -> (i64, i64) {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::RealtimeCoarse);
    (tv_sec, tv_nsec)
}
