//! Room beside the database that is given up when the disk is full: without any room not even rows
//! can be removed, because the database writes down first what it removes.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use schema::shown::shell_path;

use crate::room::{DiskRoom, more_files};

/// Its size: some steps' worth of log, bytes.
const RESERVE_BYTES: u64 = 8 << 20;

/// No reserve is made on a disk that has less room than this: it would be missed.
pub const ROOM_BYTES: u64 = 8 * RESERVE_BYTES;

/// Room that opening the database may need, bytes: bringing the tables up to date writes into the
/// log what it changes.
const OPENING_BYTES: u64 = 8 << 20;

/// The same of files: SQLite makes two for its log, and the reserve is one.
const OPENING_FILES: u64 = 2;

/// With less than this something is held to have failed for want of room: what the store asks for
/// before it writes.
const NO_ROOM_BYTES: u64 = 1 << 20;

/// The same of files: some more than opening needs, for what else a start may have to make.
const NO_ROOM_FILES: u64 = 16;

/// The reserve of a database that is to be opened, which makes way where there is little room.
#[derive(Debug)]
pub struct ReserveAtOpen {
    reserve: PathBuf,
    is_given_up: bool,
}

impl ReserveAtOpen {
    /// Gives the reserve up when there is little room.
    pub fn make(database: &Path) -> Self {
        let reserve = beside(database);
        let is_given_up = match free(&reserve) {
            Some(room) if !room.is_enough(OPENING_BYTES, OPENING_FILES) => give_up(&reserve)
                .unwrap_or_else(|error| {
                    tracing::warn!(
                        %error, path = %reserve.display(),
                        "the room that was set aside for a full disk cannot be given up"
                    );
                    false
                }),
            _ => false,
        };
        if is_given_up {
            tracing::warn!(
                "the disk of {} is full; the room that was set aside for that is used",
                database.display()
            );
        }
        Self { reserve, is_given_up }
    }

    /// Where the reserve is.
    pub fn reserve(&self) -> &Path {
        &self.reserve
    }

    /// Whether it had to make way.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// Takes back what is left of it, or makes one, where there is room for it now. Returns where
    /// it is.
    pub fn take_back(self) -> PathBuf {
        if !self.is_given_up {
            make(&self.reserve);
        }
        self.reserve.clone()
    }
}

/// It is taken back also when what it made way for has failed.
impl Drop for ReserveAtOpen {
    fn drop(&mut self) {
        if self.is_given_up {
            take_back(&self.reserve);
        }
    }
}

/// That the disk of a database is full, and what to do; `None` while there is room, or the disk
/// does not tell.
pub fn full(data: &Path, database: &Path) -> Option<String> {
    let reserve = beside(database);
    let room = free(&reserve).filter(|room| !room.is_enough(NO_ROOM_BYTES, NO_ROOM_FILES))?;
    if let Some(files) = room.files.filter(|_| room.bytes >= NO_ROOM_BYTES) {
        return Some(format!(
            "the disk that holds {} has {}, too little to use it; remove some {NO_ROOM_FILES} \
             files from that disk that are not pvn's first, then what is not kept any more with \
             `pvn-scheduler prune --data-dir {}`",
            database.display(),
            more_files(files),
            shell_path(data)
        ));
    }
    let prune = format!("`pvn-scheduler prune --data-dir {}`", shell_path(data));
    let advice = if reserve.exists() {
        format!(
            "make room on that disk, or remove what is not kept any more with {prune}, for which \
             {} is set aside",
            reserve.display()
        )
    } else {
        format!(
            "the reserve {} is used up, or was never made (a disk with less than {} MiB of room \
             gets none), so {prune} cannot work either: make {} MiB of room on that disk first",
            reserve.display(),
            ROOM_BYTES >> 20,
            OPENING_BYTES >> 20
        )
    };
    Some(format!(
        "the disk that holds {} has {} KiB left, too few to use it; {advice}",
        database.display(),
        room.bytes >> 10
    ))
}

/// Where it is.
pub fn beside(database: &Path) -> PathBuf {
    crate::private::beside(database, "-reserve")
}

/// Makes it, when it is not there and there is room. A file system that cannot set room aside has
/// none.
pub fn make(path: &Path) {
    if free(path).is_some_and(|room| room.bytes >= ROOM_BYTES) {
        set_aside(path, RESERVE_BYTES);
    }
}

/// Makes it anew after it was given up for a moment, as large as there is room for.
pub fn take_back(path: &Path) {
    if let Some(bytes @ 1..) = free(path).map(|room| room.bytes) {
        set_aside(path, bytes.min(RESERVE_BYTES));
    }
}

/// The room on the disk of this file, there or not. `None` when the disk does not tell.
pub fn free(path: &Path) -> Option<DiskRoom> {
    DiskRoom::on(
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")),
    )
}

fn set_aside(path: &Path, bytes: u64) {
    let made = || -> io::Result<()> {
        let file = match File::options().write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
            other => other?,
        };
        if let Err(error) = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            std::fs::remove_file(path)?;
            return Err(error.into());
        }
        Ok(())
    };
    if let Err(error) = made() {
        tracing::debug!(
            path = %path.display(), %error,
            "no room could be set aside for a full disk"
        );
    }
}

/// Gives it up. Returns whether there was one.
///
/// # Errors
/// When the disk fails.
pub fn give_up(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
