//! Services, applications and runtimes that a person deletes: what is told before, what ends, what
//! history keeps, and how a name comes back.

use pvn_scheduler::driver::Refusal;
use pvn_scheduler::store::{
    DocumentKind, EventFilter, PageRequest, ServiceFilter, StoredDocumentKey,
};
use schema::api::{ConfigFile, ConfigsRequest, ConfigsResult, DocumentReference, PushRequest};
use schema::id::InstanceId;
use schema::log_kind::LogKind;
use schema::status::Status;

use super::round::tidy_world;
use super::{Rig, TWO_CHANNELS, caller, target};

fn reference(kind: &str, application: &str, name: &str) -> DocumentReference {
    DocumentReference { kind: kind.into(), application: application.into(), name: name.into() }
}

fn deleting(kind: &str, application: &str, name: &str) -> ConfigsRequest {
    let delete = vec![reference(kind, application, name)];
    ConfigsRequest { delete, ..ConfigsRequest::default() }
}

async fn delete(rig: &Rig, request: ConfigsRequest) -> Result<ConfigsResult, Refusal> {
    rig.handle.apply_configs(request, caller("ann")).await
}

fn changes(result: &ConfigsResult) -> Vec<(&str, &str, u64)> {
    result
        .documents
        .iter()
        .map(|document| (document.name.as_str(), document.change.as_str(), document.version))
        .collect()
}

/// Converged in both channels.
async fn released() -> Rig {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    rig
}

