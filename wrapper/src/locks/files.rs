//! Where the locks of a declared file are. Called by `locks`.
//!
//! One is beside the file, which every wrapper finds that can see the file, in another container
//! too. One is in a place of ours, under the digest of the file's path: the spool of the daemon
//! whose job it is, else `${TMPDIR:-/tmp}/pvn`. A command may remove its directory and everything
//! in it (`rm -rf build`, `git clean -fdx`); of that place it knows nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;
use schema::id::BlobId;

/// End of the names of lock files.
const SUFFIX: &str = ".pvn-lock";

/// Whoever can reach a lock file may lock it and say that it is theirs: what is in it counts for
/// nothing else.
const MODE: u32 = 0o666;

/// Longest name of a lock file that is spelled out, bytes. A file system takes 255.
const NAME_LIMIT_BYTES: usize = 200;

/// Most symlinks that are followed from a declared file. Source: path_resolution(7).
const LINKS_LIMIT: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LockFile {
    pub(super) path: PathBuf,
    pub(super) is: LockPlace,
}

/// Where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LockPlace {
    /// Beside the file, or as near as there is a directory.
    Beside,
    /// In the place of ours.
    Place,
}

impl LockFile {
    /// The lock for those within the command of whoever holds this one.
    pub(super) fn within(&self) -> Self {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        let level = self.path.extension().and_then(|level| level.to_str()?.parse::<u32>().ok());
        match level {
            Some(level) => {
                name = Path::new(&name).with_extension((level + 1).to_string()).into_os_string()
            }
            None => name.push(".1"),
        }
        Self { path: self.path.with_file_name(name), is: self.is }
    }

    /// Whether the directory that it is to be in is there.
    pub(super) fn has_directory(&self) -> bool {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new(".")).is_dir()
    }

    /// The file, made if it is not there. One of another user's can be locked by whoever can read
    /// it.
    pub(super) fn open(&self) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
        // Without "create": in a directory that all may write to, the kernel refuses that for
        // another user's file.
        match options.clone().write(true).open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.is == LockPlace::Place {
                    make(self.path.parent().unwrap_or(Path::new("/")))?;
                }
                let file = options.write(true).create(true).mode(MODE).open(&self.path)?;
                // Whatever our umask is.
                let _ = file.set_permissions(Permissions::from_mode(MODE));
                Ok(file)
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                options.open(&self.path).map_err(|_| error)
            }
            other => other,
        }
    }
}

/// Makes the place, for our user alone.
fn make(place: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(place)?;
    let metadata = std::fs::symlink_metadata(place)?;
    if metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(io::ErrorKind::PermissionDenied.into())
}

/// The lock files of these declared files, in the order in which everybody takes them.
pub(super) fn of<'a>(declared: &[&'a Path], place: Option<&Path>) -> Vec<(LockFile, &'a Path)> {
    // One place has one name, however it is written.
    let place = place.map(|place| {
        let parent = place.parent().and_then(|parent| parent.canonicalize().ok());
        parent.map_or_else(
            || place.to_owned(),
            |parent| parent.join(place.file_name().unwrap_or_default()),
        )
    });
    let files: BTreeMap<LockFile, &Path> = declared
        .iter()
        .flat_map(|declared| with_targets(declared).into_iter().map(|path| (path, *declared)))
        .flat_map(|(path, declared)| {
            lock_files(&path, place.as_deref()).into_iter().map(move |file| (file, declared))
        })
        .collect();
    files.into_iter().collect()
}

/// The file, and whatever it leads to when it is a symlink: who declares either uses the same one.
fn with_targets(declared: &Path) -> Vec<PathBuf> {
    let mut all = vec![std::path::absolute(declared).unwrap_or_else(|_| declared.to_owned())];
    while let Some(target) =
        all.last().and_then(|link| Some(link.parent()?.join(std::fs::read_link(link).ok()?)))
    {
        if all.len() > LINKS_LIMIT {
            break;
        }
        all.push(target);
    }
    all
}

