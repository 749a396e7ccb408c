//! Applies whose processes outlive their wrapper, at a whole daemon that is killed and started
//! again: P1 holds, what is waited for is said, and what ends the waiting does. In process
//! namespaces of their own, so that orphans are only those of the test.

use tests::reader::Reader;
use tests::skip;

/// Fetch finds work until `done` is there. The first apply does `first`; the second one is all that
/// there is to do.
fn config(first: &str, apply: &str) -> String {
    format!(
        "runtime:\n  name: tool\n  custom:\n    proxyRuntime: {{runtime: local}}\n    convergenceGracePeriod: 1s\n    fetch:\n      pollInterval: 1s\n      \
         taskConfig: {{program: {{name: fetch, cmd: [sh, -c, '[ -e done ] || exit 2']}}}}\n    apply:\n      {apply}\n      taskConfig:\n        program:\n          \
         name: apply\n          entrypoint: [sh, -c]\n          cmd:\n          - |\n            echo \"$PVN_JOB_ID\" >> ledger\n            if [ \"$(wc -l < ledger)\" -gt 1 ]; then touch done; exit 0; fi\n            \
         echo $PPID > wrapper.pid; echo $$ > command.pid\n            {first}\n---\napplication: {{name: app, releaseChannels: [{{name: only, runtimes: [{{runtime: tool}}]}}]}}\n---\n\
         service: {{name: s, application: app}}\n"
    )
}

/// Starts it all and waits until the first apply has left its process. `$daemon` is the scheduler.
const BEGIN: &str = "\
pvnctl() { target/release/pvnctl \"$@\"; }
serve() { $AS target/release/pvn-scheduler serve & daemon=$!; until_it 'pvnctl runtimes list \
                     >/dev/null 2>&1'; }
