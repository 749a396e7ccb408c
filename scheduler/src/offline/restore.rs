//! `pvn-scheduler restore FILE`: a new data directory from a backup. The copy is a scheduler of its own that only observes
//! until a person activates it, because the one that was backed up may still run.

use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use schema::id::BlobId;
use schema::status::Role;

use super::backup::{BLOBS, DATABASE, FORMAT, MANIFEST, Manifest};
use crate::belongs;
use crate::blobs::{Blobs, Keep};
use crate::clock::{self, Clock};
use crate::daemon::TOKEN_FILE;
use crate::secrets::{self, KEY_FILE, Sealer, hex};
use crate::store::{Change, Commit, Store};
use crate::{driver, private};

/// Longest manifest or key that is read, bytes: both are some lines.
const SMALL_BYTES: u64 = 64 << 10;

const EXAMPLES: &str = "\
The copy starts as with --observer: it looks, and applies nothing, until `pvn-scheduler activate`. Of jobs that were under
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

    /// The new data directory; it must not be there, or be empty
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
    if std::fs::read_dir(data_dir).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty; name a new data directory with --data-dir", data_dir.display());
    }
    private::check_owner(data_dir, &data_dir.join(DATABASE)).with_context(|| super::unusable(data_dir))?;
    let above = data_dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let at = || format!("failed to write in {}", above.display());
    std::fs::create_dir_all(above).with_context(at)?;
    // For our user alone, and it goes by itself when this fails.
    let home = tempfile::Builder::new().prefix(".pvn-restore-").tempdir_in(above).with_context(at)?;
    let made = home.path().join("data");
    DirBuilder::new().mode(0o700).create(&made).with_context(at)?;

    let (copied, spoiled) = {
        let (file, made) = (file.clone(), made.clone());
        tokio::task::spawn_blocking(move || unpack(&file, &made)).await??
    };
    let key = made.join(KEY_FILE);
    if let Some(given) = secret_key_file {
        let text = std::fs::read_to_string(given).with_context(|| format!("failed to read the key {}", given.display()))?;
        let _replaced = std::fs::remove_file(&key);
        secrets::write_private(&key, text.trim()).with_context(at)?;
    }
    if !key.exists() {
        bail!(
            "{} holds no key; give the one that it was sealed with, the file `{KEY_FILE}` of that time, with --secret-key-file",
            file.display()
        );
    }
    let store = Store::open(&made.join(DATABASE), Sealer::open(&key)?).await?;
    store.check_key().await?;
    let now = Clock::System.now();
    store.become_restored(now, &hex(&clock::random::<16>())).await?;
    let (text, token) = driver::new_token(&format!("restored-{}", now.as_millis()), Role::Admin, now);
    secrets::write_private(&made.join(TOKEN_FILE), &text).with_context(at)?;
    store.commit(&Commit { changes: vec![Change::Token(token)], ..Commit::default() }).await?;
    belongs::note(&made, &data_dir.join(DATABASE), &store).await?;
    store.close().await;

    // Empty, or not there.
    let _was_empty = std::fs::remove_dir(data_dir);
    std::fs::rename(&made, data_dir).with_context(|| format!("failed to put {} in place", data_dir.display()))?;
    File::open(above).and_then(|above| above.sync_all()).with_context(at)?;
    let lost = if spoiled == 0 { String::new() } else { format!(", {spoiled} spoiled ones left out") };
    Ok(format!(
        "{}: {copied} blobs{lost}; it observes and applies nothing until `pvn-scheduler activate --data-dir {0}`",
        data_dir.display()
    ))
}

fn unpack(file: &Path, to: &Path) -> anyhow::Result<(usize, usize)> {
    let broken = || format!("{} is no backup of a pvn-scheduler, or it is cut off", file.display());
    let opened = File::open(file).with_context(|| format!("failed to open {}", file.display()))?;
    let mut archive = tar::Archive::new(io::BufReader::new(opened));
    let blobs = Blobs::open(&to.join("blobs")).with_context(|| format!("failed to write in {}", to.display()))?;
    let mut manifest: Option<Manifest> = None;
    let (mut copied, mut spoiled) = (0, 0);
    for entry in archive.entries().with_context(broken)? {
        let mut entry = entry.with_context(broken)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match (name.as_str(), &manifest) {
            (MANIFEST, None) => {
                let found: Manifest = serde_json::from_reader((&mut entry).take(SMALL_BYTES)).with_context(broken)?;
                if found.format != FORMAT {
                    bail!(
                        "{} has form {} and this program knows {FORMAT}; restore it with pvn {}",
                        file.display(),
                        found.format,
                        found.version
                    );
                }
                manifest = Some(found);
            }
            (_, None) => bail!(broken()),
            (DATABASE | KEY_FILE, Some(_)) => {
                let mut out = File::options().write(true).create_new(true).mode(0o600).open(to.join(&name)).with_context(broken)?;
                io::copy(&mut entry, &mut out).with_context(broken)?;
                out.sync_all().with_context(|| format!("failed to write {}", to.join(&name).display()))?;
            }
            (other, Some(_)) => {
                let Some(id) = other.strip_prefix(BLOBS).and_then(|hex| format!("sha256:{hex}").parse::<BlobId>().ok()) else {
                    bail!("{} holds `{other}`, which no backup does", file.display());
                };
                let mut out = tempfile::NamedTempFile::new_in(to)?;
                io::copy(&mut entry, &mut out).with_context(broken)?;
                // It gets the id that its bytes have.
                let stored = blobs.put_file(out.path(), Keep::Lazy).with_context(|| format!("failed to write in {}", to.display()))?;
                if stored == id {
                    copied += 1;
                } else {
                    blobs.remove(stored)?;
                    spoiled += 1;
                }
            }
        }
    }
    if !to.join(DATABASE).exists() {
        bail!(broken());
    }
    rustix::fs::sync();
    Ok((copied, spoiled))
}
