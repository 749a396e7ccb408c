//! Arbitrary configs: documents put together from fields with values at their edges. What the
//! reader takes must run; what it refuses must be refused in its own words.

use serde_json::{Map, Value, json};
use tests::dice::{self, Dice};
use tests::scheduler::Scheduler;
use tests::{poison, wait};

use super::{BATCHES, all_converged, is_well, restart};

/// What comes after the poison: every name of it again, with nothing that could hold it back.
const GOOD: &str = "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    \
                    apply:\n      taskConfig: {program: {name: do, entrypoint: \
                    ['true']}}\n---\napplication:\n  name: app\n  releaseChannels:\n  - {name: \
                    c0, runtimes: [{runtime: r}]}\n  - {name: c1, runtimes: [{runtime: \
                    r}]}\n---\nservice: {name: s0, application: app}\n---\nservice: {name: s1, \
                    application: app}\n";

const DURATIONS: &[&str] = &[
    "1ms",
    "0.001s",
    "1s",
    "0.5s",
    "90s",
    "1h30m",
    "876000h",
    "3153600000s",
    "0s",
    "-1s",
    "36500d",
    "1ns",
    "",
];

const CRONS: &[&str] = &[
    "* * * * * *",
    "*/1 * * * *",
    "0 0 29 2 *",
    "0 0 30 2 *",
    "0 9 * * 1-5",
    "0 30 2 * * *",
    "0 0 0 1 1 * 2020",
    "0 0 1 1 7",
    "59 59 23 31 12 *",
    "@daily",
    "",
    "99 * * * *",
];

const ZONES: &[&str] = &[
    "Europe/Berlin",
    "UTC",
    "Pacific/Apia",
    "America/St_Johns",
    "Antarctica/Troll",
    "Nowhere/Land",
];

const TEMPLATES: &[&str] = &[
    "{{.Params.size}}",
    "{{.Builtins.Service.Version}}",
    "{{.Builtins.Runtime.Labels.env}}",
    "{{\"{{\"}}",
    "{{.Params.absent}}",
    "{{",
    "plain",
    "",
    "{{.Constants.region}}",
];

struct Maker<'a>(&'a mut Dice);

