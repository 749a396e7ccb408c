//! A program of somebody else's that listens, for as long as a test needs it.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::wait;

/// A program that runs, with what it prints in a file. Dropping it kills it.
pub struct Listener {
    child: Child,
    /// Where it answers: `http://127.0.0.1:PORT`.
    pub url: String,
    _home: TempDir,
}

impl Listener {
    /// Starts a program, and waits until it prints the address at which it listens.
    ///
    /// # Panics
    /// When it cannot be started, ends, or prints none in time.
    pub fn start(command: &mut Command) -> Self {
        let home = tempfile::tempdir().expect("a directory can be made");
        let path = home.path().join("said");
        let said = File::create(&path).expect("a file can be written");
        let mut child = command
            .current_dir(home.path())
            .stdin(Stdio::null())
            .stdout(said.try_clone().expect("a file can be shared"))
            .stderr(said)
            .spawn()
            .expect("it can be started");
        let url = wait::until(&format!("{command:?} to listen"), || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let ended = child.try_wait().expect("a child can be asked");
            assert_eq!(ended, None, "it ended instead of listening:\n{text}");
            address(&text)
        });
        Self { child, url, _home: home }
    }
}

/// The first address of this machine in a text, of which the line is whole.
fn address(text: &str) -> Option<String> {
    let (line, _) = text[text.find("http://127.0.0.1:")?..].split_once('\n')?;
    let end = line["http://127.0.0.1:".len()..].find(|c: char| !c.is_ascii_digit());
    Some(line[..end.map_or(line.len(), |end| end + "http://127.0.0.1:".len())].to_owned())
}

impl Drop for Listener {
    fn drop(&mut self) {
        // One that has ended meanwhile has nothing left to be killed.
        let _ended_meanwhile = self.child.kill();
        self.child.wait().expect("a child can be waited for");
    }
}
