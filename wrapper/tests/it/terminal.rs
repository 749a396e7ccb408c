//! Under a terminal, as python's `pty` makes one: the keyboard reaches the command, once, and the
//! wrapper is an ordinary job of a shell.

use std::process::{Command, Stdio};

use crate::kernel::{NAMESPACE, no_namespaces};

/// Talks with a program on a terminal of its own: waits for a text, sends one, and so on. Prints
/// all that it saw at the end.
const TALK: &str = r#"
import os, pty, select, sys, time, fcntl, termios, struct
wrapper, script = sys.argv[1], sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(script[0].replace("WRAPPER", wrapper), [word.replace("WRAPPER", wrapper) for word in script[0:script.index("--then")]])
steps, seen, at = script[script.index("--then") + 1:], b"", 0
def until(text):
    global seen, at
    deadline = time.monotonic() + 60
    while text not in seen[at:]:
        ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        try:
            piece = os.read(terminal, 4096) if ready else b""
        except OSError:
            piece = b""
        if not piece:
            sys.exit("waited in vain for %r in %r" % (text, seen))
        seen += piece
    at = seen.index(text, at) + len(text)
for step in steps:
    what, _, text = step.partition(":")
    if what == "until":
        until(text.encode())
    elif what == "resize":
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    else:
        os.write(terminal, text.encode())
try:
    while True:
        piece = os.read(terminal, 4096)
        if not piece:
            break
        seen += piece
except OSError:
    pass
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Runs `command` on a terminal, `WRAPPER` in it being ours; takes the steps; returns its exit code
/// and all that was shown.
fn talk(test: &str, command: &[&str], steps: &[&str]) -> Option<(i32, String)> {
    talk_through(test, &[], command, steps)
}

/// The same, Python being started by another program with its arguments.
fn talk_through(
    test: &str,
    starter: &[&str],
    command: &[&str],
    steps: &[&str],
) -> Option<(i32, String)> {
    if Command::new("python3").arg("--version").output().is_err() {
        crate::skipped(test, "python3 is not installed");
        return None;
    }
    // Whatever whoever runs the tests ignores, keys do what they do.
    let mut python = Command::new("env");
    python
        .arg("--default-signal")
        .args(starter)
        .args(["python3", "-c", TALK, env!("CARGO_BIN_EXE_pvn-wrapper")])
        .args(command);
    python
        .arg("--then")
        .args(steps)
        .stdin(Stdio::null())
        .env_remove("PVN_JOB_DIR")
        .env("TERM", "dumb");
    let output = python.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_empty(), "{said}");
    Some((output.status.code()?, shown))
}

/// Makes a shell's prompt one to wait for; as it is typed it is not that yet.
const PROMPT: &str = "type:PS1='prom''pt> '\n";

/// Counts what the keyboard sends, and says so as it comes.
const COUNT: &str = "use POSIX; $| = 1; my %n; for my $s (qw(INT WINCH CONT)) { $SIG{$s} = sub { \
                     $n{$s}++; print qq($s $n{$s}\n); exit 7 if $s eq 'INT' } } print \
                     qq(ready\n); while (1) { sleep 1 }";

#[test]
fn under_a_terminal_with_ctrl_c() {
    let wrapped = ["WRAPPER", "exec", "--", "perl", "-e", COUNT];
    let Some((code, shown)) =
        talk("under_a_terminal_with_ctrl_c", &wrapped, &["until:ready", "type:\x03"])
    else {
        return;
    };
    assert_eq!(
        (code, shown.matches("INT 1").count(), shown.matches("INT 2").count()),
        (7, 1, 0),
        "{shown}"
    );
}

#[test]
fn under_a_terminal_with_resize() {
    let steps = ["until:ready", "resize:", "until:WINCH 1", "type:\x03"];
    let Some((code, shown)) = talk(
        "under_a_terminal_with_resize",
        &["WRAPPER", "exec", "--", "perl", "-e", COUNT],
        &steps,
    ) else {
        return;
    };
    assert!(code == 7 && !shown.contains("WINCH 2"), "{code}: {shown}");
}

