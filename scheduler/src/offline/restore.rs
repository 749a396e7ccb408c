//! `pvn-scheduler restore FILE`: a new data directory from a backup. The copy is a scheduler of its
//! own that only observes until a person activates it, because the one that was backed up may still
//! run.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use schema::id::BlobId;
use schema::log_kind::LogKind;
use schema::shown::shell_path;
use schema::status::Role;
use schema::time::Timestamp;
use tempfile::TempDir;

use super::backup::{BLOBS, DATABASE, FORMAT, MANIFEST, Manifest};
use super::left;
use crate::belongs;
use crate::blobs::{Blobs, Keep};
use crate::clock::{self, Clock};
use crate::daemon::TOKEN_FILE;
use crate::secrets::{self, KEY_FILE, Sealer, hex};
use crate::store::{self, Change, Commit, Counters, Fit, Store, StoreError, TokenRow};
use crate::{driver, private};

/// Longest manifest or key that is read, bytes: both are some lines.
const SMALL_BYTES: u64 = 64 << 10;

/// What is in every new file system of that kind. Source: mklost+found(8).
const MADE_BY_EXT4: &str = "lost+found";

/// A copy leaves out at least so many numbers of jobs for each instance, and of the log: more than
/// the original gives out until somebody notices that both run. How many more is random, so that
/// two copies differ.
const SKIPPED_MIN: u32 = 1 << 24;

const EXAMPLES: &str = "\
The copy starts as with --observer: it looks, and applies nothing, until `pvn-scheduler activate`. \
                        Of jobs that were under
way it does not know whether they run. A new admin token is in its data directory.

Examples:
  pvn-scheduler restore /backups/pvn.tar --data-dir /var/lib/pvn --secret-key-file /safe/secret.key
  pvn-scheduler restore pvn.tar --data-dir ./copy";

/// What can be typed after `restore`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct RestoreArguments {
    /// The file that `backup` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The new data directory; it must not be there, or be empty, as a new volume is
    #[arg(long, env = "PVN_DATA_DIR", default_value = "./pvn-data", value_name = "DIR")]
    data_dir: PathBuf,

    /// The key that the backup was sealed with, when it is not in the file; it is copied
    #[arg(long, env = "PVN_SECRET_KEY_FILE", value_name = "FILE")]
    secret_key_file: Option<PathBuf>,
}

/// Restores a backup. Returns what to tell.
///
/// # Errors
/// With what to do; then there is no new data directory.
pub async fn restore(arguments: &RestoreArguments) -> anyhow::Result<String> {
    let RestoreArguments { file, data_dir, secret_key_file } = arguments;
    check_empty(data_dir)?;
    private::check_owner(data_dir, &data_dir.join(DATABASE))
        .with_context(|| super::unusable(data_dir))?;
    let at = || format!("failed to write in {}", data_dir.display());
    let new = New::make(data_dir).with_context(at)?;
    let made = new.work.path().to_owned();

    let (copied, spoiled) = {
        let (file, made, key_is_given) = (file.clone(), made.clone(), secret_key_file.is_some());
        tokio::task::spawn_blocking(move || unpack(&file, &made, key_is_given)).await??
    };
    // Older backups know no digest, and what a backup was made of may have been damaged before.
    store::check_undamaged(&made.join(DATABASE)).await.map_err(|error| match error {
        StoreError::Damaged { found, .. } => anyhow!("{found}").context(damaged(file, DATABASE)),
        other => other.into(),
    })?;
    let key = made.join(KEY_FILE);
    if let Some(given) = secret_key_file {
        let text = std::fs::read_to_string(given)
            .with_context(|| format!("failed to read the key {}", given.display()))?;
        let _replaced = std::fs::remove_file(&key);
        secrets::write_private(&key, text.trim()).with_context(at)?;
    }
    if !key.exists() {
        bail!(
            "{} holds no key; give the one that it was sealed with, the file `{KEY_FILE}` of that \
             time, with --secret-key-file",
            file.display()
        );
    }
    let store = Store::open(&made.join(DATABASE), Sealer::open(&key)?).await?;
    if !matches!(store.note_key().await?, Fit::Right { .. }) {
        bail!(
            "{} was sealed with another key than the one that {}; give the one of that time, the \
             file `{KEY_FILE}` of the data directory that was backed up, with --secret-key-file",
            file.display(),
            secret_key_file.as_ref().map_or_else(
                || "is in it".to_owned(),
                |given| format!("is in {}", given.display())
            )
        );
    }
    let now = Clock::System.now();
    let left = left::told(&store).await?;
    let skipped = SKIPPED_MIN | u32::from_le_bytes(clock::random());
    store.become_restored(now, &hex(&clock::random::<16>()), skipped, &left).await?;
    let (text, token) =
        driver::new_token(&format!("restored-{}", now.as_millis()), Role::Admin, now);
    secrets::write_private(&made.join(TOKEN_FILE), &text).with_context(at)?;
    begin(&store, token, now, skipped, file).await?;
    belongs::note(&made, &data_dir.join(DATABASE), &store).await?;
    store.close().await;

    new.complete().with_context(at)?;
    let lost =
        if spoiled == 0 { String::new() } else { format!(", {spoiled} spoiled ones left out") };
    Ok(format!(
        "{}: {copied} blobs{lost}; it observes and applies nothing until `pvn-scheduler activate \
         --data-dir {}`\n{left}",
        data_dir.display(),
        shell_path(data_dir)
    ))
}

