//! A place to print to that remembers what was printed, for tests.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// What a remembering console was told to print.
#[derive(Clone, Default)]
pub struct Remembered(Arc<Mutex<Vec<u8>>>);

impl Remembered {
    /// All of it so far, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// All of it so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Write for Remembered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
