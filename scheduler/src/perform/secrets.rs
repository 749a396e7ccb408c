//! The secrets that a job was given, opened once more when it has something to tell: not every job has a wrapper that hides them.
//!
//! What always holds: nothing that the job may have been given is left out. A secret that was set anew since is hidden as it was
//! and as it is.

use std::ffi::OsString;

use schema::mask::Secrets;
use schema::wire::{self, SECRET_KEYS_VARIABLE};

use super::{End, EnvValue, JobId, Performer, Place, RAW_SECRET, command, later, never};

impl Performer {
    /// The secrets that a job was given; `None` without any.
    ///
    /// # Errors
    /// When one of them cannot be opened, now or ever: it was deleted.
    pub async fn secrets(&self, job: JobId) -> Result<Option<Secrets>, End> {
        let failed = |error| later(format!("failed to read the job {job}: {error}"));
        let row = self.store.job_row(job).await.map_err(failed)?.ok_or_else(|| never(format!("there is no job {job}")))?;
        let (compiled, decided_at) = match &row.start {
            Some(start) => (Some(start.compiled), start.decided_at),
            // It is over, and there is more to tell of it.
            None => (self.store.compiled_for(row.release, row.channel).await.map_err(failed)?, row.created_at),
        };
        let compiled = compiled.ok_or_else(|| never(format!("there is no release of the job {job} any more")))?;
        let commands = self.commands(compiled).await?;
        let Some(command) = command(&commands, row.kind) else { return Ok(None) };
        let mut values = Vec::new();
        for variable in &command.env {
            match &variable.value {
                EnvValue::Plain(text) if variable.key == SECRET_KEYS_VARIABLE => {
                    for key in wire::secret_keys(text) {
                        let plain = command.env.iter().find_map(|variable| match &variable.value {
                            EnvValue::Plain(text) if variable.key == key => Some(text.clone().into_bytes()),
                            _ => None,
                        });
                        // Local jobs inherit our variables.
                        let inherited = || std::env::var_os(key).filter(|_| matches!(commands.place, Place::Local { .. }));
                        values.extend(plain.or_else(|| inherited().map(OsString::into_encoded_bytes)));
                    }
                }
                // The values of the cluster's own secrets nobody here knows.
                EnvValue::Plain(_) | EnvValue::KubernetesSecret { .. } => {}
                EnvValue::Secret { key, version } => {
                    let found = match version {
                        0 => self.store.secret_since(key, decided_at).await,
                        version => self.store.secret(key, *version).await.map(|found| found.into_iter().map(|(_, bytes)| bytes).collect()),
                    };
                    match found {
                        Ok(found) if found.is_empty() => return Err(never(format!("secret `{key}` was deleted"))),
                        Ok(found) => values.extend(found),
                        Err(error) => return Err(later(format!("failed to open secret `{key}`: {error}"))),
                    }
                }
                EnvValue::Sealed(sealed) => {
                    let bytes = self.sealer.unseal(RAW_SECRET, sealed);
                    values.push(bytes.map_err(|error| never(format!("failed to open the secret in `{}`: {error}", variable.key)))?);
                }
            }
        }
        Ok(Secrets::of(&values.iter().map(Vec::as_slice).collect::<Vec<_>>()))
    }
}
