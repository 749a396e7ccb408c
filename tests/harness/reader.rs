//! A reader of the docs: a fresh checkout with the programs where a build puts them, and a shell
//! that stands at its root. In a network and with processes of its own, so that default ports are
//! free and nothing that is started outlives the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::{copy, programs, skip, wait};

/// A checkout, and whoever reads its docs.
pub struct Reader {
    home: TempDir,
}

/// Begins every script: the network of its own needs its loopback, and a command that fails ends
/// it.
const PROLOGUE: &str = "set -eu\nip link set lo up\nuntil_it() { until eval \"$1\"; do sleep 0.1; \
                        done; }\ninterrupt_it() {\nfor at in /proc/[0-9]*; do\nif [ \"$(cat \
                        \"$at/comm\" 2>/dev/null)\" = \"$1\" ]; then kill -INT \"${at#/proc/}\"; \
                        fi\ndone\n}\n";

impl Reader {
    /// A fresh checkout. `None`, and the test counts as skipped, where a reader cannot be kept
    /// apart from the machine.
    ///
    /// # Panics
    /// When the checkout cannot be copied.
    pub fn checkout(test: &str) -> Option<Self> {
        let possible = ["unshare", "ip"].iter().all(|name| skip::tool(name).is_some())
            && apart()
                .arg("true")
                .stdin(Stdio::null())
                .output()
                .is_ok_and(|output| output.status.success());
        if !possible {
            skip::skipped(test, "network and process namespaces cannot be made here (unshare, ip)");
            return None;
        }
        let home = tempfile::Builder::new()
            .prefix("pvn-reader-")
            .tempdir()
            .expect("a directory can be made");
        copy::checkout(home.path());
        let built = home.path().join("target/release");
        std::fs::create_dir_all(built.parent().expect("it is below the checkout"))
            .expect("a directory can be made");
        std::os::unix::fs::symlink(programs::directory(), built).expect("a link can be made");
        Some(Self { home })
    }

    /// The root of the checkout.
    pub fn root(&self) -> &Path {
        self.home.path()
    }

    /// Runs a shell script at the root of the checkout, to its end; a command in it that fails ends
    /// it. It can wait with `until_it 'COMMAND'`, and press Ctrl-C for a program of its own
    /// with `interrupt_it NAME`. What it leaves running is killed.
    ///
    /// # Panics
    /// When it does not end in time; with what it printed.
    pub fn runs(&self, script: &str) -> Output {
        let said = |name: &str| -> (PathBuf, File) {
            let path = self.home.path().join(name);
            let file = File::create(&path).expect("a file can be written");
            (path, file)
        };
        let ((stdout_path, stdout), (stderr_path, stderr)) = (said(".stdout"), said(".stderr"));
        let mut child = apart()
            .args(["sh", "-c", &format!("{PROLOGUE}{script}")])
            .current_dir(self.root())
            .env_remove("PVN_DATA_DIR")
            .env_remove("PVN_SERVER")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .expect("unshare can be started");
        let ended =
            wait::within(wait::PATIENCE, || child.try_wait().expect("a child can be asked"));
        let read = |path: &Path| std::fs::read(path).unwrap_or_default();
        let (stdout, stderr) = (read(&stdout_path), read(&stderr_path));
        let status = ended.unwrap_or_else(|| {
            let _ended_meanwhile = child.kill();
            child.wait().expect("a child can be waited for");
            let text = String::from_utf8_lossy(&[stdout.as_slice(), &stderr].concat()).into_owned();
            panic!("this did not end:\n{script}\nit printed:\n{text}")
        });
        Output { status, stdout, stderr }
    }

    /// The same for a script that must succeed; returns all that it printed.
    ///
    /// # Panics
    /// When it fails, with what it printed.
    pub fn succeeds(&self, script: &str) -> String {
        let output = self.runs(script);
        let text = String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat())
            .into_owned();
        assert!(output.status.success(), "{}:\n{script}\nit printed:\n{text}", output.status);
        text
    }
}

/// A command in namespaces of its own, which end with it.
fn apart() -> Command {
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--net", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--"]);
    command
}
