//! Output passes through unchanged and is kept, apart and exactly.

use std::io::Read;
use std::process::Stdio;

use base64::Engine;
use schema::id::BlobId;
use schema::spool::{Stream, order_pieces};

use crate::run::{Wrapper, run, shell};

#[test]
fn all_byte_values_pass_on_both_streams() {
    let perl = "binmode STDOUT; binmode STDERR; print map { chr } 0..255; print STDERR map { chr \
                } reverse 0..255";
    let run = run(&[], &["perl", "-e", perl]);
    let all: Vec<u8> = (0..=255).collect();
    let reverse: Vec<u8> = (0..=255).rev().collect();
    assert_eq!(run.stdout, all);
    assert_eq!(
        (run.report.stdout_blob_id, run.report.stderr_blob_id),
        (Some(BlobId::of(&all)), Some(BlobId::of(&reverse)))
    );
}

#[test]
fn output_without_a_last_newline_is_kept_as_it_is() {
    assert_eq!(run(&[], &["printf", "a\\nb"]).stdout, b"a\nb");
}

#[test]
fn output_that_has_no_room_where_it_goes_is_no_success() {
    for (script, code, says) in [
        ("seq 9000", 65, true),
        ("seq 9000; exit 2", 65, true),
        ("seq 9000; exit 3", 3, true),
        ("exit 0", 0, false),
    ] {
        let mut wrapper = Wrapper::new(&[], &["sh", "-c", script]);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = wrapper.command.stdout(full).stderr(Stdio::piped()).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        let report: schema::report::Report =
            serde_json::from_slice(&std::fs::read(wrapper.path("report.json")).unwrap()).unwrap();
        assert_eq!(output.status.code(), Some(code), "{script}: {words}");
        assert_eq!(
            words.contains("bytes of the output could not be written where it goes: No space left"),
            says,
            "{script}: {words}"
        );
        assert_eq!(report.bad_output.is_some(), code == 65, "{script}");
        assert_eq!(report.lost_bytes, 0, "all of it is kept: {script}");
    }
}

