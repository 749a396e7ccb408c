//! Requests to a cluster: what an answer means for a job, and asking again while that makes sense.
//! Called by the jobs' tasks.

use std::error::Error;
use std::io;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::core::Status;
use tokio::time::Instant;

use super::clusters::Cluster;
use super::faults;
use super::leave::May;

/// First wait before a request is made again, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long a cluster is asked again that refuses every connection, before a job gives its place to
/// another one: that is how it is tried again, with pauses that grow.
const UNREACHED_WITHIN: Duration = Duration::from_secs(5);

/// How often it is asked while an answer is waited for whether what was asked for is still
/// permitted: most come sooner.
const PERMITTED_LOOK: Duration = Duration::from_secs(1);

/// How long each of the looks may take that come before a deletion or that people are waiting for.
pub(super) const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestRefusal {
    /// What it is about is not there.
    NotFound(String),
    /// The cluster will not have it, now or ever.
    Never(String),
    /// It does not accept our credentials, or there are none to be had. They are read again by the
    /// connection, so it may the next time.
    Unauthorized(String),
    /// The cluster cannot at present, and has done nothing: quota, overload.
    Now(String),
    /// Another has changed it in between, so nothing was done.
    Changed(String),
    /// Nobody takes the connection, so nothing was done.
    Unreached(String),
    /// Nobody knows whether it was done: a server in trouble, an answer that did not come.
    Doubtful(String),
    /// What lets a command run may not be asked for any more, and was not: a gate has shut.
    NoLeave(String),
    /// The same: the database is not this daemon's any more.
    NotOurs(String),
}

impl RequestRefusal {
    /// For people.
    pub(super) fn why(&self) -> &str {
        let (Self::NotFound(why)
        | Self::Never(why)
        | Self::Unauthorized(why)
        | Self::Now(why)
        | Self::Changed(why)
        | Self::Unreached(why)
        | Self::Doubtful(why)
        | Self::NoLeave(why)
        | Self::NotOurs(why)) = self;
        why
    }

    /// Whether it may be otherwise the next time.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Now(_)
                | Self::Changed(_)
                | Self::Unauthorized(_)
                | Self::Unreached(_)
                | Self::Doubtful(_)
        )
    }
}

/// Makes a request, again and again until it is answered for good or the deadline has passed. It
/// must be one that may be made twice.
pub(super) async fn ask<T, F: Future<Output = kube::Result<T>>>(
    cluster: &Cluster,
    is_apply: bool,
    deadline: Instant,
    what: &str,
    request: impl FnMut() -> F,
) -> Result<T, RequestRefusal> {
    let asking = Asking {
        cluster,
        is_apply,
        deadline,
        what,
        may: May::Always,
        tell: &|_: &RequestRefusal| {},
        gives_up_unreached: false,
    };
    asking.until_answered(request).await.map_err(|(refused, _)| refused)
}

/// A request that is made again and again until it is answered for good or the deadline has passed.
pub(super) struct Asking<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) is_apply: bool,
    pub(super) deadline: Instant,
    /// What it is, for people: "making its Job".
    pub(super) what: &'a str,
    /// What is asked before each time, and while an answer does not come.
    pub(super) may: May<'a>,
    /// Is told each time why it is made again.
    pub(super) tell: &'a (dyn Fn(&RequestRefusal) + Send + Sync),
    /// Whether it ends before the deadline when only connections were refused, for
    /// [`UNREACHED_WITHIN`].
    pub(super) gives_up_unreached: bool,
}

