//! What errors of kube mean, in our own words: of a kubeconfig, of whoever gives its credentials,
//! of a connection. Called wherever such an error is told or logged.
//!
//! What always holds: nothing is told of what a kubeconfig holds, but for the name of its plugin's
//! program, and nothing of that program's arguments, environment and output: any of them may be a
//! credential, and every viewer reads what is told. So nothing here is shown by its own `Display`,
//! but for errors of the operating system and of the network, which hold no such thing.

use std::error::Error;

use kube::client::{AuthError, RustlsTlsError};
use kube::config::{KubeconfigError, LoadDataError};
use kube::runtime::watcher;
use tokio::time::Instant;

use super::lost_watch::LostWatch;

/// What is told of a panic of a crate that connects us. What it said is in the daemon's log.
pub(super) const PANICKED: &str = "it holds, or its plugin gives, a value with which no \
                                   connection can be made, most often a token that is not in one \
                                   line (the daemon's log has the details)";

/// What is told of an `auth-provider` that gives nothing.
pub(super) const PROVIDER: &str =
    "its `auth-provider` gives no token, or is none that pvn knows; use `exec`";

/// What is told of a token that cannot be sent.
pub(super) const TOKEN: &str = "its token holds a line break, or another character that no \
                                request can carry; write it in one line (`token: …`, not `token: \
                                |`), and end a `tokenFile` without a newline";

/// What the cluster answers to whoever wants to see everything of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchRefusal {
    /// The account has no right to it.
    Forbidden {
        /// As in a role.
        verb: &'static str,
        resource: &'static str,
        /// The cluster's words.
        said: String,
    },
    /// Our credentials are none, or are not accepted: why, for people.
    Unauthorized(String),
}

/// Credentials that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NoCredentials(String);

/// A kubeconfig that cannot be used. `context` is the one that the config names.
pub(super) fn of_kubeconfig(error: &KubeconfigError, context: Option<&str>) -> String {
    match error {
        KubeconfigError::CurrentContextNotSet => "it says no `current-context`; give it one, or \
                                                  name one in `kubernetes.context`"
            .to_owned(),
        KubeconfigError::KindMismatch => "its files, or its documents, differ in `kind`".to_owned(),
        KubeconfigError::ApiVersionMismatch => {
            "its files, or its documents, differ in `apiVersion`".to_owned()
        }
        KubeconfigError::LoadContext(_) => match context {
            Some(context) => format!(
                "the context `{context}` is not in it; name one that is in `kubernetes.context`"
            ),
            None => {
                "its `current-context` is not among its `contexts`; name one that is".to_owned()
            }
        },
        KubeconfigError::LoadClusterOfContext(_) => {
            "the cluster of its context is not among its `clusters`".to_owned()
        }
        KubeconfigError::FindPath => {
            "there is no HOME to look for it in; give `kubernetes.kubeconfig`".to_owned()
        }
        KubeconfigError::ReadConfig(error, path) => {
            format!("{} cannot be read: {error}", path.display())
        }
        KubeconfigError::Parse(error) => {
            let at = error
                .location()
                .map(|at| format!(" at line {}, column {}", at.line(), at.column()))
                .unwrap_or_default();
            format!(
                "it is no kubeconfig{at} (what is there is not shown, as it may be secret); see \
                 that its YAML is as kubectl takes it"
            )
        }
        KubeconfigError::MissingClusterUrl => "its cluster has no `server`".to_owned(),
        KubeconfigError::ParseClusterUrl(_) => "the `server` of its cluster is no URL".to_owned(),
        KubeconfigError::ParseProxyUrl(_) => {
            "the `proxy-url` of its cluster, or the scheduler's HTTPS_PROXY, is no URL".to_owned()
        }
        KubeconfigError::LoadCertificateAuthority(error) => {
            unloaded("certificate-authority", error)
        }
        KubeconfigError::LoadClientCertificate(error) => unloaded("client-certificate", error),
        KubeconfigError::LoadClientKey(error) => unloaded("client-key", error),
        KubeconfigError::ParseCertificates(_) => {
            "its `certificate-authority` holds no certificates in PEM".to_owned()
        }
    }
}

/// A field that gives a file, or its content in `FIELD-data`. People write the one into the other,
/// so that a path is no path.
fn unloaded(field: &str, error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(_) => format!("its `{field}-data` is no base64"),
        LoadDataError::ReadFile(error, _) => {
            format!("the file that its `{field}` names cannot be read: {error}")
        }
        LoadDataError::NoBase64DataOrFile => format!("its `{field}` is missing"),
    }
}

/// A client that cannot be made, or a request that came to nothing.
pub(super) fn of_client(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.message.is_empty() => status.reason.clone(),
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::HyperError(error) => of_network(error),
        kube::Error::Service(error) => of_service(error.as_ref()),
        kube::Error::ReadEvents(error) => of_network(error),
        kube::Error::ProxyProtocolUnsupported { .. }
        | kube::Error::ProxyProtocolDisabled { .. } => "its `proxy-url`, or the scheduler's \
                                                        HTTPS_PROXY, names a proxy, and pvn \
                                                        reaches clusters without one; take it out"
            .to_owned(),
        kube::Error::FromUtf8(_) | kube::Error::LinesCodecMaxLineLengthExceeded => {
            "its answer is no text".to_owned()
        }
        kube::Error::SerdeError(error) => {
            format!(
                "its answer is none of Kubernetes (line {}, column {})",
                error.line(),
                error.column()
            )
        }
        kube::Error::HttpError(_) | kube::Error::BuildRequest(_) => {
            "no request can be made of it; see its `as`, `as-uid`, `as-groups` and \
             `as-user-extra`, and the path in its `server`"
                .to_owned()
        }
        kube::Error::InferConfig(_) => {
            "neither a kubeconfig nor a cluster around the scheduler was found".to_owned()
        }
        kube::Error::InferKubeconfig(error) => of_kubeconfig(error, None),
        kube::Error::Discovery(_) => "it does not say what it can do".to_owned(),
        kube::Error::RustlsTls(error) => of_tls(error),
        kube::Error::TlsRequired => "its `server` speaks TLS, and this program does not".to_owned(),
        kube::Error::Auth(error) => of_credentials(error),
    }
}

