//! Where the built programs are. They are built first, so that `cargo test -p tests` alone is right
//! on a fresh checkout.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Path of a program of ours, built in the same profile and target directory as the caller.
///
/// # Panics
/// When it cannot be built.
pub fn program(name: &str) -> PathBuf {
    directory().join(name)
}

/// The directory that holds all programs, for a `PATH`.
pub fn directory() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

/// The `PATH` of this process with a directory before all others.
///
/// # Panics
/// When the directory has a colon in its name.
pub fn path_after(directory: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(all).expect("no directory has a colon in it")
}

fn build() -> PathBuf {
    let own = std::env::current_exe().expect("a running program has a path");
    let directory =
        own.parent().and_then(Path::parent).expect("cargo puts tests into PROFILE/deps").to_owned();
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => panic!("no profile directory in {}", own.display()),
    };
    let target = directory.parent().expect("cargo puts a profile into a target directory");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = apart_from_this_run(&mut Command::new(cargo))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--bins",
            "-p",
            "pvn-wrapper",
            "-p",
            "pvn-scheduler",
            "-p",
            "pvnctl",
            "-p",
            "fakes",
            "-p",
            "tests",
            "--profile",
            profile,
        ])
        .arg("--target-dir")
        .arg(target)
        .current_dir(repository())
        .status()
        .expect("cargo can be started");
    assert!(status.success(), "the programs do not build");
    directory
}

/// Takes away what cargo tells the program that it runs: build scripts that look at it (that of
/// `ring`, and half of our dependencies need `ring`) would run again for a cargo within, and again
/// for the next one outside.
fn apart_from_this_run(command: &mut Command) -> &mut Command {
    let told = std::env::vars_os().map(|(name, _)| name);
    told.filter(|name| {
        name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        })
    })
    .fold(command, |command, name| command.env_remove(name))
}

/// The root of the checkout.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is one level below the root")
}

/// The wrapper as it is shipped, static and small, for benchmarks: built by
/// `images/build-wrapper.sh`, or the one that `PVN_WRAPPER` names. The one beside the tests is
/// linked dynamically and takes longer to start.
///
/// # Panics
/// When it cannot be built.
pub fn shipped_wrapper() -> PathBuf {
    if let Some(path) = std::env::var_os("PVN_WRAPPER") {
        return path.into();
    }
    let output =
        apart_from_this_run(&mut Command::new(repository().join("images/build-wrapper.sh")))
            .output()
            .expect("images/build-wrapper.sh can be started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "the wrapper does not build: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    repository().join(said.split(':').next().unwrap_or_default())
}
