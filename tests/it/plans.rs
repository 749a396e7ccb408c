//! A plan from fetch to apply as a reader of the docs meets it: started at the root of the
//! checkout, relative paths, nothing set. The real wrapper, and the real Terraform where it is.

use tests::reader::Reader;
use tests::skip;

/// Waits for a status, shown by the client as the reader would look.
fn status(service: &str, application: &str, status: &str) -> String {
    format!(
        "until_it 'target/release/pvnctl services get {service} --app {application} -o json \
         2>/dev/null | grep -q {status}'\n"
    )
}

#[test]
fn p2_the_terraform_example_runs_from_the_root_of_the_checkout_to_converged() {
    if skip::tool("terraform").or_else(|| skip::tool("tofu")).is_none() {
        skip::skipped("terraform", "neither terraform nor tofu is on PATH");
        return;
    }
    let Some(reader) = Reader::checkout(
        "p2_the_terraform_example_runs_from_the_root_of_the_checkout_to_converged",
    ) else {
        return;
    };
    let said = reader.succeeds(&format!(
        "target/release/pvn-scheduler dev examples/terraform &\nexport \
         PVN_DATA_DIR=examples/terraform/.pvn\n{}target/release/pvnctl services approve site \
         --app infrastructure --channel production --yes --reason 'looked at \
         it'\n{}target/release/pvnctl jobs list --app infrastructure --service site --kind apply \
         -o json\n",
        status("site", "infrastructure", "WAITING_MANUAL_APPROVAL"),
        status("site", "infrastructure", "CONVERGED"),
    ));
    assert_eq!(
        said.matches("\"SUCCEEDED\"").count(),
        1,
        "one apply, of the plan that was shown: {said}"
    );
}

/// A fetch that plans with `plan`, an apply that writes down what it was handed.
fn recipe(plan: &str) -> String {
    format!(
        "runtime:\n  name: tool\n  custom:\n    proxyRuntime: {{runtime: local}}\n    fetch:\n      pollInterval: 1s\n      taskConfig: \
         {{program: {{name: fetch, cmd: [pvn-wrapper, exec, --success-exit-codes, '0,2', --out, plan=the.plan, --, sh, -c, '[ -e done ] || {{ {plan}; exit 2; }}; touch the.plan']}}}}\n    apply:\n      taskConfig: \
         {{program: {{name: apply, cmd: [pvn-wrapper, exec, --in, handed.plan=fetch:plan, --, cp, handed.plan, done]}}}}\n---\napplication: \
         {{name: app, releaseChannels: [{{name: only, runtimes: [{{runtime: tool}}]}}]}}\n---\nservice: {{name: s, application: app}}\n",
    )
}

/// Serves with every setting at its default, and with the data directory given relative, from the
/// directory of the reader.
fn check(test: &str, data: &str, plan: &str, handed: &str) {
    let Some(reader) = Reader::checkout(test) else { return };
    std::fs::write(reader.root().join("tool.pvn.yaml"), recipe(plan))
        .expect("a file can be written");
    let flag = if data == "pvn-data" { String::new() } else { format!("--data-dir {data}") };
    reader.succeeds(&format!(
        "target/release/pvn-scheduler serve {flag} &\nexport PVN_DATA_DIR={data}\nuntil_it \
         'target/release/pvnctl runtimes list >/dev/null 2>&1'\ntarget/release/pvnctl configs \
         apply --no-prompt --push tool.pvn.yaml\n{}",
        status("s", "app", "CONVERGED"),
    ));
    assert_eq!(
        std::fs::read_to_string(reader.root().join("done")).expect("it was applied"),
        handed
    );
    assert!(reader.root().join(data).join("blobs").is_dir());
}

#[test]
fn p2_a_plan_is_handed_over_with_every_setting_at_its_default() {
    check(
        "p2_a_plan_is_handed_over_with_every_setting_at_its_default",
        "pvn-data",
        "echo the plan >the.plan",
        "the plan\n",
    );
}

#[test]
fn p2_a_plan_of_no_bytes_is_handed_over_too_and_the_data_directory_may_be_anywhere() {
    let test = "p2_a_plan_of_no_bytes_is_handed_over_too_and_the_data_directory_may_be_anywhere";
    check(test, "examples/../some/where", ": >the.plan", "");
}

