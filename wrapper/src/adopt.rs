//! A command line of a tool (`pvn-wrapper terraform plan`) -> the run of `exec` that it stands for:
//! with what the tool's step needs and leaves, around this program once more. Called by `main`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::args::{Arguments, DeclaredInput, DeclaredOutput, ExecArguments, ExitCodes, What};
use crate::tool::{self, Scratch};

/// What the wrapper is called, wherever it is.
const PROGRAM: &str = "pvn-wrapper";

/// The run of `exec` that a command line of a tool stands for.
pub(crate) fn alone(raw: &[OsString]) -> Result<ExecArguments, clap::Error> {
    let program = OsString::from(PROGRAM);
    let command = std::iter::once(program.clone()).chain(raw.iter().skip(1).cloned());
    let exec = [program, "exec".into(), "--".into()].into_iter().chain(command);
    match Arguments::read(&exec.collect::<Vec<_>>())?.what {
        What::Exec(options) => adopt(*options),
        _ => unreachable!("`exec` was asked for"),
    }
}

/// A run whose command is the wrapper's own for a tool becomes the tool's: it is run by this
/// program, whatever is at the path, and hands over what the tool's step leaves. Any other stays as
/// it is.
pub(crate) fn adopt(mut options: ExecArguments) -> Result<ExecArguments, clap::Error> {
    let is_ours = |program: &OsString| Path::new(program).file_name() == Some(OsStr::new(PROGRAM));
    if !options.command.first().is_some_and(is_ours) {
        return Ok(options);
    }
    // Whatever else it may be asked is its own business, mistakes too.
    if !options.command.get(1).is_some_and(|word| tool::is_tool(word)) {
        return Ok(options);
    }
    let What::Tool(tool) = Arguments::read(&options.command)?.what else { return Ok(options) };
    if tool.is_within() {
        return Ok(options);
    }
    let needs = tool.needs();
    let scratch = Scratch::of(needs.name, needs.stays);
    let below = |path: &str| scratch.path().join(path);
    options.inputs.extend(needs.inputs.iter().map(|(path, reference)| DeclaredInput {
        path: below(path),
        reference: (*reference).to_owned(),
    }));
    options.outputs.extend(
        needs
            .outputs
            .iter()
            .map(|(name, path)| DeclaredOutput { name: (*name).to_owned(), path: below(path) }),
    );
    options.guards.extend(needs.guards.iter().map(PathBuf::from));
    options.success_exit_codes = ExitCodes::of(needs.success_exit_codes);
    options.command = inner(&options.command, scratch.path());
    options.scratch = Some(scratch);
    Ok(options)
}

/// The command line of the inner process: that of the outer one, within the directory.
fn inner(command: &[OsString], within: &Path) -> Vec<OsString> {
    // Behind the tool and its step, which stand before all flags.
    let (words, flags) = command.split_at(3.min(command.len()));
    let own = std::env::current_exe().map_or_else(|_| words[0].clone(), OsString::from);
    let mut inner = vec![own];
    inner.extend_from_slice(&words[1..]);
    inner.extend(["--within".into(), within.into()]);
    inner.extend_from_slice(flags);
    inner
}
