//! `pvn-scheduler dev`: exit codes, files that change, and starting again.

use std::process::Output;

use tests::dev::Dev;
use tests::wait;

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat())
        .into_owned()
}

/// Changes the quickstart's config, runs `dev` to the end, and checks its exit code and that it
/// says `part`.
fn check(from: &str, to: &str, arguments: &[&str], code: i32, part: &str) {
    let dev = Dev::of("quickstart");
    let path = dev.directory().join("quickstart.pvn.yaml");
    let text = std::fs::read_to_string(&path).expect("the example has it");
    assert!(text.contains(from), "the quickstart no longer says {from:?}");
    std::fs::write(&path, text.replace(from, to)).expect("a file can be written");
    let output = dev.to_the_end(&[&["--until-converged"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    assert!(said(&output).contains(part), "{}", said(&output));
}

#[test]
fn until_converged_ends_with_what_it_came_to() {
    check("hello", "hello", &[], 0, "everything is CONVERGED after");
    check("cmd: [./apply.sh]", "cmd: [sh, -c, exit 1]", &[], 2, "FAILED after");
    check(
        "cmd: [./apply.sh]",
        "cmd: [sleep, \"60\"]",
        &["--timeout", "2s"],
        3,
        "here is CONVERGING: apply job-",
    );
    check("runtime:\n  name", "runtime:\n  nmae", &[], 1, "did you mean `name`?");
    check(
        "hello",
        "hello",
        &["--param", "nonsense=1"],
        1,
        "--param `nonsense` is not a parameter of any service here",
    );
}

#[test]
fn until_converged_tells_how_it_came_to_its_end() {
    for _ in 0..5 {
        let output = Dev::of("quickstart").to_the_end(&["--until-converged"]);
        let said = said(&output);
        let (story, _) = said.split_once("everything is CONVERGED").expect("it converges");
        assert!(story.contains("succeeded") && story.contains("CONVERGED"), "{said}");
    }
}

#[test]
fn until_converged_ends_with_2_after_what_it_told_as_failed_whatever_a_fetch_finds_then() {
    for _ in 0..5 {
        let dev = Dev::of("quickstart");
        let script = dev.directory().join("apply.sh");
        let good = std::fs::read_to_string(&script).expect("the example has it");
        std::fs::write(&script, good + "exit 1\n").expect("a file can be written");
        let output = dev.to_the_end(&["--until-converged"]);
        let said = said(&output);
        assert!(said.contains("FAILED apply job-"), "{said}");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(!said.contains("everything is CONVERGED"), "{said}");
    }
}

#[test]
fn watching_applies_what_changes_and_waits_out_what_is_broken() {
    let mut dev = Dev::of("quickstart");
    let path = dev.directory().join("quickstart.pvn.yaml");
    let text = std::fs::read_to_string(&path).expect("the example has it");
    let write = |text: &str| std::fs::write(&path, text).expect("a file can be written");
    dev.start(&["--watch"]);
    dev.file_becomes("site/greeting.txt", "hello\n");
    write("runtime: [");
    dev.prints("waiting for the files to change");
    write(&text.replace("defaultValue: hello", "defaultValue: changed"));
    dev.file_becomes("site/greeting.txt", "changed\n");
    assert_eq!(dev.interrupt().code(), Some(0));

    dev.start(&[]);
    dev.prints("goes on at site-2");
    wait::until("nothing more to be released", || {
        dev.pvnctl(&["releases", "list"]).status.success().then_some(())
    });
    let releases = String::from_utf8_lossy(&dev.pvnctl(&["releases", "list", "-o", "json"]).stdout)
        .matches("\"rel-")
        .count();
    assert_eq!(releases, 2, "{}", dev.log());
}

#[test]
fn ctrl_c_counts_from_the_first_moment_also_where_it_was_ignored() {
    let mut dev = Dev::of("quickstart");
    dev.start_in_background(&[]);
    // Long before the config is applied.
    wait::until("the data directory", || dev.directory().join(".pvn").exists().then_some(()));
    assert_eq!(dev.interrupt().code(), Some(0), "{}", dev.log());
    dev.start_in_background(&[]);
    dev.prints("CONVERGED");
    assert_eq!(dev.interrupt().code(), Some(0), "{}", dev.log());
}

pub(crate) fn run(dev: &Dev) -> Output {
    dev.to_the_end(&["--until-converged"])
}

/// A quickstart that fetches every five minutes.
pub(crate) fn seldom() -> Dev {
    let dev = Dev::of("quickstart");
    let path = dev.directory().join("quickstart.pvn.yaml");
    let text = std::fs::read_to_string(&path).expect("the example has it");
    let seldom: String = text
        .lines()
        .filter(|line| !line.contains("PollInterval"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_ne!(seldom, text, "the quickstart no longer says how often it fetches");
    std::fs::write(&path, seldom).expect("a file can be written");
    dev
}

#[test]
fn until_converged_takes_nothing_from_an_earlier_run_for_so() {
    let dev = seldom();
    let first = run(&dev);
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let site = dev.directory().join("site");
    std::fs::remove_dir_all(&site).expect("it was made");
    let second = run(&dev);
    assert_eq!(second.status.code(), Some(0), "{}", said(&second));
    assert!(site.join("greeting.txt").exists(), "nobody looked: {}", said(&second));
}

#[test]
fn until_converged_tries_again_what_failed_in_an_earlier_run() {
    let dev = seldom();
    let script = dev.directory().join("apply.sh");
    let good = std::fs::read_to_string(&script).expect("the example has it");
    std::fs::write(&script, "#!/bin/sh\nexit 3\n").expect("a file can be written");
    for _ in 0..2 {
        let failed = run(&dev);
        assert_eq!(failed.status.code(), Some(2), "{}", said(&failed));
        assert!(said(&failed).contains("exit code 3"), "each run tries: {}", said(&failed));
    }
    std::fs::write(&script, good).expect("a file can be written");
    let mended = run(&dev);
    assert_eq!(mended.status.code(), Some(0), "{}", said(&mended));
}

#[test]
fn p7_what_a_person_cancelled_is_tried_again_by_no_start_of_dev() {
    let mut dev = seldom();
    let script = dev.directory().join("apply.sh");
    let long = "#!/bin/sh\necho began >> began\nexec sleep 600\n";
    std::fs::write(&script, long).expect("a file can be written");
    dev.start(&[]);
    let jobs = || {
        String::from_utf8_lossy(
            &dev.pvnctl(&["jobs", "list", "--kind", "apply", "-o", "json"]).stdout,
        )
        .into_owned()
    };
    let running =
        wait::until("its apply to run", || Some(jobs()).filter(|jobs| jobs.contains("RUNNING")));
    let id =
        running.split('"').find(|word| word.starts_with("job-")).expect("it has an id").to_owned();
    assert!(dev.pvnctl(&["jobs", "cancel", &id]).status.success());
    wait::until("it to be over", || jobs().contains("CANCELLED").then_some(()));
    assert_eq!(dev.interrupt().code(), Some(0));
    let again = run(&dev);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
    let began = std::fs::read_to_string(dev.directory().join("began")).expect("it began");
    assert_eq!(began.lines().count(), 1, "{}", said(&again));
}

#[test]
fn p9_a_limit_for_the_size_of_files_ends_nothing_and_is_told() {
    let mut dev = Dev::of("quickstart");
    assert_eq!(run(&dev).status.code(), Some(0));
    // Blocks of 512 bytes.
    dev.start_after("ulimit -f 1024", &[]);
    dev.prints("nothing can be stored");
    assert!(
        String::from_utf8_lossy(&dev.pvnctl(&["services", "list"]).stdout).contains("quickstart"),
        "reading goes on: {}",
        dev.log()
    );
    assert_eq!(dev.interrupt().code(), Some(0), "{}", dev.log());
}