impl Asking<'_> {
    /// Makes it.
    ///
    /// # Errors
    /// Why it came to nothing the last time, and whether nobody knows that it did: a request that
    /// was in doubt once may be done late.
    pub(super) async fn until_answered<T, F>(
        &self,
        mut request: impl FnMut() -> F,
    ) -> Result<T, (RequestRefusal, bool)>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut pause = FIRST_PAUSE;
        let mut is_doubtful = false;
        let mut unreached_since = None;
        loop {
            self.cluster.throttle.pass(self.is_apply).await;
            self.cluster.prepare().await;
            let refused = match self.may.ask().await {
                Err(refused) => refused,
                Ok(()) => match self.while_permitted(request()).await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(error)) => self.refused(&error),
                    Err(refused) => {
                        is_doubtful = true;
                        refused
                    }
                },
            };
            is_doubtful |= matches!(refused, RequestRefusal::Doubtful(_));
            let now = Instant::now();
            match &refused {
                RequestRefusal::Unreached(_) => drop(unreached_since.get_or_insert(now)),
                _ => unreached_since = None,
            }
            let is_unreached = self.gives_up_unreached
                && !is_doubtful
                && unreached_since.is_some_and(|since| now >= since + UNREACHED_WITHIN);
            if !refused.may_pass() || is_unreached || now + pause >= self.deadline {
                return Err((refused, is_doubtful));
            }
            (self.tell)(&refused);
            tracing::debug!(why = refused.why(), "the cluster is asked again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The answer; or, when what it asks for is not permitted any more while it is waited for, why
    /// not. Then it may still be done: a gateway may hold it for a minute, and whoever paused
    /// the service was told that nothing begins.
    async fn while_permitted<T>(
        &self,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<kube::Result<T>, RequestRefusal> {
        let mut request = std::pin::pin!(request);
        loop {
            let looks = async {
                tokio::time::sleep(PERMITTED_LOOK).await;
                self.may.ask().await
            };
            tokio::select! {
                answer = &mut request => return Ok(answer),
                may = looks => may?,
            }
        }
    }

    /// What an error means at this moment.
    fn refused(&self, error: &kube::Error) -> RequestRefusal {
        match refused(self.what, error) {
            RequestRefusal::Never(why) if is_forbidden(error) && self.cluster.was_away_lately() => {
                RequestRefusal::Now(why)
            }
            refused => refused,
        }
    }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// What an error means.
pub(super) fn refused(what: &str, error: &kube::Error) -> RequestRefusal {
    match error {
        kube::Error::Api(status) => by_status(what, status),
        // Nothing was sent.
        error if faults::lacks_credentials(error) => {
            RequestRefusal::Unauthorized(format!("{what}: {}", faults::of_client(error)))
        }
        error => {
            let why = format!("{what}: the cluster does not answer: {}", faults::of_client(error));
            // Any other way in which a connection fails says nothing of what had gone over it.
            if is_refused(error) {
                RequestRefusal::Unreached(why)
            } else {
                RequestRefusal::Doubtful(why)
            }
        }
    }
}

/// Whether nobody took the connection.
fn is_refused(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

fn by_status(what: &str, status: &Status) -> RequestRefusal {
    let said =
        if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
    let why = format!("{what}: {said}");
    match status.code {
        404 => RequestRefusal::NotFound(why),
        403 if said.contains("exceeded quota") || said.contains("is being terminated") => {
            RequestRefusal::Now(why)
        }
        // A policy or a webhook, whose words say what it wants.
        403 if said.contains("denied") || said.contains("violates") => RequestRefusal::Never(why),
        401 => RequestRefusal::Unauthorized(format!(
            "{why}; the credentials of the kubeconfig are not accepted"
        )),
        403 => RequestRefusal::Never(format!(
            "{why}; give the scheduler's account this right in the cluster"
        )),
        409 => RequestRefusal::Changed(why),
        // Too many requests.
        429 => RequestRefusal::Now(why),
        // The server is in trouble, with what was asked or after it.
        500..=599 => RequestRefusal::Doubtful(why),
        _ => RequestRefusal::Never(why),
    }
}

/// What comes of a request within this time. It is boxed, because each is large and what follows a
/// job would hold room for all of them.
///
/// # Errors
/// Why nothing did.
pub(super) async fn within<T>(
    limit: Duration,
    what: &str,
    request: BoxFuture<'_, Result<T, RequestRefusal>>,
) -> Result<T, RequestRefusal> {
    tokio::time::timeout(limit, request).await.unwrap_or_else(|_| {
        let why = format!("{what}: the cluster has not answered for {} s", limit.as_secs());
        Err(RequestRefusal::Doubtful(why))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: u16, message: &str, expected: fn(String) -> RequestRefusal) {
        let status = Status { code, message: message.to_owned(), ..Status::default() };
        let found = by_status("the Job", &status);
        assert_eq!(
            std::mem::discriminant(&found),
            std::mem::discriminant(&expected(String::new())),
            "{code} {message}: {found:?}"
        );
        assert!(found.why().starts_with("the Job: "), "{found:?}");
    }

    #[test]
    fn what_may_pass_is_asked_again_and_what_is_wrong_is_told() {
        check(404, "namespaces \"x\" not found", RequestRefusal::NotFound);
        check(400, "strict decoding error", RequestRefusal::Never);
        check(401, "Unauthorized", RequestRefusal::Unauthorized);
        check(403, "jobs.batch is forbidden: User \"x\" cannot create", RequestRefusal::Never);
        check(403, "jobs.batch is forbidden: exceeded quota: few", RequestRefusal::Now);
        check(
            403,
            "admission webhook \"policy.example\" denied the request: no such team",
            RequestRefusal::Never,
        );
        check(409, "the object has been modified", RequestRefusal::Changed);
        check(422, "Job is invalid", RequestRefusal::Never);
        check(429, "too many requests", RequestRefusal::Now);
        check(500, "etcdserver: request timed out", RequestRefusal::Doubtful);
        check(503, "the server is currently unable", RequestRefusal::Doubtful);
    }
}
