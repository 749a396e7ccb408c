//! One bad value in one column of one row, and what has to go on all the same.

use super::*;

#[derive(Debug)]
pub(super) struct Cell {
    pub(super) table: String,
    pub(super) row: String,
    pub(super) column: String,
    pub(super) poison: &'static str,
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UPDATE {} SET {} = {} WHERE {}", self.table, self.column, self.poison, self.row)
    }
}

impl Cell {
    /// A database with this cell in it; `None` where a constraint keeps the cell from being so.
    pub(super) async fn make(&self, template: &Template) -> Option<tempfile::TempDir> {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
            .unwrap();
        let path = dir.path().join("pvn.db");
        std::fs::write(&path, &template.bytes).unwrap();
        let mut database = by_hand(&path).await;
        let done = run(&mut database, &self.to_string()).await;
        database.close().await.unwrap();
        match done {
            Ok(rows) => {
                assert_eq!(rows, 1, "{self}");
                Some(dir)
            }
            Err(sqlx::Error::Database(error)) => {
                assert!(error.message().contains("constraint"), "{self}: {error}");
                None
            }
            Err(error) => panic!("{self}: {error}"),
        }
    }

    pub(super) async fn try_it(&self, template: &Template) {
        let Some(dir) = self.make(template).await else { return };
        if self.table == "owner" {
            return self.try_owner(&dir).await;
        }
        let running = Arc::new(Mutex::new(template.running.clone()));
        let rig = Rig::try_start_in(dir, Arc::new(play), running, Clock::System)
            .await
            .expect("it starts");
        let broken = self.others_go_on(&rig).await;
        self.lists_answer(&rig).await;
        let applies = rig
            .runner
            .seen
            .lock()
            .unwrap()
            .iter()
            .filter(|spec| is_app(spec) && spec.kind == JobKind::Apply)
            .count();
        assert_eq!(applies, 0, "an apply is started beside the one that runs");
        // What a person starts anew does not run beside it either.
        if broken {
            for channel in ["staging", "production"] {
                let _refused_perhaps =
                    rig.handle.ask(target("app", channel), Ask::Retry, caller("eve")).await;
            }
            self.others_go_on(&rig).await;
            let applies = rig
                .runner
                .seen
                .lock()
                .unwrap()
                .iter()
                .filter(|spec| is_app(spec) && spec.kind == JobKind::Apply)
                .count();
            assert_eq!(applies, 0, "an apply is started beside the one that runs, after a retry");
        }
        self.what_is_old_goes(&rig).await;
        assert!(!rig.done.is_finished(), "the driver goes on");
        rig.stop.cancel();
        rig.done.await.expect("the driver does not panic").expect("the driver ends in order");
        rig.store.close().await;
    }

    /// Every other instance is served. Returns whether one of `app` is not; then that is told.
    async fn others_go_on(&self, rig: &Rig) -> bool {
        for (application, channel) in [("calm", "production"), ("asks", "only")] {
            let fetches = || {
                let seen = rig.runner.seen.lock().unwrap();
                seen.iter()
                    .filter(|spec| {
                        variable(spec, "PVN_APPLICATION") == application
                            && spec.kind == JobKind::Fetch
                    })
                    .count()
            };
            let before = fetches();
            rig.handle
                .ask(target(application, channel), Ask::Retry, caller("eve"))
                .await
                .expect("a calm one can be retried");
            let fetched = wait::until(PATIENCE, async || (fetches() > before).then_some(())).await;
            assert!(fetched.is_some(), "{application} is not served");
        }
        let told = rig.handle.broken();
        let mut broken = false;
        for channel in ["staging", "production"] {
            let explained = rig.handle.explain(target("app", channel)).await;
            let is_served =
                explained.as_ref().is_ok_and(|explained| explained.status != Status::Broken);
            broken |= !is_served;
            assert!(
                is_served || !told.is_empty() || self.is_told_when_asked(&explained),
                "silent: {explained:?}"
            );
        }
        // What is known to be unreadable names its place.
        assert!(
            told.iter().all(|line| !line.contains("table ")
                || line.contains("column ")
                || line.contains("row")),
            "{told:?}"
        );
        broken
    }

    /// The row that gives a thing its name cannot be read: whoever asks for the thing is told so.
    fn is_told_when_asked(
        &self,
        explained: &Result<schema::api::Explanation, pvn_scheduler::driver::Refusal>,
    ) -> bool {
        explained
            .as_ref()
            .is_err_and(|refusal| refusal.to_string().contains(&format!("table {}", self.table)))
    }

    async fn lists_answer(&self, rig: &Rig) {
        let (store, page) =
            (&rig.store, PageRequest { limit: Some(1000), ..PageRequest::default() });
        store.jobs(&Default::default(), &page).await.expect("jobs are listed");
        store.releases(&Default::default(), &page).await.expect("releases are listed");
        store.services(&Default::default(), &page).await.expect("services are listed");
        store.runtimes(&page).await.expect("runtimes are listed");
        store.applications(&page).await.expect("applications are listed");
        store.tokens(&page).await.expect("tokens are listed");
        store.secrets(&page).await.expect("secrets are listed");
        store.events(&Default::default(), &page).await.expect("the log is listed");
        store.events_after(0, &Default::default(), 1000).await.expect("the log is followed");
        let service = store.service("calm", "web").await.expect("a calm service is shown");
        assert!(
            service.is_some_and(|service| service.channels.len() == 2),
            "a calm service is shown whole"
        );
    }

    /// Retention comes to its end, for which everything here is old.
    async fn what_is_old_goes(&self, rig: &Rig) {
        let moment = Duration::from_millis(1);
        let age = schema::schedule::Duration::from_ms(1).unwrap();
        let retention = Retention {
            store: rig.store.clone(),
            blobs: Blobs::open(&rig.dir.path().join("blobs")).unwrap(),
            policy: Policy { job_count: 1, jobs: age, applies: age, logs: age, events: age },
            clock: Clock::Manual(Manual::starting_at(
                Clock::System.now().plus_ms(1_000_000_000_000),
            )),
            spool: None,
            reserve: rig.dir.path().join("reserve"),
            numbers: Arc::default(),
            pause: Duration::ZERO,
            leap: None,
            grace: moment,
        };
        for _ in 0..2 {
            let passed = tokio::time::timeout(PATIENCE, retention.pass()).await;
            passed.expect("a pass ends").expect("a pass comes to its end");
        }
    }

    /// Who has the database: it is taken, or refused with the row, and nobody panics.
    async fn try_owner(&self, dir: &tempfile::TempDir) {
        let path = dir.path().join("pvn.db");
        match Store::open_as(&path, pvn_scheduler::secrets::Sealer::with_key([1; 32]), &owner())
            .await
        {
            Ok(store) => {
                store.ensure_held().await.expect("it is held");
                store.close().await;
            }
            Err(StoreError::Corrupt(why)) => {
                assert!(
                    why.contains("table owner")
                        && why.contains(&self.column)
                        && why.contains("sqlite3"),
                    "{why}"
                );
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn is_app(spec: &JobSpec) -> bool {
    variable(spec, "PVN_APPLICATION") == "app"
        && variable(spec, "PVN_RELEASE_CHANNEL") != "production"
}

fn target(application: &str, channel: &str) -> InstanceTarget {
    InstanceTarget {
        application: application.to_owned(),
        service: "web".to_owned(),
        channel: channel.to_owned(),
    }
}
