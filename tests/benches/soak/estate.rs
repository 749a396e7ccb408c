//! The examples under one daemon: copied, each in its own directory, their applies behind a
//! recorder that notices a second one; and a service whose outputs are poison while somebody wants
//! it so.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::dice::Dice;
use tests::files::task;
use tests::scheduler::{Scheduler, Start};
use tests::{copy, programs, skip};

/// An example, its application and service, its apply, and a file that its fetch looks at (`None`:
/// it has no fetch).
struct Example {
    name: &'static str,
    application: &'static str,
    service: &'static str,
    channels: &'static [&'static str],
    apply: &'static str,
    /// Whether what the apply starts stays, so that the lock must not stay with it.
    leaves: bool,
    damage: &'static [&'static str],
    parameter: Option<&'static str>,
    tool: Option<&'static str>,
}

const EXAMPLES: &[Example] = &[
    Example {
        name: "quickstart",
        application: "quickstart",
        service: "site",
        channels: &["here"],
        apply: "apply.sh",
        leaves: false,
        damage: &["site/index.html", "site/greeting.txt"],
        parameter: Some("greeting"),
        tool: None,
    },
    Example {
        name: "channels",
        application: "shop",
        service: "frontend",
        channels: &["staging", "production"],
        apply: "apply.sh",
        leaves: false,
        damage: &["deployed/staging", "deployed/production"],
        parameter: None,
        tool: None,
    },
    Example {
        name: "static-assets",
        application: "website",
        service: "assets",
        channels: &["public"],
        apply: "copy.sh",
        leaves: false,
        damage: &[],
        parameter: Some("revision"),
        tool: None,
    },
    Example {
        name: "structured",
        application: "fleet",
        service: "workers",
        channels: &["here"],
        apply: "apply.sh",
        leaves: true,
        damage: &["run/web.1", "run/queue.2"],
        parameter: None,
        tool: None,
    },
    Example {
        name: "terraform",
        application: "infrastructure",
        service: "site",
        channels: &["production"],
        apply: "apply.sh",
        leaves: false,
        damage: &["site.txt"],
        parameter: Some("content"),
        tool: Some("terraform"),
    },
];

/// The example whose outputs are poison: its directory and its application.
const POISON: &str = "poison";

const LOOK: &str = r#"
[ ! -e look ] || exec cat look
printf '{"objects": [{"name": "a", "objectType": "T", "status": "SUCCEEDED", "versions": [{"version": "%s", "active": true}]}]}' "$PVN_SERVICE_VERSION"
"#;

const INFO: &str = r#"[ ! -e info ] || exec cat info; echo '{"outputs": []}'"#;

/// Services, by application and name.
pub(crate) struct Target {
    pub(crate) application: String,
    pub(crate) service: String,
    pub(crate) channel: String,
}

/// Everything that is converged.
pub(crate) struct Estate {
    home: PathBuf,
    record: PathBuf,
    examples: Vec<&'static Example>,
    path: std::ffi::OsString,
}

