//! Which version a rollback without one means, from what each channel had before. Pure. Called by
//! `back`.

use std::collections::{BTreeMap, BTreeSet};

use engine::State;
use schema::id::ChannelName;
use schema::status::Status;

use super::super::Refusal;
use super::release::ReleaseSubject;
use crate::store::ReleaseRow;

/// What the channels of a service had before what they pursue now.
#[derive(Default)]
pub(super) struct EarlierVersions {
    /// The release that each can go back to.
    pub(super) had: BTreeMap<ChannelName, ReleaseRow>,
    /// The channels that go nowhere, in words.
    pub(super) without: Vec<String>,
    /// Those of them that are FAILED, in words.
    pub(super) failed: Vec<String>,
    /// Channels that were asked to go back before and have not arrived, in words.
    pub(super) open: Vec<String>,
    /// Whether one is back already.
    pub(super) is_back: bool,
}

impl EarlierVersions {
    /// Notes a channel that had nothing before.
    pub(super) fn lacks(&mut self, name: &ChannelName, state: Option<&State>) {
        let usual = "was never converged at an earlier version than what it pursues, as far back \
                     as releases are kept";
        if state.is_some_and(|state| state.standing().status == Status::Failed) {
            self.failed.push(format!("`{name}` is FAILED and {usual}"));
        }
        self.without.push(match state.filter(|state| state.is_deleted()).and_then(State::had) {
            Some(had) => format!("`{name}` is DELETED and had {had}"),
            None => format!("`{name}` {usual}"),
        });
    }

    /// The release to go back to, the channels that go, and what is to be said of the others.
    ///
    /// # Errors
    /// [`Refusal::Conflict`], where nobody can tell which version is meant.
    pub(super) fn target(
        self,
        subject: &ReleaseSubject<'_>,
        named: Option<&BTreeSet<ChannelName>>,
    ) -> Result<(ReleaseRow, BTreeSet<ChannelName>, Vec<String>), Refusal> {
        let Self { had, without, failed, open, is_back } = self;
        let (application, service) = (&subject.application.name, &subject.service.name);
        let command = format!("pvnctl services rollback {service} --app {application}");
        let only = named.map_or_else(String::new, |named| {
            let names: Vec<&str> = named.iter().map(ChannelName::as_str).collect();
            format!(" --channels {}", names.join(","))
        });
        if !open.is_empty() {
            return Err(Refusal::Conflict(format!(
                "{}: name the version that is meant, with `{command} --to VERSION{only}`",
                open.join("; ")
            )));
        }
        if named.is_none() && !failed.is_empty() && !had.is_empty() {
            // Nobody who wants to be rid of what failed means the others alone.
            let (quoted, names): (Vec<_>, Vec<_>) =
                had.keys().map(|name| (format!("`{name}`"), name.as_str())).unzip();
            return Err(Refusal::Conflict(format!(
                "{}; {} can go back, with `{command} --channels {}`, or name a version with \
                 `{command} --to VERSION --channels CHANNEL`",
                failed.join("; "),
                quoted.join(", "),
                names.join(",")
            )));
        }
        let mut targets = had.values();
        let Some(target) = targets.next().filter(|_| named.is_none() || without.is_empty()) else {
            let why = if without.is_empty() {
                "it has no channel".to_owned()
            } else {
                without.join("; ")
            };
            return Err(Refusal::Conflict(match is_back {
                true => format!(
                    "{why}; to go further back name the version, with `{command} --to \
                     VERSION{only}`"
                ),
                false => format!(
                    "there is no version to take {application}/{service} back to: {why}; name a \
                     version with `{command} --to VERSION{only}`"
                ),
            }));
        };
        if targets.any(|other| other.version != target.version) {
            let each: Vec<String> = had
                .iter()
                .map(|(channel, release)| format!("`{channel}` {}", release.version))
                .collect();
            return Err(Refusal::Conflict(format!(
                "the channels of {application}/{service} had different versions before: {}; take \
                 each back by itself, with `{command} --channels CHANNEL`, or name the version \
                 for all with `--to VERSION{only}`",
                each.join(", ")
            )));
        }
        let warnings = without.into_iter().map(|why| format!("not taken back: {why}")).collect();
        Ok((target.clone(), had.into_keys().collect(), warnings))
    }
}
