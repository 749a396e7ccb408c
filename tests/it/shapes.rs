//! What `pvnctl -o json` prints is stable: fields may be added, never changed. And what its exit
//! codes mean.

use serde_json::{Value, json};
use tests::files::{Files, task};
use tests::scheduler::{Scheduler, Start};
use tests::wait;

/// Fails unless `value` has all of `fields`, each of one of the kinds named: `string`, `number`,
/// `list`, `object`, `null`, `bool`.
#[track_caller]
fn check_fields(value: &Value, fields: &[(&str, &str)]) {
    for (field, kinds) in fields {
        let found = value.get(field).unwrap_or_else(|| panic!("no `{field}` in {value:#}"));
        let kind = match found {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
        };
        assert!(
            kinds.split('|').any(|allowed| allowed == kind),
            "`{field}` is a {kind}, not {kinds}, in {value:#}"
        );
    }
}

fn converged() -> (Scheduler, Files) {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.ok(&["services", "wait", "s0", "--app", "app", "--timeout", "60s"]);
    (scheduler, files)
}

#[test]
fn services_get_and_explain_keep_their_shape() {
    let (scheduler, _files) = converged();
    let service = scheduler.json(&["services", "get", "s0", "--app", "app"]);
    check_fields(
        &service,
        &[
            ("name", "string"),
            ("application", "string"),
            ("version", "string"),
            ("channels", "list"),
        ],
    );
    assert_eq!(service["version"], "s0-1");
    let channel = &service["channels"][0];
    check_fields(
        channel,
        &[
            ("channel", "string"),
            ("runtime", "string"),
            ("status", "string"),
            ("reason", "string|null"),
            ("message", "string"),
            ("desiredVersion", "string"),
            ("since", "string"),
            ("nextActionAt", "string|null"),
            ("objects", "list"),
            ("info", "list"),
            ("approvals", "list"),
        ],
    );
    let since = channel["since"].as_str().expect("checked above");
    assert!(since.ends_with('Z') && since.as_bytes()[10] == b'T', "RFC 3339 in UTC: {since}");

    let explained =
        scheduler.json(&["services", "explain", "s0", "--app", "app", "--channel", "c0"]);
    check_fields(&explained, &[("status", "string"), ("causes", "list"), ("next", "list")]);
    for cause in explained["causes"].as_array().expect("checked above") {
        check_fields(
            cause,
            &[
                ("code", "string"),
                ("message", "string"),
                ("since", "string|null"),
                ("until", "string|null"),
            ],
        );
    }
    assert!(
        !explained["next"].as_array().expect("checked above").is_empty(),
        "a converged instance is looked at again: {explained:#}"
    );
    for next in explained["next"].as_array().expect("checked above") {
        check_fields(next, &[("action", "string"), ("at", "string")]);
    }
}

#[test]
fn jobs_releases_and_applications_keep_their_shape() {
    let (scheduler, _files) = converged();
    let jobs =
        scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--channel", "c0"]);
    let jobs = jobs.as_array().expect("a bare list");
    for job in jobs {
        check_fields(
            job,
            &[
                ("id", "string"),
                ("kind", "string"),
                ("application", "string"),
                ("service", "string"),
                ("channel", "string"),
                ("version", "string"),
                ("attempt", "number"),
                ("status", "string"),
                ("exitCode", "number|null"),
                ("createdAt", "string"),
                ("startedAt", "string|null"),
                ("endedAt", "string|null"),
            ],
        );
    }
    let created: Vec<_> =
        jobs.iter().map(|job| job["createdAt"].as_str().expect("checked above")).collect();
    assert!(created.is_sorted_by(|left, right| left >= right), "newest first: {created:?}");
    let work =
        jobs.iter().rfind(|job| job["kind"] == "fetch").expect("the first fetch is on record");
    assert_eq!(
        (&work["status"], &work["exitCode"]),
        (&json!("SUCCEEDED"), &json!(2)),
        "a fetch that says work succeeded: {work:#}"
    );

    let releases = scheduler.json(&["releases", "list", "--app", "app", "--service", "s0"]);
    check_fields(
        &releases[0],
        &[
            ("release", "string"),
            ("version", "string"),
            ("application", "string"),
            ("service", "string"),
            ("status", "string"),
            ("createdAt", "string"),
            ("by", "string"),
            ("channels", "list"),
        ],
    );
    check_fields(&releases[0]["channels"][0], &[("channel", "string"), ("status", "string")]);

    let application = scheduler.json(&["applications", "get", "app"]);
    check_fields(
        &application,
        &[("name", "string"), ("releaseChannels", "list"), ("services", "list")],
    );
    check_fields(
        &application["releaseChannels"][0],
        &[
            ("name", "string"),
            ("group", "string|null"),
            ("runtimes", "list"),
            ("preconditions", "list"),
        ],
    );
    for list in
        [["applications", "list"], ["runtimes", "list"], ["services", "list"], ["secrets", "list"]]
    {
        assert!(scheduler.json(&list).is_array(), "{list:?} prints a bare list");
    }
}

