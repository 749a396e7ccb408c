//! Requests to a cluster: what an answer means for a job, and asking again while that makes sense. Called by the jobs' tasks.

use std::time::Duration;

use kube::core::Status;
use tokio::time::Instant;

use super::clusters::Cluster;

/// First wait before a request is made again, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// What it is about is not there.
    NotFound(String),
    /// The cluster will not have it, now or ever.
    Never(String),
    /// It does not accept our credentials. They are read again by the connection, so it may the next time.
    Unauthorized(String),
    /// The cluster cannot at present: quota, overload, a server that is away. `at_once` was not tried again.
    Now(String),
}

impl Refused {
    /// For people.
    pub(super) fn why(&self) -> &str {
        let (Self::NotFound(why) | Self::Never(why) | Self::Unauthorized(why) | Self::Now(why)) = self;
        why
    }
}

/// Makes a request, again and again until it is answered for good or the deadline has passed. It must be one that may be made
/// twice.
pub(super) async fn ask<T, F: Future<Output = kube::Result<T>>>(
    cluster: &Cluster,
    is_apply: bool,
    deadline: Instant,
    what: &str,
    request: impl FnMut() -> F,
) -> Result<T, Refused> {
    ask_telling(cluster, is_apply, deadline, what, |_| {}, request).await
}

/// The same, and tells each time why it is asked again.
pub(super) async fn ask_telling<T, F: Future<Output = kube::Result<T>>>(
    cluster: &Cluster,
    is_apply: bool,
    deadline: Instant,
    what: &str,
    tell: impl Fn(&str),
    mut request: impl FnMut() -> F,
) -> Result<T, Refused> {
    let mut pause = FIRST_PAUSE;
    loop {
        cluster.throttle.pass(is_apply).await;
        let refused = match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) => refused(what, &error),
        };
        let passing = matches!(refused, Refused::Now(_) | Refused::Unauthorized(_));
        if !passing || Instant::now() + pause >= deadline {
            return Err(refused);
        }
        tell(refused.why());
        tracing::debug!(why = refused.why(), "the cluster is asked again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What an error means.
pub(super) fn refused(what: &str, error: &kube::Error) -> Refused {
    match error {
        kube::Error::Api(status) => by_status(what, status),
        // The connection: it may stand again the next time, and what was asked may have been done.
        error => Refused::Now(format!("{what}: the cluster does not answer: {}", chain(error))),
    }
}

fn by_status(what: &str, status: &Status) -> Refused {
    let said = if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
    let why = format!("{what}: {said}");
    match status.code {
        404 => Refused::NotFound(why),
        403 if said.contains("exceeded quota") || said.contains("is being terminated") => Refused::Now(why),
        // A policy or a webhook, whose words say what it wants.
        403 if said.contains("denied") || said.contains("violates") => Refused::Never(why),
        401 => Refused::Unauthorized(format!("{why}; the credentials of the kubeconfig are not accepted")),
        403 => Refused::Never(format!("{why}; give the scheduler's account this right in the cluster")),
        // Another has changed it in between, too many requests, or the server is in trouble.
        409 | 429 | 500..=599 => Refused::Now(why),
        _ => Refused::Never(why),
    }
}

/// An error with what caused it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: u16, message: &str, expected: fn(String) -> Refused) {
        let status = Status { code, message: message.to_owned(), ..Status::default() };
        let found = by_status("the Job", &status);
        assert_eq!(std::mem::discriminant(&found), std::mem::discriminant(&expected(String::new())), "{code} {message}: {found:?}");
        assert!(found.why().starts_with("the Job: "), "{found:?}");
    }

    #[test]
    fn what_may_pass_is_asked_again_and_what_is_wrong_is_told() {
        check(404, "namespaces \"x\" not found", Refused::NotFound);
        check(400, "strict decoding error", Refused::Never);
        check(401, "Unauthorized", Refused::Unauthorized);
        check(403, "jobs.batch is forbidden: User \"x\" cannot create", Refused::Never);
        check(403, "jobs.batch is forbidden: exceeded quota: few", Refused::Now);
        check(403, "admission webhook \"policy.example\" denied the request: no such team", Refused::Never);
        check(409, "the object has been modified", Refused::Now);
        check(422, "Job is invalid", Refused::Never);
        check(429, "too many requests", Refused::Now);
        check(500, "etcdserver: request timed out", Refused::Now);
        check(503, "the server is currently unable", Refused::Now);
    }
}
