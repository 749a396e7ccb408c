//! Where a stream's file may be made. Said by `hand_over`, used by `store` when a stream has become too large for memory: most
//! never do, so until then no name is put together.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::deliver::live::Live;

/// Where the stream's file may be made, and when at the latest.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// The directory; made when the first file in it is. `None` when there is no disk.
    pub(crate) directory: Option<Directory>,
    /// Make the file when the stream's first byte is this old, for those who read along.
    pub(crate) live_after: Option<Duration>,
    /// Whom to tell what can be sent already.
    pub(crate) live: Option<Arc<Live>>,
}

/// A directory that most runs never need, so that its name is put together by those that do.
#[derive(Debug, Clone)]
pub(crate) enum Directory {
    /// This one.
    At(PathBuf),
    /// One of this process's own, under this one.
    Own(PathBuf),
    /// One of this process's own, under `pvn` in this one, or in `/tmp`.
    Temporary(Option<OsString>),
}

impl Directory {
    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        let own = || format!("wrapper-{}", std::process::id());
        match self {
            Self::At(path) => path.clone(),
            Self::Own(under) => under.join(own()),
            Self::Temporary(directory) => temporary(directory.as_deref()).join(own()),
        }
    }
}

/// `${TMPDIR:-/tmp}/pvn`.
pub(crate) fn temporary(directory: Option<&OsStr>) -> PathBuf {
    Path::new(directory.unwrap_or(OsStr::new("/tmp"))).join("pvn")
}
