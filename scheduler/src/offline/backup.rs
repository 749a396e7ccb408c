//! `pvn-scheduler backup FILE`: database, blobs and, when asked, the key in one tar file, while the
//! daemon runs.
//!
//! ```text
//! manifest.json   what made it, when, which migration is in it, and the digest of each part that is not named by its own
//! pvn.db          the database at one moment
//! secret.key      with --with-key only
//! blobs/HEX       each blob that the database names, by its digest
//! ```
//!
//! Nobody learns that a backup is damaged only when they need it: the copy of the database is
//! checked before it is packed, and `restore` finds what changed afterwards by the digests.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use schema::id::BlobId;
use serde::{Deserialize, Serialize};

use super::DataLocation;
use crate::clock::Clock;
use crate::key;
use crate::secrets::KEY_FILE;
use crate::store::{self, StoreError};

/// The form of the file.
pub(super) const FORMAT: u32 = 1;

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const DATABASE: &str = "pvn.db";
pub(super) const BLOBS: &str = "blobs/";

/// First in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    /// [`FORMAT`].
    pub(super) format: u32,
    /// Of the program that made it.
    pub(super) version: String,
    /// When.
    pub(super) created_at: String,
    /// The newest migration of the database.
    pub(super) migration: i64,
    /// SHA-256 of the database, and of the key where it is in the file, by their names. `None`
    /// where an older pvn wrote it.
    pub(super) digests: Option<BTreeMap<String, BlobId>>,
}

const EXAMPLES: &str = "\
The daemon goes on meanwhile. Without --with-key the file holds no key: keep `secret.key` \
                        elsewhere, because nothing that is
sealed can be opened without it, configs included. Either way keep the file to yourself: it holds \
                        hashes of tokens, and
output of jobs.

Examples:
  pvn-scheduler backup /backups/pvn-2031-05-01.tar --data-dir /var/lib/pvn
  pvn-scheduler backup pvn.tar --with-key";

/// What can be typed after `backup`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct BackupArguments {
    /// The file to write; it must not be there
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    place: DataLocation,

    /// Put the key that seals secrets into the file too
    #[arg(long)]
    with_key: bool,
}

/// Whether this names an open stream, as people do who pipe what a backup writes: this one puts a
/// whole file in place or none.
fn is_stream(file: &Path) -> bool {
    let is_below = |directory: &str| file.starts_with(directory);
    let is_named = ["-", "/dev/stdout", "/dev/stderr", "/dev/stdin"]
        .iter()
        .any(|name| file == Path::new(name));
    is_named || is_below("/dev/fd") || is_below("/proc/self/fd")
}

/// Writes a backup. Returns what to tell.
///
/// # Errors
/// With what to do; then there is no file.
pub async fn backup(arguments: &BackupArguments) -> anyhow::Result<String> {
    let BackupArguments { file, place, with_key } = arguments;
    if is_stream(file) {
        bail!(
            "a backup is written to a file: name one, and copy that ({} is none)",
            file.display()
        );
    }
    let database = place.database()?;
    if file.exists() {
        bail!("{} is there already; name a new file", file.display());
    }
    let directory =
        file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let at = || format!("failed to write in {}", directory.display());
    // Both go by themselves when this fails.
    let workshop = Workshop::open(directory).with_context(at)?;
    let copy = workshop.home.path().join(DATABASE);
    let snapshot = store::snapshot(&database, &copy).await.map_err(no_backup)?;
    let key = with_key.then(|| place.key_file());
    if let Some(key) = &key
        && key::check(key, &database, &snapshot.key)?.is_none()
    {
        bail!(
            "there is no key file {}, and nothing that is sealed; leave out --with-key",
            key.display()
        );
    }
    let manifest = Manifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: Clock::System.now().to_string(),
        migration: snapshot.migration,
        // Of what is packed, when it is.
        digests: None,
    };
    let blobs = place.data_dir.join("blobs");
    let wanted = BlobSelection {
        blobs: match snapshot.blobs {
            Some(named) => named.into_iter().collect(),
            None => all(&blobs)?,
        },
        perhaps: snapshot.digests.into_iter().collect(),
    };
    let partial = workshop.home.path().join("backup.tar");
    let (copied, missing) = {
        let (partial, copy) = (partial.clone(), copy.clone());
        tokio::task::spawn_blocking(move || {
            write(&partial, manifest, &copy, key.as_deref(), &blobs, &wanted)
        })
        .await?
        .with_context(at)?
    };
    // Whole or not there.
    std::fs::hard_link(&partial, file)
        .with_context(|| format!("failed to put {} in place", file.display()))?;
    File::open(directory).and_then(|directory| directory.sync_all()).with_context(at)?;
    let size = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    let lost = if missing == 0 {
        String::new()
    } else {
        format!(", {missing} that the database names are not there")
    };
    let key = if *with_key { "the key is in it" } else { "the key is not in it: keep it apart" };
    let clear = "what jobs printed and left (output, plans, explanations) is in it in clear, and \
                 plans may hold secrets: let nobody read it who may not know those";
    Ok(format!("{}: {} MiB, {copied} blobs{lost}; {key}; {clear}", file.display(), size >> 20))
}

