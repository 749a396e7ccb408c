//! Lists are paged, filtered and counted in the database.

use pvn_scheduler::store::{Change, Commit, EventFilter, PageRequest, ServiceFilter, TokenRow};
use schema::access::{RoleSet, TokenRights, TokenScope};
use schema::api::LogEntry;
use schema::status::{Role, Status};

use super::{Fresh, application, at, instance, service};

/// Two applications; the services of `a` are CONVERGED, those of `b` FAILED.
async fn two_applications(fresh: &Fresh, services: usize) {
    let mut commit = Commit::default();
    for (name, status) in [("a", Status::Converged), ("b", Status::Failed)] {
        let (app, channel) = application(name);
        commit.changes.push(Change::Application(app.clone()));
        commit.changes.push(Change::Channel(Box::new(channel.clone())));
        for number in 0..services {
            let row = service(&app, &format!("svc-{number:03}"));
            commit.instances.push(instance(&row, &channel, 1, status));
            commit.changes.push(Change::Service(row));
        }
    }
    fresh.store.commit(&commit).await.unwrap();
}

#[tokio::test]
async fn pages_of_services_join_to_the_whole_list_in_order() {
    let fresh = Fresh::open().await;
    two_applications(&fresh, 7).await;
    let mut seen = Vec::new();
    let mut request = PageRequest { cursor: None, limit: Some(5) };
    loop {
        let page = fresh.store.services(&ServiceFilter::default(), &request).await.unwrap();
        assert_eq!(page.total, 14);
        assert!(page.items.len() <= 5);
        seen.extend(page.items.iter().map(|item| format!("{}/{}", item.application, item.name)));
        assert!(page.items.iter().all(|item| item.channels.len() == 1));
        request.cursor = page.next_cursor;
        if request.cursor.is_none() {
            break;
        }
    }
    let expected: Vec<_> = ["a", "b"]
        .iter()
        .flat_map(|app| (0..7).map(move |number| format!("{app}/svc-{number:03}")))
        .collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn services_are_filtered_and_counted_alike() {
    let fresh = Fresh::open().await;
    two_applications(&fresh, 12).await;
    let check = async |filter: ServiceFilter, expected: u64| {
        let page = fresh.store.services(&filter, &PageRequest::default()).await.unwrap();
        assert_eq!((page.total, page.items.len() as u64), (expected, expected), "{filter:?}");
    };
    check(ServiceFilter { status: Some(Status::Failed), ..Default::default() }, 12).await;
    check(ServiceFilter { name: Some("-01".into()), ..Default::default() }, 4).await;
    check(ServiceFilter { name: Some("%".into()), ..Default::default() }, 0).await;
    check(ServiceFilter { application: Some(application("a").0.id), ..Default::default() }, 12)
        .await;
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let fresh = Fresh::open().await;
    let request = PageRequest { cursor: Some("nonsense".into()), limit: None };
    for error in [
        fresh.store.services(&ServiceFilter::default(), &request).await.unwrap_err(),
        fresh.store.events(&EventFilter::default(), &request).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("nonsense"), "{error}");
    }
}

fn entry(seq: u64, kind: &str, actor: Option<&str>) -> LogEntry {
    LogEntry {
        seq,
        at: at(1),
        kind: kind.into(),
        actor: actor.map(Into::into),
        origin: None,
        application: None,
        service: None,
        channel: None,
        message: String::new(),
        data: serde_json::json!({}),
    }
}

#[tokio::test]
async fn the_log_is_read_newest_first_or_from_where_a_reader_stopped() {
    let fresh = Fresh::open().await;
    let events = vec![
        entry(1, "approval.asked", None),
        entry(2, "approval.decided", Some("eve")),
        entry(3, "approvals", None),
        entry(4, "job.ended", None),
    ];
    fresh.store.commit(&Commit { events, ..Commit::default() }).await.unwrap();
    let check = async |filter: EventFilter, expected: &[u64]| {
        let page = fresh.store.events(&filter, &PageRequest::default()).await.unwrap();
        assert_eq!(
            page.items.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
            expected,
            "{filter:?}"
        );
    };
    check(EventFilter::default(), &[4, 3, 2, 1]).await;
    check(EventFilter { kind: Some("approval".into()), ..Default::default() }, &[2, 1]).await;
    check(EventFilter { audit: true, ..Default::default() }, &[2]).await;
    let missed = fresh.store.events_after(2, &EventFilter::default(), 10).await.unwrap();
    assert_eq!(missed.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [3, 4]);
}

