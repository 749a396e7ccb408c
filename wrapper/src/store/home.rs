//! Where a stream's file may be made. Said by `hand_over`, used by `store` when a stream has become
//! too large for memory: most never do, so until then no name is put together.

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::live::Live;
use crate::writer::say;

/// Most directories that are tried where the usual one is not ours alone.
const PLACES_LIMIT: u32 = 100;

/// Bits of a mode that let others write. Source: inode(7).
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Where the stream's file may be made, and when at the latest.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// The directory; made when the first file in it is. `None` when there is no disk.
    pub(crate) directory: Option<LazyDirectory>,
    /// Make the file when the stream's first byte is this old, for those who read along.
    pub(crate) live_after: Option<Duration>,
    /// Whom to tell what can be sent already.
    pub(crate) live: Option<Arc<Live>>,
}

/// A directory that most runs never need, so that its name is put together by those that do.
#[derive(Debug, Clone)]
pub(crate) enum LazyDirectory {
    /// This one.
    At(PathBuf),
    /// One of this process's own, under this one.
    Own(PathBuf),
    /// One of this name, else of this process's own, in our place under this one, or under `/tmp`:
    /// see [`temporary`].
    Temporary { under: Option<OsString>, name: Option<String> },
}

impl LazyDirectory {
    /// Where it is. Makes our place for whatever is temporary, when it is there.
    pub(crate) fn path(&self) -> io::Result<PathBuf> {
        Ok(match self {
            Self::Temporary { under, name } => {
                temporary(under.as_deref())?.join(name.clone().unwrap_or_else(own))
            }
            Self::At(_) | Self::Own(_) => self.usual(),
        })
    }

    /// Where it usually is, for people.
    pub(crate) fn usual(&self) -> PathBuf {
        match self {
            Self::At(path) => path.clone(),
            Self::Own(under) => under.join(own()),
            Self::Temporary { under, name } => {
                usual(under.as_deref()).join(name.clone().unwrap_or_else(own))
            }
        }
    }
}

/// The name of a directory of this process's own.
fn own() -> String {
    format!("wrapper-{}", std::process::id())
}

/// `${TMPDIR:-/tmp}/pvn`.
fn usual(under: Option<&OsStr>) -> PathBuf {
    Path::new(under.unwrap_or(OsStr::new("/tmp"))).join("pvn")
}

/// The directory `pvn` in this one, or in `/tmp`, made if it is not there. Anybody may have made it
/// first, and whoever may write to it can put a symlink in the place of what we make there: where
/// it is not ours alone it is `pvn-UID`, and `pvn-UID.1` and so on, which is said. The names are
/// always the same, so that all our wrappers meet there.
pub(crate) fn temporary(under: Option<&OsStr>) -> io::Result<PathBuf> {
    static SAID: AtomicBool = AtomicBool::new(false);
    let usual = usual(under);
    if let Some(parent) = usual.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    if is_ours_alone(&usual)? {
        return Ok(usual);
    }
    let uid = rustix::process::geteuid().as_raw();
    let others = std::iter::once(format!("-{uid}"))
        .chain((1..PLACES_LIMIT).map(|number| format!("-{uid}.{number}")));
    for end in others {
        let mut name = usual.as_os_str().to_owned();
        name.push(end);
        let place = PathBuf::from(name);
        if is_ours_alone(&place)? {
            if !SAID.swap(true, Ordering::Relaxed) {
                let why = "is another user's, a symlink, or open to others, so not ours alone";
                say(&format!(
                    "{} {why}: {} is used in its place",
                    usual.display(),
                    place.display()
                ));
            }
            return Ok(place);
        }
    }
    let shown = usual.display();
    Err(io::Error::other(format!(
        "{shown} and {PLACES_LIMIT} more beside it are not ours alone: somebody made them first; \
         remove them"
    )))
}

/// Makes the directory, or says whether what is there is one into which nobody but us can put
/// anything.
fn is_ours_alone(place: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(place) {
        Ok(()) => return Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let metadata = std::fs::symlink_metadata(place)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    Ok(metadata.is_dir() && is_ours && metadata.mode() & WRITABLE_BY_OTHERS == 0)
}
