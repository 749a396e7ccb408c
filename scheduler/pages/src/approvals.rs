//! The inbox of those who approve: every question that waits, with its plan.

use askama::Template;
use schema::api::Approval;
use schema::id::{ApplicationName, ChannelName, ServiceName};

use crate::frame::Frame;
use crate::links::{channel_action, instance_path};
use crate::service::{ApprovalFacts, VoteFacts};
use crate::{Rendered, render};

/// A question, and where it is asked.
#[derive(Debug)]
pub struct OpenQuestion {
    pub application: ApplicationName,
    pub service: ServiceName,
    pub channel: ChannelName,
    pub approval: Approval,
}

impl OpenQuestion {
    fn href(&self) -> String {
        instance_path(&self.application, &self.service, &self.channel)
    }

    fn action(&self) -> String {
        channel_action(&self.application, &self.service, &self.channel)
    }
}

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsView<'a> {
    frame: &'a Frame,
    waiting: &'a [OpenQuestion],
    left_out: bool,
}

/// The inbox, longest first. `left_out`: whether there are more than these.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn approvals(frame: &Frame, waiting: &[OpenQuestion], left_out: bool) -> Rendered {
    render(&ApprovalsView { frame, waiting, left_out })
}
