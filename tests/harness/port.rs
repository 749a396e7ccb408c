//! Where a program under test listens.

/// A port of this address that was free a moment ago; a program keeps it over its restarts.
pub fn free(address: &str) -> u16 {
    let listener = std::net::TcpListener::bind((address, 0))
        .expect("the address is this machine's and has a free port");
    listener.local_addr().expect("a listener has an address").port()
}
