//! One runtime: who has its places, who waits for one, and what a check of it found.

use askama::Template;
use schema::api::{InstanceSummary, Runtime, RuntimeCheck};
use schema::id::{ApplicationName, ChannelName, JobId, ServiceName};
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::frame::Frame;
use crate::links::{Linked, instance_path};
use crate::{Rendered, render};

/// A job that has a place of a runtime.
#[derive(Debug)]
pub struct RunningPlace {
    pub job: JobId,
    pub kind: JobKind,
    pub application: ApplicationName,
    pub service: ServiceName,
    pub channel: ChannelName,
    pub since: Timestamp,
}

/// What the page of a runtime shows.
#[derive(Debug)]
pub struct RuntimeDetails {
    pub runtime: Runtime,
    /// Those that began first before.
    pub holders: Vec<RunningPlace>,
    /// Those that wait longest before.
    pub waiting: Vec<InstanceSummary>,
    /// What was found, where somebody has just asked.
    pub check: Option<RuntimeCheck>,
}

#[derive(Template)]
#[template(path = "runtime.html")]
struct RuntimeView<'a> {
    frame: &'a Frame,
    shown: &'a RuntimeDetails,
}

impl RuntimeView<'_> {
    fn path_of(&self, one: &RunningPlace) -> String {
        instance_path(&one.application, &one.service, &one.channel)
    }
}

/// The page of a runtime.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn runtime(frame: &Frame, shown: &RuntimeDetails) -> Rendered {
    render(&RuntimeView { frame, shown })
}
