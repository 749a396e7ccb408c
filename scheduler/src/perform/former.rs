//! What was given to the job's instance before it and may be live. A secret that is set anew stays
//! live as it was until an apply has run, and a tool that compares prints both.
//!
//! What always holds: none of it is known to a command, and nothing depends on it: what cannot be
//! had any more is left out.

use std::collections::BTreeSet;

use schema::id::{InstanceId, JobId};
use schema::mask::SHORTEST_BYTES;
use schema::time::Timestamp;

use super::secrets::{SecretSource, named, sources};
use super::{Command, End, Performer, RAW_SECRET, RunTarget, later};

/// Most values of which nobody knows whether they are live: those of some releases that failed one
/// after the other, or of a secret that was set anew again and again. Each one makes masking a
/// little slower.
const UNSURE_LIMIT: usize = 64;

/// Most bytes of all values: beside what a job is given they must fit into its environment, and
/// into a Secret of a cluster. 64 KiB.
const BYTES_LIMIT: usize = 64 << 10;

/// Before everything.
const BEGINNING: Timestamp = Timestamp::from_millis(0);

impl Performer {
    /// The secrets that may have been live when `job` was decided `at`, or since: what the newest
    /// apply that had succeeded was given, the newest fetch that found what is desired, all
    /// applies begun since that success, and whatever else the secrets of its commands ever
    /// were. Without those that are `known` and those that are too short to be masked; of those
    /// that may not be live at most [`UNSURE_LIMIT`], in all at most [`BYTES_LIMIT`].
    ///
    /// # Errors
    /// When the database does not answer.
    pub(super) async fn former(
        &self,
        instance: InstanceId,
        job: JobId,
        at: Timestamp,
        known: &[&[u8]],
    ) -> Result<Vec<Vec<u8>>, End> {
        let failed =
            |error| later(format!("failed to read the jobs before the job {job}: {error}"));
        let (matched, remembered) = self.store.remembered(instance).await.map_err(failed)?;
        let mut has_secrets = false;
        for given in &remembered {
            has_secrets |= self.commands(given.compiled).await.is_ok_and(|commands| {
                commands.each().any(|command| sources(command).next().is_some())
            });
        }
        if !has_secrets {
            return Ok(Vec::new());
        }
        let (live, begun) = self.store.given(instance, job, at).await.map_err(failed)?;
        let mut former = Former { known, values: Vec::new(), unsure: 0, bytes: 0 };
        let mut read = BTreeSet::new();
        for given in live.into_iter().chain(matched).chain(begun).chain(remembered) {
            let Ok(commands) = self.commands(given.compiled).await else { continue };
            // What a plan of fetch brought with it is live too.
            let read_since = [
                (Some(&commands.apply), given.since),
                (commands.fetch.as_ref(), given.fetched_since),
                (commands.get_info.as_ref(), given.since),
            ];
            for (command, since) in read_since {
                let Some(command) = command else { continue };
                let values = self
                    .values_between(command, &commands.place, (since, given.until), &mut read)
                    .await;
                former.take(values.map_err(failed)?, given.is_live);
            }
        }
        Ok(former.values)
    }

    /// What a command may have been given that is secret between these times, the second one
    /// included; of a secret and times that are in `read` nothing.
    async fn values_between(
        &self,
        command: &Command,
        place: &RunTarget,
        (since, until): Times,
        read: &mut BTreeSet<(String, Times)>,
    ) -> crate::store::Result<Vec<Vec<u8>>> {
        let mut values = Vec::new();
        for source in sources(command) {
            match source {
                SecretSource::Named(key) => values.extend(named(key, command, place)),
                // A config may have named other versions before.
                SecretSource::Kept { key, version } if version == 0 || since == BEGINNING => {
                    if read.insert((key.to_owned(), (since, until))) {
                        values.extend(self.store.secret_between(key, since, until).await?);
                    }
                }
                // Deleted since, or sealed with a key that is lost.
                SecretSource::Kept { key, version } => {
                    let found = self.store.secret(key, version).await.ok().flatten();
                    values.extend(found.map(|(_, value)| value));
                }
                SecretSource::Sealed { sealed, .. } => {
                    values.extend(self.sealer.unseal(RAW_SECRET, sealed))
                }
            }
        }
        Ok(values)
    }
}

/// From when until when, to this day without an end.
type Times = (Timestamp, Option<Timestamp>);

/// Distinct values, up to a limit.
struct Former<'a> {
    known: &'a [&'a [u8]],
    values: Vec<Vec<u8>>,
    /// Those that may not be live.
    unsure: usize,
    bytes: usize,
}

impl Former<'_> {
    fn take(&mut self, found: Vec<Vec<u8>>, is_live: bool) {
        for value in found {
            // No environment variable can have held a NUL.
            let is_masked = value.len() >= SHORTEST_BYTES && !value.contains(&0);
            let is_new = !self.known.contains(&value.as_slice()) && !self.values.contains(&value);
            let has_room =
                (is_live || self.unsure < UNSURE_LIMIT) && self.bytes + value.len() <= BYTES_LIMIT;
            if is_masked && is_new && has_room {
                self.unsure += usize::from(!is_live);
                self.bytes += value.len();
                self.values.push(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(known: &[&[u8]], found: &[&[u8]], is_live: bool) -> Vec<Vec<u8>> {
        let mut former = Former { known, values: Vec::new(), unsure: 0, bytes: 0 };
        former.take(found.iter().map(|value| value.to_vec()).collect(), is_live);
        former.values
    }

    #[test]
    fn nothing_is_handed_over_twice_or_that_is_not_masked() {
        let found: &[&[u8]] =
            &[b"old-one", b"known-one", b"old-one", b"short", b"with\0nul", b"old-two"];
        assert_eq!(taken(&[b"known-one"], found, true), [b"old-one".to_vec(), b"old-two".to_vec()]);
    }

    #[test]
    fn of_what_may_be_live_the_first_are_kept_where_there_are_too_many() {
        let many: Vec<String> = (0..100).map(|number| format!("secret-{number}")).collect();
        let many: Vec<&[u8]> = many.iter().map(String::as_bytes).collect();
        assert_eq!(taken(&[], &many, false), many[..UNSURE_LIMIT]);
        assert_eq!(taken(&[], &many, true), many, "what is live is kept however many they are");
        let (long, fits) = (vec![b'a'; BYTES_LIMIT - 5], vec![b'b'; 6]);
        assert_eq!(
            taken(&[], &[&fits, &long, b"old-one"], true),
            [fits.clone(), b"old-one".to_vec()]
        );
    }
}
