//! The child gets what a direct exec would have given it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::run::{Wrapper, run, shell};

#[test]
fn argv_with_double_dash_empty_newline_and_non_utf_8() {
    let odd = [b"--".as_slice(), b"", b"a b", b"line\nbreak", b"\xff\xfe", b"--report"];
    let command = [b"--".as_slice(), b"printf", b"[%s]"].into_iter().chain(odd);
    let run = Wrapper::of(command.map(OsStr::from_bytes)).run();
    assert_eq!(run.stdout, b"[--][][a b][line\nbreak][\xff\xfe][--report]");
}

#[test]
fn the_environment_reaches_the_command_less_the_token() {
    let wrapper = Wrapper::new(&[], &["env", "-0"])
        .env("PVN_TOKEN", "tok-123")
        .env("ODD", OsStr::from_bytes(b"\xff=\n"));
    let run = wrapper.run();
    let variables: Vec<&[u8]> = run.stdout.split(|byte| *byte == 0).collect();
    assert!(variables.contains(&b"ODD=\xff=\n".as_slice()));
    assert!(!variables.iter().any(|variable| variable.starts_with(b"PVN_TOKEN")));
}

#[test]
fn the_signal_mask_and_dispositions_are_those_we_were_given() {
    let look = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
    let direct =
        std::process::Command::new("sh").args(["-c", look]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(shell(&[], look).text(), String::from_utf8(direct.stdout).unwrap());
    let ignoring =
        format!("trap '' USR1 HUP PIPE; exec {} exec -- {look}", env!("CARGO_BIN_EXE_pvn-wrapper"));
    let through = std::process::Command::new("sh").args(["-c", &ignoring]).output().unwrap();
    let direct = std::process::Command::new("sh")
        .args(["-c", &format!("trap '' USR1 HUP PIPE; exec {look}")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&through.stdout), String::from_utf8_lossy(&direct.stdout));
}

#[test]
fn sigchld_ignored_at_start_loses_no_exit_status() {
    // dash refuses to ignore SIGCHLD for itself, perl does not.
    let ignoring = ["-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV"];
    let run = Wrapper::new(&[], &["sh", "-c", "sh -c 'exit 3' & wait $!; exit $((4 + $?))"])
        .through("perl", ignoring)
        .run();
    assert_eq!((run.code, run.report.exit_code), (7, Some(7)));
}

#[test]
fn environment_cwd_umask_descriptor_9_and_limits_inherited() {
    let start =
        ["-c", r#"cd /usr; umask 027; ulimit -n 99; ODD=$'a=\n b' exec "$0" "$@" 9<<<nine"#];
    let look = "cat <&9; pwd; umask; ulimit -n; printenv ODD";
    let run = Wrapper::new(&[], &["sh", "-c", look]).through("bash", start).run();
    assert_eq!((run.code, run.text().as_str()), (0, "nine\n/usr\n0027\n99\na=\n b\n"));
}

#[test]
fn the_command_has_no_descriptors_of_ours() {
    let script = "ls /proc/self/fd | tr '\\n' ' '";
    let run = shell(&[], script);
    let direct = std::process::Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(run.text(), String::from_utf8_lossy(&direct.stdout));
}

#[test]
fn closed_descriptors_stay_closed_and_do_not_become_pipes_of_ours() {
    let look = r#"sh -c '[ -e /proc/$$/fd/0 ] || echo closed > stdin; echo kept; echo too >&2'"#;
    let wrapper = Wrapper::new(&[], &[]);
    let script = format!(
        "exec {} exec --report report.json -- {look} <&- >&- 2>&-",
        env!("CARGO_BIN_EXE_pvn-wrapper")
    );
    let status = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(wrapper.directory.path())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(wrapper.path("stdin")).unwrap(), "closed\n");
    let report: schema::report::Report =
        serde_json::from_slice(&std::fs::read(wrapper.path("report.json")).unwrap()).unwrap();
    assert_eq!(
        (report.stdout_inline.as_deref(), report.stderr_inline.as_deref()),
        (Some("a2VwdAo="), Some("dG9vCg=="))
    );
}

#[test]
fn stdin_from_a_100_mb_pipe_passes_through() {
    let mut wrapper = Wrapper::new(&[], &["wc", "-c"]);
    wrapper.command.stdin(Stdio::piped());
    let mut running = wrapper.spawn();
    let mut stdin = running.child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        std::io::copy(&mut std::io::Read::take(std::io::repeat(b'x'), 100_000_000), &mut stdin)
            .unwrap()
    });
    assert_eq!(running.wait().text().trim(), "100000000");
    writer.join().unwrap();
}

#[test]
fn the_command_is_in_a_process_group_of_its_own() {
    let run = shell(&[], "ps -o pgid= -p $$ | tr -d ' '; echo $$");
    let (group, pid) =
        run.text().trim().split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!(group, pid);
}

#[test]
fn wrapper_inside_wrapper_changes_nothing() {
    let run = run(
        &[],
        &[env!("CARGO_BIN_EXE_pvn-wrapper"), "exec", "--", "sh", "-c", "echo hello; exit 9"],
    );
    assert_eq!((run.code, run.text().as_str()), (9, "hello\n"));
}

#[test]
fn wrapper_under_tini_changes_nothing() {
    if std::process::Command::new("tini").arg("--version").output().is_err() {
        return crate::skipped("wrapper_under_tini_changes_nothing", "tini is not installed");
    }
    let run =
        Wrapper::new(&[], &["sh", "-c", "echo hello; exit 9"]).through("tini", ["-s", "--"]).run();
    assert_eq!((run.code, run.text().as_str()), (9, "hello\n"));
}

#[test]
fn a_command_that_gives_its_user_up_can_open_its_output_again() {
    let test = "a_command_that_gives_its_user_up_can_open_its_output_again";
    if !rustix::process::geteuid().is_root() {
        return crate::skipped(test, "only root can become another user");
    }
    let script = "echo out > /dev/stdout; echo err > /dev/stderr";
    let run =
        run(&[], &["setpriv", "--reuid", "65534", "--clear-groups", "--", "sh", "-c", script]);
    assert_eq!((run.code, run.text().as_str(), run.stderr.as_str()), (0, "out\n", "err\n"));
}