#[test]
fn under_a_terminal_the_command_can_read_it() {
    let command = [
        "WRAPPER",
        "exec",
        "--",
        "sh",
        "-c",
        "echo ready; read line; echo \"got $line\"; tty -s && echo tty; exit 4",
    ];
    let Some((code, shown)) = talk(
        "under_a_terminal_the_command_can_read_it",
        &command,
        &["until:ready", "type:hello\n"],
    ) else {
        return;
    };
    assert!(code == 4 && shown.contains("got hello") && shown.contains("tty"), "{code}: {shown}");
}

#[test]
fn under_a_terminal_a_command_that_cannot_start_leaves_it_to_the_next() {
    let command = [
        "sh",
        "-c",
        "WRAPPER exec -- ./no-such-program; echo ready; read line; echo \"got $line\"",
    ];
    let Some((code, shown)) = talk(
        "under_a_terminal_a_command_that_cannot_start",
        &command,
        &["until:ready", "type:hello\n"],
    ) else {
        return;
    };
    assert!(
        code == 0
            && shown.contains("got hello")
            && shown.contains("`./no-such-program` was not found"),
        "{code}: {shown}"
    );
}

#[test]
fn under_a_terminal_with_ctrl_z_the_shell_has_it_back_and_can_go_on() {
    let job = "type:WRAPPER-PATH exec -- sh -c 'echo rea''dy; read line; echo \"got $line\"'; \
               echo \"code $?\"\n";
    let job = job.replace("WRAPPER-PATH", env!("CARGO_BIN_EXE_pvn-wrapper"));
    let steps = [
        PROMPT,
        "until:prompt> ",
        &job,
        "until:ready",
        "type:\x1a",
        "until:Stopped",
        "until:prompt> ",
        "type:fg\n",
        "until:sh -c",
        "type:hello\n",
        "until:got hello",
        "until:prompt> ",
        "type:exit 5\n",
    ];
    let shell = ["bash", "--norc", "--noprofile", "-i"];
    let Some((code, shown)) = talk("under_a_terminal_with_ctrl_z", &shell, &steps) else { return };
    assert_eq!(code, 5, "{shown}");
}

#[test]
fn under_a_terminal_without_a_shell_ctrl_z_stops_nothing() {
    let command =
        ["WRAPPER", "exec", "--", "sh", "-c", "echo ready; read line; echo \"got $line\""];
    let steps = ["until:ready", "type:\x1a", "type:hello\n", "until:got"];
    let Some((code, shown)) = talk("under_a_terminal_without_a_shell", &command, &steps) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
}

#[test]
fn under_a_terminal_whose_starter_has_its_session_outside_our_pid_namespace() {
    let test = "under_a_terminal_whose_starter_has_its_session_outside_our_pid_namespace";
    if let Some(why) = no_namespaces() {
        return crate::skipped(test, &why);
    }
    let command =
        ["WRAPPER", "exec", "--", "sh", "-c", "echo ready; read line; echo \"got $line\""];
    let steps = ["until:ready", "type:\x1a", "type:hello\n", "until:got"];
    let Some((code, shown)) =
        talk_through(test, &[["unshare"].as_slice(), &NAMESPACE].concat(), &command, &steps)
    else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
}

#[test]
fn in_a_pipeline_the_other_commands_can_read_the_terminal() {
    // The reader of the pipe reads the terminal, as a pager does.
    let script = "WRAPPER exec -- sh -c 'echo piped; sleep 0.2' | { read line; read answer < \
                  /dev/tty; echo \"$line $answer\"; }";
    let script = script.replace("WRAPPER", env!("CARGO_BIN_EXE_pvn-wrapper"));
    let steps = [
        PROMPT,
        "until:prompt> ",
        &format!("type:{script}\n"),
        "type:yes\n",
        "until:piped yes",
        "until:prompt> ",
        "type:exit 0\n",
    ];
    let Some((code, shown)) =
        talk("in_a_pipeline", &["bash", "--norc", "--noprofile", "-i"], &steps)
    else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
}

/// A script in a file, so that what it prints is not what was typed.
fn script(text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script");
    std::fs::write(&file, text.replace("WRAPPER", env!("CARGO_BIN_EXE_pvn-wrapper"))).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (directory, file)
}

