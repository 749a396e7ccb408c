//! Secrets and the token in all that leaves the wrapper.

use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::id::BlobId;
use schema::spool::Stream;

use super::{check, shell};
use crate::run::Wrapper;
use crate::scheduler::{JOB, Scheduler, TOKEN};

/// With something to escape in JSON and in addresses.
const SECRET: &str = "hunter/22 & \"more\"";

fn with_secret(wrapper: Wrapper) -> Wrapper {
    wrapper.env("PVN_SECRET_KEYS", "PASSWORD").env("PASSWORD", SECRET)
}

fn forms() -> Vec<String> {
    let json = serde_json::to_string(SECRET).unwrap();
    let percent: String = SECRET
        .bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect();
    let core = STANDARD.encode(format!("user:{SECRET}"));
    vec![SECRET.into(), json[1..json.len() - 1].into(), percent, STANDARD.encode(SECRET), core]
}

#[test]
fn secret_cut_at_every_byte_of_a_read() {
    let scheduler = Scheduler::start();
    // One write a byte, of every form, on both streams.
    let all = forms().join(" | ");
    let wrapper = with_secret(shell(
        &scheduler,
        &[],
        "dd if=forms bs=1 status=none; dd if=forms bs=1 status=none >&2",
    ));
    std::fs::write(wrapper.path("forms"), &all).unwrap();
    let run = wrapper.run();
    // Of `user:SECRET` in base64 what is only `user:` stays, and the last character or two, which
    // tell a few bits at most.
    let shown = run.text();
    let rest = shown
        .strip_prefix("*** | *** | *** | *** | dXNlcjp***")
        .unwrap_or_else(|| panic!("{shown}"));
    assert!(rest.len() <= 4, "{shown}");
    check(&scheduler, &run);
    for text in [
        scheduler.bytes(Stream::Stdout),
        scheduler.bytes(Stream::Stderr),
        run.stdout.clone(),
        run.stderr.clone().into_bytes(),
    ] {
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("***") && forms().iter().all(|form| !text.contains(form.as_str())),
            "{text}"
        );
    }
    assert_eq!(run.report.stdout_bytes, run.stdout.len() as u64, "sizes are of the masked bytes");
}

#[test]
fn a_secret_stands_in_no_report_message_or_line() {
    let scheduler = Scheduler::start();
    scheduler.go_away();
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("termination-log");
    std::fs::write(&log, "").unwrap();
    // In the name of a missing output, in a process that is left, and escaped in the document.
    let script = r#"
        sh -c 'echo > named; sleep 60; :' "$PASSWORD" &
        until test -e named; do sleep 0.01; done
        printf '{"objects": [{"name": "\\u0068unter/22 & \\"more\\"", "objectType": "x"}]}'
        printf '%s' "$PASSWORD" >&2"#;
    let flags = [
        "--expect",
        "fetch",
        "--out",
        &format!("plan=/nowhere/{SECRET}"),
        "--drain",
        "0s",
        "--deliver-for",
        "500ms",
    ];
    let run = with_secret(shell(&scheduler, &flags, script)).env("PVN_TERMINATION_LOG", &log).run();
    assert_eq!(run.code, 65, "{}", run.stderr);
    let told = std::fs::read_to_string(&log).unwrap();
    let spooled = std::fs::read_to_string(run.path("pvn").join(JOB).join("report.json")).unwrap();
    for text in [&run.stderr, &serde_json::to_string(&run.report).unwrap(), &told, &spooled] {
        assert!(!text.contains("hunter/22") && !text.contains(TOKEN), "{text}");
    }
    assert!(run.stderr.contains("/nowhere/***"), "{}", run.stderr);
    assert!(
        run.report.leaked.iter().any(|left| left.argv.contains(&"***".to_owned())),
        "{:?}",
        run.report.leaked
    );
    assert_eq!(run.report.structured.unwrap().value.unwrap()["objects"][0]["name"], "***");
}

#[test]
fn an_exec_error_hides_secrets_too() {
    let scheduler = Scheduler::start();
    let run = with_secret(super::wrapper(&scheduler, &[], &[&format!("/nowhere/{SECRET}")])).run();
    assert_eq!(run.code, 127);
    check(&scheduler, &run);
    assert!(
        run.report.exec_error.unwrap().contains("/nowhere/***") && !run.stderr.contains(SECRET),
        "{}",
        run.stderr
    );
}

#[test]
fn termination_message_at_4096_bytes_is_valid_json() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("termination-log");
    let check = |wrapper: Wrapper| {
        std::fs::write(&log, "older and longer".repeat(1000)).unwrap();
        let run = wrapper.env("PVN_TERMINATION_LOG", &log).run();
        let text = std::fs::read(&log).unwrap();
        assert!((2..=4096).contains(&text.len()), "{} bytes", text.len());
        let short: schema::report::Report = serde_json::from_slice(&text).unwrap();
        assert_eq!(
            (short.exit_code, short.stdout_bytes, short.stdout_blob_id),
            (run.report.exit_code, run.report.stdout_bytes, run.report.stdout_blob_id)
        );
        assert_eq!(short.exec_error.is_some(), run.report.exec_error.is_some());
    };
    check(Wrapper::new(&[], &["true"]));
    check(Wrapper::new(&[], &["sh", "-c", "head -c 60000 /dev/urandom; exit 3"]));
    check(Wrapper::new(&[], &[&format!("/nowhere/{}", "\"\\\u{1}".repeat(1300))]));
    let outputs: Vec<String> =
        (0..50).map(|i| format!("--out=file-{i}=/nowhere/{}", "long/".repeat(50))).collect();
    check(Wrapper::new(&outputs.iter().map(String::as_str).collect::<Vec<_>>(), &["true"]));
}

