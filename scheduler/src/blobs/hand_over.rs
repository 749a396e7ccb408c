//! Blobs that a command is given to work with: checked then, because a disk can lose or change what
//! was whole.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use nix::libc::O_NONBLOCK;
use schema::id::BlobId;

use super::{Blobs, is_empty, present};

/// A blob for a command's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandOver {
    /// The file, whose bytes were just found to have that digest.
    File(PathBuf),
    /// It is empty and needs no file.
    Empty,
    /// It is not here any more, or the file is not what was put there. In words, with what comes of
    /// it.
    Lost(String),
}

/// What is said of an input that is [`HandOver::Lost`], as a sentence without its beginning.
pub fn unusable(reference: &str, why: &str) -> String {
    format!("its input `{reference}` cannot be used: {why}")
}

impl Blobs {
    /// The blob for a command that is to work with it: read whole, and its digest compared with its
    /// name. Blocks.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn hand_over(&self, id: BlobId) -> io::Result<HandOver> {
        if is_empty(id) {
            return Ok(HandOver::Empty);
        }
        let path = self.path(id);
        // Of a pipe in its place nobody waits for the other end.
        let opened = File::options().read(true).custom_flags(O_NONBLOCK).open(&path);
        let Some(file) = present(opened)? else {
            let path = path.display();
            tracing::error!(%id, %path, "a blob is lost: its file is gone");
            return Ok(HandOver::Lost(format!(
                "{id} is gone from the scheduler's disk ({path}); the next fetch makes a new one"
            )));
        };
        if !file.metadata()?.is_file() {
            let path = path.display();
            tracing::error!(%id, %path, "a blob is lost: what has its name is no file");
            return Ok(HandOver::Lost(format!(
                "what has the place of {id} on the scheduler's disk ({path}) is no file; the next \
                 fetch makes a new one"
            )));
        }
        let found = BlobId::of_reader(&file)?;
        if found == id {
            return Ok(HandOver::File(path));
        }
        let (path, length) = (path.display(), file.metadata()?.len());
        tracing::error!(%id, %path, length, "a blob is damaged: it is not what was put there");
        Ok(HandOver::Lost(format!(
            "{id} is damaged on the scheduler's disk ({path} has {length} bytes with another \
             digest), so it is not used; the next fetch makes a new one"
        )))
    }

    /// Why not all of these inputs, given with what they are called, can be handed over; `None`
    /// when they can. Reads them whole.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn lost(&self, inputs: &[(String, BlobId)]) -> io::Result<Option<String>> {
        for (reference, blob) in inputs {
            if let HandOver::Lost(why) = self.hand_over(*blob)? {
                return Ok(Some(unusable(reference, &why)));
            }
        }
        Ok(None)
    }
}
