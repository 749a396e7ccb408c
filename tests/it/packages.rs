//! The Debian package and the tarball that `images/build-packages.sh` makes, of the programs of
//! this build: what they hold runs from where it lies, and the unit is one that systemd takes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use tests::{programs, skip};

/// The package and the tarball; none, counted as skipped, without what makes them.
fn packages(test: &str, target: &Path) -> Option<[PathBuf; 2]> {
    for tool in ["dpkg-deb", "strip", "gzip"] {
        if skip::tool(tool).is_none() {
            skip::skipped(test, &format!("{tool} is not on PATH"));
            return None;
        }
    }
    let output = Command::new(programs::repository().join("images/build-packages.sh"))
        .arg(programs::directory())
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("the script can be started");
    let said = stdout(output);
    let (tarball, package) = said.trim().split_once('\n').expect("it prints two paths");
    Some([package.into(), tarball.into()])
}

fn stdout(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

fn run(program: &str, arguments: &[&Path]) -> String {
    stdout(Command::new(program).args(arguments).output().expect("it can be started"))
}

#[test]
fn what_is_in_the_package_runs_and_systemd_takes_its_unit() {
    let test = "what_is_in_the_package_runs_and_systemd_takes_its_unit";
    let home = TempDir::new().expect("a directory can be made");
    let Some([package, tarball]) = packages(test, home.path()) else { return };
    let root = home.path().join("root");
    run("dpkg-deb", &["--extract".as_ref(), &package, &root]);
    let usr = root.join("usr");

    // From the package alone: the daemon finds the wrapper beside itself.
    let example = home.path().join("site");
    run("cp", &["-R".as_ref(), &usr.join("share/doc/pvn/examples/quickstart"), &example]);
    let dev = Command::new(usr.join("bin/pvn-scheduler"))
        .args(["dev", "--until-converged", "--listen", "127.0.0.1:0"])
        .arg(&example)
        .output();
    stdout(dev.expect("the daemon can be started"));
    assert!(example.join("site/index.html").exists(), "it made what it is for");
    let version = run(usr.join("bin/pvnctl").to_str().expect("UTF-8"), &["--version".as_ref()]);
    let named = format!("pvnctl {}\n", env!("CARGO_PKG_VERSION"));
    assert!(version.starts_with(named.trim_end()), "{version}");
    for shared in [
        "man/man1/pvnctl-services-approve.1.gz",
        "bash-completion/completions/pvnctl",
        "zsh/vendor-completions/_pvnctl",
        "fish/vendor_completions.d/pvnctl.fish",
        "doc/pvn/docs/operating.md",
        "doc/pvn/copyright",
    ] {
        assert!(usr.join("share").join(shared).exists(), "{shared}");
    }

    let listed = run("dpkg-deb", &["--contents".as_ref(), &package]);
    let foreign =
        listed.lines().find(|line| !line.contains(" root/root ") || line.contains("rwxrwx"));
    assert_eq!(foreign, None, "all of it is root's, and nobody else writes there");
    let kept = run("dpkg-deb", &["--info".as_ref(), &package, "conffiles".as_ref()]);
    assert_eq!(kept, "/etc/default/pvn-scheduler\n", "an upgrade keeps what somebody wrote there");
    let held = run("tar", &["--list".as_ref(), "--file".as_ref(), &tarball]);
    let inside = format!("pvn-{}/bin/pvn-wrapper", env!("CARGO_PKG_VERSION"));
    assert!(held.lines().any(|line| line == inside), "{held}");

    is_taken_by_systemd(test, &usr, home.path());
}

/// With its programs where they lie here; what systemd does not know it only warns of.
fn is_taken_by_systemd(test: &str, usr: &Path, home: &Path) {
    let unit = std::fs::read_to_string(usr.join("lib/systemd/system/pvn-scheduler.service"))
        .expect("the package has a unit");
    for line in ["KillMode=process", "Delegate=yes", "User=pvn", "OOMPolicy=continue"] {
        assert!(unit.lines().any(|at| at == line), "{line} is missing: {unit}");
    }
    if skip::tool("systemd-analyze").is_none() {
        skip::skipped(test, "systemd-analyze is not on PATH; all else was tried");
        return;
    }
    let tried = home.join("pvn-scheduler.service");
    let here = format!("{}/bin/", usr.display());
    std::fs::write(&tried, unit.replace("/usr/bin/", &here)).expect("a file can be written");
    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&tried).output();
    let output = output.expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((said.as_str(), output.status.success()), ("", true));
}

#[test]
fn the_same_programs_and_sources_make_the_same_packages() {
    let test = "the_same_programs_and_sources_make_the_same_packages";
    let [one, other] = [(); 2].map(|()| TempDir::new().expect("a directory can be made"));
    let Some(first) = packages(test, one.path()) else { return };
    let second = packages(test, other.path()).expect("as the first time");
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first.file_name(), second.file_name());
        let bytes = |path: &Path| std::fs::read(path).expect("it is there");
        assert!(bytes(first) == bytes(second), "{} and {}", first.display(), second.display());
    }
}
