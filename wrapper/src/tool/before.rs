//! `--pre-run`: what the shell runs before the tool, in the shell's own environment, which the tool
//! then has. A shell ends with 2 of its own when a command is broken, and 2 of a fetch means work:
//! so it is known by a mark whether the shell came to its end. Called by `tool`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::call::ToolCaller;
use super::{Fault, ToolArguments, faults};

/// What a login says is no output of the tool, which may be a document: it goes to standard error.
const FIRST: &str = "exec 9>&1 1>&2\nset -e\n";

/// Behind each command. `set -e` alone takes no notice of one that fails before `&&`.
const CHECK: &str = "\npvn_code=$?; [ \"$pvn_code\" -eq 0 ] || exit \"$pvn_code\"\n";

/// Behind the commands the shell becomes the tool's process.
const LAST: &str = "exec 1>&9 9>&-\nexec \"$@\"";

/// The file that says that all commands went well.
fn mark(within: &Path) -> PathBuf {
    within.join("prepared")
}

/// Runs the commands in one shell, which becomes this program once more, and ends as that does.
pub(super) fn run(common: &ToolArguments, within: &Path, raw: &[OsString]) -> Result<u8, Fault> {
    let mark = mark(within);
    match std::fs::remove_file(&mark) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Fault::failed(format!("cannot remove {}: {error}", mark.display())));
        }
        _ => {}
    }
    let mut script = FIRST.to_owned();
    for command in &common.before {
        script.push_str(command);
        script.push_str(CHECK);
    }
    script.push_str(LAST);
    let mut command: Vec<OsString> =
        vec![common.shell.clone().into(), "-c".into(), script.into(), "pre-run".into()];
    command.extend_from_slice(raw);
    command.push("--prepared".into());
    let ended = ToolCaller::new()?.in_silence(&command)?;
    if mark.exists() {
        return Ok(ended.code);
    }
    if let Some(killed) = faults::killed(&ended, "preRun") {
        return Err(killed);
    }
    Err(Fault::failed(match ended.code {
        0 => "`preRun` ended before the tool was run: one of its commands says `exit` or `exec`; \
              take it out"
            .to_owned(),
        code => format!("`preRun` failed with exit code {code}; what it says stands above"),
    }))
}

/// Leaves the mark, if this process came out of the shell.
pub(super) fn say_prepared(common: &ToolArguments, within: &Path) -> Result<(), Fault> {
    if !common.prepared {
        return Ok(());
    }
    let mark = mark(within);
    std::fs::write(&mark, []).map_err(|error| Fault::unwritten(&mark, &error))
}
