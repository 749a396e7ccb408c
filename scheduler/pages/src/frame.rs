//! What stands around every page: who reads it, where they are, what they may do.

use schema::access::{Capability, TokenRights};
use schema::id::{ApplicationName, ChannelName};
use schema::time::Timestamp;

use crate::assets;

/// An entry of the navigation, with the key that goes there after `g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NavEntry {
    Overview,
    Services,
    Approvals,
    Jobs,
    Releases,
    Runtimes,
    Configs,
    Audit,
    /// None of them.
    Elsewhere,
}

impl NavEntry {
    /// Those that are shown, in order.
    pub const SHOWN: [Self; 8] = [
        Self::Overview,
        Self::Services,
        Self::Approvals,
        Self::Jobs,
        Self::Releases,
        Self::Runtimes,
        Self::Configs,
        Self::Audit,
    ];

    const fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Overview => ("Overview", "/", "o"),
            Self::Services => ("Services", "/services", "s"),
            Self::Approvals => ("Approvals", "/approvals", "a"),
            Self::Jobs => ("Jobs", "/jobs", "j"),
            Self::Releases => ("Releases", "/releases", "r"),
            Self::Runtimes => ("Runtimes", "/runtimes", "t"),
            Self::Configs => ("Config", "/configs", "c"),
            Self::Audit => ("Audit", "/audit", "u"),
            Self::Elsewhere => ("", "", ""),
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.parts().0
    }

    pub(crate) const fn path(self) -> &'static str {
        self.parts().1
    }

    pub(crate) const fn key(self) -> &'static str {
        self.parts().2
    }
}

/// Who reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageReader {
    /// The name of the token that they signed in with.
    pub name: String,
    /// What it may, and where.
    pub rights: TokenRights,
}

impl PageReader {
    /// Its roles, and that it is limited, as short as the top of a page is.
    pub(crate) fn in_short(&self) -> String {
        let TokenRights { roles, scope } = &self.rights;
        let limited = if scope.is_everything() { "" } else { ", limited" };
        format!("{}{limited}", roles.to_string().replace(',', ", "))
    }

    /// What it may change.
    pub(crate) fn may_change(&self) -> String {
        format!("may change {}", self.rights.scope.in_words())
    }
}

/// What stands around a page.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The page's title.
    pub title: String,
    /// Where it is in the navigation.
    pub entry: NavEntry,
    /// Who reads it; nobody has signed in where it is `None`.
    pub reader: Option<PageReader>,
    /// How many approvals are waited for, or none are shown.
    pub waiting: u64,
    /// Where the page hears of changes that concern it.
    pub live: Option<String>,
    /// The number of the newest commit when the page was made: it shows nothing older.
    pub revision: u64,
    /// The daemon's clock.
    pub now: Timestamp,
}

impl Frame {
    /// A page about nothing that changes, for nobody in particular.
    pub fn plain(title: &str, now: Timestamp) -> Self {
        Self {
            title: title.to_owned(),
            entry: NavEntry::Elsewhere,
            reader: None,
            waiting: 0,
            live: None,
            revision: 0,
            now,
        }
    }

    pub(crate) fn style(&self) -> String {
        assets::STYLE.path()
    }

    pub(crate) fn script(&self) -> String {
        assets::SCRIPT.path()
    }

    pub(crate) fn icon(&self) -> String {
        assets::ICON.path()
    }

    pub(crate) fn is_at(&self, entry: &NavEntry) -> bool {
        self.entry == *entry
    }

    /// The reader's rights. The daemon decides; a page only leaves out what would be refused.
    fn rights(&self) -> Option<&TokenRights> {
        self.reader.as_ref().map(|reader| &reader.rights)
    }

    fn may_at(&self, what: Capability, app: &ApplicationName, channel: &ChannelName) -> bool {
        self.rights().is_some_and(|rights| rights.may_at(what, app, channel))
    }

    /// Whether the reader may release in some channel of the application.
    pub(crate) fn may_push_in(&self, app: &ApplicationName) -> bool {
        self.rights().is_some_and(|rights| rights.may_in(Capability::Push, app))
    }

    pub(crate) fn may_push_at(&self, app: &ApplicationName, channel: &ChannelName) -> bool {
        self.may_at(Capability::Push, app, channel)
    }

    pub(crate) fn may_approve_at(&self, app: &ApplicationName, channel: &ChannelName) -> bool {
        self.may_at(Capability::Approve, app, channel)
    }

    pub(crate) fn may_operate_at(&self, app: &ApplicationName, channel: &ChannelName) -> bool {
        self.may_at(Capability::Operate, app, channel)
    }

    pub(crate) fn may_dry_run_at(&self, app: &ApplicationName, channel: &ChannelName) -> bool {
        self.may_at(Capability::DryRun, app, channel)
    }

    /// Whether the reader may do to a runtime what concerns all that it serves.
    pub(crate) fn may_operate_everywhere(&self) -> bool {
        let is_it =
            |rights: &TokenRights| rights.may(Capability::Operate) && rights.scope.is_everything();
        self.rights().is_some_and(is_it)
    }

    /// Whether the reader may change only some channels, in a form that chooses among them.
    pub(crate) fn is_limited_to_channels(&self) -> bool {
        self.rights().is_some_and(|rights| !rights.scope.channels.is_empty())
    }

    pub(crate) fn why_not_push(&self) -> String {
        self.why_not(Capability::Push)
    }

    pub(crate) fn why_not_approve(&self) -> String {
        self.why_not(Capability::Approve)
    }

    pub(crate) fn why_not_operate(&self) -> String {
        self.why_not(Capability::Operate)
    }

    /// Why the reader may not do this here, and who can change that.
    fn why_not(&self, capability: Capability) -> String {
        let Some(rights) = self.rights() else { return "You are not signed in.".to_owned() };
        let TokenRights { roles, scope } = rights;
        if roles.may(capability) {
            return format!(
                "Your token may change only {}; an admin makes tokens with other limits.",
                scope.in_words()
            );
        }
        format!(
            "Your token has {}, and {} needs the role {}; an admin makes tokens with it.",
            roles.in_words(),
            capability.in_words(),
            capability.least_role()
        )
    }
}