/// The lock files of one path: one beside it; where its directory is not made yet, one in the
/// nearest directory that is, and those that others hold there because it was not when they began;
/// and one in the place.
fn lock_files(absolute: &Path, place: Option<&Path>) -> Vec<LockFile> {
    // One file has one name, however its directory is written.
    let mut directory = absolute.parent().unwrap_or(Path::new("/")).to_owned();
    let mut rest = PathBuf::from(absolute.file_name().unwrap_or_default());
    while let Err(error) = directory.canonicalize() {
        if error.kind() != io::ErrorKind::NotFound || directory.parent().is_none() {
            break;
        }
        rest = Path::new(directory.file_name().unwrap_or_default()).join(&rest);
        directory.pop();
    }
    let directory = directory.canonicalize().unwrap_or(directory);
    let mut paths = vec![directory.join(name(&rest))];
    let digest = BlobId::of(directory.join(&rest).as_os_str().as_bytes()).hex();
    let mut above = directory.as_path();
    while let (Some(parent), Some(own)) = (above.parent(), above.file_name()) {
        rest = Path::new(own).join(&rest);
        paths.extend(
            Some(parent.join(name(&rest))).filter(|file| std::fs::symlink_metadata(file).is_ok()),
        );
        above = parent;
    }
    let mut files: Vec<_> =
        paths.into_iter().map(|path| LockFile { path, is: LockPlace::Beside }).collect();
    files.extend(place.map(|place| LockFile {
        path: place.join(format!("{digest}{SUFFIX}")),
        is: LockPlace::Place,
    }));
    files
}

/// What the lock file of `rest` is called.
fn name(rest: &Path) -> OsString {
    let parts = rest.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.as_bytes()),
        _ => None,
    });
    let spelled = parts.collect::<Vec<_>>().join(b"%".as_slice());
    let spelled = if spelled.len() <= NAME_LIMIT_BYTES {
        spelled
    } else {
        BlobId::of(&spelled).to_string().into_bytes()
    };
    let mut name = OsString::from(".");
    name.push(std::ffi::OsStr::from_bytes(&spelled));
    name.push(SUFFIX);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_lock_however_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        std::os::unix::fs::symlink("real", base.join("link")).unwrap();
        let place = base.join("place");
        let files = |path: &Path| {
            of(&[path], Some(&place)).into_iter().map(|(file, _)| file).collect::<Vec<_>>()
        };
        let expected = files(&base.join("real/tf.plan"));
        assert_eq!(expected.len(), 2);
        for written in ["link/tf.plan", "./real/./tf.plan", "link/../real/tf.plan"] {
            assert_eq!(files(&base.join(written)), expected, "{written}");
        }
        let long = base.join("x".repeat(250));
        assert!(of(&[&long], None)[0].0.path.file_name().unwrap().len() < 100);
    }

    #[test]
    fn the_lock_within_one_is_beside_it_and_another_on_each_level() {
        let lock = LockFile { path: "/d/.f.2.pvn-lock".into(), is: LockPlace::Beside };
        assert_eq!(lock.within().path, Path::new("/d/.f.2.pvn-lock.1"));
        assert_eq!(lock.within().within().path, Path::new("/d/.f.2.pvn-lock.2"));
    }

    #[test]
    fn a_symlink_is_locked_with_all_that_it_leads_to() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        std::os::unix::fs::symlink("link", base.join("other")).unwrap();
        std::os::unix::fs::symlink("real/not-yet", base.join("link")).unwrap();
        std::os::unix::fs::symlink("round", base.join("round")).unwrap();
        let paths: Vec<_> =
            of(&[&base.join("other")], None).into_iter().map(|(file, _)| file.path).collect();
        assert_eq!(
            paths,
            [".link.pvn-lock", ".other.pvn-lock", "real/.not-yet.pvn-lock"]
                .map(|path| base.join(path))
        );
        assert_eq!(of(&[&base.join("round")], None).len(), 1);
    }
}