/// As a power failure would ask: the bytes were there already, of a log that nobody had waited for.
#[test]
fn p2_a_plan_is_synced_before_it_is_handed_over_though_its_bytes_lay_there_as_a_log() {
    let test = "p2_a_plan_is_synced_before_it_is_handed_over_though_its_bytes_lay_there_as_a_log";
    if skip::tool("strace").is_none() {
        skip::skipped(test, "there is no `strace`");
        return;
    }
    let Some(reader) = Reader::checkout(test) else { return };
    let log = "runtime:\n  name: log\n  custom:\n    proxyRuntime: {runtime: local}\n    fetch: \
               {pollInterval: 1h, taskConfig: {program: {name: f, cmd: [echo, the plan]}}}\n    \
               apply: {taskConfig: {program: {name: a, cmd: ['true']}}}\n---\napplication: {name: \
               first, releaseChannels: [{name: only, runtimes: [{runtime: log}]}]}\n---\nservice: \
               {name: l, application: first}\n";
    std::fs::write(reader.root().join("log.pvn.yaml"), log).expect("a file can be written");
    std::fs::write(reader.root().join("tool.pvn.yaml"), recipe("echo the plan >the.plan"))
        .expect("a file can be written");
    let said = reader.succeeds(&format!(
        "strace -f -y -e trace=fsync,fdatasync -o trace target/release/pvn-scheduler serve \
         &\nuntil_it 'target/release/pvnctl runtimes list >/dev/null 2>&1'\ntarget/release/pvnctl \
         configs apply --no-prompt --push log.pvn.yaml\n{}digest=$(echo 'the plan' | sha256sum | \
         cut -d' ' -f1)\nrest=${{digest#??}}\nblob=blobs/${{digest%\"$rest\"}}/$rest\n[ -e \
         pvn-data/$blob ]\necho before: $(grep -c $blob trace)\ntarget/release/pvnctl configs \
         apply --no-prompt --push tool.pvn.yaml\n{}echo after: $(grep -c $blob trace)\n",
        status("l", "first", "CONVERGED"),
        status("s", "app", "CONVERGED"),
    ));
    assert!(said.contains("before: 0\n"), "nobody waits for a log: {said}");
    assert!(said.contains("after: ") && !said.contains("after: 0\n"), "{said}");
}

/// A command that is a script, as the field of a config.
fn task(name: &str, script: &str) -> String {
    format!(
        "      taskConfig:\n        program:\n          name: {name}\n          entrypoint: [sh, \
         -c]\n          cmd:\n          - |\n            {script}\n"
    )
}

/// Two channels whose commands run in one directory, at the same time and slowly: each apply writes
/// down whose plan it was handed, at its start and at its end.
fn two_channels(test: &str, file: &str) -> Option<(Reader, String)> {
    let reader = Reader::checkout(test)?;
    let fetch = format!(
        "exec pvn-wrapper exec --success-exit-codes 0,2 --out plan=\"{file}\" -- sh -c 'sleep \
         0.2; echo $PVN_RELEASE_CHANNEL >\"{file}\"; sleep 0.4; [ -e done.$PVN_RELEASE_CHANNEL ] \
         || exit 2'"
    );
    let apply = format!(
        "exec pvn-wrapper exec --in \"{file}=fetch:plan\" -- sh -c 'cp \"{file}\" \
         first.$PVN_RELEASE_CHANNEL; sleep 0.6; cp \"{file}\" done.$PVN_RELEASE_CHANNEL'"
    );
    let config = format!(
        "runtime:\n  name: tool\n  custom:\n    proxyRuntime: {{runtime: local}}\n    \
             fetch:\n      pollInterval: 1s\n{}    apply:\n{}---\napplication: {{name: app, \
             releaseChannels: [{{name: staging, runtimes: [{{runtime: tool}}]}}, {{name: \
             production, runtimes: [{{runtime: tool}}]}}]}}\n---\nservice: {{name: s, \
             application: app}}\n",
        task("fetch", &fetch),
        task("apply", &apply),
    );
    std::fs::create_dir(reader.root().join("deploy")).expect("a directory can be made");
    std::fs::write(reader.root().join("deploy/tool.pvn.yaml"), config)
        .expect("a file can be written");
    let said = reader.succeeds(
        "target/release/pvnctl configs validate deploy -o json\ntarget/release/pvn-scheduler dev \
         deploy --until-converged --timeout 100s\n",
    );
    for channel in ["staging", "production"] {
        for when in ["first", "done"] {
            let handed =
                std::fs::read_to_string(reader.root().join(format!("deploy/{when}.{channel}")))
                    .expect("it was applied");
            assert_eq!(
                handed,
                format!("{channel}\n"),
                "{channel} was handed another's plan ({when}): {said}"
            );
        }
    }
    Some((reader, said))
}

