//! A program on a terminal of its own, and somebody at its keyboard.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::pty::openpty;

use crate::wait;

/// The terminal, and what runs on it. Dropping it kills that.
pub struct Terminal {
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    screen: JoinHandle<()>,
    child: Child,
}

impl Terminal {
    /// Starts a program as the only job of a terminal, whatever whoever runs the tests ignores.
    ///
    /// # Panics
    /// When there are no terminals to be had.
    pub fn start(program: &Command) -> Self {
        let pair = openpty(None, None).expect("a terminal can be made");
        let same = |end: &OwnedFd| end.try_clone().expect("a descriptor can be shared");
        // `setsid --ctty` makes it the terminal that Ctrl-C comes from.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT", "setsid", "--ctty"])
            .arg(program.get_program())
            .args(program.get_args());
        for (key, value) in program.get_envs() {
            value.map(|value| command.env(key, value));
        }
        program.get_current_dir().map(|directory| command.current_dir(directory));
        command
            .stdin(Stdio::from(same(&pair.slave)))
            .stdout(Stdio::from(same(&pair.slave)))
            .stderr(Stdio::from(pair.slave));
        let child = command.spawn().expect("a program can be started");
        drop(command);
        let shown: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (mut output, seen) = (File::from(same(&pair.master)), Arc::clone(&shown));
        // It ends with the terminal: the last one to leave it makes reading fail.
        let screen = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                seen.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(&piece[..length]);
            }
        });
        Self { keyboard: File::from(pair.master), shown, screen, child }
    }

    /// All that was shown so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap_or_else(PoisonError::into_inner))
            .into_owned()
    }

    /// Waits until this is shown.
    pub fn shows(&self, text: &str) {
        wait::until(&format!("{text:?} on the terminal"), || {
            self.text().contains(text).then_some(())
        });
    }

    /// Presses these keys: `\x03` is Ctrl-C, `\x04` Ctrl-D.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a key can be pressed");
    }

    /// Waits for its end, and for all that it showed.
    ///
    /// # Panics
    /// When it does not come.
    pub fn ends(&mut self) -> ExitStatus {
        let status = wait::until("what runs on the terminal to end", || {
            self.child.try_wait().expect("a child can be asked")
        });
        wait::until("all that it showed to be read", || self.screen.is_finished().then_some(()));
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped_already = self.child.wait();
    }
}
