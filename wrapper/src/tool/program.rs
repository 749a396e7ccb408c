//! Where a tool's program is, and why it cannot be run. Called by `call` and by the tools.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use schema::shown;

use super::Fault;
use crate::spawn;

/// The file that a program's name stands for, if there is one.
fn found(program: &OsStr) -> Option<PathBuf> {
    spawn::find(program, std::env::var_os("PATH").as_deref()).ok()
}

fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// That a program is there and may not be executed.
fn not_executable(name: &str, file: &Path) -> String {
    let shown = shown::shell_path(file);
    format!(
        "`{name}` cannot be run: {shown} is not executable for the user of this job; `chmod +x \
         {shown}` makes it so, unless its file system is mounted with `noexec`"
    )
}

/// Why a program did not start.
pub(super) fn not_started(program: &OsStr, error: io::Error) -> Fault {
    let name = program.to_string_lossy();
    Fault::failed(match found(program) {
        Some(file) if file.exists() && !is_executable(&file) => not_executable(&name, &file),
        Some(file) => {
            format!(
                "`{name}` cannot be run: {}",
                spawn::refused(file.as_os_str(), &file, error).why
            )
        }
        None => format!(
            "`{name}` was not found: put it into the image, or on the PATH of the machine where \
             the job runs"
        ),
    })
}

/// The first of these programs that is on PATH and can be executed; else why none can: that of one
/// which is there, or `none`.
pub(super) fn first_on_path(programs: &[&'static str], none: &str) -> Result<&'static str, String> {
    let there = programs.iter().filter_map(|name| Some((*name, found(name.as_ref())?)));
    let mut why = None;
    for (name, file) in there {
        if is_executable(&file) {
            return Ok(name);
        }
        why = why.or_else(|| Some(not_executable(name, &file)));
    }
    Err(why.unwrap_or_else(|| none.to_owned()))
}
