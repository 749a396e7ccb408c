//! Removes directories in which commands may have done anything. What is mounted in one (a share, a
//! bucket, another directory by `mount --bind`) is not in it: nothing below a mount point is
//! removed. Called by `runner` and `delivery`.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// How directories are opened: to be read, and never through a link.
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes a directory, or what else is there, with all that is in it. One that is not there is
/// removed already.
///
/// # Errors
/// The first thing that cannot be removed, a mount point for example; all else is removed all the
/// same.
pub(crate) fn remove_all(path: &Path) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    let above = match rustix::fs::open(above, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())
    {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    name.into_with_c_str(|name| Ok(remove_at(above.as_fd(), name, path)))?
}

/// `path`: where it is, for people.
fn remove_at(above: BorrowedFd<'_>, name: &CStr, path: &Path) -> io::Result<()> {
    let opened = open_here(above, name).or_else(|error| match error {
        // One that its owner may not even read.
        Errno::ACCESS if rustix::fs::chmodat(above, name, Mode::RWXU, AtFlags::empty()).is_ok() => {
            open_here(above, name)
        }
        error => Err(error),
    });
    let directory = match opened {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return gone(rustix::fs::unlinkat(above, name, AtFlags::empty()), path);
        }
        Err(Errno::XDEV) => {
            return Err(io::Error::other(format!(
                "{} is a mount point; what is mounted there is left alone: unmount it",
                path.display()
            )));
        }
        Err(error) => return gone(Err(error), path),
    };
    let mut removed = Ok(());
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            let within = path.join(OsStr::from_bytes(entry.file_name().to_bytes()));
            let remove = || remove_at(directory.as_fd(), entry.file_name(), &within);
            // A directory that its owner may not write, as a cache of modules has them.
            let is_kept = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            let done = remove().or_else(|error| {
                match is_kept(&error) && rustix::fs::fchmod(&directory, Mode::RWXU).is_ok() {
                    true => remove(),
                    false => Err(error),
                }
            });
            removed = removed.and(done);
        }
    }
    removed.and_then(|()| gone(rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR), path))
}

/// Opens a directory that is in this one, and not only mounted there.
fn open_here(above: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat2(above, name, DIRECTORY, Mode::empty(), ResolveFlags::NO_XDEV) {
        // A kernel before 5.6, or a sandbox that lets nobody ask: what is mounted is told by its
        // device, but for another directory of the same file system.
        Err(Errno::NOSYS | Errno::PERM) => {
            let directory = rustix::fs::openat(above, name, DIRECTORY, Mode::empty())?;
            let device = |of: BorrowedFd<'_>| Ok::<_, Errno>(rustix::fs::fstat(of)?.st_dev);
            if device(directory.as_fd())? == device(above)? {
                Ok(directory)
            } else {
                Err(Errno::XDEV)
            }
        }
        opened => opened,
    }
}

fn gone(removed: Result<(), Errno>, path: &Path) -> io::Result<()> {
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(io::Error::new(
            io::Error::from(error).kind(),
            format!("{}: {}", path.display(), io::Error::from(error)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn everything_in_it_goes_and_what_links_lead_to_stays() {
        let world = tempfile::tempdir().unwrap();
        let at = |name: &str| world.path().join(name);
        std::fs::create_dir_all(at("mine/a/b")).unwrap();
        std::fs::create_dir(at("theirs")).unwrap();
        for file in ["mine/x", "mine/a/b/y", "theirs/z"] {
            std::fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink(at("theirs"), at("mine/a/link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("mine/pipe"), Mode::RUSR).unwrap();
        for kept in ["mine/a/b", "mine/a"] {
            std::fs::set_permissions(
                at(kept),
                std::fs::Permissions::from_mode(if kept == "mine/a" { 0o555 } else { 0 }),
            )
            .unwrap();
        }
        remove_all(&at("mine")).unwrap();
        assert!(!at("mine").exists() && at("theirs/z").exists());
        remove_all(&at("mine")).unwrap();
        remove_all(&at("nowhere/mine")).unwrap();
        std::os::unix::fs::symlink(at("theirs"), at("link")).unwrap();
        remove_all(&at("link")).unwrap();
        assert!(std::fs::symlink_metadata(at("link")).is_err() && at("theirs/z").exists());
    }
}
