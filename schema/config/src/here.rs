//! What a task can ask of Kubernetes and not of the scheduler's own machine. One list for `pvnctl
//! configs validate`, as far as the documents show where the task runs, and for the compiler, which
//! knows.

use crate::TaskConfig;

/// Something that cannot be had here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotHere {
    /// Fields from the task on.
    pub field: &'static [&'static str],
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: &'static str,
}

/// Everything of a task that cannot be had on this machine. In `dev` (`everything_local`) what only
/// sizes or places a container is left out; what a command may depend on is told there too.
pub fn not_here(task: &TaskConfig, everything_local: bool) -> Vec<NotHere> {
    let program = &task.program;
    let only_kubernetes = [
        (
            !task.volumes.is_empty(),
            &["volumes"][..],
            "`volumes`",
            "use files of this machine, or `env` for secrets",
            true,
        ),
        (task.k8s.is_some(), &["k8s"], "`k8s`", "take it out", false),
        (
            task.security_context.is_some(),
            &["securityContext"],
            "`securityContext`",
            "take it out",
            false,
        ),
        (
            program.resources.is_some(),
            &["program", "resources"],
            "`resources`",
            "take it out",
            false,
        ),
    ];
    let told = only_kubernetes
        .into_iter()
        .filter(|(is_there, .., always)| *is_there && (*always || !everything_local));
    let mut found: Vec<_> = told
        .map(|(_, field, what, help, _)| NotHere {
            field,
            message: format!("not supported yet: {what} of a task on a `local` runtime"),
            help,
        })
        .collect();
    if program.entrypoint.is_empty() && program.cmd.is_empty() {
        found.push(NotHere {
            field: &["program"],
            message: "there is neither `entrypoint` nor `cmd`: on this machine no image says what \
                      to run"
                .to_owned(),
            help: NO_PROGRAM_HELP,
        });
    }
    found
}

/// What to do where nothing says what to run.
pub const NO_PROGRAM_HELP: &str =
    "write the program and its arguments, as in `cmd: [./check.sh, --quick]`";
