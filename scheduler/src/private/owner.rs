//! Whose a data directory is. A command that runs as another user, as root above all, would leave
//! files in it that its owner cannot open, and the daemon would not start again. Asked before
//! anything in it is changed.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use schema::shown::shell_path;

use super::{BESIDE, ID_FILE, OURS, beside};

/// Refuses to use the data of another user. A volume whose top belongs to root is nobody else's
/// data: what stands in it says whose it is.
///
/// # Errors
/// With whose it is and the command to use, or the file that is in the way and how to give it back.
pub(crate) fn check(directory: &Path, database: &Path) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    if own == 0 {
        // Every data directory has it from its first start on.
        let id = directory.join(ID_FILE);
        let shown = if id.exists() { &id } else { directory };
        return [database, shown]
            .into_iter()
            .filter_map(owner)
            .find(|owner| *owner != 0)
            .map_or(Ok(()), |owner| Err(other(owner, own)));
    }
    let files = OURS
        .iter()
        .map(|name| directory.join(name))
        .chain([directory.join("blobs/new"), database.to_owned()]);
    let files: Vec<PathBuf> =
        files.chain(BESIDE.iter().map(|suffix| beside(database, suffix))).collect();
    let Some((whose, file)) = files.into_iter().find_map(|file| Some((denied(&file)?, file)))
    else {
        return Ok(());
    };
    match owner(directory) {
        Some(top) if top != own && owner(database).is_none_or(|database| database != own) => {
            Err(other(top, own))
        }
        _ => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "{} belongs to user {whose} and this runs as user {own}: a command was run as \
                 another user here; give it back with `sudo chown -R {own} {}`, and run \
                 pvn-scheduler as user {own} alone",
                file.display(),
                shell_path(&file)
            ),
        )),
    }
}

/// Who has it; nobody has what is not there.
fn owner(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|metadata| metadata.uid())
}

/// Whose it is, when we may not use it.
fn denied(path: &Path) -> Option<u32> {
    let metadata = std::fs::metadata(path).ok()?;
    let wanted = Access::READ_OK | Access::WRITE_OK;
    let wanted = if metadata.is_dir() { wanted | Access::EXEC_OK } else { wanted };
    let is_denied = rustix::fs::access(path, wanted) == Err(rustix::io::Errno::ACCESS);
    (is_denied && metadata.uid() != rustix::process::geteuid().as_raw()).then_some(metadata.uid())
}

/// That it is another user's.
fn other(owner: u32, own: u32) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("it {}", advice(owner, own)))
}

/// Whose it is, and how to become that user.
pub(super) fn advice(owner: u32, own: u32) -> String {
    if owner == 0 {
        // Most often root ran it once by mistake, and as root it runs every command as root.
        return format!(
            "belongs to user 0 and this runs as user {own}; where root made it by mistake and no \
             scheduler of root's uses it, give it to this user: `sudo chown -R {own} DIRECTORY`; \
             or name another directory with --data-dir"
        );
    }
    format!(
        "belongs to user {owner} and this runs as user {own}; run it as that user: `sudo -u \
         '#{owner}' pvn-scheduler …`, or `setpriv --reuid {owner} --regid {owner} --clear-groups \
         pvn-scheduler …`; or name another directory with --data-dir"
    )
}
