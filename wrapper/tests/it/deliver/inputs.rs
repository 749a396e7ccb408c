//! Declared inputs on their way from the scheduler.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use super::shell;
use crate::run::{PATIENCE, SOON, is_alive, until};
use crate::scheduler::{Do, Reply, Scheduler};

/// Answers whoever asks with a file that comes a byte at a time, for longer than any test waits;
/// says where.
fn trickling() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // It ends with the process of the tests.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let asked = stream.read(&mut request).unwrap_or(0);
                if !request[..asked].starts_with(b"GET ") {
                    return;
                }
                let head = "HTTP/1.1 200 x\r\nContent-Type: \
                            application/octet-stream\r\nContent-Length: 1000000\r\n\r\n";
                let mut sent = stream.write_all(head.as_bytes());
                let began = std::time::Instant::now();
                while sent.is_ok() && began.elapsed() < 2 * PATIENCE {
                    std::thread::park_timeout(Duration::from_millis(20));
                    sent = stream.write_all(b"x");
                }
            });
        }
    });
    url
}

#[test]
fn an_input_that_trickles_is_waited_for_no_longer_than_declared() {
    let scheduler = Scheduler::start();
    for flags in [
        ["--timeout", "1s", "--deliver-for", "1s"],
        ["--timeout", "1h", "--deliver-for", "1s"],
        ["--timeout", "1s", "--kill-after", "1s"],
    ] {
        let flags = [&flags[..], &["--in", "new/tf.plan=fetch:plan", "--report", "-"]].concat();
        let mut wrapper = shell(&scheduler, &flags, "echo > ran").env("PVN_API_URL", trickling());
        if flags[2] != "--deliver-for" {
            // The time for the report is another one.
            wrapper = wrapper.env("PVN_DELIVERY_TIMEOUT", "20s");
        }
        let mut child = wrapper.command.spawn().unwrap();
        let status = until("the wrapper ended", || child.try_wait().unwrap());
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(status.code(), Some(125), "{said}");
        assert!(
            said.contains("cannot fetch the inputs")
                && said.contains("not all of them came within"),
            "{said}"
        );
        assert!(!wrapper.path("ran").exists() && !wrapper.path("new").exists());
    }
}

#[test]
fn directories_that_were_made_for_an_input_are_gone_afterwards_unless_the_command_uses_them() {
    let leaves = |script: &str| {
        let scheduler = Scheduler::start();
        scheduler.state().inputs.insert("fetch:plan".to_owned(), b"the plan".to_vec());
        let wrapper = shell(&scheduler, &["--in", "there/new/deep/tf.plan=fetch:plan"], script);
        std::fs::create_dir(wrapper.path("there")).unwrap();
        let run = wrapper.run();
        assert_eq!((run.code, run.text().as_str()), (0, "the plan"), "{}", run.stderr);
        assert!(run.path("there").exists());
        [run.path("there/new").exists(), run.path("there/new/deep").exists()]
    };
    assert_eq!(leaves("cat there/new/deep/tf.plan"), [false, false]);
    assert_eq!(leaves("cat there/new/deep/tf.plan; echo > there/new/mine"), [true, false]);
}

#[test]
fn an_input_that_arrives_after_a_stop_is_not_placed() {
    // Or would arrive when it is asked for again.
    for first in [200, 503] {
        arrives_after_a_stop(first);
    }
}

fn arrives_after_a_stop(first: u16) {
    let directory = tempfile::tempdir().unwrap();
    let [arrive, deliver] = ["arrive", "deliver"].map(|name| directory.path().join(name));
    let [at_arrive, at_deliver] = [arrive.clone(), deliver.clone()];
    let scheduler = Scheduler::start().with(move |request, number| {
        let held = match request.method.as_str() {
            "GET" => Some(&at_arrive),
            "PUT" => Some(&at_deliver),
            _ => None,
        };
        if let Some(held) = held {
            until("the test goes on", || held.exists().then_some(()));
        }
        if request.method == "GET" && number == 0 && first != 200 {
            return Do::Answer(Reply::empty(first).with("Retry-After", 0));
        }
        Do::Usual
    });
    scheduler.state().inputs.insert("fetch:plan".to_owned(), b"the plan".to_vec());
    let running = shell(&scheduler, &["--in", "tf.plan=fetch:plan"], "echo > ran").spawn();
    scheduler.until_asked("GET", 1);
    // It sleeps while its job is stopped, and wakes up.
    for signal in [19, 15, 18] {
        running.signal(signal);
    }
    scheduler.until_asked("PUT /report", 1);
    // Its path is another's now.
    std::fs::write(running.path("tf.plan"), "another's").unwrap();
    std::fs::write(&arrive, "").unwrap();
    let tasks = format!("/proc/{}/task", running.child.id());
    until("nobody fetches any more", || {
        let names = std::fs::read_dir(&tasks)
            .unwrap()
            .flatten()
            .map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default());
        names.into_iter().all(|name| name.trim() != "inputs").then_some(())
    });
    assert!(is_alive(running.child.id().cast_signed()), "it delivers");
    assert_eq!(std::fs::read_to_string(running.path("tf.plan")).unwrap(), "another's");
    std::fs::write(&deliver, "").unwrap();
    let run = running.wait();
    assert_eq!(run.code, 125);
    assert!(run.took < SOON && run.report.exec_error.as_ref().unwrap().contains("asked to stop"));
    let left: Vec<_> = run
        .directory
        .path()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        left.iter().all(|name| !name.contains(".pvn-")) && !run.path("ran").exists(),
        "{left:?}"
    );
}