#[test]
fn a_push_makes_numbered_versions_also_when_nothing_differs() {
    let (scheduler, _files) = converged();
    for number in 2..5 {
        let pushed = scheduler.json(&["services", "push", "s0", "--app", "app"]);
        check_fields(&pushed, &[("release", "string"), ("version", "string")]);
        assert_eq!(pushed["version"], format!("s0-{number}"));
    }
    wait::until("the older release to be replaced", || {
        let releases = scheduler.json(&["releases", "list", "--app", "app", "--service", "s0"]);
        let statuses: Vec<_> = releases
            .as_array()?
            .iter()
            .map(|release| release["status"].as_str())
            .collect::<Option<_>>()?;
        (statuses.len() == 4 && statuses[0] == "CONVERGED").then_some(())
    });
}

#[test]
fn jobs_logs_keeps_stdout_and_stderr_apart_byte_for_byte() {
    let scheduler = Scheduler::start();
    let script = r"printf 'out\000\377 no newline'; printf 'err\r\n' >&2; exit 7";
    scheduler.apply(&format!(
        "runtime:\n  name: odd\n  custom:\n    proxyRuntime: {{runtime: local}}\n    \
         apply:\n{}---\napplication: {{name: app, releaseChannels: [{{name: c0, runtimes: \
         [{{runtime: odd}}]}}]}}\n---\nservice: {{name: s0, application: app}}\n",
        task("apply", script)
    ));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    let failed = scheduler.channel_becomes("s0", "c0", "FAILED");
    assert_eq!(failed["reason"], "APPLY_FAILED");
    let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0"]);
    assert_eq!((&jobs[0]["status"], &jobs[0]["exitCode"]), (&json!("FAILED"), &json!(7)));
    let output =
        scheduler.pvnctl(["jobs", "logs", jobs[0]["id"].as_str().expect("a job has an id")]);
    assert!(output.status.success());
    assert_eq!(output.stdout, b"out\0\xff no newline");
    assert_eq!(output.stderr, b"err\r\n");
}

#[test]
fn wait_says_by_its_exit_code_how_it_ended() {
    let scheduler = Scheduler::start();
    let code = |arguments: &[&str]| scheduler.pvnctl(arguments).status.code();
    let runtime = |name: &str, script: &str| {
        format!(
            "runtime:\n  name: {name}\n  custom:\n    proxyRuntime: {{runtime: local}}\n    \
             apply:\n{}---\napplication: {{name: {name}, releaseChannels: [{{name: c0, runtimes: \
             [{{runtime: {name}}}]}}]}}\n---\nservice: {{name: s0, application: {name}}}\n---\n",
            task("apply", script)
        )
    };
    scheduler.apply(
        &[runtime("good", "true"), runtime("bad", "exit 1"), runtime("slow", "sleep 600")].concat(),
    );
    for name in ["good", "bad", "slow"] {
        scheduler.ok(&["services", "push", "s0", "--app", name]);
    }
    assert_eq!(code(&["services", "wait", "s0", "--app", "good", "--timeout", "60s"]), Some(0));
    assert_eq!(code(&["services", "wait", "s0", "--app", "bad", "--timeout", "60s"]), Some(2));
    assert_eq!(code(&["services", "wait", "s0", "--app", "slow", "--timeout", "1s"]), Some(3));
    assert_eq!(code(&["services", "wait", "nobody", "--app", "good", "--timeout", "1s"]), Some(1));
    assert_eq!(
        code(&[
            "--server",
            "http://127.0.0.1:9",
            "services",
            "wait",
            "s0",
            "--app",
            "good",
            "--timeout",
            "1s"
        ]),
        Some(1)
    );
    let jobs = scheduler.json(&["jobs", "list", "--app", "slow", "--service", "s0"]);
    scheduler.ok(&["jobs", "cancel", jobs[0]["id"].as_str().expect("a job has an id")]);
    wait::until("the cancelled job to end", || {
        let jobs = scheduler.json(&["jobs", "list", "--app", "slow", "--service", "s0"]);
        (jobs[0]["status"] == "CANCELLED").then_some(())
    });
    let service = scheduler.json(&["services", "get", "s0", "--app", "slow"]);
    assert_eq!(
        (&service["channels"][0]["status"], &service["channels"][0]["reason"]),
        (&json!("FAILED"), &json!("CANCELLED"))
    );
}

