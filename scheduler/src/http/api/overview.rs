//! `/v1/status`: how everything stands at a glance.

use axum::Json;
use axum::extract::State;
use schema::api::{Job, Overview};
use schema::shown::seen;
use schema::spool::Stream;
use schema::status::{JobStatus, Status};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{jobs, logs};
use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::{Error, Result};
use crate::http::extract::Query;
use crate::http::lookup::scope;
use crate::http::openapi::{Routes, about};

/// Instances that are told where nobody says how many: more than a screen has rows.
const USUAL: u32 = 50;

/// Most instances that are told: each running job among them is looked at.
const MOST: u32 = 200;

/// Bytes from the end of an output in which its last line is looked for.
const END_BYTES: u64 = 4096;

/// Longest output whose end is looked for: more is never kept.
const OUTPUT_BYTES: u64 = 8 << 30;

/// Characters of a last line: a wide terminal has no more.
const LINE_CHARS: usize = 240;

pub(super) fn routes(routes: Routes) -> Routes {
    routes.get(
        "/v1/status",
        status,
        about("getStatus", "services", "How everything stands, first what waits for a person"),
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusQuery {
    /// Only of this application: name or id.
    application: Option<String>,
    /// Only of this service of it: name or id.
    service: Option<String>,
    /// Most instances, 1 to 200; 50 when nothing is said.
    limit: Option<u32>,
}

async fn status(
    State(api): State<Api>,
    _: Viewer,
    Query(asked): Query<StatusQuery>,
) -> Result<Json<Overview>> {
    let limit = asked.limit.unwrap_or(USUAL).min(MOST);
    if limit == 0 {
        return Err(Error::bad_request(format!("`limit` is 1 to {MOST}")));
    }
    let of = scope(&api, asked.application.as_deref(), asked.service.as_deref(), None).await?;
    let (application, service) = (of.application.map(|row| row.id), of.service.map(|row| row.id));
    let counts = api.store.status_counts_in(application, service).await?;
    let total: u64 = counts.values().sum();
    let converged = counts.get(&Status::Converged).copied().unwrap_or(0);
    let all = total <= u64::from(limit);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = api.store.at_a_glance(application, service, all, limit).await?;
    let mut instances = Vec::with_capacity(found.len());
    for mut one in found {
        if let Some(job) = &mut one.job
            && job.status == JobStatus::Running
        {
            // Where its output cannot be read just now all else is told.
            job.last_line = last_line(&api, &job.id.to_string()).await.ok().flatten();
        }
        instances.push(one);
    }
    let wanted = if all { total } else { total - converged };
    let more = wanted.saturating_sub(instances.len() as u64);
    let counts = counts.into_iter().map(|(status, count)| (status.to_string(), count)).collect();
    Ok(Json(Overview { at: api.clock.now(), counts, instances, more }))
}

/// The last line that a job printed so far; of stdout, else of stderr.
async fn last_line(api: &Api, job: &str) -> Result<Option<String>> {
    let job = jobs::find(api, job).await?;
    for stream in [Stream::Stdout, Stream::Stderr] {
        let line = last_in(&end(api, &job, stream).await?);
        if line.is_some() {
            return Ok(line);
        }
    }
    Ok(None)
}

/// The end of an output, found by looking whether there is a byte: nobody keeps how long it is
/// while it grows.
async fn end(api: &Api, job: &Job, stream: Stream) -> Result<Vec<u8>> {
    let placed = api.store.placed_job(job.id).await?;
    let read = async |offset: u64, limit: u64| {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        logs::read(api, job, &placed, stream, offset, limit).await
    };
    let (mut there, mut beyond) = (0, END_BYTES);
    while beyond < OUTPUT_BYTES && !read(beyond, 1).await?.is_empty() {
        (there, beyond) = (beyond, beyond * 2);
    }
    while beyond - there > END_BYTES {
        let middle = there + (beyond - there) / 2;
        if read(middle, 1).await?.is_empty() {
            beyond = middle;
        } else {
            there = middle;
        }
    }
    read(there.saturating_sub(END_BYTES), 3 * END_BYTES).await
}

/// The last line with something in it, as it can be shown. What a carriage return covered is gone.
fn last_in(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.rsplit(['\n', '\r']).map(|line| seen(line).trim().to_owned());
    let line = line.into_iter().find(|line| !line.is_empty())?;
    Some(line.chars().take(LINE_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_last_that_has_something_in_it() {
        for (bytes, expected) in [
            (&b""[..], None),
            (b"\n \r\n", None),
            (b"one\ntwo", Some("two")),
            (b"one\ntwo\n\n", Some("two")),
            (b"10 %\r20 %\r", Some("20 %")),
            (b"\x1b[31mred\x1b[0m\n", Some("red")),
        ] {
            assert_eq!(last_in(bytes).as_deref(), expected, "{bytes:?}");
        }
        assert_eq!(last_in(&[b'x'; 1000]).unwrap().len(), LINE_CHARS);
    }
}
