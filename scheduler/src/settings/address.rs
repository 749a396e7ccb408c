//! The address to listen on, as people write it.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// An address to listen on, from `IP:PORT` or `NAME:PORT` (`localhost:7780`); of a name's addresses
/// the first, IPv4 before IPv6, as a client tries them.
///
/// # Errors
/// In words, when it is neither.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let form = "write IP:PORT or NAME:PORT, as in `127.0.0.1:7780`";
    let found = text.to_socket_addrs().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => form.to_owned(),
        _ => format!("the name is not known ({error}); {form}"),
    })?;
    found.min_by_key(SocketAddr::is_ipv6).ok_or_else(|| form.to_owned())
}