async fn instance_states(rig: &Rig) -> Vec<bool> {
    let app = rig.store.known_application("app").await.unwrap().unwrap();
    let service = rig.store.known_service(app.id, "web").await.unwrap().unwrap();
    let mut deleted = Vec::new();
    for channel in rig.store.channels(app.id).await.unwrap() {
        let state = rig.store.state(InstanceId::of(service.id, channel.id)).await.unwrap();
        deleted.push(state.unwrap().is_deleted());
    }
    deleted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_service_ends_in_every_channel_after_that_was_told() {
    let rig = released().await;
    let request = deleting("service", "app", "web");
    let look = ConfigsRequest { dry_run: true, ..request.clone() };
    let shown = delete(&rig, look).await.unwrap();
    assert_eq!(changes(&shown), [("web", "deleted", 1)]);
    let diff = &shown.documents[0].diff;
    assert!(diff.contains("-service:") && diff.contains("+++ /dev/null"), "{diff}");
    let told: Vec<_> = shown.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert_eq!(
        told[1],
        "app/web in production (CONVERGED at web-1) is not wanted any more; what pvn keeps for it \
         (its PVN_INSTANCE_DIR) is removed"
    );
    let help = shown.warnings[1].help.as_deref().unwrap_or_default();
    assert!(help.contains("What was applied stays as it is outside of pvn"), "{help}");
    assert!(help.contains("Once a config has the service again, `pvnctl services rollback web"));
    assert_eq!(rig.instance("production").await.status, Status::Converged, "a dry run");

    delete(&rig, ConfigsRequest { basis: shown.basis, ..request }).await.unwrap();
    assert_eq!(instance_states(&rig).await, [true, true]);
    // Gone from what people look at, and from what they can ask for.
    let page = PageRequest::default();
    assert_eq!(rig.store.services(&ServiceFilter::default(), &page).await.unwrap().total, 0);
    assert!(rig.store.service("app", "web").await.unwrap().is_none());
    assert!(rig.store.application("app").await.unwrap().unwrap().services.is_empty());
    assert!(rig.store.status_counts(None).await.unwrap().is_empty());
    let refused = rig.push(&[]).await.unwrap_err();
    assert!(matches!(&refused, Refusal::NotFound(why) if why.contains("`web`")), "{refused}");
    let refused = rig.handle.explain(target("production")).await.unwrap_err();
    assert!(matches!(refused, Refusal::NotFound(_)), "{refused}");
    // Who did it is in the log.
    let kind = Some(LogKind::ConfigDeleted.to_string());
    let entries = rig.store.events(&EventFilter { kind, ..EventFilter::default() }, &page).await;
    let entries = entries.unwrap().items;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].message, "ann deletes service app/web (config version 1)");
    assert_eq!(entries[0].actor.as_deref(), Some("ann"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_comes_back_goes_on_counting_and_brings_nothing_back_by_itself() {
    let rig = released().await;
    delete(&rig, deleting("service", "app", "web")).await.unwrap();
    let twice = delete(&rig, deleting("service", "app", "web")).await.unwrap_err();
    assert!(matches!(twice, Refusal::NotFound(_)), "{twice}");
    let back = rig.apply(TWO_CHANNELS).await.unwrap();
    assert_eq!(
        changes(&back),
        [("tool", "unchanged", 1), ("app", "unchanged", 1), ("web", "created", 2)]
    );
    let had = rig.instance("production").await;
    assert_eq!(had.status, Status::Deleted, "{}", had.message);
    let pushed = rig.push(&[]).await.unwrap();
    assert_eq!(pushed.version, "web-2", "a version never means two things");
    rig.until_status("production", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_application_goes_with_its_services_and_its_channels() {
    let rig = released().await;
    let shown = delete(&rig, deleting("application", "", "app")).await.unwrap();
    assert_eq!(changes(&shown), [("app", "deleted", 1), ("web", "deleted", 1)]);
    assert_eq!(shown.warnings.len(), 2, "{:#?}", shown.warnings);
    assert_eq!(instance_states(&rig).await, [true, true]);
    let page = PageRequest::default();
    assert_eq!(rig.store.applications(&page).await.unwrap().total, 0);
    assert!(rig.store.find_application("app").await.unwrap().is_none());
    // What it was can be read.
    let key = |kind, application: &str, name: &str| StoredDocumentKey {
        kind,
        application: application.to_owned(),
        name: name.to_owned(),
    };
    let service = key(DocumentKind::Service, "app", "web");
    assert!(rig.store.document(&service).await.unwrap().is_none());
    assert!(rig.store.document_version(&service, 1).await.unwrap().is_some());
    assert_eq!(rig.store.documents_in_force("", &page).await.unwrap().total, 1, "its runtime");

    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    let application = rig.store.application("app").await.unwrap().unwrap();
    assert_eq!(application.release_channels.len(), 2);
    assert_eq!(application.services.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_is_deleted_once_nothing_is_on_it() {
    let rig = released().await;
    let runtime = || deleting("runtime", "", "tool");
    let used = delete(&rig, runtime()).await.unwrap_err();
    assert!(matches!(&used, Refusal::Conflict(why) if why.contains("serves app/web")), "{used}");
    // Nothing is released there, and a config names it still.
    delete(&rig, deleting("service", "app", "web")).await.unwrap();
    let named = delete(&rig, runtime()).await.unwrap_err();
    assert!(
        matches!(&named, Refusal::Config(problems)
            if problems.iter().all(|problem| problem.message.contains("tool"))),
        "{named:?}"
    );
    assert!(rig.store.find_runtime("tool").await.unwrap().is_some(), "nothing was deleted");
    delete(&rig, deleting("application", "", "app")).await.unwrap();
    delete(&rig, runtime()).await.unwrap();
    assert!(rig.store.find_runtime("tool").await.unwrap().is_none());
    let built_in = delete(&rig, deleting("runtime", "", "local")).await.unwrap_err();
    assert!(matches!(built_in, Refusal::Conflict(_)), "{built_in}");

    let back = rig.request(TWO_CHANNELS, true).await.unwrap();
    let expected = [("tool", "created", 2), ("app", "created", 2), ("web", "created", 2)];
    assert_eq!(changes(&back), expected);
    rig.until_status("production", Status::Converged).await;
}

/// The two documents of `TWO_CHANNELS` that are no service, and these services.
fn with_services(names: &[&str]) -> String {
    let (estate, service) = TWO_CHANNELS.split_once("---\nservice:").unwrap();
    names.iter().fold(estate.to_owned(), |yaml, name| {
        yaml + "---\nservice:" + &service.replacen("web", name, 1)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prune_deletes_the_services_that_files_leave_out_where_they_give_the_application() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(&with_services(&["web", "api"]), true).await.unwrap();
    let prune = async |text: &str, dry_run: bool| {
        let (path, text) = ("test.pvn.yaml".to_owned(), text.to_owned());
        let files = vec![ConfigFile { path, text, ..ConfigFile::default() }];
        let request = ConfigsRequest { files, dry_run, prune: true, ..ConfigsRequest::default() };
        rig.handle.apply_configs(request, caller("ann")).await.unwrap()
    };
    let one = with_services(&["web"]);
    let shown = prune(&one, true).await;
    assert_eq!(changes(&shown).last(), Some(&("api", "deleted", 1)));
    assert!(
        !shown.warnings.iter().any(|warning| warning.message.contains("goes on as it was")),
        "what is deleted does not stay: {:#?}",
        shown.warnings
    );
    // Without its application nobody says what of it there is.
    let (_, service) = one.rsplit_once("---\n").unwrap();
    assert_eq!(changes(&prune(service, true).await), [("web", "unchanged", 1)]);
    assert!(rig.store.service("app", "api").await.unwrap().is_some());
    prune(&one, false).await;
    assert!(rig.store.service("app", "api").await.unwrap().is_none());
    assert!(rig.store.service("app", "web").await.unwrap().is_some());
    assert!(prune(&one, false).await.documents.iter().all(|it| it.change == "unchanged"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_released_since_it_was_shown_is_not_deleted() {
    let rig = released().await;
    let request = deleting("service", "app", "web");
    let look = ConfigsRequest { dry_run: true, ..request.clone() };
    let shown = delete(&rig, look).await.unwrap();
    let other = PushRequest {
        params: [("size".to_owned(), "huge".to_owned())].into(),
        ..PushRequest::default()
    };
    rig.handle.push("app".into(), "web".into(), other, caller("eve")).await.unwrap();
    let late = delete(&rig, ConfigsRequest { basis: shown.basis, ..request }).await.unwrap_err();
    assert!(matches!(late, Refusal::Conflict(_)), "{late}");
    assert!(rig.store.service("app", "web").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_to_delete_is_refused_and_deletes_nothing() {
    let rig = released().await;
    for (request, said) in [
        (deleting("servce", "app", "web"), "no kind of document"),
        (deleting("service", "app", "wbe"), "no service `wbe`"),
        (deleting("service", "", "web"), "does not exist"),
        (deleting("application", "", "ap"), "no application `ap`"),
        (deleting("runtime", "", "tol"), "no runtime `tol`"),
        (ConfigsRequest { push: true, ..deleting("service", "app", "web") }, "of its own"),
    ] {
        let refused = delete(&rig, request).await.unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
    assert_eq!(rig.instance("production").await.status, Status::Converged);
}
