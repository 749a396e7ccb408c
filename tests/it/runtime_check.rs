//! `pvnctl runtimes check` of tools that are built in and of commands on the scheduler's machine:
//! what is missing is told with what ends it, by jobs that count for nothing.

use fakes::clients;
use fakes::ecs::{CLUSTER, EcsServer, Wrong};
use serde_json::{Value, json};
use tests::disk::SmallDisk;
use tests::scheduler::{Scheduler, Start};
use tests::{copy, skip, wait};

/// Exit code, and what was found: `tool OK`, one word of the finding and its status.
fn check(scheduler: &Scheduler, arguments: &[&str]) -> (Option<i32>, Vec<String>, Vec<Value>) {
    let all = [&["runtimes", "check"], arguments, &["-o", "json"]].concat();
    let output = scheduler.pvnctl(all);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "no JSON ({error}): {}\n{}",
            String::from_utf8_lossy(&output.stderr),
            scheduler.log()
        )
    });
    assert_eq!(found["ok"], output.status.success(), "{found:#}");
    let checks = found["checks"].as_array().expect("checks is a list").clone();
    let text = |check: &Value, field: &str| check[field].as_str().unwrap_or_default().to_owned();
    let words = checks.iter().map(|check| {
        assert_eq!(check["remedy"].is_string(), check["status"] == "FAILED", "{check:#}");
        format!("{} {}", text(check, "check"), text(check, "status"))
    });
    (output.status.code(), words.collect(), checks)
}

/// Of the first finding that failed: message and remedy.
fn failure(checks: &[Value]) -> String {
    let failed = checks.iter().find(|check| check["status"] == "FAILED");
    failed.map_or_else(String::new, |failed| {
        let text = |field: &str| failed[field].as_str().expect("a failure has both");
        format!("{} => {}", text("message"), text("remedy"))
    })
}

/// Where no cluster is concerned, and all of this machine is well.
const HERE: [&str; 3] = ["connection SKIPPED", "wrapper OK", "directory OK"];

/// With what a job of a tool tells in front.
fn with_job(found: &[&str]) -> Vec<String> {
    let all = [&HERE[..], &["instance OK", "job OK"], found].concat();
    all.into_iter().map(str::to_owned).collect()
}

#[test]
fn terraform_is_tried_where_it_runs_by_a_job_that_counts_for_nothing() {
    if skip::tool("terraform").or_else(|| skip::tool("tofu")).is_none() {
        return skip::skipped("terraform_is_tried", "neither terraform nor tofu is on PATH");
    }
    let mut scheduler = Scheduler::stopped();
    let root = scheduler.home().join("example");
    copy::example("terraform-runner", &root);
    scheduler.run(&Start { root: Some(&root), ..Start::default() });
    let path = root.to_str().expect("the path is UTF-8");
    scheduler.ok(&["configs", "apply", "--no-prompt", path]);
    // No service has a release: the place is looked at, and that is said.
    let (code, words, checks) = check(&scheduler, &["terraform-local"]);
    assert_eq!(
        (code, &words[..3], &*words[3]),
        (Some(0), &HERE.map(str::to_owned)[..], "instance SKIPPED")
    );
    assert!(checks[3]["message"].as_str().is_some_and(|said| said.contains("services push")));

    scheduler.ok(&["services", "push", "site", "--app", "planned-infrastructure"]);
    let service =
        || scheduler.json(&["services", "get", "site", "--app", "planned-infrastructure"]);
    let status = |channel: usize| service()["channels"][channel]["status"].clone();
    wait::until("the plan to be shown", || (status(0) == "WAITING_MANUAL_APPROVAL").then_some(()));
    let (code, words, checks) = check(&scheduler, &["terraform-local"]);
    let well = with_job(&["tool OK", "target OK", "target OK"]);
    assert_eq!((code, &words), (Some(0), &well), "{checks:#?}");
    assert_eq!(checks[3]["instance"], "planned-infrastructure/site in production");
    assert!(checks[3]["message"].as_str().is_some_and(|said| said.contains("for 1 more")));
    assert_eq!(status(0), "WAITING_MANUAL_APPROVAL");
    let job = checks[4]["job"].as_str().expect("a job ran");
    let row = scheduler.json(&["jobs", "get", job]);
    assert_eq!((&row["kind"], &row["status"]), (&json!("fetch"), &json!("SUCCEEDED")), "{row:#}");
    assert_eq!(row["message"], "check asked for by admin");
    let logs = scheduler.pvnctl(["jobs", "logs", job]);
    let said = String::from_utf8_lossy(&logs.stderr).into_owned();
    assert!(said.contains(" version -json\n") && said.contains(" state pull\n"), "{said}");
    assert!(!root.join("site/.terraform").exists());

    let here = ["terraform-local", "--app", "planned-infrastructure", "--channel", "staging"];
    let (code, _, checks) = check(&scheduler, &here);
    assert_eq!(code, Some(0));
    assert_eq!(checks[3]["instance"], "planned-infrastructure/site in staging");
    let nobody = ["runtimes", "check", "terraform-local", "--app", "nobody"];
    assert_eq!(scheduler.pvnctl(nobody).status.code(), Some(1));

    let main = root.join("site/main.tf");
    let text = std::fs::read_to_string(&main).expect("the example has it");
    std::fs::write(&main, text.replace("backend \"local\"", "backend \"nowhere\""))
        .expect("a file can be written");
    let (code, words, checks) = check(&scheduler, &["terraform-local"]);
    assert_eq!((code, words), (Some(2), with_job(&["tool OK", "target FAILED"])), "{checks:#?}");
    assert!(failure(&checks).contains("=> `terraform init` has to work where the job runs"));
    let table = scheduler.pvnctl(["runtimes", "check", "terraform-local"]);
    let shown = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(shown.contains("\ntarget: `terraform init` has to work"), "{shown}");
}