impl Maker<'_> {
    /// Puts a field in, this often.
    fn maybe(
        &mut self,
        message: &mut Map<String, Value>,
        often: usize,
        field: &str,
        value: impl FnOnce(&mut Self) -> Value,
    ) {
        if self.0.percent(often) {
            let value = value(self);
            message.insert(field.to_owned(), value);
        }
    }

    fn duration(&mut self) -> Value {
        // Mostly one that is taken: of a document with ten fields otherwise none would be.
        if self.0.percent(85) {
            json!(self.0.pick(&DURATIONS[..8]))
        } else {
            json!(self.0.pick(DURATIONS))
        }
    }

    fn cron(&mut self) -> Value {
        if self.0.percent(85) { json!(self.0.pick(&CRONS[..3])) } else { json!(self.0.pick(CRONS)) }
    }

    fn text(&mut self) -> Value {
        match self.0.below(10) {
            0 => json!(poison::text(self.0)),
            1 | 2 => json!(self.0.pick(TEMPLATES)),
            _ => json!("plain"),
        }
    }

    fn whole(&mut self) -> Value {
        match self.0.below(8) {
            0 => i64::from(u32::MAX).into(),
            1 => i64::MAX.into(),
            2 => (-1).into(),
            3 => 0.into(),
            _ => (1 + self.0.below(5)).into(),
        }
    }

    fn retry(&mut self) -> Value {
        let mut policy = Map::new();
        self.maybe(&mut policy, 70, "baseInterval", Self::duration);
        self.maybe(&mut policy, 70, "maxInterval", Self::duration);
        self.maybe(&mut policy, 50, "maxAttempts", Self::whole);
        policy.into()
    }

    fn task(&mut self, script: &str) -> Value {
        let mut program = Map::from_iter([("entrypoint".to_owned(), json!(["sh", "-c", script]))]);
        self.maybe(&mut program, 30, "name", Self::text);
        self.maybe(&mut program, 30, "env", |maker| json!({"A": {"value": maker.text()}, "LONG_NAME_2": {"rawSecret": maker.text()}}));
        self.maybe(&mut program, 10, "workingDirectory", Self::text);
        json!({ "program": program })
    }

    fn runtime(&mut self) -> Value {
        let mut custom = Map::from_iter([("proxyRuntime".to_owned(), json!({"runtime": "local"}))]);
        self.maybe(&mut custom, 75, "fetch", |maker| {
            let script = *maker.0.pick(&[
                "exit 0",
                "exit 2",
                "exit 1",
                "kill -9 $$",
                "echo no; exit 3",
                "echo '{\"objects\": []}'",
            ]);
            let mut fetch = Map::from_iter([("taskConfig".to_owned(), maker.task(script))]);
            if maker.0.percent(30) {
                fetch.insert("pollSchedule".to_owned(), maker.cron());
                maker.maybe(&mut fetch, 50, "timezone", |maker| json!(maker.0.pick(ZONES)));
            } else {
                maker.maybe(&mut fetch, 60, "pollInterval", Self::duration);
                maker.maybe(&mut fetch, 60, "steadyStatePollInterval", Self::duration);
            }
            maker.maybe(&mut fetch, 30, "fetchMode", |maker| {
                json!(maker.0.pick(&["EXIT_CODE", "STRUCTURED_OUTPUT"]))
            });
            maker.maybe(&mut fetch, 10, "workExitCodes", |maker| json!([2, maker.whole()]));
            maker.maybe(&mut fetch, 40, "retryPolicy", Self::retry);
            maker.maybe(&mut fetch, 30, "timeout", Self::duration);
            fetch.into()
        });
        let script = *self.0.pick(&["exit 0", "exit 1", "exit 75", "kill -9 $$", "exit 255"]);
        let mut apply = Map::from_iter([("taskConfig".to_owned(), self.task(script))]);
        self.maybe(&mut apply, 30, "maxConcurrency", Self::whole);
        self.maybe(&mut apply, 30, "retryableExitCodes", |maker| json!([75, maker.whole()]));
        self.maybe(&mut apply, 30, "retryPolicy", Self::retry);
        self.maybe(&mut apply, 30, "timeout", Self::duration);
        self.maybe(
            &mut apply,
            25,
            "window",
            |maker| json!({"schedule": maker.cron(), "duration": maker.duration(), "timezone": maker.0.pick(ZONES)}),
        );
        custom.insert("apply".to_owned(), apply.into());
        self.maybe(&mut custom, 30, "getInfo", |maker| {
            let mut info =
                Map::from_iter([("taskConfig".to_owned(), maker.task("echo '{\"outputs\": []}'"))]);
            maker.maybe(&mut info, 50, "pollInterval", Self::duration);
            maker.maybe(&mut info, 30, "retryPolicy", Self::retry);
            info.into()
        });
        self.maybe(&mut custom, 30, "convergenceGracePeriod", Self::duration);
        self.maybe(&mut custom, 20, "requireApprovalBeforeApply", |maker| {
            maker.0.percent(80).into()
        });
        self.maybe(&mut custom, 20, "approvalTimeout", Self::duration);
        self.maybe(&mut custom, 20, "applyId", Self::text);
        self.maybe(
            &mut custom,
            60,
            "parameters",
            |maker| json!([{"name": "size", "string": {"defaultValue": maker.text()}}]),
        );
        json!({"runtime": {"name": "r", "labels": [{"label": "env", "value": "x"}], "custom": custom}})
    }

    fn application(&mut self) -> Value {
        let mut channels = vec![json!({"name": "c0", "runtimes": [{"runtime": "r"}]})];
        let mut second = Map::from_iter([
            ("name".to_owned(), json!("c1")),
            ("runtimes".to_owned(), json!([{"runtime": "r"}])),
        ]);
        self.maybe(&mut second, 50, "preconditions", |maker| {
            let stable = json!({"releaseChannelStable": {"releaseChannel": maker.0.pick(&["c0", "c0", "c0", "c1"])}});
            let manual = json!({"manualApproval": {"name": "qa", "description": maker.text(), "minApprovers": maker.whole()}});
            if maker.0.percent(50) { json!([stable, manual]) } else { json!([stable]) }
        });
        self.maybe(
            &mut second,
            40,
            "constants",
            |maker| json!([{"name": "region", "string": {"value": maker.text()}}]),
        );
        channels.push(second.into());
        json!({"application": {"name": "app", "releaseChannels": channels}})
    }

    fn service(&mut self, name: &str) -> Value {
        let mut service = Map::from_iter([
            ("name".to_owned(), json!(name)),
            ("application".to_owned(), json!("app")),
        ]);
        self.maybe(&mut service, 30, "progressDeadline", Self::duration);
        self.maybe(
            &mut service,
            30,
            "autoRollback",
            |maker| json!({"disabled": maker.0.percent(30)}),
        );
        self.maybe(&mut service, 20, "bundleName", Self::text);
        self.maybe(&mut service, 30, "env", |maker| json!({"B": {"value": maker.text()}}));
        json!({ "service": service })
    }

    /// A file of documents as JSON, which is YAML too.
    fn file(&mut self) -> String {
        let documents =
            [self.runtime(), self.application(), self.service("s0"), self.service("s1")];
        documents.map(|document| format!("---\n{document}\n")).concat()
    }
}

