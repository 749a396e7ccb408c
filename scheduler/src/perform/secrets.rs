//! The secrets that a job was given, opened once more when it has something to tell: not every job
//! has a wrapper that hides them.
//!
//! What always holds: nothing that the job may have been given is left out. A secret that was set
//! anew since is hidden as it was and as it is. What the applies before it were given is hidden too
//! (`former`), as far as it can be had.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use engine::action::StartJob;
use schema::id::JobId;
use schema::mask::{SHORTEST_BYTES, Secrets};
use schema::status::JobKind;
use schema::time::Timestamp;
use schema::wire::{self, SECRET_KEYS_VARIABLE};

use super::{
    Command, Commands, End, EnvValue, Performer, RAW_SECRET, RunTarget, command, later, never,
};

impl Performer {
    /// The secrets that a job was given, of an apply those of the fetches whose plan it may have
    /// been handed, and what applies of its instance may have left live; `None` without any.
    ///
    /// # Errors
    /// When one of them cannot be opened, now or ever: it was deleted.
    pub async fn secrets(&self, job: JobId) -> Result<Option<Secrets>, End> {
        let failed = |error| later(format!("failed to read the job {job}: {error}"));
        let row = self
            .store
            .job_row(job)
            .await
            .map_err(failed)?
            .ok_or_else(|| never(format!("there is no job {job}")))?;
        let (compiled, decided_at) = match &row.start {
            Some(start) => (Some(start.compiled), start.decided_at),
            // It is over, and there is more to tell of it.
            None => (
                self.store.compiled_for(row.release, row.channel).await.map_err(failed)?,
                row.created_at,
            ),
        };
        let compiled = compiled
            .ok_or_else(|| never(format!("there is no release of the job {job} any more")))?;
        let commands = self.commands(compiled).await?;
        let Some(own) = command(&commands, row.kind) else { return Ok(None) };
        let mut values = self.values(own, &commands.place, decided_at).await?;
        if let (JobKind::Apply, Some(fetch)) = (row.kind, &commands.fetch) {
            // Which fetch it was nobody says of an apply that is over, so it may have had any
            // version.
            values.extend(self.values(fetch, &commands.place, Timestamp::from_millis(0)).await?);
        }
        let known: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let former = self.former(row.instance, job, decided_at, &known).await?;
        values.extend(former);
        // Long ones take some tenths of a second, in which nobody else may wait.
        let prepare = move || Secrets::of(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
        tokio::task::spawn_blocking(prepare)
            .await
            .map_err(|died| later(format!("failed to prepare for masking: {died}")))
    }

    /// The secrets that the fetch had whose files an apply is handed, as they were then and as they
    /// were set since, less those that it is `given` as secrets itself and those that are too
    /// short to be masked.
    pub(super) async fn secrets_of_fetch(
        &self,
        start: &StartJob,
        commands: &Commands,
        given: &[&str],
    ) -> Result<Vec<OsString>, End> {
        let (Some(job), Some(fetch)) = (start.fetch_job, &commands.fetch) else {
            return Ok(Vec::new());
        };
        let row = self
            .store
            .job_row(job)
            .await
            .map_err(|error| later(format!("failed to read the fetch {job}: {error}")))?;
        let since = row.map_or(Timestamp::from_millis(0), |row| row.created_at);
        let mut values = self.values(fetch, &commands.place, since).await?;
        values.sort();
        values.dedup();
        values.retain(|value| {
            value.len() >= SHORTEST_BYTES
                && !given.iter().any(|given| given.as_bytes() == value.as_slice())
        });
        Ok(values.into_iter().map(OsString::from_vec).collect())
    }

    /// What a command may have been given that is secret, when it was decided on then: a secret
    /// that was set anew since as it was and as it is.
    async fn values(
        &self,
        command: &Command,
        place: &RunTarget,
        decided_at: Timestamp,
    ) -> Result<Vec<Vec<u8>>, End> {
        let mut values = Vec::new();
        for source in sources(command) {
            match source {
                SecretSource::Named(key) => values.extend(named(key, command, place)),
                SecretSource::Kept { key, version } => {
                    let found = match version {
                        0 => self.store.secret_since(key, decided_at).await,
                        version => self
                            .store
                            .secret(key, version)
                            .await
                            .map(|found| found.into_iter().map(|(_, bytes)| bytes).collect()),
                    };
                    match found {
                        Ok(found) if found.is_empty() => {
                            return Err(never(format!("secret `{key}` was deleted")));
                        }
                        Ok(found) => values.extend(found),
                        Err(error) => {
                            return Err(later(format!("failed to open secret `{key}`: {error}")));
                        }
                    }
                }
                SecretSource::Sealed { variable, sealed } => {
                    let bytes = self.sealer.unseal(RAW_SECRET, sealed);
                    values.push(bytes.map_err(|error| {
                        never(format!("failed to open the secret in `{variable}`: {error}"))
                    })?);
                }
            }
        }
        Ok(values)
    }
}

/// Where a secret of a command comes from, as far as anybody here knows its value: not one of the
/// cluster's own.
pub(super) enum SecretSource<'a> {
    /// A variable that the config calls secret.
    Named(&'a str),
    /// One that is kept here; version 0 = the latest.
    Kept { key: &'a str, version: u64 },
    /// One that the config holds, for this variable.
    Sealed { variable: &'a str, sealed: &'a str },
}

/// The secrets of a command.
pub(super) fn sources(command: &Command) -> impl Iterator<Item = SecretSource<'_>> {
    command.env.iter().flat_map(|variable| {
        let (named, other) = match &variable.value {
            EnvValue::Plain(text) if variable.key == SECRET_KEYS_VARIABLE => {
                (Some(wire::secret_keys(text)), None)
            }
            EnvValue::Plain(_) | EnvValue::KubernetesSecret { .. } => (None, None),
            EnvValue::Secret { key, version } => {
                (None, Some(SecretSource::Kept { key, version: *version }))
            }
            EnvValue::Sealed(sealed) => {
                (None, Some(SecretSource::Sealed { variable: &variable.key, sealed }))
            }
        };
        named.into_iter().flatten().map(SecretSource::Named).chain(other)
    })
}

/// The value of a variable that the config calls secret.
pub(super) fn named(key: &str, command: &Command, place: &RunTarget) -> Option<Vec<u8>> {
    let plain = command.env.iter().find_map(|variable| match &variable.value {
        EnvValue::Plain(text) if variable.key == key => Some(text.clone().into_bytes()),
        _ => None,
    });
    // Local jobs inherit our variables.
    let inherited = || std::env::var_os(key).filter(|_| matches!(place, RunTarget::Local { .. }));
    plain.or_else(|| inherited().map(OsString::into_encoded_bytes))
}