/// Runs `job` in an interactive shell, and takes the steps after a prompt.
fn talk_to_a_shell(test: &str, job: &str, steps: &[&str]) {
    let job = format!("type:{job}\n");
    let steps =
        [&[PROMPT, "until:prompt> ", &job], steps, &["until:prompt> ", "type:exit 5\n"]].concat();
    let Some((code, shown)) = talk(test, &["bash", "--norc", "--noprofile", "-i"], &steps) else {
        return;
    };
    assert_eq!(code, 5, "{shown}");
}

#[test]
fn under_a_terminal_in_a_script_ctrl_z_stops_the_script_too() {
    let (_directory, file) =
        script("WRAPPER exec -- sh -c 'echo ready; read line; echo \"got $line\"'; echo after");
    let steps = [
        "until:ready",
        "type:\x1a",
        "until:Stopped",
        "until:prompt> ",
        "type:fg\n",
        "until:script",
        "type:hello\n",
    ];
    let steps = [steps.as_slice(), &["until:got hello", "until:after"]].concat();
    talk_to_a_shell(
        "under_a_terminal_in_a_script_ctrl_z_stops_the_script_too",
        &format!("sh {file}"),
        &steps,
    );
}

#[test]
fn under_a_terminal_in_a_script_without_a_shell_above_it_ctrl_z_stops_nothing() {
    let command = [
        "sh",
        "-c",
        "WRAPPER exec -- sh -c 'echo ready; read line; echo \"got $line\"'; echo after; exit 4",
    ];
    let steps = ["until:ready", "type:\x1a", "type:hello\n", "until:got", "until:after"];
    let test = "under_a_terminal_in_a_script_without_a_shell_above_it_ctrl_z_stops_nothing";
    let Some((code, shown)) = talk(test, &command, &steps) else { return };
    assert_eq!(code, 4, "{shown}");
}

#[test]
fn in_a_pipeline_ctrl_c_reaches_the_whole_command() {
    // What the shell started would be waited for by the shell.
    let hears = "$SIG{INT} = sub { open my $t, '>/dev/tty'; print $t qq(heard it\\n); exit }; \
                 print STDERR qq(ready\\n); sleep 1 while 1";
    let (_directory, file) = script(&format!(
        "trap 'echo over > /dev/tty; exit 1' INT; perl -e \"\n{}\"",
        hears.replace('$', "\\$")
    ));
    let job = format!("{} exec -- sh {file} | cat", env!("CARGO_BIN_EXE_pvn-wrapper"));
    talk_to_a_shell(
        "in_a_pipeline_ctrl_c",
        &job,
        &["until:ready", "type:\x03", "until:heard it", "until:over"],
    );
}

#[test]
fn in_a_pipeline_that_was_stopped_the_other_commands_can_read_the_terminal_again() {
    let (_directory, file) = script("echo ready > /dev/tty; read x < $0.go; echo piped");
    assert!(Command::new("mkfifo").arg(format!("{file}.go")).status().unwrap().success());
    let (_other, reader) = script(&format!(
        "read one < /dev/tty; echo \"first $one\"; echo > {file}.go; read two; echo \"then $two\""
    ));
    let job = format!("{} exec -- sh {file} | sh {reader}", env!("CARGO_BIN_EXE_pvn-wrapper"));
    let steps = [
        "until:ready",
        "type:\x1a",
        "until:Stopped",
        "until:prompt> ",
        "type:fg\n",
        "until:script",
        "type:yes\n",
    ];
    let steps = [steps.as_slice(), &["until:first yes", "until:then piped"]].concat();
    talk_to_a_shell("in_a_pipeline_that_was_stopped", &job, &steps);
}

#[test]
fn a_terminal_that_the_command_can_never_have_is_not_waited_for() {
    // In the background, and nobody is left who could bring it to the foreground.
    let orphaned = "session() { ps -o sid= -p $1; }; while [ \"$(session $(ps -o ppid= -p $$))\" \
                    = \"$(session $$)\" ]; do :; done";
    let (_directory, file) =
        script(&format!("{orphaned}; WRAPPER exec -- sh -c 'read line'; echo \"code $?\""));
    talk_to_a_shell(
        "a_terminal_that_the_command_can_never_have",
        &format!("(sh {file} < /dev/tty &)"),
        &["until:code 129", "type:\n"],
    );
}
