//! One bad cell of the database, whichever it is, stops at most one instance: every column of every
//! table that the migrations make is given what no program of ours writes, and the driver starts
//! over it.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::action::{Action, StopReason};
use pvn_scheduler::blobs::Blobs;
use pvn_scheduler::clock::{Clock, Manual};
use pvn_scheduler::driver::{Ask, InstanceTarget};
use pvn_scheduler::retention::{Policy, Retention};
use pvn_scheduler::runner::JobSpec;
use pvn_scheduler::store::{LeaseHolder, PageRequest, Store, StoreError};
use schema::api::TokenRequest;
use schema::id::JobId;
use schema::status::{JobKind, Role, Status};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection as _, Row as _};

use super::round::variable;
use super::{APPROVAL, Rig, TWO_CHANNELS, caller};
use crate::wait;

mod cell;

use cell::Cell;

/// Longest wait for something that a cell may keep from happening.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is put into columns of texts, as SQL.
const TEXTS: &[&str] =
    &["NULL", "''", "'{\"a\": 1}'", "CAST(x'FFFE' AS TEXT)", "printf('%.*c', 100000, 'x')", "-1"];

/// What is put into columns of numbers.
const NUMBERS: &[&str] =
    &["NULL", "'text'", "9223372036854775807", "-9223372036854775808", "-1", "x'FF'"];

/// Tables that are not ours to read: the migrations' own, whose damage the migrations refuse.
const FOREIGN: &[&str] = &["_sqlx_migrations"];

/// A service that nothing happens to.
fn calm() -> String {
    TWO_CHANNELS
        .replace("[look]", "[glance]")
        .replace("name: tool\n", "name: quiet\n")
        .replace("runtime: tool", "runtime: quiet")
        .replace("name: app\n", "name: calm\n")
        .replace("application: app", "application: calm")
}

/// One that waits for a person.
fn asks() -> String {
    APPROVAL
        .replace("[look]", "[peer]")
        .replace("name: tool\n", "name: gated\n")
        .replace("runtime: tool", "runtime: gated")
        .replace("name: app\n", "name: asks\n")
        .replace("application: app", "application: asks")
        .replace(
            "application:\n  name: asks\n",
            "application:\n  name: asks\n  notifications:\n  - {name: chat, slack: {url: {value: \
             \"https://chat.example.com/x\"}}}\n",
        )
}

/// The apply of `app` runs on and on; `calm` has nothing to do; `asks` has work.
fn play(spec: &JobSpec) -> Option<i32> {
    match (variable(spec, "PVN_APPLICATION").as_str(), spec.kind) {
        ("app", JobKind::Apply) => None,
        ("calm", _) | (_, JobKind::Apply) => Some(0),
        _ => Some(2),
    }
}

/// A database with something in every table, and the apply that runs.
struct Template {
    bytes: Vec<u8>,
    apply: JobId,
    running: BTreeMap<JobId, ()>,
}

async fn by_hand(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).foreign_keys(false);
    SqliteConnection::connect_with(&options).await.unwrap()
}

async fn run(database: &mut SqliteConnection, sql: &str) -> Result<u64, sqlx::Error> {
    sqlx::query(sqlx::AssertSqlSafe(sql.to_owned()))
        .execute(database)
        .await
        .map(|done| done.rows_affected())
}

fn owner() -> LeaseHolder {
    LeaseHolder::here("here".to_owned(), Path::new("/data"), Clock::System.now())
}