#[test]
fn configs_apply_asks_a_terminal_and_refuses_without_one() {
    let scheduler = Scheduler::start();
    let path = scheduler.home().join("x.pvn.yaml");
    std::fs::write(&path, Files::configs(1, 1)).expect("a file can be written");
    let path = path.to_str().expect("the path is UTF-8");
    let refused = scheduler.pvnctl(["configs", "apply", path]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--no-prompt"));
    assert_eq!(scheduler.pvnctl(["configs", "diff", path]).status.code(), Some(0));
    assert_eq!(scheduler.pvnctl(["configs", "diff", "--exit-code", path]).status.code(), Some(2));
    scheduler.ok(&["configs", "apply", "--no-prompt", path]);
    assert_eq!(scheduler.pvnctl(["configs", "diff", "--exit-code", path]).status.code(), Some(0));
    assert_eq!(scheduler.pvnctl(["configs", "apply", "--dry-run", path]).status.code(), Some(0));
}

#[test]
fn a_secret_is_never_shown_again() {
    let scheduler = Scheduler::start();
    const VALUE: &str = "correct-horse-battery";
    let mut client = scheduler.client(["secrets", "set", "pass"]);
    let mut child =
        client.stdin(std::process::Stdio::piped()).spawn().expect("pvnctl can be started");
    std::io::Write::write_all(&mut child.stdin.take().expect("stdin is a pipe"), VALUE.as_bytes())
        .expect("it reads");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(scheduler.json(&["secrets", "list"])[0]["versions"], json!([1]));
    scheduler.apply(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    apply:\n      \
         taskConfig: {program: {name: a, entrypoint: [sh, -c], cmd: ['echo \"it is $PASS\"; \
         printenv PASS >&2'], env: {PASS: {secret: {key: pass}}}}}\n---\napplication: {name: app, \
         releaseChannels: [{name: c0, runtimes: [{runtime: r}]}]}\n---\nservice: {name: s0, \
         application: app}\n",
    );
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0"]);
    let output =
        scheduler.pvnctl(["jobs", "logs", jobs[0]["id"].as_str().expect("a job has an id")]);
    for stream in [output.stdout, output.stderr] {
        let text = String::from_utf8_lossy(&stream).into_owned();
        assert!(!text.is_empty() && !text.contains(VALUE), "masked: {text}");
    }
    scheduler_files_hide(&scheduler, VALUE);
}

/// No file of the data directory holds the value.
fn scheduler_files_hide(scheduler: &Scheduler, value: &str) {
    let mut directories = vec![scheduler.data()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory can be read").flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                let found = bytes.windows(value.len()).any(|window| window == value.as_bytes());
                assert!(!found, "{} holds the secret", path.display());
            }
        }
    }
}

#[test]
fn runtimes_check_keeps_its_shape_and_says_where_no_cluster_is_concerned() {
    let (scheduler, _files) = converged();
    let found = scheduler.json(&["runtimes", "check", "local"]);
    check_fields(&found, &[("runtime", "string"), ("ok", "bool"), ("checks", "list")]);
    assert_eq!(found["ok"], true);
    let checks = found["checks"].as_array().expect("checked above");
    for check in checks {
        check_fields(
            check,
            &[
                ("runtime", "string"),
                ("check", "string"),
                ("status", "string"),
                ("message", "string"),
                ("remedy", "string|null"),
            ],
        );
    }
    let words: Vec<_> = checks.iter().map(|check| &check["check"]).collect();
    assert_eq!(words, ["connection", "wrapper", "directory", "command"], "{found:#}");
    let check = &checks[0];
    assert_eq!(
        (&check["status"], &check["message"]),
        (&json!("SKIPPED"), &json!("jobs of `local` run on no cluster; there is nothing to reach"))
    );
    let absent = scheduler.pvnctl(["runtimes", "check", "absent"]);
    assert_eq!(absent.status.code(), Some(1));
    let said = String::from_utf8_lossy(&absent.stderr);
    assert!(
        said.contains("there is no runtime `absent`; `pvnctl runtimes list` shows those there are"),
        "{said}"
    );
}

#[test]
fn every_flag_of_serve_is_also_a_variable() {
    let directory = tempfile::tempdir().expect("a directory");
    let check = |variables: &[(&str, &str)], message: &str| {
        let output = std::process::Command::new(tests::programs::program("pvn-scheduler"))
            .args(["serve", "--listen", "0.0.0.0:0", "--data-dir"])
            .arg(directory.path())
            .envs(variables.iter().copied())
            .output()
            .expect("the scheduler can be started");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && told.contains(message), "{variables:?}: {told}");
    };
    let plain = "listening on 0.0.0.0:0 without TLS";
    let half = ("PVN_TLS_CERT", "cert.pem");
    for (value, variables, message) in [
        ("0", None, plain),
        ("false", None, plain),
        ("", None, plain),
        ("1", Some(half), "--tls-cert without --tls-key"),
        ("true", Some(half), "--tls-cert without --tls-key"),
        ("perhaps", None, "'--allow-plain-http'"),
    ] {
        let variables: Vec<_> = variables
            .into_iter()
            .chain([("PVN_ALLOW_PLAIN_HTTP", value), ("PVN_MAX_FETCHES", "")])
            .collect();
        check(&variables, message);
    }
    check(&[("PVN_MAX_FETCHES", "0")], "'--max-fetches <N>'");
}
