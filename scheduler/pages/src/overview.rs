//! The first page: how everything stands, and what to look at first.

use askama::Template;
use schema::api::{InstanceSummary, Job, NextAction};
use schema::id::{ApplicationName, ChannelName, ServiceName};
use schema::status::Status;

use crate::frame::Frame;
use crate::links::{Linked, instance_path};
use crate::{Rendered, render};

/// What the first page shows.
#[derive(Debug)]
pub struct Overview {
    /// How many service instances are in each status, none left out but those of which there are
    /// none.
    pub counts: Vec<(Status, u64)>,
    /// Those that wait for people, longest first.
    pub waiting: Vec<InstanceSummary>,
    /// Those that failed, newest first.
    pub failing: Vec<InstanceSummary>,
    /// Those that are not as desired for another reason, longest first.
    pub behind: Vec<InstanceSummary>,
    /// Jobs that run.
    pub running: Vec<Job>,
    /// What the daemon does next, soonest first.
    pub coming: Vec<ComingUp>,
}

/// What comes next at a service instance.
#[derive(Debug)]
pub struct ComingUp {
    pub application: ApplicationName,
    pub service: ServiceName,
    pub channel: ChannelName,
    /// How it stands until then.
    pub status: Status,
    /// What, and when.
    pub next: NextAction,
}

impl Linked for ComingUp {
    fn href(&self) -> String {
        instance_path(&self.application, &self.service, &self.channel)
    }
}

/// Instances for one reason.
struct InstanceList<'a> {
    id: &'static str,
    title: &'static str,
    none: &'static str,
    more: Option<&'static str>,
    lines: &'a [InstanceSummary],
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewView<'a> {
    frame: &'a Frame,
    counts: &'a [(Status, u64)],
    lists: [InstanceList<'a>; 3],
    running: &'a [Job],
    coming: &'a [ComingUp],
}

/// The first page.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn overview(frame: &Frame, shown: &Overview) -> Rendered {
    let lists = [
        InstanceList {
            id: "waiting",
            title: "Waits for people",
            none: "Nobody is asked for anything.",
            more: Some("/approvals"),
            lines: &shown.waiting,
        },
        InstanceList {
            id: "failing",
            title: "Failing",
            none: "Nothing has failed.",
            more: Some("/services?status=FAILED"),
            lines: &shown.failing,
        },
        InstanceList {
            id: "behind",
            title: "Not as desired, longest first",
            none: "Everything else is as its config says.",
            more: None,
            lines: &shown.behind,
        },
    ];
    let Overview { counts, running, coming, .. } = shown;
    render(&OverviewView { frame, counts, lists, running, coming })
}
