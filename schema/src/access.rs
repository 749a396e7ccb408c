//! Who may do what, and where: the one table of it. The daemon admits by it, pages leave out what
//! would be refused, the client says what a token may, and docs/access.md shows it.
//!
//! What always holds: roles are no ladder, each has capabilities of its own; whoever may do
//! anything may read; and what is not in the table is not allowed.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::id::{ApplicationName, ChannelName, ParseError};
use crate::status::Role;
use crate::words::words;

words! {
    /// One kind of thing that the holder of a token can do. Every route needs one.
    Capability {
        /// Read everything but secrets' values; compare configs with what is stored.
        Read = "read",
        /// Run fetch or getInfo of one service instance once, which changes nothing in pvn.
        DryRun = "dry-run",
        /// Release and roll back.
        Push = "push",
        /// Approve and reject.
        Approve = "approve",
        /// Pause, observe, resume, retry, cancel, fetch now, acknowledge drift; check and resume
        /// runtimes.
        Operate = "operate",
        /// Let a release start outside its apply window.
        OpenWindow = "open-window",
        /// Change configs, secrets and tokens.
        Administer = "administer",
    }
}

impl Capability {
    /// What is done with it, for a sentence such as "… needs the role deployer".
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::DryRun => "running fetch or getInfo once",
            Self::Push => "releasing and rolling back",
            Self::Approve => "approving and rejecting",
            Self::Operate => "pausing, resuming, retrying, cancelling and fetching now",
            Self::OpenWindow => "lifting an apply window",
            Self::Administer => "changing configs, secrets and tokens",
        }
    }

    /// The roles that have it.
    pub fn roles(self) -> impl Iterator<Item = Role> {
        Role::ALL.iter().copied().filter(move |role| role.may(self))
    }

    /// The role to ask for: of those that have it the one that has least beside it.
    pub fn least_role(self) -> Role {
        self.roles().min_by_key(|role| role.capabilities().len()).unwrap_or(Role::Admin)
    }
}

impl Role {
    /// The table: what each role may do.
    pub const fn capabilities(self) -> &'static [Capability] {
        match self {
            Self::Viewer => &[Capability::Read, Capability::DryRun],
            Self::Deployer => &[Capability::Read, Capability::DryRun, Capability::Push],
            Self::Approver => &[Capability::Read, Capability::DryRun, Capability::Approve],
            Self::Operator => &[Capability::Read, Capability::DryRun, Capability::Operate],
            Self::BreakGlass => &[Capability::Read, Capability::DryRun, Capability::OpenWindow],
            Self::Admin => Capability::ALL,
        }
    }

    /// Whether it may do that.
    pub fn may(self, capability: Capability) -> bool {
        self.capabilities().contains(&capability)
    }

    /// Whether it may do all that the other may, and more.
    fn exceeds(self, other: Self) -> bool {
        self != other && other.capabilities().iter().all(|one| self.may(*one))
    }
}

/// The roles of one token: at least one, and none that another of them includes. As text they are
/// separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleSet(BTreeSet<Role>);

impl RoleSet {
    /// These roles; `None` where there is none.
    pub fn new(roles: impl IntoIterator<Item = Role>) -> Option<Self> {
        let all: BTreeSet<Role> = roles.into_iter().collect();
        let is_included = |role: &Role| all.iter().any(|other| other.exceeds(*role));
        let kept: BTreeSet<Role> = all.iter().copied().filter(|role| !is_included(role)).collect();
        (!kept.is_empty()).then_some(Self(kept))
    }

    /// Whether one of them may do that.
    pub fn may(&self, capability: Capability) -> bool {
        self.0.iter().any(|role| role.may(capability))
    }

    /// The role, where there is one alone.
    pub fn only(&self) -> Option<Role> {
        self.0.first().copied().filter(|_| self.0.len() == 1)
    }

    /// All of them, in the order of [`Role::ALL`].
    pub fn to_vec(&self) -> Vec<Role> {
        self.0.iter().copied().collect()
    }

    /// For a sentence: "the role viewer", "the roles deployer and approver".
    pub fn in_words(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|role| role.as_str()).collect();
        let roles = if names.len() == 1 { "role" } else { "roles" };
        format!("the {roles} {}", list(&names, "and"))
    }
}

impl From<Role> for RoleSet {
    fn from(role: Role) -> Self {
        Self(BTreeSet::from([role]))
    }
}

impl fmt::Display for RoleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|role| role.as_str()).collect();
        f.pad(&names.join(","))
    }
}

impl FromStr for RoleSet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let roles: Result<Vec<Role>, ParseError> = text.split(',').map(str::parse).collect();
        Self::new(roles?).ok_or_else(|| ParseError {
            text: text.to_owned(),
            what: "a list of roles",
            rule: "it must name one at least",
        })
    }
}

/// Where a token may change something; it reads everywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenScope {
    /// Only in these applications; empty means all of them.
    pub applications: BTreeSet<ApplicationName>,
    /// Only in release channels of these names; empty means all of them.
    pub channels: BTreeSet<ChannelName>,
}

impl TokenScope {
    /// Whether it is limited to nothing.
    pub fn is_everything(&self) -> bool {
        self.applications.is_empty() && self.channels.is_empty()
    }

    /// Whether something of this application is within it.
    pub fn includes_application(&self, application: &ApplicationName) -> bool {
        self.applications.is_empty() || self.applications.contains(application)
    }

    /// Whether this channel of this application is within it.
    pub fn includes(&self, application: &ApplicationName, channel: &ChannelName) -> bool {
        self.includes_application(application)
            && (self.channels.is_empty() || self.channels.contains(channel))
    }

