//! A wall clock that tests set as they like, for a real daemon and its jobs: a small library in C
//! that is loaded before the C library. Monotonic clocks stay true.

use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::skip;

/// The library's source.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/harness/clock.c");

/// A clock, true until it is set.
pub struct Clock {
    _home: TempDir,
    preload: String,
    file: PathBuf,
    path: String,
}

impl Clock {
    /// A new one, for the test of this name; `None`, said and counted, where there is no C
    /// compiler.
    ///
    /// # Panics
    /// When the library cannot be made.
    pub fn new(test: &str) -> Option<Self> {
        let home = tempfile::Builder::new()
            .prefix("pvn-clock-")
            .tempdir()
            .expect("a directory can be made");
        let (library, file) = (home.path().join("clock.so"), home.path().join("offset"));
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(SOURCE)
            .status();
        let Ok(status) = made else {
            skip::skipped(test, "there is no C compiler `cc` to make a clock that can be set");
            return None;
        };
        assert!(status.success(), "cc ended with {status}");
        let text = |path: &PathBuf| path.to_str().expect("the path is UTF-8").to_owned();
        let clock = Self { preload: text(&library), path: text(&file), _home: home, file };
        clock.off_by(0);
        Some(clock)
    }

    /// Sets it so many seconds off the true time.
    ///
    /// # Panics
    /// When its file cannot be written.
    pub fn off_by(&self, seconds: i64) {
        // Written over, not replaced: programs hold the file open. One write of few bytes is never
        // seen in part.
        let text = format!("{seconds:<24}");
        let file = std::fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.file)
            .expect("a file can be opened");
        std::os::unix::fs::FileExt::write_all_at(&file, text.as_bytes(), 0)
            .expect("a file can be written");
    }

    /// Sets it to so many seconds after 1970.
    ///
    /// # Panics
    /// When the true time is before 1970.
    #[expect(clippy::disallowed_methods, reason = "a clock is set relative to the true one")]
    pub fn shows(&self, seconds: i64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs();
        self.off_by(seconds - i64::try_from(now).expect("seconds fit"));
    }

    /// What a program needs in its environment to see it.
    pub fn variables(&self) -> [(&str, &str); 2] {
        [("LD_PRELOAD", &self.preload), ("TEST_CLOCK", &self.path)]
    }
}
