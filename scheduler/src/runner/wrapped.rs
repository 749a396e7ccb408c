//! A job -> what its wrapper is told on the command line, wherever it runs. Called by the runners.

use std::path::Path;

use schema::report::StructuredKind;

use super::JobSpec;

/// The wrapper's arguments after `exec`, the command's included.
///
/// A command that is `pvn-wrapper exec …` itself becomes the wrapper's run, with its own flags
/// after ours, so that they win where a flag can be given once; only the job's timeout holds beside
/// one of theirs.
pub(super) fn arguments(spec: &JobSpec, argv: &[String]) -> Vec<String> {
    let mut arguments = Vec::new();
    if let Some(timeout) = spec.timeout_ms.filter(|timeout| *timeout > 0) {
        arguments.push(format!("--job-timeout={timeout}ms"));
    }
    if !matches!(spec.success_exit_codes.as_slice(), [] | [0]) {
        let codes: Vec<String> = spec
            .success_exit_codes
            .iter()
            .filter(|code| (0..=255).contains(*code))
            .map(i32::to_string)
            .collect();
        arguments.push(format!("--success-exit-codes={}", codes.join(",")));
    }
    if let Some(expect) = spec.command.expect {
        let kind = match expect {
            StructuredKind::Fetch => "fetch",
            StructuredKind::GetInfo => "get-info",
        };
        arguments.push(format!("--expect={kind}"));
    }
    if spec.command.leave_running {
        arguments.push("--leave-running".to_owned());
    }
    match argv {
        [program, exec, rest @ ..] if is_wrapper(program) && exec == "exec" => {
            arguments.extend_from_slice(rest)
        }
        _ => {
            arguments.push("--".to_owned());
            arguments.extend_from_slice(argv);
        }
    }
    arguments
}

/// Whether a program is the wrapper, by its name.
pub(super) fn is_wrapper(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "pvn-wrapper")
}
