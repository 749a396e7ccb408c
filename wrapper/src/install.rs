//! `pvn-wrapper install DIR`: copies this program into a directory, for init containers. Called by
//! `main`.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::exit;
use crate::writer::say;

/// Copies, says what went wrong, and returns what to end with.
pub(crate) fn install(directory: &Path) -> u8 {
    match copy(directory) {
        Ok(()) => 0,
        Err(error) => {
            say(&format!("cannot install into {}: {error}", directory.display()));
            exit::OURS
        }
    }
}

/// By rename, for a container may be running the one that is there.
fn copy(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let temporary = directory.join(format!(".pvn-wrapper.{}", std::process::id()));
    let placed = std::fs::copy("/proc/self/exe", &temporary)
        .and_then(|_| std::fs::set_permissions(&temporary, PermissionsExt::from_mode(0o755)))
        .and_then(|()| std::fs::rename(&temporary, directory.join("pvn-wrapper")));
    if placed.is_err() {
        // It may never have been made.
        let _ = std::fs::remove_file(&temporary);
    }
    placed
}
