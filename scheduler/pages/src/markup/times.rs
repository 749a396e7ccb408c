//! Instants and spans, and the life of a job as a bar.

use schema::api::Job;
use schema::time::Timestamp;
use schema::when;

use super::{Markup, StatusColour, of_job};

/// An instant, however deep a template hands it on by reference.
pub(crate) trait Instantly {
    fn instant(&self) -> Timestamp;
}

impl Instantly for Timestamp {
    fn instant(&self) -> Timestamp {
        *self
    }
}

impl<T: Instantly + ?Sized> Instantly for &T {
    fn instant(&self) -> Timestamp {
        (**self).instant()
    }
}

fn time(at: Timestamp, told: &str, text: &str) -> Markup {
    Markup(format!(r#"<time datetime="{at}" title="{at}" data-told="{told}">{text}</time>"#))
}

/// Since when a job has been under way.
pub(crate) fn under_way(job: &Job, now: impl Instantly) -> Markup {
    lasts(job.started_at.unwrap_or(job.created_at), now)
}

/// How long it was from one to the other.
pub(crate) fn between(from: impl Instantly, to: impl Instantly) -> String {
    when::length(to.instant().since_ms(from.instant()))
}

/// How long a job's command ran; nothing while it runs.
pub(crate) fn took(job: &Job) -> String {
    job.ended_at
        .map(|end| between(job.started_at.unwrap_or(job.created_at), end))
        .unwrap_or_default()
}

/// The phases of a job as parts of one bar: waiting for its start, running.
pub(crate) fn phases(job: &Job, now: impl Instantly) -> Markup {
    let end = job.ended_at.unwrap_or(now.instant());
    let started = job.started_at.unwrap_or(end);
    let (wait, run) = (started.since_ms(job.created_at).max(0), end.since_ms(started).max(0));
    // What has no length is seen all the same.
    let percent = (i128::from(wait) * 1000 / i128::from((wait + run).max(1))).clamp(4, 996);
    let percent = if job.started_at.is_none() { 1000 } else { percent };
    let class = match of_job(job.status) {
        StatusColour::Good => "good",
        StatusColour::Bad | StatusColour::Paused => "bad",
        _ => "run",
    };
    Markup(format!(
        r#"<svg class="phases" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true"><rect class="wait" width="{percent}" height="8"/><rect class="{class}" x="{percent}" width="{}" height="8"/></svg>"#,
        1000 - percent
    ))
}

/// When a job last got on.
pub(crate) fn job_moved(job: &Job, now: impl Instantly) -> Markup {
    ago(job.ended_at.or(job.started_at).unwrap_or(job.created_at), now)
}

/// How long ago, where nothing but plain text can stand.
pub(crate) fn age(at: impl Instantly, now: impl Instantly) -> String {
    when::ago(at.instant(), now.instant())
}

/// How long ago.
pub(crate) fn ago(at: impl Instantly, now: impl Instantly) -> Markup {
    let (at, now) = (at.instant(), now.instant());
    time(at, "ago", &format!("{} ago", when::ago(at, now)))
}

/// For how long by now.
pub(crate) fn lasts(at: impl Instantly, now: impl Instantly) -> Markup {
    let (at, now) = (at.instant(), now.instant());
    time(at, "for", &when::ago(at, now))
}

/// When it will be.
pub(crate) fn until(at: impl Instantly, now: impl Instantly) -> Markup {
    let (at, now) = (at.instant(), now.instant());
    time(at, "until", &when::until(at, now))
}

/// The instant itself, for tables of what happened.
pub(crate) fn instant(at: impl Instantly) -> Markup {
    let at = at.instant();
    let text = at.to_string();
    let shown = text.get(..19).unwrap_or(&text).replace('T', " ");
    Markup(format!(r#"<time datetime="{at}" title="{at}">{shown}</time>"#))
}
