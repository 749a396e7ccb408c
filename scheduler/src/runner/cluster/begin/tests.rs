//! Addresses that lead nowhere from a Pod, and whose deadline comes first.

use super::*;

#[test]
fn a_loopback_address_is_known_by_its_host() {
    for url in ["http://127.0.0.1:7780", "https://localhost/x", "http://[::1]:7780"] {
        assert!(is_loopback(url), "{url}");
    }
    for url in ["http://10.88.0.1:7780", "https://pvn.example/127.0.0.1", "http://[fd00::1]:7780"] {
        assert!(!is_loopback(url), "{url}");
    }
}

#[test]
fn the_clusters_own_words_come_before_the_engines_deadline() {
    let within = |timeout_s: Option<i64>| start_within(timeout_s.map(|s| s * 1000)).as_secs();
    assert_eq!([None, Some(8), Some(600), Some(3600)].map(within), [540, 8, 540, 3540]);
}
