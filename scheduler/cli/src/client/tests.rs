//! Addresses as people write them, and servers that end a connection.

use super::*;

#[test]
fn loopback_is_local_and_nothing_else() {
    for (server, local) in [
        ("http://127.0.0.1:7780", true),
        ("http://localhost", true),
        ("http://[::1]:1", true),
        ("http://10.0.0.1", false),
        ("http://localhost.example.org", false),
        ("nonsense", false),
    ] {
        assert_eq!(is_local(server), local, "{server}");
    }
}

/// Answers the first request of each connection, and closes one that is used again without an
/// answer, as where it idled too long.
fn once_a_connection() -> std::net::SocketAddr {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move |mut stream: std::net::TcpStream| {
        let mut piece = [0; 4096];
        if stream.read(&mut piece).is_ok_and(|read| read > 0) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrue");
            // The next request, or that the client has closed it.
            let _ = stream.read(&mut piece);
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

#[tokio::test]
async fn a_connection_that_idled_too_long_is_not_used_again() {
    let server = format!("http://{}", once_a_connection());
    let used_again =
        Client::with_timeouts(&server, None, None, (Duration::from_hours(1), WHOLE_WITHIN))
            .unwrap();
    assert!(used_again.get::<bool>(&["v1"], &[]).await.unwrap());
    let failure = used_again.post::<bool>(&["v1"], &()).await.unwrap_err();
    assert!(matches!(failure, Failure::Unknown { .. }), "{failure}");
    let closed =
        Client::with_timeouts(&server, None, None, (Duration::from_nanos(1), WHOLE_WITHIN))
            .unwrap();
    assert!(closed.get::<bool>(&["v1"], &[]).await.unwrap());
    assert!(closed.post::<bool>(&["v1"], &()).await.unwrap());
}

#[tokio::test]
async fn an_answer_that_trickles_is_waited_for_with_an_end() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let trickle = move |mut stream: std::net::TcpStream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n",
        );
        // The client sends nothing more: a read is a wait.
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        while stream.write_all(b" ").is_ok() {
            let _ = stream.read(&mut [0; 1]);
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || trickle(stream));
        }
    });
    let client =
        Client::with_timeouts(&server, None, None, (IDLE_TIMEOUT, Duration::from_secs(1))).unwrap();
    let looked = client.get::<bool>(&["v1"], &[]).await.unwrap_err();
    assert!(
        matches!(&looked, Failure::Unreachable { why, .. } if why.contains("not whole within 1 s")),
        "{looked}"
    );
    let changed = client.post::<bool>(&["v1"], &()).await.unwrap_err();
    assert!(
        matches!(&changed, Failure::Unknown { why, .. } if why.contains("not whole within 1 s")),
        "{changed}"
    );
}

#[test]
fn a_wrong_address_says_how_to_write_one() {
    for server in ["127.0.0.1:7780", "ftp://x", "", "http://"] {
        let failure = Client::new(server, None, None).unwrap_err();
        assert!(failure.to_string().contains("is not the address of a scheduler"), "{failure}");
        assert_eq!(failure.next().as_deref(), Some("write it as http://HOST:PORT"));
    }
    for server in
        ["http://ann:pass@x", "http://:pass@x", "htp://ann:pass@x", "http://ann:pass@x:port"]
    {
        let failure = Client::new(server, None, None).unwrap_err().to_string();
        assert!(
            failure.contains("--server or PVN_SERVER is not the address of a scheduler")
                && !failure.contains("pass@"),
            "{failure}"
        );
    }
}