/// Writes the first token and the first line of the log of the new database.
async fn begin(
    store: &Store,
    token: TokenRow,
    now: Timestamp,
    skipped: u32,
    file: &Path,
) -> Result<(), StoreError> {
    let mut commit = Commit { changes: vec![Change::Token(token)], ..Commit::default() };
    // Whoever follows the log goes on after a number of the original's.
    let counters = store.counters().await?;
    let before = Counters { event: counters.event.saturating_add(skipped.into()), ..counters };
    let message = format!(
        "restored from {}; the numbers of the log go on far above those of the original",
        file.display()
    );
    let data = serde_json::json!({"entriesBefore": counters.event});
    commit.tell(&before, now, LogKind::DatabaseRestored, message, data);
    store.commit(&commit).await
}

/// A directory that nothing is in, but what a file system makes by itself, or none.
fn check_empty(directory: &Path) -> anyhow::Result<()> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    if let Some(left) = belongs::left_by_restore(directory) {
        bail!(
            "{} holds what a restore left that was interrupted (`{left}`); remove all that is in \
             it and say this again, or name another data directory with --data-dir",
            directory.display()
        );
    }
    if entries.flatten().any(|entry| entry.file_name() != MADE_BY_EXT4) {
        bail!("{} is not empty; name a new data directory with --data-dir", directory.display());
    }
    Ok(())
}

/// A data directory that is being made, perhaps where a volume is mounted. All is written within a
/// directory in it, and goes with that when it fails.
struct New<'a> {
    directory: &'a Path,
    /// Whether it was not there before.
    is_ours: bool,
    work: TempDir,
}

impl<'a> New<'a> {
    fn make(directory: &'a Path) -> io::Result<Self> {
        let above = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
        above.map_or(Ok(()), std::fs::create_dir_all)?;
        let is_ours = match DirBuilder::new().mode(0o700).create(directory) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        // One that was there, too: nobody looks after that before a start. A volume may belong to
        // root and let our group in.
        let own_alone = Permissions::from_mode(0o700);
        match std::fs::set_permissions(directory, own_alone.clone()) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let work = tempfile::Builder::new()
            .prefix(belongs::RESTORING)
            .permissions(own_alone)
            .tempdir_in(directory)?;
        Ok(Self { directory, is_ours, work })
    }

    /// Puts everything in its place. The database comes last, and before it the file that says that
    /// there must be one: killed in between, this is no data directory that a daemon would
    /// start with.
    fn complete(mut self) -> io::Result<()> {
        let mut names = std::fs::read_dir(self.work.path())?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_by_key(
            |name| if name == belongs::FILE { 0 } else { 1 + u8::from(name == DATABASE) },
        );
        for name in names {
            std::fs::rename(self.work.path().join(&name), self.directory.join(&name))?;
            File::open(self.directory)?.sync_all()?;
        }
        if let Some(above) =
            self.directory.parent().filter(|parent| self.is_ours && !parent.as_os_str().is_empty())
        {
            File::open(above)?.sync_all()?;
        }
        self.is_ours = false;
        Ok(())
    }
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        if self.is_ours {
            // Only what is empty can be removed so.
            let _not_even_that = std::fs::remove_dir_all(self.work.path())
                .and_then(|()| std::fs::remove_dir(self.directory));
        }
    }
}

/// That a part of the backup is not what was backed up, and what to do.
fn damaged(file: &Path, part: &str) -> String {
    match part {
        KEY_FILE => format!(
            "{}: its key `{KEY_FILE}` is damaged; give the one of that time, from the data \
             directory that was backed up or a copy of it, with --secret-key-file, or restore \
             another backup",
            file.display()
        ),
        database => format!(
            "{}: its database `{database}` is damaged, so nothing was restored; restore another \
             backup",
            file.display()
        ),
    }
}