#[test]
fn stderr_is_a_closed_pipe_and_the_report_is_kept_all_the_same() {
    let scheduler = Scheduler::start();
    scheduler.go_away();
    let mut wrapper = shell(&scheduler, &["--deliver-for", "300ms"], "echo x >&2; exit 6");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    wrapper.command.stderr(Stdio::from(writer));
    let run = wrapper.run();
    assert_eq!(run.code, 6);
    assert!(run.path("pvn").join(JOB).join("report.json").exists());
}

#[test]
fn an_explanation_is_masked_before_it_is_kept_and_a_plan_stays_byte_for_byte() {
    let secret = "hunter22-and-more";
    let script = "printf 'key: %s\\n' \"$PASSWORD\" | tee tf.plan > tf.txt";
    let flags = ["--out", "plan=tf.plan", "--out", "plan-explanation=tf.txt"];
    let (plan, explanation) =
        (BlobId::of(format!("key: {secret}\n").as_bytes()), BlobId::of(b"key: ***\n"));
    for spool in [None, Some("/proc/nowhere")] {
        let scheduler = Scheduler::start();
        let flags: Vec<_> = flags
            .into_iter()
            .chain(spool.into_iter().flat_map(|spool| ["--spool", spool]))
            .collect();
        let run = shell(&scheduler, &flags, script)
            .env("PVN_SECRET_KEYS", "PASSWORD")
            .env("PASSWORD", secret)
            .run();
        check(&scheduler, &run);
        let files = scheduler.state().files.clone();
        assert_eq!((files["plan"], files["plan-explanation"]), (plan, explanation), "{spool:?}");
    }
    // A local job's is what its directory has.
    let job = tempfile::tempdir().unwrap();
    let flags: Vec<_> = ["--job", job.path().to_str().unwrap()].into_iter().chain(flags).collect();
    let run = Wrapper::new(&flags, &["sh", "-c", script])
        .env("PVN_SECRET_KEYS", "PASSWORD")
        .env("PASSWORD", secret)
        .run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let kept =
        |name: &str| BlobId::of(&std::fs::read(job.path().join("files").join(name)).unwrap());
    assert_eq!((kept("plan"), kept("plan-explanation")), (plan, explanation));
    let told: Vec<_> = run.report.files.iter().map(|file| file.content_blob_id.unwrap()).collect();
    assert_eq!(told, [plan, explanation]);
}

#[test]
fn arguments_that_are_wrong_show_no_secret() {
    let scheduler = Scheduler::start();
    let wrapper =
        shell(&scheduler, &["--hunter22-and-more"], "true").env("PVN_SECRET_KEYS", "PASSWORD");
    let output = wrapper.env("PASSWORD", "hunter22-and-more").command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("***") && !said.contains("hunter22"), "{said}");
    let told = scheduler.check().exec_error.unwrap();
    assert!(told.contains("***") && !told.contains("hunter22"), "{told}");
}

/// Looks through all that a process of the command's user can see for `$A$B`, the token in two
/// halves.
const LOOK: &str = r#"
    for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do
        tr '\0' '\n' < "$file" 2> /dev/null | while IFS= read -r line; do
            case $line in *"$A$B"*) echo "$file: $line"; ;; esac
        done
    done
    find "$TMPDIR" -type f | while IFS= read -r file; do
        while IFS= read -r line || [ -n "$line" ]; do
            case $line in *"$A$B"*) echo "$file: $line"; ;; esac
        done < "$file"
    done
"#;

#[test]
fn the_command_finds_the_token_nowhere() {
    let root = rustix::process::geteuid().is_root();
    for other in [false, true] {
        if other && !root {
            crate::skipped(
                "the_command_finds_the_token_nowhere",
                "only root can become another user",
            );
            continue;
        }
        for file in [false, true] {
            let (a, b) =
                ("half-of-it-".to_owned(), format!("{}-{other}-{file}", std::process::id()));
            let scheduler = Scheduler::start();
            let (token, directory) = (format!("{a}{b}"), tempfile::tempdir().unwrap());
            scheduler.state().tokens.push(token.clone());
            std::fs::write(directory.path().join("token"), &token).unwrap();
            let mut wrapper =
                shell(&scheduler, &[], LOOK).env("A", &a).env("B", &b).env("PVN_TOKEN", &token);
            if file {
                // Whoever knows where it is could read it.
                let path = directory.path().join("token");
                wrapper = wrapper
                    .env("PVN_TOKEN", "")
                    .env("PVN_TOKEN_FILE", &path)
                    .env("A", directory.path())
                    .env("B", "/token");
                std::os::unix::fs::chown(directory.path(), other.then_some(65534), None).unwrap();
                std::os::unix::fs::chown(path, other.then_some(65534), None).unwrap();
            }
            if other {
                std::os::unix::fs::chown(wrapper.directory.path(), Some(65534), None).unwrap();
                wrapper = wrapper.through("setpriv", ["--reuid", "65534", "--clear-groups", "--"]);
            }
            let run = wrapper.run();
            assert_eq!(
                (run.code, run.text().as_str()),
                (0, ""),
                "as another: {other}, of a file: {file}"
            );
            scheduler.check();
        }
    }
}
