//! What a page offers to whoever reads it, and what it says in the place of what would be refused.
//! The daemon decides by the same rights (`schema::access`); a page only leaves out.
//!
//! What always holds: what is offered is not refused for want of a role or because of a limit, and
//! what is left out says why, and who can change that.

use schema::access::{Capability, TokenRights, list};
use schema::api::{Approval, Service};
use schema::id::{ApplicationName, ChannelName, ServiceName};

use crate::frame::Frame;
use crate::service::VoteFacts;

impl Frame {
    fn rights(&self) -> Option<&TokenRights> {
        self.reader.as_ref().map(|reader| &reader.rights)
    }

    fn may_at(&self, what: Capability, app: &ApplicationName, channel: &ChannelName) -> bool {
        self.rights().is_some_and(|rights| rights.may_at(what, app, channel))
    }

    /// Whether the reader may release in some channel of the service.
    pub(crate) fn may_push_in(&self, service: &Service) -> bool {
        let mut channels = service.channels.iter();
        match self.is_limited_to_channels() {
            true => channels.any(|one| self.may_push_at(&service.application, &one.channel)),
            false => self
                .rights()
                .is_some_and(|rights| rights.may_in(Capability::Push, &service.application)),
        }
    }

    pub(crate) fn may_push_at(&self, app: &ApplicationName, channel: &ChannelName) -> bool {
        self.may_at(Capability::Push, app, channel)
    }

    /// Whether the reader may say yes or no to what is asked in this channel: in all channels in
    /// which that counts.
    pub(crate) fn may_decide(
        &self,
        app: &ApplicationName,
        channel: &ChannelName,
        approval: &Approval,
    ) -> bool {
        self.may_at(Capability::Approve, app, channel)
            && self
                .rights()
                .is_some_and(|rights| rights.scope.beyond(app, &approval.channels).is_empty())
    }

    /// Whether the reader has said yes to it already, and somebody else has to, too.
    pub(crate) fn has_said_yes(&self, approval: &Approval) -> bool {
        let mut votes = approval.by.iter();
        let is_own = |name: &String| self.reader.as_ref().is_some_and(|own| own.name == *name);
        votes.any(|vote| vote.is_yes() && is_own(&vote.who))
    }

    pub(crate) fn may_operate_at(&self, app: &ApplicationName, channel: &ChannelName) -> bool {
        self.may_at(Capability::Operate, app, channel)
    }

    pub(crate) fn may_dry_run_at(&self, app: &ApplicationName, channel: &ChannelName) -> bool {
        self.may_at(Capability::DryRun, app, channel)
    }

    pub(crate) fn may_open_window_at(&self, app: &ApplicationName, channel: &ChannelName) -> bool {
        self.may_at(Capability::OpenWindow, app, channel)
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

    /// Why the reader may not decide, and who may.
    pub(crate) fn why_not_decide(
        &self,
        service: &ServiceName,
        channel: &ChannelName,
        approval: &Approval,
    ) -> String {
        let why = self.why_not(Capability::Approve);
        let may = self.rights().is_some_and(|rights| rights.may(Capability::Approve));
        if !may || approval.channels.iter().all(|only| only == channel) {
            return why;
        }
        let places: Vec<String> =
            approval.channels.iter().map(|one| format!("{service}@{one}")).collect();
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        let places = list(&places, "and");
        format!("It is decided for {places} together, by whoever may change all of them. {why}")
    }

    pub(crate) fn why_not_operate(&self) -> String {
        self.why_not(Capability::Operate)
    }

    pub(crate) fn why_not_open_window(&self) -> String {
        self.why_not(Capability::OpenWindow)
    }

    /// Why the reader may not do all that the page of a channel has buttons for, each reason once.
    pub(crate) fn why_not_all(&self, app: &ApplicationName, channel: &ChannelName) -> Vec<String> {
        let wanted = [Capability::Operate, Capability::DryRun];
        let missing = wanted.into_iter().filter(|what| !self.may_at(*what, app, channel));
        let mut reasons: Vec<String> = missing.map(|what| self.why_not(what)).collect();
        reasons.dedup();
        reasons
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