/// The same of a watch.
pub(super) fn of_watch(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => of_client(error),
        watcher::Error::WatchError(status) => status.message.clone(),
        watcher::Error::NoResourceVersion => "a list has no version".to_owned(),
    }
}

/// A watch that is broken; `resource` as in a role.
pub(super) fn of_lost(error: &watcher::Error, resource: &'static str) -> LostWatch {
    let now = Instant::now();
    LostWatch {
        since: now,
        said_at: now,
        is_unlisted: matches!(
            error,
            watcher::Error::InitialListFailed(_) | watcher::Error::NoResourceVersion
        ),
        why: of_watch(error),
        refusal: refusal(error, resource),
    }
}

/// What a watch that is broken was refused, if that is what broke it; `resource` as in a role.
fn refusal(error: &watcher::Error, resource: &'static str) -> Option<WatchRefusal> {
    let (verb, status) = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => ("list", status),
        watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => ("watch", status),
        watcher::Error::WatchError(status) => ("watch", status),
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => {
            return lacks_credentials(error).then(|| WatchRefusal::Unauthorized(of_client(error)));
        }
        watcher::Error::NoResourceVersion => return None,
    };
    match status.code {
        403 => Some(WatchRefusal::Forbidden { verb, resource, said: status.message.clone() }),
        401 => Some(WatchRefusal::Unauthorized(
            "its cluster does not accept the credentials of the kubeconfig".to_owned(),
        )),
        _ => None,
    }
}

/// What a client's layers say, which is a text of the network's or one about credentials.
fn of_service(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |&error| error.source())
        .find_map(|error| match error.downcast_ref::<AuthError>() {
            Some(error) => Some(of_credentials(error)),
            None => error.downcast_ref::<NoCredentials>().map(ToString::to_string),
        })
        .unwrap_or_else(|| of_network(error))
}

/// A request that was not made, for want of credentials.
pub(super) fn no_credentials(why: String) -> kube::Error {
    kube::Error::Service(Box::new(NoCredentials(why)))
}

/// An error of a request, in our words where it is about credentials.
pub(super) fn of_request(error: kube::Error) -> kube::Error {
    match error {
        kube::Error::Service(error) if error.is::<AuthError>() => {
            no_credentials(of_service(error.as_ref()))
        }
        kube::Error::Auth(error) => no_credentials(of_credentials(&error)),
        error => error,
    }
}

/// Whether a request was not made because there were no credentials for it.
pub(super) fn lacks_credentials(error: &kube::Error) -> bool {
    match error {
        kube::Error::Auth(_) => true,
        kube::Error::Service(error) => error.is::<NoCredentials>() || error.is::<AuthError>(),
        _ => false,
    }
}

/// What `exec` gives is not asked for by kube (`plugin`), so those of its errors are of an
/// `auth-provider`.
fn of_credentials(error: &AuthError) -> String {
    match error {
        AuthError::InvalidBasicAuth(_) => "its `username` or `password` cannot be sent".to_owned(),
        AuthError::InvalidBearerToken(_) => TOKEN.to_owned(),
        AuthError::ReadTokenFile(error, _) => {
            format!("the file that its `tokenFile` names cannot be read: {error}")
        }
        AuthError::NoValidNativeRootCA(_) => NO_AUTHORITIES.to_owned(),
        AuthError::UnrefreshableTokenResponse
        | AuthError::ExecPluginFailed
        | AuthError::MalformedTokenExpirationDate(_)
        | AuthError::AuthExecStart(_)
        | AuthError::AuthExecRun { .. }
        | AuthError::AuthExecParse(_)
        | AuthError::AuthExecSerialize(_)
        | AuthError::AuthExec(_)
        | AuthError::ParseTokenKey(_)
        | AuthError::MissingCommand
        | AuthError::ExecMissingClusterInfo => PROVIDER.to_owned(),
    }
}

const NO_AUTHORITIES: &str =
    "the scheduler's machine has no certificate authorities; give its `certificate-authority`";

fn of_tls(error: &RustlsTlsError) -> String {
    match error {
        RustlsTlsError::InvalidIdentityPem(_) => "its client certificate and key are no PEM",
        RustlsTlsError::MissingPrivateKey => "its `client-key` holds no key in PEM",
        RustlsTlsError::MissingCertificate => {
            "its `client-certificate` holds no certificate in PEM"
        }
        RustlsTlsError::InvalidPrivateKey(_) => {
            "its `client-key` is none, or not that of its `client-certificate`"
        }
        RustlsTlsError::UnknownPrivateKeyFormat => {
            "its `client-key` is of no kind that is known: PKCS8, or RSA in PKCS1"
        }
        RustlsTlsError::AddRootCertificate(_) => {
            "a certificate of its `certificate-authority` cannot be used"
        }
        RustlsTlsError::NoValidNativeRootCA(_) => NO_AUTHORITIES,
        RustlsTlsError::InvalidServerName(_) => "its `tls-server-name` is no name of a server",
    }
    .to_owned()
}

/// An error of a connection with what caused it: fixed words, the operating system's, and names in
/// certificates.
fn of_network(error: &dyn Error) -> String {
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
mod tests;