#[test]
fn ecs_is_tried_with_the_credentials_of_the_runtime_which_nobody_sees() {
    if skip::tool("aws").is_none() {
        return skip::skipped("ecs_is_tried", "aws is not on PATH");
    }
    let server = EcsServer::start();
    let scheduler = Scheduler::start();
    let env = [&clients::of_ecs(&server.url)[..], &[("AWS_MAX_ATTEMPTS", "1")]].concat();
    let env: serde_json::Map<String, Value> =
        env.iter().map(|(key, value)| ((*key).to_owned(), json!({"value": value}))).collect();
    let runtime = |cluster: &str| {
        json!({"runtime": {"name": "ecs", "awsEcs": {
            "region": "eu-central-1", "ecsCluster": cluster, "env": env,
            "credentials": {
                "accessKey": {"value": "AKIAOWN"}, "secretKey": {"rawSecret": "own-secret-key"},
            },
        }}})
    };
    let task = json!({"family": "web", "containerDefinitions": [{"name": "a", "image": "a:1"}]});
    let application = json!({"application": {"name": "shop", "releaseChannels": [
        {"name": "production", "runtimes": [{"runtime": "ecs"}]}
    ]}});
    let service = json!({"service": {"name": "web", "application": "shop", "awsEcs": {
        "taskDefinition": {"inlined": task.to_string()}, "updateTaskDefinitionOnly": true,
    }}});
    scheduler.apply(&format!("{}\n---\n{application}\n---\n{service}\n", runtime(CLUSTER)));
    scheduler.ok(&["services", "push", "web", "--app", "shop"]);
    let (code, words, checks) = check(&scheduler, &["ecs"]);
    let well = with_job(&["tool OK", "credentials OK", "target OK", "target OK"]);
    assert_eq!((code, words), (Some(0), well), "{checks:#?}");
    assert!(checks[6]["message"].as_str().is_some_and(|said| said.ends_with(":user/pvn")));
    let shown = Value::from(checks.clone()).to_string();
    assert!(!shown.contains("own-secret-key"), "{shown}");

    let refused = Wrong::Code("ExpiredToken", "The security token is expired");
    server.world().wrong.push(("GetCallerIdentity", refused));
    let (code, words, checks) = check(&scheduler, &["ecs"]);
    let expired = with_job(&["tool OK", "credentials FAILED", "target SKIPPED"]);
    assert_eq!((code, words), (Some(2), expired), "{checks:#?}");
    let said = failure(&checks);
    assert!(said.starts_with("the credentials have expired: renew"), "{said}");
    assert!(
        said.contains("=> give the job credentials that are valid: `credentials` of"),
        "{said}"
    );

    scheduler.apply(&runtime("pord").to_string());
    let (code, words, checks) = check(&scheduler, &["ecs", "--app", "shop", "--service", "web"]);
    let wrong = with_job(&["tool OK", "credentials OK", "target FAILED"]);
    assert_eq!((code, words), (Some(2), wrong), "{checks:#?}");
    let said = failure(&checks);
    assert!(
        said.contains("no such cluster") && said.contains("=> see that `ecsCluster`"),
        "{said}"
    );
}

