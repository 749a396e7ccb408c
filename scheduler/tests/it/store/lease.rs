//! Who has the database: what is decided without waiting. The waits are tested with real daemons.

use std::path::Path;

use pvn_scheduler::store::{Commit, LeaseHolder, Store, StoreError, snapshot};

use super::{Fresh, at, estate, sealer};

fn owner(directory: &str) -> LeaseHolder {
    LeaseHolder::here(directory.to_owned(), Path::new("/data"), at(1))
}

async fn open(fresh: &Fresh, directory: &str) -> Store {
    Store::open_as(&fresh.dir.path().join("pvn.db"), sealer(), &owner(directory)).await.unwrap()
}

#[tokio::test]
async fn p1_an_owner_that_lost_its_database_stores_nothing_and_may_start_nothing() {
    let fresh = Fresh::open().await;
    let first = open(&fresh, "a").await;
    let (commit, ..) = estate();
    first.commit(&Commit::default()).await.unwrap();
    assert!(first.is_held());
    // The same data directory, whose lock says that the first is over.
    let second = open(&fresh, "a").await;
    let error = first.commit(&commit).await.unwrap_err();
    assert!(matches!(&error, StoreError::Lost(Some(_))), "{error}");
    assert!(error.to_string().contains("taken over by the pvn-scheduler with pid"), "{error}");
    assert!(!first.is_held());
    assert!(matches!(first.ensure_held().await, Err(StoreError::Lost(_))));
    assert_eq!(
        second.services(&Default::default(), &Default::default()).await.unwrap().total,
        0,
        "nothing of it is stored"
    );
    second.commit(&commit).await.unwrap();
    // What the first one does at its end changes nothing either.
    first.close().await;
    assert!(second.is_held() && second.ensure_held().await.is_ok());
}

#[tokio::test]
async fn a_database_that_was_let_go_of_is_taken_at_once_by_any_directory() {
    let fresh = Fresh::open().await;
    open(&fresh, "a").await.close().await;
    let second = open(&fresh, "b").await;
    second.commit(&estate().0).await.unwrap();
}

#[tokio::test]
async fn a_newer_database_is_not_backed_up_by_an_older_program() {
    let fresh = Fresh::open().await;
    let (database, copy) = (fresh.dir.path().join("pvn.db"), fresh.dir.path().join("copy.db"));
    snapshot(&database, &copy).await.unwrap();
    assert!(copy.exists());
    super::faults::from_the_future(&fresh).await;
    let error = snapshot(&database, &fresh.dir.path().join("other.db")).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 9999, .. }), "{error}");
}
