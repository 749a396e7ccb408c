//! What is wrong with settings.

use std::net::SocketAddr;

/// Why a set of settings cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Not built yet.
    #[error("not supported yet: {0}")]
    NotYet(String),
    /// Would expose tokens.
    #[error(
        "listening on {0} without TLS would send tokens and secrets over the network readable; \
         give --tls-cert and --tls-key, listen on 127.0.0.1, or add --allow-plain-http if \
         something in front of it speaks TLS"
    )]
    Plain(SocketAddr),
    /// Makes no sense.
    #[error("{0}")]
    Wrong(String),
}
