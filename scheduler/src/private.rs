//! Keeps what the daemon writes to its owner, whatever the umask is and whatever was there before:
//! directories 0700, files 0600. The umask itself stays, because jobs inherit it. Called by
//! `daemon` before anything is opened.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

mod owner;

pub(crate) use owner::check as check_owner;

/// What the group and others may do.
const OTHERS: u32 = 0o077;

/// Name of the file that holds which directory this is.
pub(crate) const ID_FILE: &str = "id";

/// Files and directories of ours in a data directory, but for the key: one that was readable is
/// refused where it is opened, because it may be known by now.
const OURS: [&str; 11] = [
    "admin-token",
    "blobs",
    "cache",
    "cluster",
    "database",
    ID_FILE,
    "instances",
    "lock",
    "pvn.db",
    "spool",
    "uploads",
];

/// What stands beside a database: SQLite gives its files the mode of the database when it makes
/// them.
const BESIDE: [&str; 4] = ["-wal", "-shm", "-journal", "-reserve"];

/// Makes the data directory, or takes what is in it from others. A directory that holds other
/// people's things too stays as it is; what is ours in it does not.
///
/// # Errors
/// When it cannot be made, or it, its database or something in it is another user's.
pub(crate) fn data_directory(path: &Path, database: &Path) -> io::Result<()> {
    check_owner(path, database)?;
    if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(path) {
        let is_other = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_dir());
        let why = if is_other {
            "it is no directory; name one, or a place where there is nothing yet".to_owned()
        } else {
            error.to_string()
        };
        return Err(io::Error::new(error.kind(), why));
    }
    fill(path).map_err(|error| whose(path, error))
}

/// Adds whose directory it is to an error that comes of that.
pub(crate) fn whose(path: &Path, error: io::Error) -> io::Error {
    let own = rustix::process::geteuid().as_raw();
    match std::fs::metadata(path) {
        Ok(metadata) if error.kind() == ErrorKind::PermissionDenied && metadata.uid() != own => {
            io::Error::new(
                error.kind(),
                format!("{error}: it {}", owner::advice(metadata.uid(), own)),
            )
        }
        _ => error,
    }
}

fn fill(path: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    if metadata.mode() & OTHERS != 0 {
        let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
        if is_ours && has_nothing_else(path)? {
            tighten(path)?;
        } else {
            tracing::warn!(
                "the data directory {} can be entered by others (mode {:04o}), and holds what is \
                 not pvn's or belongs to another user; what pvn keeps in it is its own alone",
                path.display(),
                metadata.mode() & 0o7777
            );
        }
    }
    OURS.iter().try_for_each(|name| tighten(&path.join(name)))?;
    // Whoever fills them would make them as the umask says.
    ["cluster", "spool"]
        .iter()
        .try_for_each(|name| DirBuilder::new().recursive(true).mode(0o700).create(path.join(name)))
}

/// Makes the database's file if it is not there, so that SQLite does not make one for everybody,
/// and takes what is there from others.
///
/// # Errors
/// When it cannot be made, or is open and belongs to another user.
pub(crate) fn database(path: &Path) -> io::Result<()> {
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    tighten(path)?;
    BESIDE.iter().try_for_each(|suffix| tighten(&beside(path, suffix)))
}

/// Replaces a small file, or makes it: whole or not at all, whatever is killed meanwhile, and on
/// the disk when this returns.
///
/// # Errors
/// When it cannot be written; then what was there stays.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file =
        File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    File::open(path.parent().expect("a file is in a directory"))?.sync_all()
}

/// A file that SQLite puts beside a database.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Takes a file or directory from others; one that is not there is nobody's.
fn tighten(path: &Path) -> io::Result<()> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS)).map_err(|error| {
        let advice = "it belongs to another user; have its owner run `chmod go-rwx` on it, or \
                      give another place";
        io::Error::new(
            error.kind(),
            format!(
                "{} can be used by others (mode {mode:04o}): {error}; {advice}",
                path.display()
            ),
        )
    })?;
    tracing::warn!(
        "{} could be used by others (mode {mode:04o}) and is its owner's alone now",
        path.display()
    );
    Ok(())
}

fn has_nothing_else(directory: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !OURS.iter().any(|ours| {
            name == *ours || name.strip_prefix(ours).is_some_and(|rest| BESIDE.contains(&rest))
        }) && name != crate::secrets::KEY_FILE
        {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn open(path: &Path) {
        std::fs::set_permissions(
            path,
            Permissions::from_mode(if path.is_dir() { 0o755 } else { 0o644 }),
        )
        .unwrap();
    }

    #[test]
    fn what_was_open_is_its_owners_alone() {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        std::fs::create_dir_all(data.join("blobs")).unwrap();
        for name in ["pvn.db", "pvn.db-wal", "admin-token"] {
            std::fs::write(data.join(name), "x").unwrap();
            open(&data.join(name));
        }
        open(&data.join("blobs"));
        open(&data);
        data_directory(&data, &data.join("pvn.db")).unwrap();
        database(&data.join("pvn.db")).unwrap();
        assert_eq!(
            [&data, &data.join("blobs"), &data.join("spool")].map(|path| mode(path)),
            [0o700; 3]
        );
        assert_eq!(
            ["pvn.db", "pvn.db-wal", "admin-token"].map(|name| mode(&data.join(name))),
            [0o600; 3]
        );
    }

    #[test]
    fn a_directory_with_other_things_in_it_stays_and_ours_in_it_do_not() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("index.html"), "x").unwrap();
        std::fs::write(home.path().join("admin-token"), "x").unwrap();
        for path in [
            home.path().join("index.html"),
            home.path().join("admin-token"),
            home.path().to_owned(),
        ] {
            open(&path);
        }
        data_directory(home.path(), &home.path().join("pvn.db")).unwrap();
        assert_eq!(mode(home.path()), 0o755);
        assert_eq!(mode(&home.path().join("index.html")), 0o644);
        assert_eq!(mode(&home.path().join("admin-token")), 0o600);
    }

    #[test]
    fn a_database_elsewhere_is_made_for_its_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        database(&home.path().join("pvn.db")).unwrap();
        assert_eq!(mode(&home.path().join("pvn.db")), 0o600);
    }

    #[test]
    fn a_data_directory_that_is_a_file_is_told_so() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(
            data_directory(&file, &file.join("pvn.db")).unwrap_err().to_string(),
            "it is no directory; name one, or a place where there is nothing yet"
        );
    }

    #[test]
    fn a_data_directory_of_another_user_is_told_with_both() {
        let denied = || io::Error::from(ErrorKind::PermissionDenied);
        let own = rustix::process::geteuid().as_raw();
        // Everybody knows a directory of root's; root knows one of its own alone.
        let told = whose(Path::new("/"), denied()).to_string();
        assert_eq!(
            told.contains(&format!("belongs to user 0 and this runs as user {own}")),
            own != 0,
            "{told}"
        );
        assert_eq!(whose(Path::new("/no/such/place"), denied()).to_string(), denied().to_string());
    }
}
