//! A file of its owner's that lay where an input goes, moved aside for as long as the command runs.
//! Called by `inputs`.
//!
//! It lies beside the input, under a hidden name, so that moving it copies nothing and whoever
//! comes after a killed wrapper finds it. A command that clears its directory (`git clean -fdx`)
//! removes it there without knowing: its content is kept open, and with it everything is made
//! again.

use std::fs::{File, FileTimes};
use std::io::{self, Seek};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::free_name;
use super::held::PinnedFile;

/// What is moved aside, and what is needed to make it again.
pub(super) struct Aside {
    pub(super) path: PathBuf,
    content: Content,
    /// `None`: it cannot be opened, then what lies there is taken for it.
    held: Option<PinnedFile>,
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
        let held = PinnedFile::at(&path).ok();
        Self { path, content, held }
    }

    /// Puts it where it was, or, where something else lies there, leaves it aside: then where that
    /// is.
    pub(super) fn put_back(&self, to: &Path) -> io::Result<Option<PathBuf>> {
        if self.is_at(to) {
            return Ok(None);
        }
        let from = self.see_to_it()?;
        let is_free = std::fs::symlink_metadata(to).is_err();
        let is_back = is_free && std::fs::rename(&from, to).is_ok();
        Ok((!is_back).then_some(from))
    }

    fn is_at(&self, path: &Path) -> bool {
        self.held.as_ref().is_some_and(|held| held.is_at(path))
    }

    /// Makes it again if it is gone; says where it is.
    fn see_to_it(&self) -> io::Result<PathBuf> {
        let is_there = std::fs::symlink_metadata(&self.path).is_ok();
        if self.is_at(&self.path) || (is_there && self.held.is_none()) {
            return Ok(self.path.clone());
        }
        // What the command put there is its own.
        let to = if is_there { free_name(&self.path)? } else { self.path.clone() };
        if let Some(parent) = to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent)?;
        }
        match &self.content {
            Content::Link(target) => std::os::unix::fs::symlink(target, &to)?,
            Content::File(file) => restore(file, &to)?,
            Content::Unknown(error) => return Err(io::Error::new(error.kind(), error.to_string())),
        }
        Ok(to)
    }
}

/// Opening a FIFO would wait for its writer.
fn open(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)
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
    file.set_times(
        FileTimes::new().set_accessed(metadata.accessed()?).set_modified(metadata.modified()?),
    )
}