    /// Those of these channels of this application that are not within it: what is done to all of
    /// them is refused where there is one.
    pub fn beyond<'a>(
        &self,
        application: &ApplicationName,
        channels: impl IntoIterator<Item = &'a ChannelName>,
    ) -> Vec<&'a ChannelName> {
        let is_beyond = |channel: &&ChannelName| !self.includes(application, channel);
        channels.into_iter().filter(is_beyond).collect()
    }

    /// For a sentence such as "may change …": "everything", "application shop", "channel staging of
    /// application shop", "channels eu and us of every application".
    pub fn in_words(&self) -> String {
        let of = |what: &str, names: &[&str]| {
            let many = if names.len() == 1 { "" } else { "s" };
            format!("{what}{many} {}", list(names, "and"))
        };
        let applications: Vec<&str> = self.applications.iter().map(|name| name.as_str()).collect();
        let channels: Vec<&str> = self.channels.iter().map(|name| name.as_str()).collect();
        match (applications.as_slice(), channels.as_slice()) {
            ([], []) => "everything".to_owned(),
            (applications, []) => of("application", applications),
            ([], channels) => format!("{} of every application", of("channel", channels)),
            (applications, channels) => {
                format!("{} of {}", of("channel", channels), of("application", applications))
            }
        }
    }
}

/// What a token may, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRights {
    /// What.
    pub roles: RoleSet,
    /// Where it may change something.
    pub scope: TokenScope,
}

impl TokenRights {
    /// Whether it may do that somewhere. Who administers does so everywhere: what is limited to a
    /// part of it all does not.
    pub fn may(&self, capability: Capability) -> bool {
        let is_everywhere = capability != Capability::Administer || self.scope.is_everything();
        is_everywhere && self.roles.may(capability)
    }

    /// Whether it may do that somewhere in this application.
    pub fn may_in(&self, capability: Capability, application: &ApplicationName) -> bool {
        self.may(capability) && self.scope.includes_application(application)
    }

    /// Whether it may do that in this channel of this application.
    pub fn may_at(
        &self,
        capability: Capability,
        application: &ApplicationName,
        channel: &ChannelName,
    ) -> bool {
        self.may(capability) && self.scope.includes(application, channel)
    }
}

impl From<Role> for TokenRights {
    fn from(role: Role) -> Self {
        Self { roles: role.into(), scope: TokenScope::default() }
    }
}

/// Words as a sentence lists them: "a", "a and b", "a, b and c".
pub fn list(words: &[&str], and: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} {and} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(roles: &[Role]) -> RoleSet {
        RoleSet::new(roles.iter().copied()).unwrap()
    }

    #[test]
    fn everybody_reads_and_only_an_admin_does_what_two_others_do() {
        for role in Role::ALL {
            assert!(role.may(Capability::Read), "{role}");
            assert_eq!(role.may(Capability::Administer), *role == Role::Admin, "{role}");
        }
        assert!(!Role::Operator.may(Capability::Approve), "four eyes");
        assert!(!Role::Operator.may(Capability::OpenWindow), "whoever steers is bound by it");
        assert!(!Role::Approver.may(Capability::Push), "four eyes");
        for (capability, least) in [
            (Capability::Read, Role::Viewer),
            (Capability::Push, Role::Deployer),
            (Capability::Approve, Role::Approver),
            (Capability::Operate, Role::Operator),
            (Capability::OpenWindow, Role::BreakGlass),
            (Capability::Administer, Role::Admin),
        ] {
            assert_eq!(capability.least_role(), least, "{capability}");
        }
    }

    #[test]
    fn a_set_has_no_role_that_another_of_it_includes() {
        assert_eq!(set(&[Role::Viewer, Role::Operator, Role::Deployer]).to_string(), {
            "deployer,operator"
        });
        assert_eq!(set(&[Role::Deployer, Role::Admin]).only(), Some(Role::Admin));
        assert_eq!(set(&[Role::Viewer]).only(), Some(Role::Viewer));
        assert_eq!(set(&[Role::Deployer, Role::Approver]).only(), None);
        assert_eq!(RoleSet::new([]), None);
    }

    #[test]
    fn text_of_a_set_reads_back_and_nothing_else_is_one() {
        for roles in [&[Role::Admin][..], &[Role::Deployer, Role::Approver, Role::Operator]] {
            assert_eq!(set(roles).to_string().parse(), Ok(set(roles)));
        }
        for text in ["", "viewer,", "owner", "viewer, admin", "Admin"] {
            assert!(text.parse::<RoleSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_is_of_both_kinds_and_nobody_administers_a_part() {
        let shop: ApplicationName = "shop".parse().unwrap();
        let [staging, production]: [ChannelName; 2] =
            ["staging", "production"].map(|name| name.parse().unwrap());
        let mut rights = TokenRights::from(Role::Deployer);
        assert!(rights.may_at(Capability::Push, &shop, &production));
        rights.scope.channels.insert(staging.clone());
        assert!(rights.may_at(Capability::Push, &shop, &staging));
        assert!(!rights.may_at(Capability::Push, &shop, &production));
        assert_eq!(rights.scope.beyond(&shop, [&staging, &production]), [&production]);
        assert_eq!(rights.scope.in_words(), "channel staging of every application");
        rights.scope.applications.insert("other".parse().unwrap());
        assert!(!rights.may_in(Capability::Push, &shop));
        assert_eq!(rights.scope.in_words(), "channel staging of application other");
        rights.roles = Role::Admin.into();
        assert!(!rights.may(Capability::Administer) && rights.may(Capability::Operate));
        rights.scope = TokenScope::default();
        assert!(rights.may(Capability::Administer));
        assert_eq!(rights.scope.in_words(), "everything");
    }
}