/// Where a backup is made, beside the file that it will be: its user's alone, since the database is
/// in it in clear.
struct Workshop {
    home: tempfile::TempDir,
    /// Locked for as long as the backup is made, by which another one knows.
    _lock: File,
}

impl Workshop {
    const PREFIX: &str = ".pvn-backup-";

    /// A workshop younger than this may not be locked yet.
    const SETTLED_AFTER: Duration = Duration::from_secs(60);

    /// Makes one in `directory`, and removes those that killed backups left there.
    fn open(directory: &Path) -> io::Result<Self> {
        for left in std::fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path())) {
            let is_workshop = left
                .file_name()
                .and_then(OsStr::to_str)
                .is_some_and(|name| name.starts_with(Self::PREFIX));
            if let Some(_lock) = is_workshop.then(|| Self::abandoned(&left)).flatten()
                && let Err(error) = std::fs::remove_dir_all(&left)
            {
                tracing::warn!(
                    %error,
                    "failed to remove {}, which a backup left that was killed",
                    left.display()
                );
            }
        }
        // Whatever the umask is.
        let permissions = Permissions::from_mode(0o700);
        let home = tempfile::Builder::new()
            .prefix(Self::PREFIX)
            .permissions(permissions)
            .tempdir_in(directory)?;
        let lock = File::open(home.path())?;
        lock.try_lock()?;
        Ok(Self { home, _lock: lock })
    }

    /// The lock of a workshop that nobody works in any more.
    fn abandoned(path: &Path) -> Option<File> {
        let directory = File::open(path).ok()?;
        let changed_at = directory.metadata().ok()?.modified().ok()?;
        let is_settled = changed_at.elapsed().is_ok_and(|age| age > Self::SETTLED_AFTER);
        (is_settled && directory.try_lock().is_ok()).then_some(directory)
    }
}

/// Adds to the error of a database that is damaged what can still be done.
fn no_backup(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Damaged { .. } => anyhow::Error::new(error).context(
            "no backup was made: stop the scheduler, look after its disk, and restore an earlier \
             backup with `pvn-scheduler restore`; where there is none, `sqlite3 FILE .recover` \
             saves of the database what can be read",
        ),
        other => other.into(),
    }
}

