//! What a job waits for that cannot be looked at, or whose output cannot be kept. Called by
//! `pursue`.

use std::io;
use std::path::Path;

use schema::time::Timestamp;

use crate::room::DiskRoom;
use crate::runner::JobWait;

/// How long such a job is said to wait, as the runner itself never gives up: about as long as the
/// engine waits for a start.
pub(super) const NO_ROOM_WAIT_MS: i64 = 600_000;

/// What a job waits for that cannot be told yet.
#[derive(Debug)]
pub(in crate::runner::local) struct NoRoom {
    /// Whether it has ended, and only its output cannot be kept.
    has_ended: bool,
    /// In the system's words.
    error: io::Error,
}

impl NoRoom {
    /// What stands against a look at a job, or against keeping its output, where that passes: room
    /// comes back, and so do rights and disks that became read-only.
    pub(super) fn of(error: io::Error, has_ended: bool) -> Result<Self, io::Error> {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | ReadOnlyFilesystem | PermissionDenied => {
                Ok(Self { has_ended, error })
            }
            _ => Err(error),
        }
    }

    pub(super) fn to_keep(error: io::Error) -> Result<Self, io::Error> {
        Self::of(error, true)
    }
}

/// What a job waits for that cannot be told yet.
pub(super) fn no_room(spool: &Path, blobs: &Path, lack: &NoRoom, now: Timestamp) -> JobWait {
    let is_full =
        matches!(lack.error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    // What is kept goes from the one to the other.
    let directory = if lack.has_ended { blobs } else { spool };
    let room = DiskRoom::on(directory)
        .filter(|_| is_full)
        .map_or_else(String::new, |room| format!("; the disk says that {room} are free"));
    let why = match lack.has_ended {
        true => format!(
            "it has ended, and what it printed and left cannot be kept in {} yet: {}{room}",
            directory.display(),
            lack.error
        ),
        false if is_full => format!(
            "there is no room in {} to find out what became of it: {}{room}",
            directory.display(),
            lack.error
        ),
        false => format!(
            "what became of it cannot be found out in {}: {}",
            directory.display(),
            lack.error
        ),
    };
    let ends_when = match is_full {
        true => "there is room for bytes and for files (inodes) again, also within a quota",
        false if lack.has_ended => "the scheduler can write to its blobs again",
        false => "the scheduler can read and write there again",
    };
    let until = now.plus_ms(NO_ROOM_WAIT_MS);
    JobWait { why, ends_when: ends_when.to_owned(), until, surroundings: true, is_unseen: true }
}

#[cfg(test)]
mod tests {
    use super::super::TaskPhase;
    use super::*;
    use crate::runner::End;

    #[test]
    fn a_job_that_cannot_be_looked_at_for_want_of_room_says_so_and_for_what_it_waits() {
        for code in [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT] {
            let TaskPhase::NoRoom(lack) = TaskPhase::unseen(code.into()) else {
                panic!("{code:?} passes")
            };
            let wait =
                no_room(Path::new("/"), Path::new("/blobs"), &lack, Timestamp::from_millis(0));
            assert!(
                wait.why.contains("no room in / to find out")
                    && wait.why.contains(&lack.error.to_string()),
                "{}",
                wait.why
            );
            assert!(wait.is_unseen && wait.ends_when.contains("files (inodes)"));
        }
        for code in [rustix::io::Errno::ACCESS, rustix::io::Errno::ROFS] {
            let TaskPhase::NoRoom(lack) = TaskPhase::unseen(code.into()) else {
                panic!("{code:?} passes")
            };
            let wait =
                no_room(Path::new("/"), Path::new("/blobs"), &lack, Timestamp::from_millis(0));
            assert!(
                wait.why.starts_with("what became of it cannot be found out in /: ")
                    && wait.ends_when.contains("again"),
                "{}",
                wait.why
            );
        }
        let TaskPhase::Over(End::Unknown { .. }, _) =
            TaskPhase::unseen(rustix::io::Errno::IO.into())
        else {
            panic!("it does not pass")
        };
    }
}
