//! Single keys of the person at the terminal, without Enter and without an echo, while a screen is
//! watched. Owner of the terminal's modes.
//!
//! What always holds: the terminal is as it was found when a [`Keyboard`] is gone, or was left.
//! Ctrl-C and Ctrl-Z are keys meanwhile, so that they leave no terminal without an echo behind.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, raise};
use nix::sys::termios::{
    LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgrp, tcgetpgrp};
use tokio::net::unix::pipe;

/// A key that means something to a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PressedKey {
    /// The arrow, or `k`.
    Up,
    /// The arrow, or `j`.
    Down,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Ctrl-C: whoever pressed it wants the program to end.
    Interrupt,
    /// Ctrl-Z: the program was stopped, and goes on. Others may have written on the terminal.
    Continued,
    /// A letter or sign.
    Char(char),
}

/// The terminal's keyboard.
pub struct Keyboard {
    tty: File,
    /// The same, to wait for what it sends.
    keys: pipe::Receiver,
    /// How the terminal was found.
    before: Termios,
    /// Keys that were read and not told.
    pressed: VecDeque<PressedKey>,
}

impl Keyboard {
    /// The keyboard of the terminal that this process is in the foreground of; `None` where there
    /// is none. Opened anew, so that nothing of it is shared with stdin, where questions are
    /// answered.
    pub fn take() -> Option<Self> {
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let tty = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits())
            .open("/dev/tty")
            .ok()?;
        // Whoever sets the modes of a terminal from the background is stopped.
        if tcgetpgrp(&tty).ok()? != getpgrp() {
            return None;
        }
        let before = tcgetattr(&tty).ok()?;
        // No pipe; but one that is read from alone is waited for in the same way.
        let keys = pipe::Receiver::from_file_unchecked(tty.try_clone().ok()?).ok()?;
        let keyboard = Self { tty, keys, before, pressed: VecDeque::new() };
        keyboard.listen();
        Some(keyboard)
    }

    /// Has the terminal hand over each key. Once more after a stop and a continue, by which a shell
    /// may have changed it.
    pub fn listen(&self) {
        let mut modes = self.before.clone();
        modes.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG);
        modes.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        modes.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        self.set(&modes);
    }

    /// Lets the terminal be as it was found, for whoever reads lines, until [`Self::listen`].
    pub fn leave(&self) {
        self.set(&self.before);
    }

    /// A terminal that has hung up has no modes any more, and nobody sits there.
    fn set(&self, modes: &Termios) {
        let _gone = tcsetattr(&self.tty, SetArg::TCSANOW, modes);
    }

    /// The next key; `None` when the terminal is gone. Nothing is lost by not waiting to the end.
    pub async fn next(&mut self) -> Option<PressedKey> {
        loop {
            if let Some(key) = self.pressed.pop_front() {
                if key == PressedKey::Continued {
                    self.leave();
                    let _unheeded = raise(Signal::SIGTSTP);
                    self.listen();
                }
                return Some(key);
            }
            let bytes = self.more().await?;
            self.pressed.extend(keys(&bytes));
        }
    }

    /// A line that is not shown, of at most `limit` bytes, with what a backspace takes away; `None`
    /// after Ctrl-C or Ctrl-D, and when the terminal is gone.
    pub async fn hidden_line(&mut self, limit: usize) -> Option<String> {
        let mut line = Vec::new();
        loop {
            for byte in self.more().await? {
                match byte {
                    b'\r' | b'\n' => return Some(String::from_utf8_lossy(&line).into_owned()),
                    0x03 | 0x04 => return None,
                    0x08 | 0x7f => drop(line.pop()),
                    byte if line.len() < limit => line.push(byte),
                    _ => {}
                }
            }
        }
    }

    /// What the terminal sends next.
    async fn more(&self) -> Option<Vec<u8>> {
        loop {
            self.keys.readable().await.ok()?;
            let mut bytes = [0; 64];
            match self.keys.try_read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => return Some(bytes[..count].to_vec()),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The keys behind what a terminal sends. Source: ECMA-48 and xterm's control sequences; arrows
/// come as `ESC [ A` or, in application mode, `ESC O A`.
fn keys(bytes: &[u8]) -> Vec<PressedKey> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            0x1b if matches!(rest.first(), Some(b'[' | b'O')) => {
                // To the byte that ends the sequence; what it means otherwise is nothing to us.
                let end = rest.iter().skip(1).position(|byte| (0x40..=0x7e).contains(byte));
                let Some(end) = end.map(|at| at + 1) else { break };
                match (rest[end], end) {
                    (b'A', 1) => keys.push(PressedKey::Up),
                    (b'B', 1) => keys.push(PressedKey::Down),
                    _ => {}
                }
                rest = &rest[end + 1..];
            }
            0x1b => keys.push(PressedKey::Escape),
            0x03 => keys.push(PressedKey::Interrupt),
            0x1a => keys.push(PressedKey::Continued),
            b'\r' | b'\n' => keys.push(PressedKey::Enter),
            b'k' => keys.push(PressedKey::Up),
            b'j' => keys.push(PressedKey::Down),
            b' '..=b'~' => keys.push(PressedKey::Char(char::from(first))),
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_sends_is_read_as_keys_and_the_rest_is_nothing() {
        for (bytes, expected) in [
            (&b"j"[..], &[PressedKey::Down][..]),
            (b"\x1b[A\x1b[B", &[PressedKey::Up, PressedKey::Down]),
            (b"\x1bOAq", &[PressedKey::Up, PressedKey::Char('q')]),
            (b"\x03\x1a\x04", &[PressedKey::Interrupt, PressedKey::Continued]),
            (b"\r\n", &[PressedKey::Enter, PressedKey::Enter]),
            (b"\x1b", &[PressedKey::Escape]),
            // Page down, a key with Control, the mouse, a sequence that is cut, a letter of ours.
            (b"\x1b[6~\x1b[1;5A\x1b[<0;1;1Ma\x1b[", &[PressedKey::Char('a')]),
            ("ä".as_bytes(), &[]),
        ] {
            assert_eq!(keys(bytes), expected, "{bytes:?}");
        }
    }
}
