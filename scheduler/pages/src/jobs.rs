//! The list of jobs, and one job with what it printed.

use askama::Template;
use schema::api::{Job, Page};
use schema::report::OutputError;

use crate::frame::Frame;
use crate::links::{instance_path, query};
use crate::{Rendered, render};

/// Most of a structured output that a page shows, bytes; all of it is in what the job printed.
const STRUCTURED_BYTES: usize = 64 << 10;

/// What a list of jobs is narrowed to, as its address says; empty texts mean nothing.
#[derive(Debug, Clone, Default)]
pub struct JobsFilter {
    pub application: String,
    pub service: String,
    pub channel: String,
    pub kind: String,
    pub status: String,
}

#[derive(Template)]
#[template(path = "jobs.html")]
struct JobsView<'a> {
    frame: &'a Frame,
    filter: &'a JobsFilter,
    list: &'a Page<Job>,
    next: Option<String>,
}

/// A page of the list.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn jobs(frame: &Frame, filter: &JobsFilter, list: &Page<Job>) -> Rendered {
    let next = list.next_cursor.as_deref().map(|cursor| {
        let pairs = [
            ("application", filter.application.as_str()),
            ("service", &filter.service),
            ("channel", &filter.channel),
            ("kind", &filter.kind),
            ("status", &filter.status),
            ("cursor", cursor),
        ];
        query("/jobs", &pairs)
    });
    render(&JobsView { frame, filter, list, next })
}

/// What a job printed, as its page begins.
#[derive(Debug)]
pub struct PrintedOutput {
    /// Lines of both streams as they follow each other, from
    /// [`AnsiPainter`](crate::ansi::AnsiPainter)s.
    pub html: String,
    /// What is left out, that there is nothing, that nobody knows the order.
    pub notes: Vec<String>,
    /// Whether the first lines are the streams' first, so that lines have numbers.
    pub numbered: bool,
    /// Where more comes from, while the job runs.
    pub live: Option<String>,
}

#[derive(Template)]
#[template(path = "job.html")]
struct JobDetailsView<'a> {
    frame: &'a Frame,
    job: &'a Job,
    output: &'a PrintedOutput,
    structured: Option<String>,
    errors: &'a [OutputError],
}

impl JobDetailsView<'_> {
    fn channel_path(&self) -> String {
        instance_path(&self.job.application, &self.job.service, &self.job.channel)
    }
}

/// The page of a job.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn job(frame: &Frame, job: &Job, output: &PrintedOutput) -> Rendered {
    let structured = job.report.as_ref().and_then(|report| report.structured.as_ref());
    let errors = structured.map_or(&[][..], |output| &output.errors);
    let value = structured.and_then(|output| output.value.as_ref());
    let value = value.and_then(|value| serde_json::to_string_pretty(value).ok());
    let value = value.map(|text| schema::shown::beginning(&text, STRUCTURED_BYTES));
    render(&JobDetailsView { frame, job, output, structured: value, errors })
}