impl Estate {
    pub(crate) fn set_up(scheduler: &Scheduler) -> Self {
        let home = scheduler.home().to_owned();
        let record = home.join("record");
        std::fs::create_dir_all(&record).expect("a directory can be made");
        let is_there =
            |example: &&Example| example.tool.is_none_or(|tool| skip::tool(tool).is_some());
        let examples: Vec<_> = EXAMPLES.iter().filter(is_there).collect();
        for example in &examples {
            let directory = home.join(example.name);
            copy::example(example.name, &directory);
            record_applies(&directory.join(example.apply), &record, example.leaves);
            let file = directory.join(format!("{}.pvn.yaml", example.name));
            let text = std::fs::read_to_string(&file).expect("the example has a config");
            std::fs::write(&file, in_directory(&text, example.name, &directory))
                .expect("a file can be written");
        }
        let directory = home.join(POISON);
        std::fs::create_dir_all(&directory).expect("a directory can be made");
        let text = format!(
            "runtime:\n  name: tool-of-{POISON}\n  custom:\n    proxyRuntime:\n      runtime: local\n    fetch:\n      fetchMode: STRUCTURED_OUTPUT\n      \
             pollInterval: 0.5s\n      steadyStatePollInterval: 0.5s\n      retryPolicy: {{baseInterval: 0.5s, maxInterval: 1s}}\n{}    apply:\n{}    \
             getInfo:\n      pollInterval: 1s\n      retryPolicy: {{baseInterval: 1s, maxInterval: 1s}}\n{}    convergenceGracePeriod: 1s\n---\n\
             application:\n  name: {POISON}\n  releaseChannels:\n  - {{name: here, runtimes: [{{runtime: tool-of-{POISON}}}]}}\n---\n\
             service: {{name: any, application: {POISON}}}\n",
            task("look", LOOK),
            task("do", "true"),
            task("info", INFO)
        );
        let file = directory.join(format!("{POISON}.pvn.yaml"));
        std::fs::write(file, in_directory(&text, POISON, &directory))
            .expect("a file can be written");
        // Commands of the examples name the wrapper without its place.
        let path = programs::path_after(programs::directory());
        Self { home, record, examples, path }
    }

    pub(crate) fn start(&self) -> Start<'_> {
        Start { environment: vec![("PATH", self.path.as_os_str())], ..Start::default() }
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.examples.iter().map(|example| example.name).chain([POISON]).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.join(name).join(format!("{name}.pvn.yaml"))
    }

    /// Applies and releases everything for the first time.
    pub(crate) fn release(&self, scheduler: &Scheduler) {
        for name in self.names() {
            let file = self.file(name);
            scheduler.ok(&[
                "configs",
                "apply",
                "--no-prompt",
                "--push",
                file.to_str().expect("the path is UTF-8"),
            ]);
        }
    }

    /// What to type for a release of something with another value, or with another config.
    pub(crate) fn release_of_some(&self, dice: &mut Dice) -> Vec<String> {
        let example = dice.pick(&self.examples);
        let file = self.file(example.name);
        if dice.percent(30) {
            let text = std::fs::read_to_string(&file).expect("the config is there");
            let interval = |line: &str| match line.split_once("steadyStatePollInterval:") {
                Some((before, _)) => {
                    format!("{before}steadyStatePollInterval: {}s\n", 2 + dice.clone().below(3))
                }
                None => format!("{line}\n"),
            };
            let changed: String = text.lines().map(interval).collect();
            dice.fall();
            std::fs::write(&file, changed).expect("a file can be written");
        }
        let mut words = ["configs", "apply", "--no-prompt", "--push"].map(str::to_owned).to_vec();
        words.push(file.to_string_lossy().into_owned());
        if let Some(parameter) = example.parameter {
            words.extend(["--param".to_owned(), format!("{parameter}=v{}", dice.below(1000))]);
        }
        words
    }

    /// Some service in some channel.
    pub(crate) fn some(&self, dice: &mut Dice) -> Target {
        let example = dice.pick(&self.examples);
        let channel = (*dice.pick(example.channels)).to_owned();
        Target {
            application: example.application.to_owned(),
            service: example.service.to_owned(),
            channel,
        }
    }

    /// Changes something behind pvn's back.
    pub(crate) fn damage(&self, dice: &mut Dice) {
        let example = dice.pick(&self.examples);
        if !example.damage.is_empty() {
            let _gone_or_not_there_yet =
                std::fs::remove_file(self.home.join(example.name).join(dice.pick(example.damage)));
        }
    }

    /// What fetch and getInfo of the poisoned service print from now on; `None` = something good
    /// again.
    pub(crate) fn poison(&self, outputs: Option<[String; 2]>) {
        let directory = self.home.join(POISON);
        for (index, name) in ["look", "info"].iter().enumerate() {
            let file = directory.join(name);
            match &outputs {
                None => drop(std::fs::remove_file(file)),
                Some(texts) => {
                    let draft = directory.join("draft");
                    std::fs::write(&draft, &texts[index]).expect("a file can be written");
                    std::fs::rename(draft, file).expect("a file can be renamed");
                }
            }
        }
    }

    /// Applies that ran beside another one of their instance.
    pub(crate) fn overlaps(&self) -> String {
        std::fs::read_to_string(self.record.join("overlaps")).unwrap_or_default()
    }

    /// Applies that began.
    pub(crate) fn applies(&self) -> usize {
        std::fs::read_to_string(self.record.join("ledger")).map_or(0, |text| text.lines().count())
    }

    /// Does what a person would until everything is CONVERGED; tells whether it is.
    pub(crate) fn settle(&self, scheduler: &Scheduler) -> bool {
        let mut settled = true;
        for (application, service, channel) in self.channels(scheduler) {
            let status = channel["status"].as_str().unwrap_or_default();
            settled &= status == "CONVERGED";
            let name = channel["channel"].as_str().unwrap_or_default();
            let does: &[&str] = match status {
                "PAUSED" => &["resume"],
                "WAITING_MANUAL_APPROVAL" => &["approve", "--yes"],
                "FAILED" => &["retry"],
                _ => continue,
            };
            // Somebody else may have been quicker: the next look tells.
            scheduler.pvnctl(
                [
                    &["services", does[0], &service, "--app", &application, "--channel", name],
                    &does[1..],
                ]
                .concat(),
            );
        }
        settled
    }

    /// How everything stands, for a message.
    pub(crate) fn standing(&self, scheduler: &Scheduler) -> String {
        let mut text = String::new();
        for (application, service, channel) in self.channels(scheduler) {
            let [name, status, message] = ["channel", "status", "message"]
                .map(|field| channel[field].as_str().unwrap_or_default());
            writeln!(text, "{application}/{service} in {name}: {status}: {message}")
                .expect("writing to a String cannot fail");
        }
        text
    }

    fn channels(&self, scheduler: &Scheduler) -> Vec<(String, String, Value)> {
        let services = self
            .examples
            .iter()
            .map(|example| (example.application, example.service))
            .chain([(POISON, "any")]);
        let mut found = Vec::new();
        for (application, service) in services {
            let output =
                scheduler.pvnctl(["services", "get", service, "--app", application, "-o", "json"]);
            let whole: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            // One that does not answer in time is not settled.
            let channels =
                whole["channels"].as_array().cloned().unwrap_or_else(|| vec![Value::Null]);
            found.extend(
                channels
                    .into_iter()
                    .map(|channel| (application.to_owned(), service.to_owned(), channel)),
            );
        }
        found
    }
}

