//! Copies of the examples, so that a test changes nothing in the checkout.

use std::path::Path;
use std::process::Command;

use crate::programs;

/// Copies one of `examples/` to `to`: the files that git tracks or would track, not what earlier
/// runs left.
///
/// # Panics
/// When the checkout has no such example.
pub fn example(name: &str, to: &Path) {
    tracked(&programs::repository().join("examples").join(name), to);
}

/// Copies the whole checkout to `to`, the same files.
///
/// # Panics
/// When it cannot.
pub fn checkout(to: &Path) {
    tracked(programs::repository(), to);
}

fn tracked(from: &Path, to: &Path) {
    let list = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(from)
        .output()
        .expect("git can be started");
    let names = String::from_utf8(list.stdout).expect("file names are UTF-8");
    assert!(!names.is_empty(), "no files in {}", from.display());
    // One that is gone and not yet forgotten by git is not copied.
    for name in names.split_terminator('\0').filter(|name| from.join(name).exists()) {
        let target = to.join(name);
        std::fs::create_dir_all(target.parent().expect("a file is in a directory"))
            .expect("a directory can be made");
        std::fs::copy(from.join(name), target).expect("a file can be copied");
    }
}
