//! How much room a disk has: for bytes, and for files, of which many file systems hold only so many (inodes) however small they
//! are. Called by whoever writes nothing on a disk that is as good as full: `store`, `delivery`, `retention`, `offline`.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use rustix::fs::StatVfs;

/// What is free on a disk for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRoom {
    /// Bytes.
    pub bytes: u64,
    /// Files and directories; `None` where the file system makes room for them as it goes.
    pub files: Option<u64>,
}

impl DiskRoom {
    /// That of the disk on which this path is, which must be there. `None` when the disk does not tell.
    pub fn on(path: &Path) -> Option<Self> {
        rustix::fs::statvfs(path).ok().map(|told| Self::of(&told))
    }

    fn of(told: &StatVfs) -> Self {
        Self {
            bytes: told.f_bavail.saturating_mul(told.f_frsize),
            // Source: statfs(2): 0 where the number of files has no meaning, as on btrfs and FAT.
            files: (told.f_files > 0).then_some(told.f_favail),
        }
    }

    /// Whether there is room for so many bytes and files.
    pub fn is_enough(self, bytes: u64, files: u64) -> bool {
        self.bytes >= bytes && self.files.is_none_or(|free| free >= files)
    }

    /// What the disk has less of than `wanted` needs, in words that follow "the disk ..."; `None` when there is enough.
    pub fn lack(self, wanted: &str, bytes: u64, files: u64) -> Option<String> {
        if self.bytes < bytes {
            return Some(format!("has {} KiB left and {wanted} may need {} KiB", self.bytes >> 10, bytes >> 10));
        }
        let free = self.files.filter(|free| *free < files)?;
        Some(format!("has {} and {wanted} may need {files}", more_files(free)))
    }
}

/// `12 MiB and 345 files (inodes)`.
impl Display for DiskRoom {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.bytes >> 20)?;
        self.files.map_or(Ok(()), |files| write!(f, " and {files} files (inodes)"))
    }
}

/// For how many more files there is room.
pub(crate) fn more_files(free: u64) -> String {
    match free {
        0 => "no room for more files (inodes)".to_owned(),
        few => format!("room for {few} more files (inodes)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(f_bavail: u64, f_files: u64, f_favail: u64) -> DiskRoom {
        let any = rustix::fs::statvfs("/").unwrap();
        DiskRoom::of(&StatVfs { f_bavail, f_frsize: 1024, f_files, f_favail, ..any })
    }

    fn check_lack(room: DiskRoom, expected: Option<&str>) {
        assert_eq!(room.lack("a change", 1 << 20, 256).as_deref(), expected);
        assert_eq!(room.is_enough(1 << 20, 256), expected.is_none());
    }

    #[test]
    fn a_disk_lacks_room_for_bytes_or_for_files() {
        check_lack(told(1024, 1000, 256), None);
        check_lack(told(1023, 1000, 0), Some("has 1023 KiB left and a change may need 1024 KiB"));
        check_lack(told(9999, 1000, 255), Some("has room for 255 more files (inodes) and a change may need 256"));
        check_lack(told(9999, 1000, 0), Some("has no room for more files (inodes) and a change may need 256"));
    }

    #[test]
    fn a_file_system_that_counts_no_files_lacks_none() {
        check_lack(told(1024, 0, 0), None);
        assert_eq!(told(3 << 10, 0, 0).to_string(), "3 MiB");
        assert_eq!(told(3 << 10, 9, 7).to_string(), "3 MiB and 7 files (inodes)");
    }
}
