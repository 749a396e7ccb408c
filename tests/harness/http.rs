//! The HTTP client of the tests.

use crate::wait;

/// A client that goes to this machine itself and gives up after [`wait::PATIENCE`].
///
/// # Panics
/// When there is none to be had.
pub fn client() -> reqwest::blocking::Client {
    builder().build().expect("a client can be made")
}

/// The same, for whoever wants something else of it.
pub fn builder() -> reqwest::blocking::ClientBuilder {
    // An HTTP client is built only where there is one; these tests speak plain HTTP.
    let _set_already = rustls::crypto::ring::default_provider().install_default();
    reqwest::blocking::Client::builder().timeout(wait::PATIENCE).no_proxy()
}
