//! Database locked, database full, two writers, another program's database: each degrades to a
//! clear error and loses nothing.

use pvn_scheduler::store::{Commit, PageRequest, Store, StoreError};
use schema::status::Status;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::{Fresh, estate, instance, sealer};

async fn by_hand(fresh: &Fresh) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(fresh.dir.path().join("pvn.db"));
    SqliteConnection::connect_with(&options).await.unwrap()
}

#[tokio::test]
async fn a_change_made_from_another_revision_changes_nothing() {
    let fresh = Fresh::open().await;
    let (commit, web, channel) = estate();
    fresh.store.commit(&commit).await.unwrap();
    let second = |status| Commit {
        instances: vec![instance(&web, &channel, 2, status)],
        ..Commit::default()
    };
    fresh.store.commit(&second(Status::Converged)).await.unwrap();
    let error = fresh.store.commit(&second(Status::Failed)).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict(_)), "{error}");
    let services =
        fresh.store.services(&Default::default(), &PageRequest::default()).await.unwrap();
    assert_eq!(services.items[0].channels[0].status, Status::Converged);
}

#[tokio::test]
async fn database_locked_is_unavailable_for_changes_while_reading_goes_on() {
    let fresh = Fresh::open().await;
    let (commit, ..) = estate();
    let mut other = by_hand(&fresh).await;
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let error = fresh.store.commit(&commit).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("locked")), "{error}");
    assert_eq!(
        fresh.store.services(&Default::default(), &PageRequest::default()).await.unwrap().total,
        0
    );
    held.rollback().await.unwrap();
    fresh.store.commit(&commit).await.unwrap();
    assert_eq!(
        fresh.store.services(&Default::default(), &PageRequest::default()).await.unwrap().total,
        1
    );
}

/// A migration that no program of today has.
pub(super) async fn from_the_future(fresh: &Fresh) {
    let mut hand = by_hand(fresh).await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, \
         execution_time)
         VALUES (9999, 'from the future', CURRENT_TIMESTAMP, TRUE, X'00', 0)",
    )
    .execute(&mut hand)
    .await
    .unwrap();
    hand.close().await.unwrap();
}

#[tokio::test]
async fn a_newer_database_is_refused_by_an_older_program() {
    let fresh = Fresh::open().await;
    fresh.store.close().await;
    from_the_future(&fresh).await;
    let error = Store::open(&fresh.dir.path().join("pvn.db"), sealer()).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 9999, .. }), "{error}");
    assert!(error.to_string().contains("start the newer program"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pvn.db");
    std::fs::write(
        &path,
        "this is a shopping list, and rather a long one, so that it looks like a file with \
         something in it",
    )
    .unwrap();
    let error = Store::open(&path, sealer()).await.unwrap_err().to_string();
    assert!(error.contains("pvn.db") && error.contains("not a database"), "{error}");
}
