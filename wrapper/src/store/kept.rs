//! What is left of a stream when it has ended. Made by `store`.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use schema::id::BlobId;

/// What is left of a stream when it has ended.
#[derive(Debug)]
pub(crate) struct KeptStream {
    /// All bytes that the child wrote.
    pub(crate) total: u64,
    /// Bytes that are kept.
    pub(crate) kept: u64,
    /// Bytes of the head, when the middle is missing.
    pub(crate) head: Option<u64>,
    /// Whether the stream was longer than the cap.
    pub(crate) truncated: bool,
    /// Bytes within the cap that could not be kept.
    pub(crate) lost: u64,
    /// Content address of what is kept.
    pub(crate) blob: BlobId,
    /// Where the kept bytes are.
    pub(crate) place: KeptBytes,
}

/// Where kept bytes are.
#[derive(Debug)]
pub(crate) enum KeptBytes {
    Memory(Vec<u8>),
    File(PathBuf),
}

impl KeptStream {
    /// A stream without a byte.
    pub(crate) fn nothing() -> Self {
        let blob = BlobId::of(b"");
        Self {
            total: 0,
            kept: 0,
            head: None,
            truncated: false,
            lost: 0,
            blob,
            place: KeptBytes::Memory(Vec::new()),
        }
    }

    /// Whether what is kept is in no file.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.place, KeptBytes::Memory(_))
    }

    /// The bytes, if they are no more than `limit`.
    pub(crate) fn read(&self, limit: u64) -> io::Result<Option<Vec<u8>>> {
        match &self.place {
            KeptBytes::Memory(bytes) if bytes.len() as u64 <= limit => Ok(Some(bytes.clone())),
            KeptBytes::Memory(_) => Ok(None),
            KeptBytes::File(path) => {
                let mut bytes = Vec::new();
                File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
                Ok((bytes.len() as u64 <= limit).then_some(bytes))
            }
        }
    }
}