shows() { until_it \"pvnctl services get s --app app -o json | grep -q '$1'\"; }
applied() { [ \"$(wc -l < ledger)\" -eq \"$1\" ]; }
serve
pvnctl configs apply --no-prompt --push left.pvn.yaml
until_it '[ -s left ]'
";

const KILLED_WHILE_AWAY: &str = "\
kill -9 $daemon; wait $daemon || true
kill -9 \"$(cat wrapper.pid)\"
serve
";

/// The command goes with its wrapper, so that nothing leads from either to what it started.
const BOTH_KILLED_WHILE_AWAY: &str = "\
kill -9 $daemon; wait $daemon || true
kill -9 \"$(cat wrapper.pid)\" \"$(cat command.pid)\"
serve
";

/// Fetches go on looking meanwhile, and nothing is applied.
const HELD_BACK: &str = "\
looks() { pvnctl jobs list --app app --service s --kind fetch -o json | grep -c '\"id\"' || true; }
before=$(looks)
until_it '[ \"$(looks)\" -ge $((before + 3)) ]'
applied 1
";

fn check(test: &str, first: &str, script: &str) {
    check_as("", test, first, script);
}

/// `prefix`: of the daemon's command line.
fn check_as(prefix: &str, test: &str, first: &str, script: &str) {
    let Some(reader) = Reader::checkout(test) else { return };
    std::fs::write(reader.root().join("left.sh"), "echo $$ > left\nexec sleep 1000\n")
        .expect("a file can be written");
    std::fs::write(reader.root().join("left.pvn.yaml"), config(first, ""))
        .expect("a file can be written");
    reader.succeeds(&format!("AS={prefix}\n{BEGIN}{script}"));
}

#[test]
fn p1_an_ordinary_apply_whose_wrapper_was_killed_is_known_to_be_gone_and_things_go_on_by_themselves()
 {
    let test = "p1_an_ordinary_apply_whose_wrapper_was_killed_is_known_to_be_gone_and_things_go_on_by_themselves";
    for first in ["exec sh left.sh", "exec env -i sh left.sh", "sh left.sh & wait"] {
        check(
            test,
            first,
            &format!(
                "{KILLED_WHILE_AWAY}shows CONVERGED\napplied 2\nuntil_it '! kill -0 \"$(cat \
                 left)\" 2>/dev/null'\n"
            ),
        );
        check(
            test,
            first,
            "kill -9 \"$(cat wrapper.pid)\"\nshows CONVERGED\napplied 2\nuntil_it '! kill -0 \
             \"$(cat left)\" 2>/dev/null'\n",
        );
    }
}

#[test]
fn p1_an_apply_that_shed_all_that_tells_whose_it_is_is_waited_for_after_a_restart_and_that_is_said()
{
    let test = "p1_an_apply_that_shed_all_that_tells_whose_it_is_is_waited_for_after_a_restart_and_that_is_said";
    let first = "setsid env -i sh left.sh & wait";
    check(
        test,
        first,
        &format!(
            "{BOTH_KILLED_WHILE_AWAY}shows 'may be one that it left'\n{HELD_BACK}kill -9 $daemon; \
             wait $daemon || true\nserve\n{HELD_BACK}kill -0 \"$(cat left)\"\nkill \"$(cat \
             left)\"\nshows CONVERGED\napplied 2\n"
        ),
    );
    let by_hand = "pvnctl services retry s --app app --channel only\nshows CONVERGED\napplied \
                   2\nkill \"$(cat left)\"\n";
    check(
        test,
        first,
        &format!("{BOTH_KILLED_WHILE_AWAY}shows 'may be one that it left'\n{HELD_BACK}{by_hand}"),
    );
}

#[test]
fn what_began_in_a_session_older_than_a_killed_wrapper_is_not_taken_for_one_of_its_processes() {
    let test =
        "what_began_in_a_session_older_than_a_killed_wrapper_is_not_taken_for_one_of_its_processes";
    // The shell is the daemon's parent, as of one that was started by hand, but not of its session.
    check_as(
        "setsid",
        test,
        "exec sh left.sh",
        "kill -9 $daemon; wait $daemon || true\nkill -9 \"$(cat wrapper.pid)\" \"$(cat left)\"\n\
         sleep 1000 & other=$!\nserve\nshows CONVERGED\napplied 2\nkill -0 $other\nkill $other\n",
    );
}

#[test]
fn p1_an_apply_that_ran_out_of_time_and_cannot_be_killed_holds_the_next_one_back_until_it_has_ended()
 {
    let test = "p1_an_apply_that_ran_out_of_time_and_cannot_be_killed_holds_the_next_one_back_until_it_has_ended";
    if !nix::unistd::geteuid().is_root() || skip::tool("setpriv").is_none() {
        skip::skipped(test, "a command of another user takes root and setpriv");
        return;
    }
    let Some(reader) = Reader::checkout(test) else { return };
    std::fs::write(reader.root().join("left.sh"), "echo $$ > left\nexec sleep 1000\n")
        .expect("a file can be written");
    let first = "exec ./become-root --reuid=0 --regid=0 --clear-groups sh left.sh";
    std::fs::write(reader.root().join("left.pvn.yaml"), config(first, "timeout: 2s"))
        .expect("a file can be written");
    // The programs may lie where only root can look.
    reader.succeeds(&format!(
        "mkdir own\nfor name in pvn-scheduler pvnctl pvn-wrapper; do cp target/release/$name \
         own/; done\nrm target/release\nmv own target/release\ncp \"$(command -v setpriv)\" \
         become-root\nchown -R 65534:65534 .\nchown root become-root\nchmod 4755 \
         become-root\nchmod 755 .\nAS='setpriv --reuid=65534 --regid=65534 \
         --clear-groups'\n{BEGIN}shows 'ran past its timeout, but some of its processes could not \
         be stopped'\n{HELD_BACK}kill -0 \"$(cat left)\"\nkill -9 \"$(cat left)\"\nshows \
         CONVERGED\napplied 2\n"
    ));
}
