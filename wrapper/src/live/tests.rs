//! When the courier is woken, and with what.

use super::*;

fn sent(next: NextAction) -> (Stream, u64, Vec<u8>) {
    match next {
        NextAction::Send(StreamPiece {
            stream,
            offset,
            bytes: PendingBytes::Memory(bytes),
            ..
        }) => (stream, offset, bytes),
        _ => panic!("no piece of memory"),
    }
}

#[test]
fn what_is_ready_goes_out_from_where_the_scheduler_is() {
    let live = Live::default();
    live.in_memory(Stream::Stderr, b"hello");
    assert_eq!(sent(live.next([0, 2])), (Stream::Stderr, 2, b"llo".to_vec()));
    assert_eq!(live.end(Instant::now()), [false, true]);
    assert!(matches!(live.next([0, 5]), NextAction::Ended));
}

#[test]
fn small_pieces_are_sent_together_and_large_ones_at_once() {
    let live = Live::default();
    live.in_memory(Stream::Stdout, b"a");
    sent(live.next([0, 0]));
    let began = Instant::now();
    live.in_memory(Stream::Stdout, &vec![0; PIECE_LIMIT_BYTES]);
    assert_eq!(sent(live.next([1, 0])).2.len(), PIECE_LIMIT_BYTES);
    live.in_memory(Stream::Stdout, b"b");
    sent(live.next([1 + PIECE_LIMIT_BYTES as u64, 0]));
    assert!(began.elapsed() >= BATCH, "the last byte waited for company");
}

#[test]
fn the_end_cuts_a_back_off_short_unless_the_scheduler_named_the_time() {
    let live = Arc::new(Live::default());
    let other = Arc::clone(&live);
    let waiter =
        std::thread::spawn(move || other.back_off(Duration::from_secs(3600), true, "away"));
    while live.failing().is_none() {
        std::thread::yield_now();
    }
    live.end(Instant::now() + Duration::from_secs(3600));
    assert!(waiter.join().unwrap(), "another try");
    live.hurry(Instant::now() + Duration::from_millis(50));
    assert!(!live.back_off(Duration::from_secs(3600), false, "away"), "the deadline ends it");
    assert_eq!(live.failing().unwrap(), "away");
}

#[test]
fn a_job_that_is_over_wakes_everybody() {
    let live = Live::default();
    live.over("gone");
    live.in_memory(Stream::Stdout, b"x");
    assert!(matches!(live.next([0, 0]), NextAction::Over(why) if why == "gone"));
    assert!(!live.beat(Duration::from_secs(3600)));
    assert!(!live.back_off(Duration::from_secs(3600), true, "x"));
}
