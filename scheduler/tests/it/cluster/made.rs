//! What a cluster answers while a job is made on it.

use super::*;

#[tokio::test]
async fn a_job_is_made_suspended_in_a_namespace_of_its_own_and_let_go_once_recorded() {
    let world = check(&[], "gone, exit Some(3)").await;
    assert_eq!(world.fake.object("/jobs/").unwrap()["spec"]["suspend"], false);
    assert_eq!(world.fake.count("PATCH", "/jobs/"), 3, "no namespace, made, let go");
    let secret = world.fake.object("/secrets/").unwrap();
    let job = world.fake.object("/jobs/").unwrap();
    assert_eq!(
        secret["metadata"]["ownerReferences"][0]["uid"], job["metadata"]["uid"],
        "gone with the Job"
    );
}

#[tokio::test]
async fn a_cluster_that_is_busy_or_in_conflict_is_asked_again() {
    for code in [409, 429, 500, 503] {
        let each = [
            (Method::PATCH, "/jobs/"),
            (Method::POST, "/secrets"),
            (Method::PATCH, "/namespaces/"),
        ];
        let each = each.map(|(method, path)| (method, path, Fault::Refuse(code)));
        check(&each, "gone, exit Some(3)").await;
    }
}

/// A page of a proxy, of an ingress without a backend, of a portal.
#[tokio::test]
async fn p8_an_answer_of_somebody_else_in_the_clusters_place_is_none_and_is_asked_again() {
    for code in [400, 403, 404, 405, 422, 503] {
        let each = [
            (Method::GET, "/jobs"),
            (Method::GET, "/pods"),
            (Method::PATCH, "/jobs/"),
            (Method::POST, "/secrets"),
            (Method::PATCH, "/namespaces/"),
            (Method::GET, "/jobs"),
        ];
        let world = check(
            &each.map(|(method, path)| (method, path, Fault::Page(code))),
            "gone, exit Some(3)",
        )
        .await;
        assert_eq!(world.fake.count("DELETE", "/jobs/"), 0, "{code}");
    }
}

#[tokio::test]
async fn that_somebody_else_answers_in_the_clusters_place_is_told_while_it_is_so() {
    let mut world = World::new().await;
    (0..50).for_each(|_| world.fake.fail(Method::PATCH, "/jobs/", Fault::Page(403)));
    world.runner.start(world.spec());
    let told = world.told().await;
    let expected = "waits, surroundings: making its Job: the cluster does not answer: somebody \
                    else answers in its place: 403 Forbidden: <html><h1>hello</h1></html>";
    assert!(told.starts_with(expected), "{told}");
}

#[tokio::test]
async fn a_create_that_times_out_and_succeeds_makes_one_job() {
    for (method, path) in [(Method::PATCH, "/jobs/"), (Method::POST, "/secrets")] {
        let twice = [
            (method.clone(), path, Fault::DoneButTimedOut),
            (method, path, Fault::DoneButTimedOut),
        ];
        let world = check(&twice, "gone, exit Some(3)").await;
        assert_eq!(world.fake.count("DELETE", "/jobs/"), 0);
    }
}

#[tokio::test]
async fn a_cluster_that_will_not_have_it_is_told_at_once_and_nothing_is_left() {
    let world = check(
        &[(Method::PATCH, "/jobs/", Fault::Refuse(422))],
        "gone, never: making its Job: fault 422",
    )
    .await;
    assert_eq!(world.fake.object("/jobs/"), None);
    let remedy = "gone, never: making its Secret: fault 403; give the scheduler's account this \
                  right in the cluster";
    let world = check(&[(Method::POST, "/secrets", Fault::Refuse(403))], remedy).await;
    assert_eq!(world.fake.object("/jobs/"), None, "a Job that will never be let go is taken away");
}

#[tokio::test]
async fn a_right_that_is_missing_fails_the_job_before_anything_is_made() {
    let mut world = World::new().await;
    world.fake.forbid("watch", "pods");
    world.fake.forbid("create", "jobs");
    world.runner.start(world.spec());
    let expected = "gone, never: the scheduler's account may not `create` jobs.batch, `watch` \
                    pods in the namespace `n` (no role); give it the rights in \
                    images/kubernetes/rights";
    let end = world.end().await;
    assert!(end.starts_with(expected), "{end}");
    assert_eq!(world.fake.count("PATCH", "/"), 0, "nothing was made");
}

#[tokio::test]
async fn a_right_that_only_tells_people_more_stops_no_job() {
    let mut world = World::new().await;
    world.fake.forbid("list", "events");
    world.runner.start(world.spec());
    assert_eq!(world.end().await, "gone, exit Some(0)");
}