#[test]
fn commands_on_this_machine_are_looked_at_and_of_them_fetch_alone_is_run() {
    let scheduler = Scheduler::start();
    let refused = scheduler.home().join("refused");
    std::fs::write(&refused, "#!/bin/sh\n").expect("a file can be written");
    let task = |program: &str, directory: &str| {
        json!({"taskConfig": {"program": {
            "entrypoint": [program], "workingDirectory": directory,
        }}})
    };
    let runtime = |name: &str, apply: &Value, fetch: &Value| {
        json!({"runtime": {"name": name, "custom": {
            "proxyRuntime": {"runtime": "local"}, "apply": apply, "fetch": fetch,
        }}})
    };
    let application = |name: &str| {
        let channel = json!({"name": "c", "runtimes": [{"runtime": name}]});
        json!({"application": {"name": name, "releaseChannels": [channel]}})
    };
    let service = |name: &str| json!({"service": {"name": "s", "application": name}});
    let documents = [
        runtime("well", &task("touch", "."), &task("true", ".")),
        runtime("ill", &task("nothing-of-that-name", "."), &task("./refused", ".")),
        runtime("lost", &task("true", "."), &task("true", "nowhere")),
    ];
    let names = ["well", "ill", "lost"];
    let all = documents.into_iter().chain(names.map(application)).chain(names.map(service));
    let all: Vec<String> = all.map(|document| document.to_string()).collect();
    scheduler.apply(&all.join("\n---\n"));
    for name in names {
        scheduler.ok(&["services", "push", "s", "--app", name]);
    }
    let found = |name: &str| check(&scheduler, &[name]);
    let (code, words, checks) = found("well");
    let well = [&HERE[..], &["command OK", "fetch OK"]].concat();
    assert_eq!(code, Some(0), "{checks:#?}");
    assert_eq!(words, well, "{checks:#?}");
    assert_eq!(checks[3]["message"], "can be run: `touch`, `true`");
    let (code, words, checks) = found("ill");
    assert_eq!(code, Some(2));
    assert_eq!(words[3..], ["command FAILED", "command FAILED"], "{checks:#?}");
    let said = Value::from(checks.clone()).to_string();
    assert!(said.contains("`nothing-of-that-name` was not found on PATH ("), "{said}");
    assert!(said.contains("`./refused` cannot be run: "), "{said}");
    assert!(said.contains("`chmod +x ./refused`"), "{said}");
    let (code, _, checks) = found("lost");
    assert_eq!(code, Some(2));
    let said = failure(&checks);
    assert!(said.contains("nowhere cannot be entered: ") && said.contains("=> make it"), "{said}");
    // What stands on this machine is looked at for all.
    let (code, words, _) = found("local");
    assert_eq!(code, Some(2));
    assert_eq!(words.iter().filter(|word| word.ends_with("FAILED")).count(), 3, "{words:?}");
}