#[test]
fn p2_the_plans_of_two_channels_in_one_directory_do_not_cross_with_the_recipe_of_the_docs() {
    let test =
        "p2_the_plans_of_two_channels_in_one_directory_do_not_cross_with_the_recipe_of_the_docs";
    let Some((reader, said)) = two_channels(test, "$PVN_INSTANCE_DIR/tf.plan") else { return };
    assert!(!said.contains("warning") || said.contains("\"warnings\": []"), "{said}");
    let own = reader.root().join("deploy/.pvn/instances");
    assert_eq!(
        std::fs::read_dir(own).expect("it is there").count(),
        2,
        "one directory for each channel"
    );
}

#[test]
fn p2_the_plans_of_two_channels_in_one_directory_do_not_cross_with_one_file_for_both_and_that_is_warned_of()
 {
    let test = "p2_the_plans_of_two_channels_in_one_directory_do_not_cross_with_one_file_for_both_and_that_is_warned_of";
    let Some((_reader, said)) = two_channels(test, "tf.plan") else { return };
    assert!(
        said.matches("`tf.plan` is one file for app/s in staging, app/s in production").count()
            >= 2,
        "by `validate` and by `dev`: {said}"
    );
}

#[test]
fn p2_a_plan_whose_file_is_lost_before_the_yes_is_made_anew_and_the_yes_to_what_it_says_still_counts()
 {
    let test = "p2_a_plan_whose_file_is_lost_before_the_yes_is_made_anew_and_the_yes_to_what_it_says_still_counts";
    let Some(reader) = Reader::checkout(test) else { return };
    let own = |file: &str| format!("\"$PVN_INSTANCE_DIR/{file}\"");
    let fetch = format!(
        "[ -e done ] && exit 0; exec pvn-wrapper exec --success-exit-codes 0,2 --out plan={plan} \
         --out plan-explanation={words} -- sh -c 'date +%s.%N >{plan}; echo one to add >{words}; \
         exit 2'",
        plan = own("p"),
        words = own("e"),
    );
    let apply =
        format!("exec pvn-wrapper exec --in {plan}=fetch:plan -- cp {plan} done", plan = own("p"));
    let config = format!(
        "runtime:\n  name: tool\n  custom:\n    proxyRuntime: {{runtime: local}}\n    \
         requireApprovalBeforeApply: true\n    fetch:\n      pollInterval: 1h\n{}    \
         apply:\n{}---\napplication: {{name: app, releaseChannels: [{{name: only, runtimes: \
         [{{runtime: tool}}]}}]}}\n---\nservice: {{name: s, application: app}}\n",
        task("fetch", &fetch),
        task("apply", &apply),
    );
    std::fs::write(reader.root().join("tool.pvn.yaml"), config).expect("a file can be written");
    let said = reader.succeeds(&format!(
        "target/release/pvn-scheduler serve &\nuntil_it 'target/release/pvnctl runtimes list \
         >/dev/null 2>&1'\ntarget/release/pvnctl configs apply --no-prompt --push \
         tool.pvn.yaml\n{}find pvn-data/blobs -type f -delete\ntarget/release/pvnctl services \
         approve s --app app --channel only --yes\n{}target/release/pvnctl jobs list --app app \
         --service s --kind apply -o json\ntarget/release/pvnctl services get s --app app -o \
         json\n",
        status("s", "app", "WAITING_MANUAL_APPROVAL"),
        status("s", "app", "CONVERGED"),
    ));
    assert_eq!(said.matches("\"status\": \"SUCCEEDED\"").count(), 1, "{said}");
    assert_eq!(
        said.matches("is gone from the scheduler's disk").count(),
        1,
        "the first one says why it never ran: {said}"
    );
    assert_eq!(said.matches("\"planDigest\"").count(), 1, "nobody was asked anew: {said}");
}
