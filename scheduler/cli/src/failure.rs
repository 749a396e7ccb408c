//! Everything that can go wrong in a command, and the exit code that it means.

use std::io;

use schema::api::{Diagnostic, Problem};

/// Why a command ended without having done what it was asked. Printed once, by
/// [`crate::console::Console::report`].
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something that the person can put right. `next` says how.
    #[error("{message}")]
    User {
        /// What is wrong.
        message: String,
        /// What to do about it.
        next: Option<String>,
        /// What the program ends with.
        code: u8,
    },
    /// The server could not be reached, or went away in the middle.
    #[error("cannot reach {server}: {why}")]
    Unreachable {
        /// The address used.
        server: String,
        /// What the network says.
        why: String,
        /// What to do, where that is not to start the server.
        next: Option<String>,
    },
    /// A request that changes something was sent, and its answer is lost.
    #[error(
        "{server} did not answer: {why}; the request was sent, and nobody knows whether it was \
         carried out"
    )]
    Unknown {
        /// The address used.
        server: String,
        /// What the network says.
        why: String,
    },
    /// Something else answered than a scheduler: a proxy, another program. Of a request that
    /// changes something that is `Unknown`.
    #[error("{server} {what}")]
    Foreign {
        /// The address used.
        server: String,
        /// What it did.
        what: String,
        /// Whether it says itself that it is for the time being.
        is_passing: bool,
    },
    /// The server answered that it does not take the token.
    #[error("{server} refuses the token from {origin}: {}", .problem.detail)]
    Token {
        /// The address used.
        server: String,
        /// Where the token was found.
        origin: String,
        /// What the server said.
        problem: Box<Problem>,
    },
    /// The server answered with an error.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    /// The config files are wrong; each problem with its place.
    #[error("{}", count(.0.len()))]
    Config(Vec<Diagnostic>),
    /// All has been said; only the exit code is left.
    #[error("ended with {0}")]
    Ended(u8),
    /// Nobody reads our output any more (`pvnctl … | head`), or the disk behind it is full.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The same after something was done that is not done again by trying again.
    #[error("cannot write the output: {source}; {done}")]
    Untold {
        /// What the disk says.
        source: io::Error,
        /// What was done.
        done: String,
    },
}

/// Whether a TLS handshake met bytes that are none of TLS. Source: the words of rustls for
/// `InvalidMessage`.
fn speaks_no_tls(why: &str) -> bool {
    why.contains("received corrupt message")
}

/// Whether an answer began with bytes that are none of HTTP, as an alert of TLS does. Source: the
/// words of hyper.
pub(crate) fn speaks_another_language(why: &str) -> bool {
    why.contains("invalid http version")
}

/// Whether the server knows the token that it refuses: it expired, or was revoked. Source: the
/// words of the scheduler's `access`.
fn is_known(problem: &Problem) -> bool {
    !problem.detail.contains("is not one of this scheduler's")
}

fn count(problems: usize) -> String {
    if problems == 1 {
        "1 problem in the config files".to_owned()
    } else {
        format!("{problems} problems in the config files")
    }
}

impl Failure {
    /// An error that explains itself.
    pub fn user(message: impl Into<String>) -> Self {
        Self::User { message: message.into(), next: None, code: 1 }
    }

    /// An error and what to do about it.
    pub fn with_next(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::User { message: message.into(), next: Some(next.into()), code: 1 }
    }

    /// The same where something was done before it. Whoever closes a pipe wants to know nothing.
    #[must_use]
    pub fn after(self, done: impl FnOnce() -> String) -> Self {
        match self {
            Self::Output(source) if source.kind() != io::ErrorKind::BrokenPipe => {
                Self::Untold { source, done: done() }
            }
            other => other,
        }
    }

    /// The same with another exit code: 2 for what FAILED, 3 for a timeout.
    #[must_use]
    pub fn ending_with(self, code: u8) -> Self {
        match self {
            Self::User { message, next, .. } => Self::User { message, next, code },
            other => Self::User { next: other.next(), message: other.to_string(), code },
        }
    }

    /// What the program ends with: a closed pipe is no error, all else is 1 unless it says
    /// otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Ended(code) | Self::User { code, .. } => *code,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            _ => 1,
        }
    }

    /// Whether the same request may succeed later although nobody changes anything: the server was
    /// away or busy. One that was perhaps carried out is none that is sent again unseen.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Foreign { is_passing, .. } => *is_passing,
            Self::Refused(problem) => matches!(problem.status, 429 | 500..=599),
            _ => false,
        }
    }

    /// The same for whoever waits for a scheduler: one that was `reached` comes back, and what else
    /// answers under its address goes.
    pub fn passes(&self, reached: bool) -> bool {
        match self {
            Self::Unreachable { .. } => reached,
            Self::Foreign { is_passing, .. } => reached || *is_passing,
            other => other.is_passing(),
        }
    }

    /// What to do next, in a line.
    pub fn next(&self) -> Option<String> {
        match self {
            Self::User { next, .. } => next.clone(),
            Self::Unreachable { next: Some(next), .. } => Some(next.clone()),
            Self::Unreachable { server, why, .. }
                if server.starts_with("http://") && speaks_another_language(why) =>
            {
                Some(format!(
                    "whoever listens there speaks no HTTP, it may speak TLS: say --server {}",
                    server.replacen("http://", "https://", 1)
                ))
            }
            Self::Unknown { .. } => Some(
                "look whether it was before you repeat it: `pvnctl releases list`, `pvnctl \
                 services list` and `pvnctl jobs list` show what is there"
                    .to_owned(),
            ),
            Self::Foreign { .. } => Some(
                "check the address, and that client and scheduler have the same version (`pvnctl \
                 --version`)"
                    .to_owned(),
            ),
            Self::Token { problem, .. } if !is_known(problem) => Some(
                "another scheduler may listen there: say where the one of this token does with \
                 --server or PVN_SERVER; or give another token with --token-file FILE or \
                 PVN_AUTH_TOKEN"
                    .to_owned(),
            ),
            Self::Token { .. } => {
                Some("give another token with --token-file FILE or PVN_AUTH_TOKEN".to_owned())
            }
            Self::Unreachable { server, why, .. }
                if server.starts_with("https://") && speaks_no_tls(why) =>
            {
                Some(format!(
                    "whoever listens there speaks no TLS: say --server {}, or start the scheduler \
                     with --tls-cert and --tls-key",
                    server.replacen("https://", "http://", 1)
                ))
            }
            Self::Unreachable { .. } => Some(
                "start it with `pvn-scheduler serve`, or say where it listens with --server or \
                 PVN_SERVER"
                    .to_owned(),
            ),
            Self::Refused(problem) if problem.status == 401 => Some(
                "log in with `pvnctl login URL`, or give a token with --token-file FILE or \
                 PVN_AUTH_TOKEN; beside the scheduler, PVN_DATA_DIR names the directory that holds \
                 `admin-token`"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_answers_is_waited_out_where_a_scheduler_was_reached_before() {
        let foreign = |is_passing| Failure::Foreign {
            server: "http://x".to_owned(),
            what: "answered".to_owned(),
            is_passing,
        };
        for (failure, at_first, after) in [
            (foreign(false), false, true),
            (foreign(true), true, true),
            (
                Failure::Unreachable { server: String::new(), why: String::new(), next: None },
                false,
                true,
            ),
            (Failure::Unknown { server: String::new(), why: String::new() }, false, false),
            (Failure::user("no"), false, false),
        ] {
            assert_eq!(
                (failure.passes(false), failure.passes(true)),
                (at_first, after),
                "{failure}"
            );
        }
    }
}
