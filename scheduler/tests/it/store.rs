//! The store's contract: what is committed together is there together, and what goes wrong says so.

mod faults;
mod lease;
mod lists;

use engine::state::State;
use pvn_scheduler::secrets::Sealer;
use pvn_scheduler::store::{
    ApplicationRow, Change, ChannelRow, ChannelSummary, Commit, InstanceRow, ServiceRow, Store,
};
use schema::id::{ApplicationId, ChannelId, InstanceId, ServiceId};
use schema::status::Status;
use schema::time::Timestamp;

/// A new database in a directory of its own, which lives as long as this does.
pub(crate) struct Fresh {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Fresh {
    pub(crate) async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("pvn.db"), sealer()).await.unwrap();
        Self { dir, store }
    }

    /// Changes the database behind its back; how many rows that were.
    pub(crate) async fn edit(&self, sql: &'static str) -> u64 {
        let options =
            sqlx::sqlite::SqliteConnectOptions::new().filename(self.dir.path().join("pvn.db"));
        let mut database =
            <sqlx::SqliteConnection as sqlx::Connection>::connect_with(&options).await.unwrap();
        let done = sqlx::query(sql).execute(&mut database).await.unwrap();
        sqlx::Connection::close(database).await.unwrap();
        done.rows_affected()
    }
}

pub(crate) fn sealer() -> Sealer {
    Sealer::with_key([1; 32])
}

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// An application with one channel.
pub(crate) fn application(name: &str) -> (ApplicationRow, ChannelRow) {
    let id = ApplicationId::derive(&[name.as_bytes()]);
    let row = ApplicationRow {
        id,
        name: name.parse().unwrap(),
        config_version: 1,
        created_at: at(1),
        deleted_at: None,
    };
    let channel = ChannelRow {
        id: ChannelId::derive(&[name.as_bytes()]),
        application: id,
        name: "production".parse().unwrap(),
        position: 0,
        summary: ChannelSummary::default(),
        deleted_at: None,
    };
    (row, channel)
}

pub(crate) fn service(application: &ApplicationRow, name: &str) -> ServiceRow {
    ServiceRow {
        id: ServiceId::derive(&[application.name.as_str().as_bytes(), name.as_bytes()]),
        application: application.id,
        name: name.parse().unwrap(),
        config_version: 1,
        release_count: 0,
        created_at: at(1),
        deleted_at: None,
    }
}

pub(crate) fn instance(
    service: &ServiceRow,
    channel: &ChannelRow,
    revision: i64,
    status: Status,
) -> InstanceRow {
    let id = InstanceId::of(service.id, channel.id);
    InstanceRow {
        id,
        service: service.id,
        channel: channel.id,
        runtime: "local".parse().unwrap(),
        state: serde_json::to_string(&State::new(id, at(1))).unwrap(),
        revision,
        release: None,
        desired_version: None,
        status,
        reason: None,
        message: String::new(),
        since: at(1),
        next_wake: None,
    }
}

/// One application `app` with one service `web` in one channel.
pub(crate) fn estate() -> (Commit, ServiceRow, ChannelRow) {
    let (app, channel) = application("app");
    let web = service(&app, "web");
    let commit = Commit {
        changes: vec![
            Change::Application(app),
            Change::Channel(Box::new(channel.clone())),
            Change::Service(web.clone()),
        ],
        instances: vec![instance(&web, &channel, 1, Status::Converging)],
        ..Commit::default()
    };
    (commit, web, channel)
}