impl Template {
    async fn make() -> Self {
        let rig = Rig::start(play).await;
        // In this order: what is looked at is the first of its table.
        rig.request(TWO_CHANNELS, true).await.unwrap();
        let runs = || {
            rig.runner
                .seen
                .lock()
                .unwrap()
                .iter()
                .find(|spec| spec.kind == JobKind::Apply)
                .map(|spec| spec.job)
        };
        let apply = rig.until("the apply to run", async || runs()).await;
        rig.request(&calm(), true).await.unwrap();
        rig.request(&asks(), true).await.unwrap();
        rig.handle.set_secret("key".to_owned(), b"one".to_vec(), caller("root")).await.unwrap();
        rig.handle.set_secret("gone".to_owned(), b"two".to_vec(), caller("root")).await.unwrap();
        rig.handle.delete_secret("gone".to_owned(), caller("root")).await.unwrap();
        let token = TokenRequest::new("eve", Role::Viewer);
        rig.handle.create_token(token, caller("root")).await.unwrap();
        let status = async |application: &str, wanted: Status| {
            let service = rig.store.service(application, "web").await.unwrap().unwrap();
            service.channels.iter().all(|channel| channel.status == wanted).then_some(())
        };
        rig.until("calm to be converged", async || status("calm", Status::Converged).await).await;
        rig.until("asks to ask", async || status("asks", Status::WaitingManualApproval).await)
            .await;
        rig.stop.cancel();
        rig.done.await.unwrap().unwrap();
        rig.store.close().await;
        let path = rig.dir.path().join("pvn.db");
        Store::open_as(&path, pvn_scheduler::secrets::Sealer::with_key([1; 32]), &owner())
            .await
            .unwrap()
            .close()
            .await;
        let mut database = by_hand(&path).await;
        let stop = serde_json::to_string(&Action::Stop { job: apply, why: StopReason::NotWanted })
            .unwrap();
        for sql in [
            format!(
                "INSERT INTO pending_actions SELECT 1, instance_id, '{stop}', 1 FROM jobs WHERE \
                 id = '{apply}'"
            ),
            "INSERT INTO notified VALUES ('asks', 'web', 'only', 'FAILED', 'web-0')".to_owned(),
            "INSERT INTO structured VALUES ('sha256:0', '{}')".to_owned(),
            "INSERT INTO blobs VALUES ('sha256:0', 1, 1)".to_owned(),
            "INSERT OR REPLACE INTO meta VALUES ('lineage', 'here'), ('spool', 'here'), \
             ('spool_after', '0'), ('clock', 'boot 1')"
                .to_owned(),
        ] {
            assert!(run(&mut database, &sql).await.unwrap() > 0, "{sql}");
        }
        run(&mut database, "PRAGMA wal_checkpoint(TRUNCATE)").await.unwrap();
        database.close().await.unwrap();
        let running = rig.runner.running.lock().unwrap().clone();
        Self { bytes: std::fs::read(path).unwrap(), apply, running }
    }

    /// Every cell: the table, which of its rows, the column, what is put there.
    async fn cells(&self) -> Vec<Cell> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pvn.db");
        std::fs::write(&path, &self.bytes).unwrap();
        let mut database = by_hand(&path).await;
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
             ORDER BY name",
        )
        .fetch_all(&mut database)
        .await
        .unwrap();
        let mut cells = Vec::new();
        for table in tables.into_iter().filter(|table| !FOREIGN.contains(&table.as_str())) {
            let first = format!("rowid = (SELECT MIN(rowid) FROM {table})");
            let rows = match table.as_str() {
                "jobs" => vec![
                    format!("id = '{}'", self.apply),
                    "ended_at IS NOT NULL AND ".to_owned() + &first,
                ],
                "instances" => {
                    vec![format!("id = (SELECT instance_id FROM jobs WHERE id = '{}')", self.apply)]
                }
                "channels" => {
                    vec![format!("id = (SELECT channel_id FROM jobs WHERE id = '{}')", self.apply)]
                }
                "events" => vec![first, "rowid = (SELECT MAX(rowid) FROM events)".to_owned()],
                "meta" => ["lineage", "spool", "spool_after", "clock"]
                    .map(|key| format!("key = '{key}'"))
                    .to_vec(),
                _ => vec![first],
            };
            let columns = sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA table_info({table})")))
                .fetch_all(&mut database)
                .await
                .unwrap();
            assert!(!columns.is_empty(), "{table}");
            for column in &columns {
                let (name, kind): (String, String) = (column.get("name"), column.get("type"));
                for poison in if kind == "TEXT" { TEXTS } else { NUMBERS } {
                    cells.extend(rows.iter().map(|row| Cell {
                        table: table.clone(),
                        row: row.clone(),
                        column: name.clone(),
                        poison,
                    }));
                }
            }
        }
        assert!(cells.len() > 600, "{}", cells.len());
        cells
    }
}

/// Tries cells until there are none left; returns those that failed.
fn work(template: &Template, cells: &Mutex<Vec<Cell>>) -> BTreeSet<String> {
    let mut failed = BTreeSet::new();
    loop {
        let Some(cell) = cells.lock().unwrap().pop() else { return failed };
        let tried = std::panic::catch_unwind(AssertUnwindSafe(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(cell.try_it(template));
        }));
        if let Err(panic) = tried {
            let why = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            failed.insert(format!("{cell}: {}", why.unwrap_or_default()));
        }
    }
}

#[test]
fn p5_one_bad_cell_of_any_column_of_any_table_stops_at_most_one_instance() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let only = std::env::var("PVN_POISON").unwrap_or_default();
    let (template, cells) = runtime.block_on(async {
        let template = Template::make().await;
        let cells = template
            .cells()
            .await
            .into_iter()
            .filter(|cell| cell.to_string().contains(&only))
            .collect();
        (template, Mutex::new(cells))
    });
    let failed: BTreeSet<String> = std::thread::scope(|scope| {
        // As many at a time as keep two cores busy.
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(|| work(&template, &cells))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(
        failed.is_empty(),
        "{} cells:\n{}",
        failed.len(),
        failed.into_iter().collect::<Vec<_>>().join("\n")
    );
}