#[tokio::test]
async fn secrets_are_sealed_at_rest_and_listed_without_values() {
    let fresh = Fresh::open().await;
    for version in 1..=2 {
        let value = format!("hunter{version}-in-the-clear").into_bytes();
        let change = Change::Secret {
            key: "db".into(),
            version,
            value,
            at: at(version as i64),
            by: "root".into(),
        };
        fresh.store.commit(&Commit { changes: vec![change], ..Commit::default() }).await.unwrap();
    }
    assert_eq!(
        fresh.store.secret("db", 0).await.unwrap(),
        Some((2, b"hunter2-in-the-clear".to_vec()))
    );
    assert_eq!(
        fresh.store.secret("db", 1).await.unwrap(),
        Some((1, b"hunter1-in-the-clear".to_vec()))
    );
    assert_eq!(fresh.store.secret("other", 0).await.unwrap(), None);
    let listed = fresh.store.secrets(&PageRequest::default()).await.unwrap();
    assert_eq!(listed.items[0].versions, [1, 2]);
    for file in std::fs::read_dir(fresh.dir.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(
            !bytes.windows(12).any(|window| window == b"in-the-clear"),
            "the value is on disk in the clear"
        );
    }
}

#[tokio::test]
async fn rights_of_a_token_are_read_as_they_were_given_and_a_damaged_limit_is_no_limit_less() {
    let fresh = Fresh::open().await;
    let token = |name: &str, rights: TokenRights| {
        Change::Token(TokenRow {
            name: name.into(),
            rights,
            hash: TokenRow::hash(name),
            created_at: at(1),
            expires_at: None,
            revoked_at: None,
        })
    };
    let limited = TokenRights {
        roles: RoleSet::new([Role::Operator, Role::Deployer]).unwrap(),
        scope: TokenScope {
            applications: ["shop", "web"].map(|name| name.parse().unwrap()).into(),
            channels: ["eu".parse().unwrap()].into(),
        },
    };
    let changes = vec![token("ci", limited.clone()), token("root", Role::Admin.into())];
    fresh.store.commit(&Commit { changes, ..Commit::default() }).await.unwrap();
    let rights = async |name: &str| fresh.store.token_named(name).await.unwrap().unwrap().rights;
    assert_eq!(rights("ci").await, limited);
    assert_eq!(rights("root").await, Role::Admin.into());
    // As an older program wrote it.
    fresh.edit("UPDATE tokens SET role = 'approver' WHERE name = 'root'").await;
    assert_eq!(rights("root").await, Role::Approver.into());
    for (column, damage) in [
        ("applications", "UPDATE tokens SET applications = '' WHERE name = 'ci'"),
        ("channels", "UPDATE tokens SET channels = 'eu,' WHERE name = 'ci'"),
        ("role", "UPDATE tokens SET role = 'admin,owner' WHERE name = 'ci'"),
        ("role", "UPDATE tokens SET role = '' WHERE name = 'ci'"),
    ] {
        fresh.edit(damage).await;
        let told = fresh.store.token_named("ci").await.unwrap_err().to_string();
        assert!(told.contains("row name = \"ci\"") && told.contains(column), "{told}");
        fresh.edit("UPDATE tokens SET applications = NULL, channels = NULL").await;
    }
}

#[tokio::test]
async fn a_token_opens_until_it_expires_or_is_revoked_and_its_name_is_never_used_again() {
    let fresh = Fresh::open().await;
    let token = TokenRow {
        name: "eve".into(),
        rights: Role::Admin.into(),
        hash: TokenRow::hash("text"),
        created_at: at(1),
        expires_at: Some(at(10)),
        revoked_at: None,
    };
    fresh
        .store
        .commit(&Commit { changes: vec![Change::Token(token.clone())], ..Commit::default() })
        .await
        .unwrap();
    let found = fresh.store.token("text").await.unwrap().unwrap();
    assert!(found.is_valid(at(9)) && !found.is_valid(at(10)));
    assert_eq!(fresh.store.token("other").await.unwrap(), None);

    let again = TokenRow { hash: TokenRow::hash("other"), ..token };
    let error = fresh
        .store
        .commit(&Commit { changes: vec![Change::Token(again)], ..Commit::default() })
        .await
        .unwrap_err();
    assert!(error.to_string().contains("`eve`"), "{error}");

    let revoked = Change::TokenRevoked { name: "eve".into(), at: at(5) };
    fresh.store.commit(&Commit { changes: vec![revoked], ..Commit::default() }).await.unwrap();
    assert!(!fresh.store.token("text").await.unwrap().unwrap().is_valid(at(6)));
}
