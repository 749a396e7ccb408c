//! What a person deletes, as they do it: it ends and stays ended, also over a daemon that is
//! killed, an apply that runs is not broken off, and what was can be read.

use serde_json::Value;
use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

#[test]
fn p5_a_deleted_service_is_applied_no_more_and_its_apply_that_runs_comes_to_its_end() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(2, 1));
    files.hold();
    for service in ["s0", "s1"] {
        scheduler.ok(&["services", "push", service, "--app", "app"]);
    }
    wait::until("both applies to run", || (files.ledger().len() == 2).then_some(()));

    let asked = scheduler.pvnctl(["services", "delete", "app/s0"]);
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!(asked.status.code(), Some(1), "{said}");
    assert!(said.contains("no terminal to ask on") && said.contains("--no-prompt"), "{said}");
    let shown = scheduler.pvnctl(["services", "delete", "app/s0", "--dry-run"]);
    assert!(shown.status.success());
    let told = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(told.contains("app/s0 in c0 (CONVERGING") && told.contains("1 to delete"), "{told}");
    let deleted = scheduler.json(&["services", "delete", "app/s0", "--no-prompt"]);
    assert_eq!(deleted["documents"][0]["change"], "deleted");

    scheduler.kill();
    files.let_go();
    scheduler.run(&Start::default());
    scheduler.channel_becomes("s1", "c0", "CONVERGED");
    let names = |list: &Value| -> Vec<String> {
        let names = list.as_array().expect("a list").iter();
        names.map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&scheduler.json(&["services", "list"])), ["s1"]);
    let gone = scheduler.pvnctl(["services", "get", "app/s0"]);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("there is no service `s0`"));
    // The apply that ran was begun once, and has come to its end.
    let applies = wait::until("its apply to end", || {
        let applies = scheduler.jobs("s0", "apply");
        applies.iter().all(|job| !job["endedAt"].is_null()).then_some(applies)
    });
    assert_eq!(applies.len(), 1, "{applies:#?}");
    assert_eq!(applies[0]["status"], "SUCCEEDED", "{applies:#?}");
    let begun = files.ledger().iter().filter(|apply| apply.instance == "s0.c0").count();
    assert_eq!(begun, 1, "nothing is started twice");

    let text = scheduler.ok(&["configs", "get", "service", "s0", "--app", "app", "--version", "1"]);
    assert!(text.contains("name: s0"), "{text}");
    let lost = scheduler.pvnctl(["configs", "get", "service", "app/s0"]);
    assert!(String::from_utf8_lossy(&lost.stderr).contains("was deleted"));

    // Its name again: nothing comes back by itself, and numbers go on.
    scheduler.apply(&Files::configs(2, 1));
    assert_eq!(scheduler.channel("s0", "c0")["status"], "DELETED");
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    let back = scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!(back["desiredVersion"], "s0-2");
}