#[test]
fn arbitrary_configs_end_no_daemon_and_a_good_one_converges() {
    let (batches, seed) =
        (dice::number("PVN_FUZZ_BATCHES", BATCHES), dice::number("PVN_FUZZ_SEED", 1));
    let mut scheduler = Scheduler::start();
    let path = scheduler.home().join("fuzz.pvn.yaml");
    let apply = |scheduler: &Scheduler, text: &str| {
        std::fs::write(&path, text).expect("a file can be written");
        scheduler.pvnctl([
            "configs",
            "apply",
            "--no-prompt",
            "--push",
            path.to_str().expect("the path is UTF-8"),
        ])
    };
    let mut taken = 0;
    for batch in 0..batches {
        let mut dice = Dice::new(seed.wrapping_mul(1_000_033).wrapping_add(batch));
        // Most are refused: some tries for each restart.
        for _ in 0..8 {
            let text = Maker(&mut dice).file();
            let output = apply(&scheduler, &text);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let input = || format!("batch {batch} of PVN_FUZZ_SEED={seed}: {text}\n{stderr}");
            assert!(
                matches!(output.status.code(), Some(0 | 1)),
                "pvnctl ended with {} after {}",
                output.status,
                input()
            );
            assert!(!stderr.contains("panicked"), "pvnctl panicked after {}", input());
            if !output.status.success() {
                assert!(
                    scheduler.exited().is_none(),
                    "the daemon ended by itself after {}\n{}",
                    input(),
                    scheduler.log()
                );
                continue;
            }
            taken += 1;
            // Something of it has run, or says why not.
            wait::within(std::time::Duration::from_secs(2), || {
                let jobs = scheduler.json(&["jobs", "list", "--app", "app"]);
                jobs.as_array().is_some_and(|jobs| jobs.len() >= 4).then_some(())
            });
            is_well(&mut scheduler, &input);
        }
        restart(&mut scheduler, batch % 2 == 0);
        if taken > 0 {
            is_well(&mut scheduler, &|| {
                format!("the restart after batch {batch} of PVN_FUZZ_SEED={seed}")
            });
        }
    }
    assert!(
        taken > 0,
        "every config was refused; the last one: {}",
        std::fs::read_to_string(&path).unwrap_or_default()
    );
    let good = apply(&scheduler, GOOD);
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stderr));
    wait::within(wait::PATIENCE, || all_converged(&scheduler).then_some(())).unwrap_or_else(|| {
        let list = scheduler.json(&["services", "list", "--app", "app"]);
        panic!(
            "a good config does not converge after PVN_FUZZ_SEED={seed}: {list:#}\n{}",
            scheduler.log()
        );
    });
}