/// Writes what is in the backup into a new directory. Returns how many blobs there are, and how
/// many were spoiled.
fn unpack(file: &Path, to: &Path, key_is_given: bool) -> anyhow::Result<(usize, usize)> {
    let broken = || {
        format!(
            "{} is no backup of a pvn-scheduler, or it is damaged or cut off; restore another \
             backup",
            file.display()
        )
    };
    let opened = File::open(file).with_context(|| format!("failed to open {}", file.display()))?;
    let mut archive = tar::Archive::new(io::BufReader::new(opened));
    let at = || format!("failed to write in {}", to.display());
    let blobs = Blobs::open(&to.join("blobs")).with_context(at)?;
    let mut manifest: Option<Manifest> = None;
    let (mut copied, mut spoiled) = (0, 0);
    for entry in archive.entries().with_context(broken)? {
        let mut entry = entry.with_context(broken)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match (name.as_str(), &manifest) {
            (MANIFEST, None) => {
                let found: Manifest =
                    serde_json::from_reader((&mut entry).take(SMALL_BYTES)).with_context(broken)?;
                check_format(&found, file)?;
                manifest = Some(found);
            }
            (_, None) => bail!(broken()),
            (DATABASE | KEY_FILE, Some(manifest)) => {
                let path = to.join(&name);
                if path.exists() {
                    bail!(broken());
                }
                let (found, length) = extract_file(&mut entry, &path, broken, at)?;
                // Of one that is cut off the next part says so.
                let is_whole = length == entry.size();
                let is_changed = manifest
                    .digests
                    .as_ref()
                    .is_some_and(|digests| digests.get(&name) != Some(&found));
                if is_whole && is_changed && (name == DATABASE || !key_is_given) {
                    bail!(damaged(file, &name));
                }
            }
            (other, Some(_)) => {
                let Some(id) = other
                    .strip_prefix(BLOBS)
                    .and_then(|hex| format!("sha256:{hex}").parse::<BlobId>().ok())
                else {
                    bail!("{} holds `{other}`, which no backup does", file.display());
                };
                let mut out = tempfile::NamedTempFile::new_in(to).with_context(at)?;
                extract(&mut entry, &mut out, broken, at)?;
                // It gets the id that its bytes have.
                let stored = blobs.put_file(out.path(), Keep::Lazy).with_context(at)?;
                if stored == id {
                    copied += 1;
                } else {
                    blobs.remove(stored)?;
                    spoiled += 1;
                }
            }
        }
    }
    if !to.join(DATABASE).exists() || !is_ended(archive.into_inner()) {
        bail!(broken());
    }
    rustix::fs::sync();
    Ok((copied, spoiled))
}

fn check_format(found: &Manifest, file: &Path) -> anyhow::Result<()> {
    if found.format != FORMAT {
        bail!(
            "{} has form {} and this program knows {FORMAT}; restore it with pvn {}",
            file.display(),
            found.format,
            found.version
        );
    }
    Ok(())
}

/// Copies a part of the backup into a new file. Returns its digest and its length.
fn extract_file(
    from: &mut impl Read,
    to: &Path,
    broken: impl Fn() -> String,
    at: impl Fn() -> String + Copy,
) -> anyhow::Result<(BlobId, u64)> {
    let mut options = File::options();
    let made = options.read(true).write(true).create_new(true).mode(0o600).open(to);
    let mut out = made.with_context(at)?;
    extract(from, &mut out, broken, at)?;
    out.sync_all().with_context(at)?;
    let length = out.metadata().with_context(at)?.len();
    out.rewind().with_context(at)?;
    Ok((BlobId::of_reader(out).with_context(at)?, length))
}

/// Whether what comes after the last part is the second block of the end, and not that of a file
/// which is cut off between two parts. Source: tar(5): two blocks of zeros end an archive; the
/// first one was read.
fn is_ended(mut rest: impl Read) -> bool {
    let mut block = [0; 512];
    rest.read_exact(&mut block).is_ok() && block == [0; 512]
}

/// Copies a part of the backup. What cannot be read is the backup's fault, what cannot be written
/// the new directory's.
fn extract(
    from: &mut impl Read,
    to: &mut impl Write,
    broken: impl Fn() -> String,
    at: impl Fn() -> String,
) -> anyhow::Result<()> {
    let mut buffer = [0; 64 << 10];
    loop {
        let read = from.read(&mut buffer).with_context(&broken)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read]).with_context(&at)?;
    }
}
