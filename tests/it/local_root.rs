//! Where local commands start when the daemon comes back from another directory.

use tests::scheduler::{Scheduler, Start};
use tests::wait;

const CONFIG: &str = "\
runtime:
  name: here
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig:
        program: {name: apply, entrypoint: [sh, -c], cmd: ['echo ran >> ledger']}
---
application: {name: app, releaseChannels: [{name: c, runtimes: [{runtime: here}]}]}
---
service: {name: s, application: app}
";

#[test]
fn p2_a_daemon_that_is_started_from_another_directory_applies_where_it_did_before() {
    let mut scheduler = Scheduler::stopped();
    let [first, second] = ["first", "second"].map(|name| scheduler.home().join(name));
    for directory in [&first, &second] {
        std::fs::create_dir(directory).expect("a directory can be made");
    }
    let push = ["services", "push", "s", "--app", "app", "--wait"];
    scheduler.run(&Start { root: Some(&first), ..Start::default() });
    scheduler.apply(CONFIG);
    scheduler.ok(&push);
    scheduler.stop();
    scheduler.run(&Start { root: Some(&second), ..Start::default() });
    scheduler.ok(&push);
    scheduler.stop();
    let ran = || std::fs::read_to_string(first.join("ledger")).unwrap_or_default().lines().count();
    assert_eq!((ran(), second.join("ledger").exists()), (2, false));

    let named = ["--local-root", second.to_str().expect("the path is UTF-8")];
    scheduler.run(&Start { arguments: &named, root: Some(&first), ..Start::default() });
    scheduler.ok(&push);
    wait::until("the commands to run where somebody said", || {
        second.join("ledger").exists().then_some(())
    });
    assert_eq!(ran(), 2);
    let (_, events) = scheduler.get("/v1/events?limit=1000").expect("the scheduler answers");
    assert!(events.contains("local.root_changed"), "{events}");
    scheduler.stop();

    // What is not there at this start is waited for, and not made up for by another one: nobody
    // said yes to that.
    let away = scheduler.home().join("away");
    std::fs::rename(&second, &away).expect("the directory can be moved");
    scheduler.run(&Start { root: Some(&first), ..Start::default() });
    assert!(
        scheduler.log().contains(&format!("start in {}, which is no directory", second.display())),
        "{}",
        scheduler.log()
    );
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
    let waits = format!("{} cannot be entered", second.display());
    wait::until("the apply to say what it waits for", || {
        scheduler
            .ok(&["services", "explain", "s", "--app", "app", "--channel", "c"])
            .contains(&waits)
            .then_some(())
    });
    std::fs::rename(&away, &second).expect("the directory can be moved back");
    scheduler.channel_becomes("s", "c", "CONVERGED");
    assert_eq!(ran(), 2);

    // Nor is what is named and not there.
    scheduler.stop();
    std::fs::remove_dir_all(&second).expect("the directory can be removed");
    scheduler.run(&Start { arguments: &named, root: Some(&first), ..Start::default() });
    assert!(
        scheduler.log().contains(&format!("start in {}, which is no directory", second.display())),
        "{}",
        scheduler.log()
    );
}
