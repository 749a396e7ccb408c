//! The seven things that nothing safe offers; all that is unsafe in the wrapper is here.
//!
//! - **A `main` of our own** instead of the one that the Rust runtime wraps. The runtime's ignores
//!   SIGPIPE before anybody can look what was there before, so the command could not be given what
//!   we were given; it reads `/proc/self/maps` and sets up a stack for its own handlers, a tenth of
//!   what a run of `true` costs; and signals that arrive during all that are not blocked yet. What
//!   it does besides, we do: standard descriptors that are closed are filled, or a pipe of ours
//!   could become "standard output". Arguments and environment are there all the same: glibc hands
//!   them to `std` before `main`.
//! - **The default disposition of SIGCHLD**, in place of an inherited "ignore".
//! - **Real-time signals** as signals that can be sent.
//! - **A terminal for a command before it runs**, which the C library's `posix_spawn` can give
//!   since glibc 2.35.
//! - **A signal mask for a program of `std`'s**, which otherwise hands ours on.
//! - **Who we are without asking the kernel**: it said so at the start.
//! - **Variables that nobody can read any more**: `/proc/PID/environ` shows the memory in which the
//!   kernel put them at the start, whatever `unsetenv` says, and the command runs as the same user.

#![expect(
    unsafe_code,
    reason = "a symbol, a disposition, signals, an action of `posix_spawn`, a mask, the start's \
              facts; see the module"
)]

use std::ffi::{c_char, c_int};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::libc::{posix_spawn_file_actions_addtcsetpgrp_np, posix_spawn_file_actions_t};
use nix::spawn::PosixSpawnFileActions;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

/// A signal's number.
pub(crate) type Number = i32;

/// First of the signals without a name, as programs count them: the C library keeps the two before
/// it for itself.
pub(crate) const REAL_TIME_FIRST: Number = 34;
/// Last of them. Source: signal(7).
const REAL_TIME_LAST: Number = 64;

// SAFETY: the C library calls this symbol once, after its own setup, on the only thread, and
// nothing else in this program defines it. No panic leaves it: unwinding out of an `extern "C"`
// function aborts.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    crate::begin().into()
}

/// What every program of ours does before anything else, once signals are blocked.
pub(crate) fn prepare() {
    keep_exit_statuses();
    fill_standard_descriptors();
}

/// Undoes an inherited "ignore" of SIGCHLD, under which the kernel would throw exit statuses away.
/// That the default is to ignore it too does not matter: a signal that is blocked waits.
fn keep_exit_statuses() {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: this installs no handler and replaces none: nothing in this program has touched a
    // disposition before.
    let set = unsafe { sigaction(nix::sys::signal::Signal::SIGCHLD, &default) };
    set.expect("SIGCHLD has a default");
}

/// Opens something on each of the descriptors 0, 1 and 2 that is closed. The command does not
/// inherit it: it finds its standard input closed, as it would have without us.
fn fill_standard_descriptors() {
    let standard = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let mut poll =
        standard.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::empty()));
    if !matches!(rustix::event::poll(&mut poll, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1..))
    {
        return;
    }
    for _ in poll.iter().filter(|descriptor| descriptor.revents().contains(PollFlags::NVAL)) {
        // The lowest number that is free is the first that is closed. An image without /dev/null
        // has a root.
        let open = |path, flags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
        if let Ok(filler) = open("/dev/null", OFlags::RDWR).or_else(|_| open("/", OFlags::RDONLY)) {
            std::mem::forget(filler);
        }
    }
}

/// The real-time signal of this number, if it is one that programs may use.
pub(crate) fn real_time(number: Number) -> Option<Signal> {
    // SAFETY: the C library does not use these signals itself; the two that it does use are below
    // the first.
    (REAL_TIME_FIRST..=REAL_TIME_LAST)
        .contains(&number)
        .then(|| unsafe { Signal::from_raw_unchecked(number) })
}

/// Adds to `actions` that the new process's group gets the terminal on standard input.
pub(crate) fn give_terminal(actions: &mut PosixSpawnFileActions) -> nix::Result<()> {
    let actions = std::ptr::from_mut(actions).cast::<posix_spawn_file_actions_t>();
    // SAFETY: nix's type is a transparent wrapper of the C library's, which its `init` has
    // initialised.
    match unsafe { posix_spawn_file_actions_addtcsetpgrp_np(actions, 0) } {
        0 => Ok(()),
        error => Err(Errno::from_raw(error)),
    }
}

/// Has the new process begin with these signals blocked and no other.
pub(crate) fn give_mask(command: &mut Command, mask: SigSet) {
    // SAFETY: between fork and exec it only calls `pthread_sigmask`, which may be called there, and
    // turns a number into an error.
    unsafe {
        command.pre_exec(move || mask.thread_set_mask().map_err(Into::into));
    }
}

unsafe extern "C" {
    /// The variables as the kernel put them: texts `NAME=VALUE`, and a null pointer after the last.
    /// Source: environ(7).
    safe static environ: *const *mut c_char;
}

/// Overwrites the values of these variables where the kernel put them, so that neither
/// `/proc/PID/environ` nor a later look at the environment has them. Called while there is one
/// thread, and after what is needed of them was copied.
pub(crate) fn forget_variables(names: &[&str]) {
    let mut entry = environ;
    if entry.is_null() {
        return;
    }
    loop {
        // SAFETY: the array ends with a null pointer, and nothing in this program changes it: no
        // `setenv` is ever called.
        let text = unsafe { *entry };
        if text.is_null() {
            return;
        }
        // SAFETY: each text ends with a zero byte.
        let length = unsafe { std::ffi::CStr::from_ptr(text) }.count_bytes();
        // SAFETY: these bytes are the text's own, on the stack that the kernel made; with one
        // thread nobody else looks at them.
        let text = unsafe { std::slice::from_raw_parts_mut(text.cast::<u8>(), length) };
        let named = names.iter().find(|name| {
            text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
        });
        if let Some(name) = named {
            for byte in &mut text[name.len() + 1..] {
                // SAFETY: a byte of the slice; volatile, for nothing in this program reads it
                // afterwards.
                unsafe { std::ptr::write_volatile(byte, 0) };
            }
        }
        // SAFETY: the null pointer that ends the array comes after this one, which is none.
        entry = unsafe { entry.add(1) };
    }
}

/// Whether the effective user was root when we were started. Source: `AT_EUID` of getauxval(3).
pub(crate) fn began_as_root() -> bool {
    // SAFETY: it looks into a table that the kernel made at the start, and takes any number.
    let user = unsafe { nix::libc::getauxval(nix::libc::AT_EUID) };
    user == 0
}
