//! What stands around every page: who reads it, where they are, what they may do.

use schema::access::TokenRights;
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
}
