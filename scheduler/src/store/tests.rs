//! What holds of the connections.

use std::time::Duration;

use super::*;
use crate::secrets::Sealer;

#[tokio::test]
async fn one_of_many_is_sick_lists_that_take_all_their_connections_keep_none_from_tokens_and_starts()
 {
    let directory = tempfile::tempdir().unwrap();
    let store =
        Store::open(&directory.path().join("pvn.db"), Sealer::with_key([7; 32])).await.unwrap();
    let mut taken = Vec::new();
    for _ in 0..LIST_READERS {
        taken.push(store.lists.acquire().await.unwrap());
    }
    // A list waits; what the daemon needs for itself does not.
    let page = PageRequest::default();
    assert!(
        tokio::time::timeout(Duration::from_millis(200), store.tokens(&page)).await.is_err(),
        "no connection is left for lists"
    );
    assert!(store.token("unknown").await.unwrap().is_none());
    store.counters().await.unwrap();
}
