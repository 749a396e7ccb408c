//! A row that no program of ours wrote, and the real daemon over it: one instance stops at most,
//! and says so. Every column of every table is tried with the driver in process; here is what only
//! whole programs show.

use tests::disk::edit;
use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::{skip, wait};

fn can_edit(test: &str) -> bool {
    let can = skip::tool("python3").is_some();
    if !can {
        skip::skipped(test, "python3 is not on PATH");
    }
    can
}

/// Applies of this instance so far.
fn applies(files: &Files, instance: &str) -> usize {
    files.ledger().iter().filter(|applied| applied.instance == instance).count()
}

#[test]
fn p1_an_apply_whose_row_cannot_be_read_stops_its_instance_alone_and_no_second_one_runs_beside_it()
{
    if !can_edit(
        "p1_an_apply_whose_row_cannot_be_read_stops_its_instance_alone_and_no_second_one_runs_beside_it",
    ) {
        return;
    }
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    files.hold();
    scheduler.apply(&Files::configs(2, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("the apply to run", || (applies(&files, "s0.c0") == 1).then_some(()));
    scheduler.kill();
    edit(
        &scheduler.data().join("pvn.db"),
        "UPDATE jobs SET attempt = 'one' WHERE ended_at IS NULL AND kind = 'apply'",
    );
    scheduler.run(&Start::default());

    let broken = scheduler.channel_becomes("s0", "c0", "BROKEN");
    let said = broken["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        said.contains("table jobs") && said.contains("column attempt") && said.contains("one"),
        "{said}"
    );
    let explained = scheduler.ok(&["services", "explain", "s0", "--app", "app", "--channel", "c0"]);
    assert!(explained.contains("table jobs"), "{explained}");
    let (status, ready) = scheduler.get("/readyz").expect("it answers");
    assert!(
        status == 200 && ready.contains("app/s0 in c0: ") && ready.contains("column attempt"),
        "{status} {ready}"
    );
    let (status, jobs) = scheduler.get("/v1/jobs").expect("it answers");
    assert!(
        status == 200 && jobs.contains("\"unreadable\":[\"table jobs, row id = "),
        "{status} {jobs}"
    );
    // The other service does what it is asked.
    scheduler.ok(&["services", "push", "s1", "--app", "app"]);
    wait::until("the other apply to run", || (applies(&files, "s1.c0") == 1).then_some(()));

    // A person starts it anew while the apply runs that nobody can read of.
    scheduler.ok(&["services", "retry", "s0", "--app", "app", "--channel", "c0"]);
    wait::until("the apply to be held back", || {
        scheduler.channel("s0", "c0")["message"]
            .as_str()
            .is_some_and(|message| message.contains("may still run"))
            .then_some(())
    });
    assert_eq!(applies(&files, "s0.c0"), 1, "no second one beside it");
    files.let_go();
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    scheduler.channel_becomes("s1", "c0", "CONVERGED");
    assert_eq!((applies(&files, "s0.c0"), files.overlaps()), (1, String::new()));
    // It is mended for good.
    scheduler.kill();
    scheduler.run(&Start::default());
    assert!(!scheduler.get("/readyz").expect("it answers").1.contains("broken"));
}

/// What one bad row could do to a daemon that starts.
const ROWS: &[(&str, &str)] = &[
    ("an unknown role", "UPDATE tokens SET role = 'emperor' WHERE name = 'other'"),
    ("the role of the only admin token", "UPDATE tokens SET role = x'FFFE00' WHERE name = 'admin'"),
    ("a runtime without a summary", "UPDATE runtimes SET summary = '' WHERE name = 'local'"),
    (
        "the last number of the log",
        "UPDATE events SET seq = 9223372036854775807 WHERE seq = (SELECT MAX(seq) FROM events)",
    ),
    (
        "the last number of a job",
        "UPDATE jobs SET seq = 9223372036854775807 WHERE seq = (SELECT MIN(seq) FROM jobs)",
    ),
    (
        "a finished job without a kind",
        "UPDATE jobs SET kind = 'dance' WHERE seq = (SELECT MIN(seq) FROM jobs)",
    ),
    (
        "a clock that nobody can read",
        "UPDATE meta SET value = CAST(x'FFFE' AS TEXT) WHERE key = 'clock'",
    ),
    ("a stop of nobody", "INSERT INTO pending_actions VALUES (1000000, 'nobody', 'nothing', 1)"),
];

#[test]
fn p5_a_row_that_is_no_instances_keeps_no_daemon_from_starting() {
    if !can_edit("p5_a_row_that_is_no_instances_keeps_no_daemon_from_starting") {
        return;
    }
    let mut scheduler = Scheduler::stopped();
    let _files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["auth", "token", "create", "other", "--role", "viewer"]);
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    for (row, sql) in ROWS {
        scheduler.stop();
        edit(&scheduler.data().join("pvn.db"), sql);
        scheduler.run(&Start::default());
        let pushed = scheduler.json(&["services", "push", "s0", "--app", "app"]);
        wait::until(&format!("{row}: the new release to be converged"), || {
            let channel = scheduler.channel("s0", "c0");
            (channel["convergedVersion"] == pushed["version"] && channel["status"] == "CONVERGED")
                .then_some(())
        });
        for list in [
            &["jobs", "list"][..],
            &["releases", "list"],
            &["runtimes", "list"],
            &["services", "list"],
            &["auth", "token", "list"],
        ] {
            scheduler.ok(list);
        }
        assert_eq!(scheduler.get("/v1/events?limit=1000").expect("it answers").0, 200, "{row}");
    }
}

#[test]
fn p1_an_owner_that_cannot_be_read_refuses_the_start_with_its_row_and_the_way_out() {
    if !can_edit("p1_an_owner_that_cannot_be_read_refuses_the_start_with_its_row_and_the_way_out") {
        return;
    }
    let mut scheduler = Scheduler::start();
    scheduler.stop();
    let database = scheduler.data().join("pvn.db");
    edit(&database, "UPDATE owner SET epoch = 9223372036854775807");
    let log = scheduler.is_refused(&Start::default());
    assert!(
        ["table owner", "id = \"1\"", "column epoch", "9223372036854775807", "DELETE FROM owner"]
            .iter()
            .all(|part| log.contains(part)),
        "{log}"
    );
    edit(&database, "DELETE FROM owner");
    scheduler.run(&Start::default());
}

#[test]
fn p1_a_lineage_that_cannot_be_read_refuses_the_start_with_the_command_that_mends_it() {
    if !can_edit(
        "p1_a_lineage_that_cannot_be_read_refuses_the_start_with_the_command_that_mends_it",
    ) {
        return;
    }
    let mut scheduler = Scheduler::start();
    scheduler.stop();
    let database = scheduler.data().join("pvn.db");
    edit(&database, "INSERT INTO meta VALUES ('lineage', CAST(x'FFFE' AS TEXT))");
    let log = scheduler.is_refused(&Start::default());
    assert!(log.contains("table meta, row key = \"lineage\": column value"), "{log}");
    // What it says to type is typed.
    let (_, command) =
        log.split_once("`sqlite3 FILE \"").unwrap_or_else(|| panic!("no command: {log}"));
    let (sql, _) = command.split_once("\"`").expect("the command ends");
    edit(&database, sql);
    scheduler.run(&Start::default());
}
