//! How much room a disk has: for bytes, and for files, of which many file systems hold only so many
//! (inodes) however small they are; and whether it can be written to at all. Called by whoever
//! writes nothing on a disk that is as good as full: `store`, `delivery`, `retention`, `offline`.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, StatVfs};
use rustix::io::Errno;

/// What is free on a disk for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRoom {
    pub bytes: u64,
    /// Files and directories; `None` where the file system makes room for them as it goes.
    pub files: Option<u64>,
}

impl DiskRoom {
    /// That of the disk on which this path is, which must be there. `None` when the disk does not
    /// tell.
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

    /// What the disk has less of than `wanted` needs, in words that follow "the disk ..."; `None`
    /// when there is enough.
    pub fn lack(self, wanted: &str, bytes: u64, files: u64) -> Option<String> {
        if self.bytes < bytes {
            return Some(format!(
                "has {} KiB left and {wanted} may need {} KiB",
                self.bytes >> 10,
                bytes >> 10
            ));
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

/// Why nothing can be made in a directory, whatever room its disk has, as far as that is told
/// without trying; `None` also where there is none.
pub(crate) fn why_unwritable(directory: &Path) -> Option<String> {
    let refused =
        rustix::fs::accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .err();
    refused.filter(|errno| *errno != Errno::NOENT).map(|errno| unwritable(directory, errno))
}

/// The same, found out by making a file that has no name. A file system that became read-only for
/// an error tells nobody before. `None` also where that cannot be tried. Waits for a disk that
/// hangs.
pub(crate) fn why_nothing_is_made(directory: &Path) -> Option<String> {
    refused(directory).map(|errno| unwritable(directory, errno))
}

/// The same, only where it is the disk that takes nothing.
pub(crate) fn why_disk_takes_nothing(directory: &Path) -> Option<String> {
    refused(directory)
        .filter(|errno| [Errno::ROFS, Errno::IO].contains(errno))
        .map(|errno| unwritable(directory, errno))
}

fn refused(directory: &Path) -> Option<Errno> {
    let made = rustix::fs::openat(
        CWD,
        directory,
        OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::RUSR | Mode::WUSR,
    );
    match made.err()? {
        // Not there; or a file system without files that have no name, as NFS.
        Errno::NOENT | Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL => None,
        // What we ourselves have too little of.
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR => None,
        errno => Some(errno),
    }
}

fn unwritable(directory: &Path, errno: Errno) -> String {
    let cure = match errno {
        Errno::ROFS => {
            "mount it for writing; where an error of its disk made it so, of which the kernel's \
             log has more, stop the scheduler, check it with fsck and mount it again"
        }
        Errno::NOSPC | Errno::DQUOT => {
            "make room there for bytes and for files (inodes), also within a quota"
        }
        Errno::ACCESS | Errno::PERM => "give it to the user as whom the scheduler runs",
        _ => "the kernel's log has more of its disk",
    };
    format!("{} cannot be written to: {}; {cure}", directory.display(), std::io::Error::from(errno))
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
        check_lack(
            told(9999, 1000, 255),
            Some("has room for 255 more files (inodes) and a change may need 256"),
        );
        check_lack(
            told(9999, 1000, 0),
            Some("has no room for more files (inodes) and a change may need 256"),
        );
    }

    #[test]
    fn making_a_file_is_tried_where_it_can_be_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(why_nothing_is_made(directory.path()), None);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!(why_nothing_is_made(&directory.path().join("away")), None);
        let is_root = rustix::process::geteuid().is_root();
        std::fs::set_permissions(
            directory.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o500),
        )
        .unwrap();
        assert_eq!(
            why_nothing_is_made(directory.path()).is_none(),
            is_root,
            "rights bind everybody else"
        );
    }

    #[test]
    fn what_cannot_be_written_to_is_told_with_its_cure() {
        for (errno, cure) in [
            (Errno::ROFS, "fsck"),
            (Errno::DQUOT, "quota"),
            (Errno::ACCESS, "give it to"),
            (Errno::IO, "kernel's log"),
        ] {
            let told = unwritable(Path::new("/there"), errno);
            assert!(
                told.starts_with("/there cannot be written to: ") && told.contains(cure),
                "{told}"
            );
        }
    }

    #[test]
    fn a_file_system_that_counts_no_files_lacks_none() {
        check_lack(told(1024, 0, 0), None);
        assert_eq!(told(3 << 10, 0, 0).to_string(), "3 MiB");
        assert_eq!(told(3 << 10, 9, 7).to_string(), "3 MiB and 7 files (inodes)");
    }
}
