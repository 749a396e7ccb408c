//! A small outside world whose commands keep a ledger: what ran, how often, and whether two applies
//! ever overlapped.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Files kept in shape by shell commands, under one directory.
pub struct Files {
    root: PathBuf,
}

/// One run of an apply, as its command wrote it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The job's id.
    pub job: String,
    /// `service.channel`.
    pub instance: String,
    /// The desired version.
    pub version: String,
}

const FETCH: &str = r#"[ "$(cat state/$PVN_SERVICE.$PVN_RELEASE_CHANNEL 2>/dev/null)" = "$PVN_SERVICE_VERSION" ] || exit 2"#;

const APPLY: &str = r#"
i=$PVN_SERVICE.$PVN_RELEASE_CHANNEL
mkdir busy/$i || echo "$i $PVN_JOB_ID" >> overlaps
echo "$PVN_JOB_ID $i $PVN_SERVICE_VERSION" >> ledger
[ ! -e slow ] || sleep "$(cat slow)"
while [ -e hold ]; do sleep 0.05; done
echo "$PVN_SERVICE_VERSION" > state/$i.$PVN_JOB_ID && mv state/$i.$PVN_JOB_ID state/$i
rmdir busy/$i
"#;

impl Files {
    /// An untouched world under `root`.
    pub fn new(root: &Path) -> Self {
        for directory in ["state", "busy"] {
            std::fs::create_dir_all(root.join(directory)).expect("a directory can be made");
        }
        Self { root: root.to_owned() }
    }

    /// Config documents for application `app`: one runtime, and services `s0`… in channels `c0`….
    pub fn configs(services: usize, channels: usize) -> String {
        let mut yaml = format!(
            "runtime:\n  name: files\n  custom:\n    proxyRuntime: {{runtime: local}}\n    \
                 fetch:\n      pollInterval: 1s\n      steadyStatePollInterval: 2s\n{}    \
                 apply:\n{}    convergenceGracePeriod: 2s\n---\napplication:\n  name: app\n  \
                 releaseChannels:\n",
            task("fetch", FETCH),
            task("apply", APPLY),
        );
        for channel in 0..channels {
            writeln!(yaml, "  - {{name: c{channel}, runtimes: [{{runtime: files}}]}}")
                .expect("writing to a String cannot fail");
        }
        for service in 0..services {
            write!(yaml, "---\nservice: {{name: s{service}, application: app}}\n")
                .expect("writing to a String cannot fail");
        }
        yaml
    }

    /// Lets each apply take this many seconds from now on.
    pub fn slow(&self, seconds: &str) {
        std::fs::write(self.root.join("slow"), seconds).expect("a file can be written");
    }

    /// Keeps each apply from ending until [`Files::let_go`].
    pub fn hold(&self) {
        std::fs::write(self.root.join("hold"), "").expect("a file can be written");
    }

    /// Lets the applies that were held end.
    pub fn let_go(&self) {
        std::fs::remove_file(self.root.join("hold")).expect("they were held");
    }

    /// Whether no apply runs.
    pub fn is_quiet(&self) -> bool {
        std::fs::read_dir(self.root.join("busy")).expect("it was made at first").next().is_none()
    }

    /// Breaks one instance behind pvn's back.
    pub fn drift(&self, service: &str, channel: &str) {
        let _gone_or_never_there =
            std::fs::remove_file(self.root.join("state").join(format!("{service}.{channel}")));
    }

    /// What the outside world holds now for one instance.
    pub fn state(&self, service: &str, channel: &str) -> Option<String> {
        let text =
            std::fs::read_to_string(self.root.join("state").join(format!("{service}.{channel}")))
                .ok()?;
        Some(text.trim().to_owned())
    }

    /// Every apply that ran, in order.
    pub fn ledger(&self) -> Vec<Applied> {
        let text = std::fs::read_to_string(self.root.join("ledger")).unwrap_or_default();
        let mut lines = Vec::new();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let [job, instance, version] =
                <[String; 3]>::try_from(words).expect("a line of the ledger has three words");
            lines.push(Applied { job, instance, version });
        }
        lines
    }

    /// Applies of one instance that ran while another one of the same instance did.
    pub fn overlaps(&self) -> String {
        std::fs::read_to_string(self.root.join("overlaps")).unwrap_or_default()
    }

    /// How often each job ran.
    pub fn runs(&self) -> BTreeMap<String, usize> {
        let mut runs = BTreeMap::new();
        for applied in self.ledger() {
            *runs.entry(applied.job).or_default() += 1;
        }
        runs
    }
}

/// The lines of a `taskConfig` that runs a shell script, to stand under `fetch` or `apply`.
pub fn task(name: &str, script: &str) -> String {
    let script = serde_json::to_string(script).expect("text is JSON");
    format!(
        "      taskConfig: {{program: {{name: {name}, entrypoint: [sh, -c], cmd: [{script}]}}}}\n"
    )
}
