//! The changes of a commit, brought into as few statements as their tables: each statement is two
//! turns between threads, which costs more than the row that it writes. Called by `commit`.
//!
//! What always holds: a table is written after those that its rows name, so the order of kinds is
//! fixed; of two changes of one row the later one counts, as if they had been written one after the
//! other.

use std::collections::HashMap;
use std::hash::Hash;

use schema::id::{BlobId, ChannelId, ReleaseId};

use super::releases::StatusChange;
use super::{
    ApplicationRow, Change, ChannelRow, Connection, ReleaseChannelRow, ReleaseRow, Result,
    RuntimeRow, ServiceRow, Store, StoredDocument, applications, documents, jobs, meta,
    notifications, releases, secrets, tokens,
};
use crate::compile::Commands;

/// Rows by kind, each once, in the order in which they came first.
#[derive(Debug, Default)]
struct Rows<'a> {
    documents: Vec<&'a StoredDocument>,
    runtimes: Latest<&'a str, &'a RuntimeRow>,
    applications: Latest<&'a str, &'a ApplicationRow>,
    channels: Latest<ChannelId, &'a ChannelRow>,
    services: Latest<schema::id::ServiceId, &'a ServiceRow>,
    releases: Vec<&'a ReleaseRow>,
    compiled: Latest<BlobId, &'a Commands>,
    release_channels: Latest<(ReleaseId, ChannelId), ReleaseChannelRow>,
    statuses: Latest<(ReleaseId, ChannelId), StatusChange>,
    others: Vec<&'a Change>,
}

/// Values by key.
#[derive(Debug)]
struct Latest<K, V> {
    places: HashMap<K, usize>,
    values: Vec<V>,
}

impl<K, V> Default for Latest<K, V> {
    fn default() -> Self {
        Self { places: HashMap::new(), values: Vec::new() }
    }
}

impl<K: Eq + Hash, V> Latest<K, V> {
    /// Puts a value in, in the place of an earlier one; `merge` makes one of both, the earlier one
    /// first.
    fn put(&mut self, key: K, value: V, merge: impl FnOnce(&V, V) -> V) {
        match self.places.get(&key) {
            Some(at) => self.values[*at] = merge(&self.values[*at], value),
            None => {
                self.places.insert(key, self.values.len());
                self.values.push(value);
            }
        }
    }

    fn replace(&mut self, key: K, value: V) {
        self.put(key, value, |_, later| later);
    }
}

impl<'a> Rows<'a> {
    fn of(changes: &'a [Change]) -> Self {
        let mut rows = Self::default();
        for change in changes {
            match change {
                Change::Document(document) => rows.documents.push(document),
                Change::Runtime(runtime) => rows.runtimes.replace(runtime.name.as_str(), runtime),
                Change::Application(application) => {
                    rows.applications.replace(application.name.as_str(), application)
                }
                Change::Channel(channel) => rows.channels.replace(channel.id, channel),
                Change::Service(service) => rows.services.replace(service.id, service),
                Change::Release(release) => rows.releases.push(release),
                Change::Compiled(digest, commands) => rows.compiled.replace(*digest, commands),
                Change::ReleaseChannel(row) => {
                    // A row that is there keeps its status.
                    let keep =
                        |earlier: &ReleaseChannelRow, later: ReleaseChannelRow| ReleaseChannelRow {
                            status: earlier.status,
                            converged_at: earlier.converged_at,
                            ..later
                        };
                    rows.release_channels.put(
                        (row.release, row.channel),
                        row.as_ref().clone(),
                        keep,
                    );
                }
                Change::ReleaseStatus { release, channel, status, at } => {
                    let change = StatusChange::new(*release, *channel, *status, *at);
                    rows.statuses.put((*release, *channel), change, StatusChange::then);
                }
                other => rows.others.push(other),
            }
        }
        rows
    }
}

impl Store {
    /// Writes changes.
    pub(super) async fn write_changes(
        &self,
        to: &mut Connection,
        changes: &[Change],
    ) -> Result<()> {
        let rows = Rows::of(changes);
        applications::put_runtimes(to, &rows.runtimes.values).await?;
        applications::put_applications(to, &rows.applications.values).await?;
        applications::put_channels(to, &rows.channels.values).await?;
        applications::put_services(to, &rows.services.values).await?;
        documents::insert(to, &rows.documents, |document| self.sealed_document(document)).await?;
        let compiled: Vec<_> = rows
            .compiled
            .places
            .iter()
            .map(|(digest, at)| (*digest, rows.compiled.values[*at]))
            .collect();
        releases::put_compiled(to, &compiled).await?;
        releases::insert(to, &rows.releases).await?;
        releases::put_channels(to, &rows.release_channels.values).await?;
        releases::set_statuses(to, &rows.statuses.values).await?;
        for change in rows.others {
            self.write_other(to, change).await?;
        }
        Ok(())
    }

    /// A change of a kind of which a commit has few.
    async fn write_other(&self, to: &mut Connection, change: &Change) -> Result<()> {
        match change {
            Change::Secret { key, version, value, at, by } => {
                secrets::insert(
                    to,
                    key,
                    *version,
                    &self.sealed_secret(key, *version, value),
                    *at,
                    by,
                )
                .await
            }
            Change::SecretDeleted(key) => secrets::delete(to, key).await,
            Change::Token(token) => tokens::insert(to, token).await,
            Change::TokenRevoked { name, at } => tokens::revoke(to, name, *at).await,
            Change::Meta(key, value) => meta::set(to, key, value).await,
            Change::ReleaseRefused { release, channel, refused } => {
                releases::set_refused(to, *release, *channel, *refused).await
            }
            Change::DocumentDeleted { key, at, by } => documents::delete(to, key, *at, by).await,
            Change::RuntimeDeleted(name) => applications::delete_runtime(to, name).await,
            Change::NotificationResent { id, at } => notifications::resend(to, *id, *at).await,
            Change::JobGivenUp { job, at, why } => jobs::give_up(to, *job, *at, why).await,
            // Gathered by kind above.
            Change::Document(_)
            | Change::Runtime(_)
            | Change::Application(_)
            | Change::Channel(_)
            | Change::Service(_)
            | Change::Release(_)
            | Change::Compiled(..)
            | Change::ReleaseChannel(_)
            | Change::ReleaseStatus { .. } => Ok(()),
        }
    }
}
