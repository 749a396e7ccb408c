//! Where a declared path leads, however it is written. Called by `args`.

use std::path::{Component, Path, PathBuf};

/// The one name of the place: absolute, its directory without `.`, `..` and symlinks. The last part
/// stays as it is, for an input takes the place of a symlink and not of what that leads to.
pub(super) fn of(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut resolved = PathBuf::new();
    for part in absolute.components() {
        // What was walked so far is a directory; one that is not made yet is no symlink.
        resolved = resolved.canonicalize().unwrap_or(resolved);
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            part => resolved.push(part),
        }
    }
    resolved
}
