//! A file of its owner's that lay where an input goes, moved aside for as long as the command runs. Called by `inputs`.
//!
//! It lies beside the input, under a hidden name, so that moving it copies nothing and whoever comes after a killed wrapper finds
//! it. A command that clears its directory (`git clean -fdx`) removes it there without knowing: its content is kept open, and with
//! it everything is made again.

use std::fs::{File, FileTimes};
use std::io::{self, Seek};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// What is moved aside, and what is needed to make it again.
pub(super) struct Aside {
    pub(super) path: PathBuf,
    content: Content,
}

enum Content {
    File(File),
    Link(PathBuf),
    /// It cannot be read: then it is there as long as nobody removes it.
    Unknown(io::Error),
}

impl Aside {
    /// What lies here.
    pub(super) fn at(path: PathBuf) -> Self {
        let content = match (std::fs::read_link(&path), open(&path)) {
            (Ok(target), _) => Content::Link(target),
            (_, Ok(file)) => Content::File(file),
            (_, Err(error)) => Content::Unknown(error),
        };
        Self { path, content }
    }

    /// Makes it again if it is gone.
    pub(super) fn see_to_it(&self) -> io::Result<()> {
        if std::fs::symlink_metadata(&self.path).is_ok() {
            return Ok(());
        }
        if let Some(parent) = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent)?;
        }
        match &self.content {
            Content::Link(target) => std::os::unix::fs::symlink(target, &self.path),
            Content::File(file) => restore(file, &self.path),
            Content::Unknown(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

/// Opening a FIFO would wait for its writer.
fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()).open(path)
}

/// The same file under a new name: content, owner, mode and times.
fn restore(mut from: &File, to: &Path) -> io::Result<()> {
    let metadata = from.metadata()?;
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    from.rewind()?;
    io::copy(&mut from, &mut file)?;
    // Only root can give a file away; that of another user becomes ours.
    let _ = std::os::unix::fs::fchown(&file, Some(metadata.uid()), Some(metadata.gid()));
    file.set_permissions(metadata.permissions())?;
    file.set_times(FileTimes::new().set_accessed(metadata.accessed()?).set_modified(metadata.modified()?))
}