#[test]
fn a_fetch_that_changes_what_it_looks_at_is_found_out_by_running_it_twice() {
    let scheduler = Scheduler::start();
    let script = |text: &str| json!({"taskConfig": {"program": {"cmd": ["sh", "-c", text]}}});
    // The first look finds work and does away with it.
    let touching = "test -e \"$PVN_INSTANCE_DIR/seen\" && exit 0; touch \
                    \"$PVN_INSTANCE_DIR/seen\"; test \"$PVN_JOB_KIND\" = fetch && exit 2";
    let mut junk = script("echo no");
    junk["fetchMode"] = json!("STRUCTURED_OUTPUT");
    let explaining = |text: &str| {
        script(&format!(
            "exec pvn-wrapper exec --success-exit-codes 2 --out \
             plan-explanation=\"$PVN_INSTANCE_DIR/words\" -- sh -c 'echo {text} \
             >\"$PVN_INSTANCE_DIR/words\"; exit 2'"
        ))
    };
    for (name, fetch, expected, said) in [
        ("explains", explaining("one to add"), "fetch OK", "fetch found the same: there is work"),
        ("babbles", explaining("at $(date +%s%N)"), "fetch FAILED", "is asked anew at each fetch"),
        ("looks", script("exit 2"), "fetch OK", "fetch found the same: there is work"),
        (
            "touches",
            script(touching),
            "fetch FAILED",
            "first that there is work (exit code 2), then",
        ),
        ("prints", junk, "fetch FAILED", "its structured output is wrong"),
    ] {
        let channel = json!({"name": "c", "runtimes": [{"runtime": name}]});
        let documents = [
            json!({"runtime": {"name": name, "custom": {
                "proxyRuntime": {"runtime": "local"}, "apply": script("true"), "fetch": fetch,
                "requireApprovalBeforeApply": true,
            }}}),
            json!({"application": {"name": name, "releaseChannels": [channel]}}),
            json!({"service": {"name": "s", "application": name}}),
        ];
        scheduler.apply(&documents.map(|document| document.to_string()).join("\n---\n"));
        scheduler.ok(&["services", "push", "s", "--app", name]);
        let jobs = || scheduler.json(&["jobs", "list", "--app", name, "--kind", "fetch"]);
        wait::until("its own fetch to end", || jobs()[0]["endedAt"].as_str().map(drop));
        if name == "touches" {
            let mut remove = std::process::Command::new("find");
            remove.arg(scheduler.home()).args(["-name", "seen", "-delete"]);
            assert!(remove.status().is_ok_and(|status| status.success()));
        }
        let (code, words, checks) = check(&scheduler, &[name]);
        assert_eq!(words.last().map(String::as_str), Some(expected), "{checks:#?}");
        assert_eq!(code, Some(if expected.ends_with("OK") { 0 } else { 2 }));
        assert!(
            checks[words.len() - 1]["message"].as_str().is_some_and(|of| of.contains(said)),
            "{checks:#?}"
        );
        assert!(checks[words.len() - 1]["job"].is_string());
    }
}

#[test]
fn a_directory_that_is_full_is_told_and_one_that_is_read_only_named() {
    let test = "a_directory_that_is_full_is_told_and_one_that_is_read_only_named";
    let scheduler = Scheduler::start();
    let place = scheduler.home().join("place");
    let Some(disk) = SmallDisk::mount(&place, "64k") else {
        return skip::skipped(test, "nothing can be mounted here");
    };
    let task = json!({"taskConfig": {"program": {
        "entrypoint": ["true"], "workingDirectory": place.to_str().expect("the path is UTF-8"),
    }}});
    let runtime = json!({"runtime": {"name": "there", "custom": {
        "proxyRuntime": {"runtime": "local"}, "apply": task,
    }}});
    let channel = json!({"name": "c", "runtimes": [{"runtime": "there"}]});
    let application = json!({"application": {"name": "app", "releaseChannels": [channel]}});
    let service = json!({"service": {"name": "s", "application": "app"}});
    scheduler.apply_and_push(&format!("{runtime}\n---\n{application}\n---\n{service}\n"));
    let remount = |how: &str| {
        let mut mount = std::process::Command::new("mount");
        let done = mount.args(["-o", &format!("remount,{how}")]).arg(&place).status();
        assert!(done.is_ok_and(|status| status.success()));
    };
    remount("ro");
    let (code, _, checks) = check(&scheduler, &["there"]);
    let said = Value::from(checks).to_string();
    let named = format!("the scheduler's user cannot write to {}", place.display());
    assert!(code == Some(0) && said.contains(&named), "{said}");
    remount("rw");
    let (code, _, checks) = check(&scheduler, &["there"]);
    assert!(code == Some(0) && !Value::from(checks).to_string().contains("cannot write"));
    disk.fill();
    let (code, _, checks) = check(&scheduler, &["there"]);
    assert_eq!(code, Some(2), "{checks:#?}");
    let said = failure(&checks);
    assert!(said.starts_with(&format!("there is no room left in {}", place.display())), "{said}");
    drop(disk);
}