/// Every blob on the disk.
fn all(directory: &Path) -> anyhow::Result<Vec<BlobId>> {
    let at = || format!("failed to list {}", directory.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(at)? {
        let entry = entry.with_context(at)?;
        let prefix = entry.file_name();
        let Some(prefix) = prefix.to_str().filter(|name| name.len() == 2) else { continue };
        for blob in std::fs::read_dir(entry.path()).with_context(at)? {
            let name = blob.with_context(at)?.file_name();
            found.extend(
                name.to_str()
                    .and_then(|rest| format!("sha256:{prefix}{rest}").parse::<BlobId>().ok()),
            );
        }
    }
    Ok(found)
}

/// What of the blobs goes into the file.
struct BlobSelection {
    /// Those that jobs left: one that is not there is missing.
    blobs: Vec<BlobId>,
    /// Digests that may be of other things.
    perhaps: Vec<BlobId>,
}

fn write(
    to: &Path,
    mut manifest: Manifest,
    copy: &Path,
    key: Option<&Path>,
    blobs: &Path,
    wanted: &BlobSelection,
) -> io::Result<(usize, usize)> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    let mut tar = tar::Builder::new(io::BufWriter::new(file));
    let parts: Vec<(&str, &Path)> =
        [(DATABASE, copy)].into_iter().chain(key.map(|key| (KEY_FILE, key))).collect();
    let digests = parts
        .iter()
        .map(|(name, path)| Ok(((*name).to_owned(), BlobId::of_reader(File::open(path)?)?)));
    manifest.digests = Some(digests.collect::<io::Result<_>>()?);
    let text = serde_json::to_vec_pretty(&manifest)?;
    append(&mut tar, MANIFEST, text.len() as u64, text.as_slice())?;
    for (name, path) in parts {
        append_file(&mut tar, name, &File::open(path)?)?;
    }
    let (mut copied, mut missing) = (0, 0);
    let certain = wanted.blobs.iter().map(|blob| (blob, true));
    for (blob, is_blob) in certain.chain(wanted.perhaps.iter().map(|digest| (digest, false))) {
        let hex = blob.hex();
        match File::open(blobs.join(&hex[..2]).join(&hex[2..])) {
            Ok(file) => {
                append_file(&mut tar, &format!("{BLOBS}{hex}"), &file)?;
                copied += 1;
            }
            // Retention removed it, or it was lost; both are ordinary.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing += usize::from(is_blob)
            }
            Err(error) => return Err(error),
        }
    }
    let mut buffered = tar.into_inner()?;
    buffered.flush()?;
    buffered.get_ref().sync_all()?;
    Ok((copied, missing))
}

fn append_file(tar: &mut tar::Builder<impl Write>, name: &str, file: &File) -> io::Result<()> {
    append(tar, name, file.metadata()?.len(), file)
}

fn append(
    tar: &mut tar::Builder<impl Write>,
    name: &str,
    size: u64,
    from: impl io::Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o600);
    header.set_size(size);
    header.set_entry_type(tar::EntryType::Regular);
    tar.append_data(&mut header, name, from.take(size))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn d5_a_backup_is_made_where_nobody_else_can_look() {
        let directory = tempfile::tempdir().unwrap();
        let workshop = Workshop::open(directory.path()).unwrap();
        assert_eq!(
            std::fs::metadata(workshop.home.path()).unwrap().permissions().mode() & 0o777,
            0o700
        );
        drop(workshop);
        assert_eq!(names(directory.path()), [""; 0]);
    }

    #[test]
    fn what_a_killed_backup_left_goes_with_the_next_one_and_what_one_works_in_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let at_work = Workshop::open(directory.path()).unwrap();
        for name in [".pvn-backup-killed", ".pvn-backup-begun", "other"] {
            std::fs::create_dir(place(name)).unwrap();
            std::fs::write(place(name).join(DATABASE), "states").unwrap();
        }
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30);
        for old in [place(".pvn-backup-killed"), place("other"), at_work.home.path().to_owned()] {
            File::open(old).unwrap().set_modified(long_ago).unwrap();
        }
        drop(Workshop::open(directory.path()).unwrap());
        assert!(!place(".pvn-backup-killed").exists());
        assert!(
            place(".pvn-backup-begun").exists()
                && place("other").exists()
                && at_work.home.path().exists()
        );
    }
}
