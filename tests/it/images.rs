//! What the scripts that build for images leave: where cargo builds, stripped, with the symbols
//! beside, and small. A cargo of our own stands in for the compiler, which would take minutes, and
//! makes static programs that do nothing.

mod lint;
mod tools;
mod workshop;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tests::{programs, skip};

/// The real cargo says where it builds; `rustc` and `build` make the programs there.
const CARGO: &str = r#"#!/bin/sh
set -eu
if [ "$1" = metadata ]; then exec "$REAL_CARGO" "$@"; fi
target= before=
for argument; do [ "$before" = --target ] && target=$argument; before=$argument; done
case $1 in
rustc) names=wrapper/pvn-wrapper ;;
build) names='dist/pvn-scheduler dist/pvnctl' ;;
esac
for name in $names; do
    mkdir -p "$CARGO_TARGET_DIR/$target/${name%/*}"
    bytes=1
    [ "$name" != "${HUGE:-}" ] || bytes=60000000
    cc -static -g -DBYTES=$bytes -o "$CARGO_TARGET_DIR/$target/$name" "$SOURCE"
done
"#;

/// A directory with that cargo, and one to build in.
struct Bench {
    home: tempfile::TempDir,
}

impl Bench {
    fn new(test: &str) -> Option<Self> {
        let home = tempfile::tempdir().expect("a directory can be made");
        let cargo = home.path().join("cargo");
        std::fs::write(&cargo, CARGO).expect("a file can be written");
        std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755))
            .expect("it may be executable");
        std::fs::write(
            home.path().join("some.c"),
            "char bytes[BYTES] = {1};\nint main(void) { return bytes[0] - 1; }\n",
        )
        .expect("a file can be written");
        let bench = Self { home };
        let mut static_one = Command::new("cc");
        static_one
            .args(["-static", "-DBYTES=1", "-o"])
            .arg(bench.home.path().join("tried"))
            .arg(bench.home.path().join("some.c"));
        let is_possible = static_one.output().is_ok_and(|output| output.status.success())
            && ["objcopy", "readelf", "strip"].iter().all(|tool| skip::tool(tool).is_some())
            && Path::new("/etc/ssl/certs/ca-certificates.crt").exists();
        if !is_possible {
            skip::skipped(test, "there is no static C library, no binutils or no ca-certificates");
        }
        is_possible.then_some(bench)
    }

    /// Where it is told to build.
    fn target(&self) -> PathBuf {
        self.home.path().join("elsewhere")
    }

    fn run(&self, script: &str, huge: &str) -> Output {
        Command::new(programs::repository().join("images").join(script))
            .env("PATH", programs::path_after(self.home.path()))
            .env("REAL_CARGO", std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .env("SOURCE", self.home.path().join("some.c"))
            .env("CARGO_TARGET_DIR", self.target())
            .env("HUGE", huge)
            .output()
            .expect("the script can be started")
    }

    fn builds(&self, script: &str) -> String {
        let output = self.run(script, "");
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    fn is_refused(&self, script: &str, huge: &str) -> String {
        let output = self.run(script, huge);
        assert_eq!(output.status.code(), Some(1), "{script} takes {huge}");
        String::from_utf8(output.stderr).expect("text")
    }
}

fn has(program: &Path, section: &str) -> bool {
    let output = Command::new("readelf")
        .args(["--sections", "--wide"])
        .arg(program)
        .output()
        .expect("readelf can be started");
    String::from_utf8_lossy(&output.stdout).contains(&format!(" {section} "))
}

#[test]
fn programs_for_images_are_built_where_cargo_builds_and_shipped_stripped_with_their_symbols_beside()
{
    let test = "programs_for_images_are_built_where_cargo_builds_and_shipped_stripped_with_their_symbols_beside";
    let Some(bench) = Bench::new(test) else { return };
    let said = bench.builds("build-wrapper.sh");
    let wrapper = PathBuf::from(said.split(": static").next().expect("it begins with the path"));
    assert!(wrapper.starts_with(bench.target()) && wrapper.exists(), "{said}");

    let said = bench.builds("build-scheduler.sh");
    let dist = PathBuf::from(said.split(": static").next().expect("it begins with the path"));
    assert!(dist.starts_with(bench.target()), "{said}");
    for program in ["pvn-scheduler", "pvnctl"] {
        let (shipped, symbols) =
            (dist.join(program), dist.join(format!("symbols/{program}.debug")));
        assert!(
            !has(&shipped, ".symtab") && has(&shipped, ".gnu_debuglink"),
            "{program} is stripped and names its symbols"
        );
        assert!(has(&symbols, ".symtab") && has(&symbols, ".debug_info"), "{program}: symbols");
        assert!(
            Command::new(&shipped).status().is_ok_and(|status| status.success()),
            "{program} still runs"
        );
    }
    let mut held: Vec<_> = std::fs::read_dir(&dist)
        .expect("it is there")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    held.sort();
    assert_eq!(
        held,
        ["ca-certificates.crt", "pvn-scheduler", "pvn-wrapper", "pvnctl", "symbols"],
        "all that the image takes"
    );
}

#[test]
fn a_program_that_is_too_large_for_an_image_fails_its_build_with_the_limit() {
    let test = "a_program_that_is_too_large_for_an_image_fails_its_build_with_the_limit";
    let Some(bench) = Bench::new(test) else { return };
    let said = bench.is_refused("build-wrapper.sh", "wrapper/pvn-wrapper");
    assert!(said.contains("more than 6291456"), "{said}");
    let said = bench.is_refused("build-scheduler.sh", "dist/pvnctl");
    assert!(said.contains("more than 20971520"), "{said}");
}
