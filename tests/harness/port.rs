//! Where a program under test listens.

/// A port of the loopback interface that was free a moment ago; a program keeps it over its restarts.
pub(crate) fn free() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a listener has an address").port()
}