#[test]
fn a_reader_that_left_is_no_failure() {
    let mut wrapper = Wrapper::new(&[], &["seq", "200000"]);
    let mut child = wrapper.command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn one_mib_written_just_before_exit_1000_times() {
    let expected = "0123456789abcde\n".repeat(1 << 16);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let expected = expected.clone();
            std::thread::spawn(move || {
                let mut wrapper = Wrapper::new(&[], &["cat", "text"]);
                std::fs::write(wrapper.path("text"), &expected).unwrap();
                for _ in 0..250 {
                    let output = wrapper.command.output().unwrap();
                    assert!(output.stdout == expected.as_bytes() && output.status.success());
                    let report: schema::report::Report = serde_json::from_slice(
                        &std::fs::read(wrapper.path("report.json")).unwrap(),
                    )
                    .unwrap();
                    assert_eq!(
                        (report.stdout_blob_id, report.output_incomplete),
                        (Some(BlobId::of(expected.as_bytes())), false)
                    );
                    std::fs::remove_file(wrapper.path("report.json")).unwrap();
                }
                wrapper.check_nothing_is_left();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn one_gb_on_both_at_once() {
    let lines = crate::sized(1_000_000_u32, 114_000_000);
    // Full size is more than the usual cap keeps.
    let script = format!("seq {lines} & seq {lines} >&2; wait");
    let mut running = Wrapper::new(&["--max-output", "2000000000"], &["sh", "-c", &script]).spawn();
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut all = crate::run::Digest::default();
            std::io::copy(&mut from, &mut all).unwrap();
            all.finish()
        })
    };
    let readers = [
        read(Box::new(running.child.stdout.take().unwrap())),
        read(Box::new(running.child.stderr.take().unwrap())),
    ];
    let run = running.wait();
    let [stdout, stderr] = readers.map(|reader| reader.join().unwrap());
    assert_eq!(stdout, stderr, "both are the same numbers");
    assert_eq!((run.report.stdout_bytes, run.report.stdout_blob_id), (stdout.0, Some(stdout.1)));
    assert_eq!((run.report.stderr_bytes, run.report.stderr_blob_id), (stderr.0, Some(stderr.1)));
    assert_eq!((run.report.truncated, run.report.lost_bytes), (false, 0));
}

/// Each piece is written when the one before has left its pipe.
const ALTERNATING: &str = "sub drained { my $n = pack 'i', 1; until (unpack('i', $n) == 0) { \
                           ioctl $_[0], 0x541B, $n or die } } for (1..100) { syswrite STDOUT, 'o' \
                           x $_; drained(*STDOUT); syswrite STDERR, 'e' x $_; drained(*STDERR) }";

#[test]
fn alternating_stdout_and_stderr_stay_apart_and_in_order() {
    let run = run(&["--job", "."], &["perl", "-e", ALTERNATING]);
    assert_eq!((run.report.stdout_bytes, run.report.stderr_bytes), (5050, 5050));
    assert!(
        run.stdout.iter().all(|byte| *byte == b'o') && run.stderr.bytes().all(|byte| byte == b'e')
    );
    let order = std::fs::read(run.path("order")).unwrap();
    let expected = (1..=100).flat_map(|length| Stream::ALL.map(|stream| (stream, length)));
    assert!(order_pieces(&order).eq(expected), "{:?}", order_pieces(&order).collect::<Vec<_>>());
}

#[test]
fn beyond_the_cap_head_and_tail_are_kept_with_exact_counts() {
    let run = shell(&["--max-output", "1000"], "seq 100000");
    let all: String = (1..=100_000).map(|i| format!("{i}\n")).collect();
    assert!(run.text() == all, "everything passes through");
    let kept = format!("{}{}", &all[..500], &all[all.len() - 500..]);
    let inline = base64::engine::general_purpose::STANDARD
        .decode(run.report.stdout_inline.unwrap())
        .unwrap();
    assert_eq!(String::from_utf8(inline).unwrap(), kept);
    assert_eq!(
        (run.report.stdout_bytes, run.report.stdout_head_bytes, run.report.truncated),
        (all.len() as u64, Some(500), true)
    );
    assert_eq!(run.report.lost_bytes, 0, "what the cap cuts is not lost");
}

#[test]
fn a_run_leaves_nothing_in_the_temporary_directory() {
    let run = shell(&[], "seq 100000");
    let left: Vec<_> = std::fs::read_dir(run.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(
        left.iter().filter(|name| *name != "report.json" && *name != "pvn").count(),
        0,
        "{left:?}"
    );
    assert_eq!(std::fs::read_dir(run.path("pvn")).unwrap().count(), 0);
}

#[test]
fn a_declared_spool_directory_keeps_the_streams() {
    let run = shell(&["--spool", "kept"], "seq 100000");
    assert_eq!(std::fs::read(run.path("kept/stdout")).unwrap(), run.stdout);
}

#[test]
fn without_a_writable_disk_head_and_tail_are_kept_and_the_rest_is_counted_as_lost() {
    let run = shell(&["--spool", "/proc/no/such"], "seq 1000000");
    let total = run.stdout.len() as u64;
    assert_eq!((run.code, run.report.stdout_bytes), (0, total));
    assert_eq!(run.report.lost_bytes, total - (512 << 10));
    assert!(!run.report.truncated);
}

#[test]
fn child_closes_stdout_and_works_on() {
    let run = shell(&[], "exec >&- 2>&-; echo x > after; exit 5");
    assert_eq!(run.code, 5);
    assert!(run.path("after").exists());
}

#[test]
fn stdout_is_a_closed_pipe_and_the_command_goes_on() {
    let mut running = Wrapper::new(&[], &["sh", "-c", "seq 100000; echo x > done"]).spawn();
    drop(running.child.stdout.take());
    let run = running.wait();
    assert_eq!((run.code, run.report.stdout_bytes), (0, 588_895));
    assert!(run.path("done").exists());
}

#[test]
fn a_slow_reader_loses_nothing() {
    let mut running = Wrapper::new(&[], &["sh", "-c", "seq 1000000; echo > ready"]).spawn();
    let mut stdout = running.child.stdout.take().unwrap();
    let mut first = [0; 1000];
    stdout.read_exact(&mut first).unwrap();
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    let run = running.wait();
    let all = [first.as_slice(), &rest].concat();
    assert_eq!(run.report.stdout_blob_id, Some(BlobId::of(&all)));
}

#[test]
fn output_passes_through_at_once() {
    let mut running =
        Wrapper::new(&[], &["sh", "-c", "printf now; until [ -e go ]; do sleep 0.01; done"])
            .spawn();
    let mut stdout = running.child.stdout.take().unwrap();
    let mut first = [0; 3];
    stdout.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"now");
    std::fs::write(running.path("go"), "").unwrap();
    assert_eq!(running.wait().code, 0);
}

#[test]
fn output_to_a_file_or_to_nothing_is_kept_too() {
    let mut wrapper = Wrapper::new(&[], &["seq", "100000"]);
    wrapper
        .command
        .stdout(std::fs::File::create(wrapper.path("file")).unwrap())
        .stderr(Stdio::null());
    let run = wrapper.run();
    assert_eq!(
        run.report.stdout_blob_id,
        Some(BlobId::of(&std::fs::read(run.path("file")).unwrap()))
    );
}

#[test]
fn secrets_are_masked_in_what_passes_through_what_is_kept_and_what_is_said() {
    let wrapper = Wrapper::new(
        &[],
        &["sh", "-c", "echo $A; printf 'hunter'; sleep 0.05; echo 2-hunter2; echo $A | base64 >&2"],
    );
    let run =
        wrapper.env("PVN_SECRET_KEYS", "A,B").env("A", "hunter2-hunter2").env("B", "short").run();
    assert_eq!(run.text(), "***\n***\n");
    assert_eq!(run.report.stdout_blob_id, Some(BlobId::of(b"***\n***\n")));
    assert!(run.stderr.contains("the value of B is not masked"), "{}", run.stderr);
    let refused = Wrapper::new(&[], &["/no/hunter2-hunter2"])
        .env("PVN_SECRET_KEYS", "A")
        .env("A", "hunter2-hunter2")
        .run();
    assert!(
        !refused.stderr.contains("hunter2")
            && !refused.report.exec_error.unwrap().contains("hunter2")
    );
}

#[test]
fn a_value_that_is_only_to_be_masked_is_not_the_commands_to_see() {
    let script = "env; tr '\\0' '\\n' </proc/$PPID/environ; echo in the plan: $1; echo done";
    let run = Wrapper::new(&[], &["sh", "-c", script, "sh", "hunter2-hunter2"])
        .env("PVN_SECRET_KEYS", "PVN_HIDDEN_0")
        .env("PVN_HIDDEN_0", "hunter2-hunter2")
        .run();
    let shown = String::from_utf8_lossy(&run.stdout);
    assert!(shown.contains("in the plan: ***") && !shown.contains("hunter2"), "{shown}");
    assert!(
        !shown.lines().any(|line| line.starts_with("PVN_HIDDEN_0=")
            && line.trim_end_matches('\0') != "PVN_HIDDEN_0="),
        "{shown}"
    );
}
