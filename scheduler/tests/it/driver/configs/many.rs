//! Configs of more services than one commit takes.

use super::*;

/// More than one commit's worth of releases.
fn many_services(count: usize) -> String {
    let (rest, _) = TWO_CHANNELS.split_once("---\nservice:").unwrap();
    (0..count).fold(rest.to_owned(), |yaml, number| {
        yaml + &format!("---\nservice: {{name: s{number}, application: app}}\n")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_of_more_services_than_one_commit_takes_releases_all_of_them() {
    let rig = Rig::start(|_| Some(0)).await;
    let pushed = rig.request(&many_services(200), true).await.unwrap().pushed;
    assert_eq!(pushed.len(), 200);
    let releases = rig.store.releases(&Default::default(), &PageRequest::default()).await.unwrap();
    assert_eq!(releases.total, 200);
    assert_eq!(releases.items[0].version, "s199-1", "in their order, the newest first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_in_one_of_many_services_stores_and_releases_none() {
    let rig = Rig::start(|_| Some(0)).await;
    let wrong = many_services(200)
        + "---\nservice: {name: last, application: app, parameters: [{name: p, required: true, \
           string: {}}]}\n";
    let refused = rig.request(&wrong, true).await.unwrap_err();
    assert!(
        matches!(&refused, Refusal::Config(problems) if problems[0].message.contains("`p`")),
        "{refused:?}"
    );
    assert!(rig.store.find_application("app").await.unwrap().is_none());
}
