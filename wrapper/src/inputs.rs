//! Puts declared inputs (`--in PATH=REF`) in place before the start. Called by `main`; when one cannot be had nothing is run.

use std::io;
use std::path::{Path, PathBuf};

use schema::spool;

use crate::args::Input;
use crate::spawn::Refusal;

/// Puts every input in place, each whole or not at all. `job` is the spool directory of the local job we are part of.
pub(crate) fn place(inputs: &[Input], job: Option<&Path>) -> Result<(), Refusal> {
    for input in inputs {
        let Some(job) = job else {
            let why = format!(
                "there is no scheduler to ask for `{}` (`--in {}=…`): neither PVN_API_URL nor {} is set",
                input.reference,
                input.path.display(),
                spool::DIRECTORY_VARIABLE
            );
            return Err(Refusal::ours(why));
        };
        let from = job.join(spool::INPUTS).join(&input.reference);
        copy(&from, &input.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !from.exists() => Refusal::ours(format!(
                "the scheduler has no `{}` for this job (`--in {}=…`): the fetch that found the work made no such output, or it is no longer kept",
                input.reference,
                input.path.display()
            )),
            _ => Refusal::ours(format!("cannot put `{}` into {}: {error}", input.reference, input.path.display())),
        })?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".pvn-{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let placed = std::fs::copy(from, &temporary).and_then(|_| {
        // Stored read-only, but what is put into place is the command's own.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&temporary, mode)?;
        std::fs::rename(&temporary, to)
    });
    if placed.is_err() {
        // It may never have been made.
        let _ = std::fs::remove_file(&temporary);
    }
    placed
}