/// The config with its commands run in `directory`, by a `local` runtime of its own.
fn in_directory(text: &str, name: &str, directory: &Path) -> String {
    let runtime = format!("here-{name}");
    let text = text.replace("runtime: local", &format!("runtime: {runtime}"));
    format!("runtime:\n  name: {runtime}\n  local: {{root: {}}}\n---\n{text}", directory.display())
}

/// Puts a recorder in the place of an apply: it holds a lock as long as the apply and what it
/// started live, so that a second apply beside it is noticed however the first one's wrapper died.
fn record_applies(script: &Path, record: &Path, leaves: bool) {
    let name = script.file_name().and_then(|name| name.to_str()).expect("the script has a name");
    let real = script.with_file_name(format!("recorded-{name}"));
    std::fs::rename(script, &real).expect("a file can be renamed");
    let not_inherited = if leaves { " 9>&-" } else { "" };
    let text = format!(
        "#!/bin/sh\nexec \
         9>>'{record}'/lock.$PVN_APPLICATION.$PVN_SERVICE.$PVN_RELEASE_CHANNEL\nflock -n 9 || \
         echo \"$PVN_APPLICATION/$PVN_SERVICE in $PVN_RELEASE_CHANNEL: $PVN_JOB_ID\" \
         >>'{record}'/overlaps\necho $PVN_JOB_ID \
         >>'{record}'/ledger\n./recorded-{name}{not_inherited}\n",
        record = record.display()
    );
    std::fs::write(script, text).expect("a file can be written");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755))
        .expect("a file can be made executable");
}
