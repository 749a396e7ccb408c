//! The daemon's own command lines, read without clap. Called by `main` before it asks clap;
//! whatever is not plain here is left to clap, which decides what everything means and says what is
//! wrong.
//!
//! Why: setting clap up and asking it costs a run of `true` about a seventh of its time (335,000 of
//! 1,140,000 instructions in a debug build), and a scheduler starts thousands of jobs. A test holds
//! the two readers against each other.

use std::ffi::OsString;
use std::time::Duration;

use clap::ValueEnum;
use schema::spool;
use schema::wire::KILL_AFTER_VARIABLE;

use crate::args::{
    DELIVER_FOR, DeclaredInput, DeclaredOutput, ExecArguments, ExitCodes, ExpectedDocument,
    MAX_OUTPUT_BYTES, SignalScope, positive,
};

/// Variables that clap reads for flags that are absent.
const VARIABLES: &[&str] = &["PVN_SPOOL_DIR", "PVN_DELIVERY_TIMEOUT", KILL_AFTER_VARIABLE];

/// The run that the arguments ask for, if they are `exec`, plain flags, `--` and a command.
pub(crate) fn exec(arguments: &[OsString]) -> Option<ExecArguments> {
    let [_, exec, rest @ ..] = arguments else { return None };
    let at = rest.iter().position(|argument| argument == "--")?;
    let (flags, command) = (&rest[..at], &rest[at + 1..]);
    if exec != "exec"
        || command.is_empty()
        || VARIABLES
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    {
        return None;
    }
    let mut run = plain(command.to_vec());
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let flag = flag.to_str()?;
        if flag == "--leave-running" {
            run.leave_running = true;
            continue;
        }
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, value),
            // One that looks like a flag is clap's to judge.
            None => (flag, flags.next()?.to_str().filter(|value| !value.starts_with('-'))?),
        };
        if value.is_empty() {
            return None;
        }
        match name {
            "--job" => run.job = Some(value.into()),
            "--job-timeout" => run.job_timeout = Some(positive(value).ok()?),
            "--timeout" => run.timeout = Some(positive(value).ok()?),
            "--success-exit-codes" => run.success_exit_codes = ExitCodes::parse(value).ok()?,
            "--expect" => run.expect = Some(ExpectedDocument::from_str(value, false).ok()?),
            "--in" => run.inputs.push(DeclaredInput::parse(value).ok()?),
            "--out" => run.outputs.push(DeclaredOutput::parse(value).ok()?),
            _ => return None,
        }
    }
    run.doubled().is_none().then_some(run)
}

/// A run without flags.
fn plain(command: Vec<OsString>) -> ExecArguments {
    ExecArguments {
        inputs: Vec::new(),
        outputs: Vec::new(),
        success_exit_codes: ExitCodes::zero(),
        expect: None,
        timeout: None,
        idle_timeout: None,
        kill_after: Duration::from_millis(spool::KILL_AFTER_MS),
        signal_scope: SignalScope::Child,
        stop_signal: rustix::process::Signal::TERM.as_raw(),
        leave_running: false,
        drain: Duration::from_secs(2),
        max_output: MAX_OUTPUT_BYTES,
        deliver_for: DELIVER_FOR,
        spool: None,
        report: None,
        job: None,
        job_timeout: None,
        scratch: None,
        guards: Vec::new(),
        command,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, What};

    /// What is read here is what clap reads; `taken`: whether it is read here at all.
    fn check(line: &str, taken: bool) {
        let arguments: Vec<OsString> =
            ["pvn-wrapper"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
        let quick = exec(&arguments);
        assert_eq!(quick.is_some(), taken, "{line}");
        if let Some(quick) = quick {
            let Ok(Arguments { what: What::Exec(slow) }) = Arguments::try_parse_from(&arguments)
            else {
                panic!("clap refuses {line}")
            };
            assert_eq!(format!("{quick:?}"), format!("{slow:?}"), "{line}");
        }
    }

    #[test]
    fn what_is_read_quickly_means_what_clap_says() {
        check("exec -- true", true);
        check("exec --job /spool/job -- sh -c x --job y", true);
        check(
            "exec --job /spool/job --job-timeout=600000ms --success-exit-codes=0,2 \
             --expect=get-info --leave-running -- a -- b",
            true,
        );
        check(
            "exec --job=/j --leave-running --leave-running --success-exit-codes 1 \
             --success-exit-codes=2 --expect fetch --expect get-info -- a",
            true,
        );
        check(
            "exec --out plan=tf.plan --out=plan-explanation=tf.txt --in tf.plan=fetch:plan \
             --timeout 1h30m -- a",
            true,
        );
        check("exec --out a=b=c --in a=b=fetch:x -- a", true);
    }

    #[test]
    fn what_is_not_plain_is_left_to_clap() {
        for line in [
            "exec",
            "exec --",
            "exec true",
            "exec --job /j",
            "exec --nonsense -- a",
            "exec --job -- a",
            "exec --job --timeout -- a",
            "exec --job= -- a",
            "exec --timeout 5 -- a",
            "exec --expect FETCH -- a",
            "exec --expect nope -- a",
            "exec --success-exit-codes 256 -- a",
            "exec --in x -- a",
            "exec --out a/b=c -- a",
            "exec --help -- a",
            "exec --kill-after 5s -- a",
            "validate fetch -- x",
            "--help",
        ] {
            check(line, false);
        }
    }
}
