//! Tokens and secrets: who may revoke which, and what becomes of what was said with them.

use super::*;

/// A release whose only channel waits for the yes of two people.
async fn asking_two_people() -> Rig {
    let rig = Rig::start(tidy_world()).await;
    let of_two =
        "\n    preconditions: [{manualApproval: {name: qa, minApprovers: 2}}]\n---\nservice:";
    rig.request(
        &APPROVAL
            .replace("    requireApprovalBeforeApply: true\n", "")
            .replace("\n---\nservice:", of_two),
        true,
    )
    .await
    .unwrap();
    rig.until_status("only", Status::WaitingManualApproval).await;
    rig
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_the_yes_of_a_revoked_token_counts_no_more_and_the_audit_says_so() {
    let rig = asking_two_people().await;
    for name in ["ann", "bob"] {
        let request = TokenRequest::new(name, Role::Approver);
        rig.handle.create_token(request, caller("eve")).await.unwrap();
    }
    rig.handle.ask(target("only"), Ask::Approve(any_plan()), caller("ann")).await.unwrap();
    rig.handle.revoke_token("ann".into(), caller("eve")).await.unwrap();
    rig.handle.ask(target("only"), Ask::Approve(any_plan()), caller("bob")).await.unwrap();
    let instance = rig.instance("only").await;
    assert_eq!(instance.status, Status::WaitingManualApproval);
    assert_eq!(
        instance.approvals[0].by.iter().map(|vote| vote.who.as_str()).collect::<Vec<_>>(),
        ["bob"]
    );
    assert_eq!(rig.runner.applies(), 0);
    let filter = EventFilter { kind: Some("approval.withdrawn".into()), ..Default::default() };
    let entry = rig.store.events(&filter, &PageRequest::default()).await.unwrap().items.remove(0);
    assert!(
        entry.message.contains("the yes of ann to approval `qa` counts no more"),
        "{}",
        entry.message
    );
    rig.handle.ask(target("only"), Ask::Approve(any_plan()), caller("cat")).await.unwrap();
    rig.until_status("only", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_a_token_that_has_expired_can_be_revoked_once_for_the_yes_that_was_given_with_it() {
    let rig = asking_two_people().await;
    let request =
        TokenRequest { valid_for_seconds: Some(1), ..TokenRequest::new("ann", Role::Approver) };
    let made = rig.handle.create_token(request, caller("eve")).await.unwrap();
    rig.handle.ask(target("only"), Ask::Approve(any_plan()), caller("ann")).await.unwrap();
    Clock::System.sleep_until(made.expires_at.unwrap()).await;
    rig.handle.revoke_token("ann".into(), caller("eve")).await.unwrap();
    assert_eq!(rig.instance("only").await.approvals[0].by, []);
    let again = rig.handle.revoke_token("ann".into(), caller("eve")).await.unwrap_err();
    assert!(
        matches!(&again, Refusal::Conflict(why) if why.contains("was revoked already")),
        "{again}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_count_their_versions_and_names_of_tokens_are_never_used_again() {
    let rig = Rig::start(tidy_world()).await;
    assert_eq!(
        rig.handle.set_secret("db".into(), b"one".to_vec(), caller("eve")).await.unwrap(),
        1
    );
    assert_eq!(
        rig.handle.set_secret("db".into(), b"two".to_vec(), caller("eve")).await.unwrap(),
        2
    );
    let bad = rig.handle.set_secret("db".into(), vec![0, 1], caller("eve")).await.unwrap_err();
    assert!(matches!(&bad, Refusal::Invalid(why) if why.contains("UTF-8")), "{bad}");
    rig.handle.delete_secret("db".into(), caller("eve")).await.unwrap();
    assert!(matches!(
        rig.handle.delete_secret("db".into(), caller("eve")).await,
        Err(Refusal::NotFound(_))
    ));

    let request = TokenRequest::new("ci", Role::Admin);
    let made = rig.handle.create_token(request.clone(), caller("eve")).await.unwrap();
    assert!(rig.store.token(&made.token).await.unwrap().is_some());
    let again = rig.handle.create_token(request, caller("eve")).await.unwrap_err();
    assert!(
        matches!(&again, Refusal::Conflict(why) if why.contains("never used again")),
        "{again}"
    );
    let last = rig.handle.revoke_token("ci".into(), caller("eve")).await.unwrap_err();
    assert!(last.to_string().contains("last admin token"), "{last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_admin_token_that_does_not_expire_is_not_revoked_whoever_else_is_admin_for_a_while()
 {
    let rig = Rig::start(tidy_world()).await;
    let make = async |name: &str, valid_for_seconds| {
        let request = TokenRequest { valid_for_seconds, ..TokenRequest::new(name, Role::Admin) };
        rig.handle.create_token(request, caller("eve")).await.unwrap();
    };
    let revoke = async |name: &str| rig.handle.revoke_token(name.into(), caller("eve")).await;
    make("tmp", Some(3600)).await;
    let last = revoke("tmp").await.unwrap_err();
    assert!(matches!(&last, Refusal::Conflict(why) if why.contains("last admin token")), "{last}");
    make("root", None).await;
    let last = revoke("root").await.unwrap_err();
    assert!(
        matches!(&last, Refusal::Conflict(why) if why.contains("does not expire") && why.contains("--valid-for")),
        "{last}"
    );
    make("other", None).await;
    revoke("root").await.unwrap();
    revoke("tmp").await.unwrap();
    revoke("other").await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tokens_differ_by_more_than_case_so_that_nobody_is_two_people() {
    let rig = Rig::start(tidy_world()).await;
    let make = async |name: &str| {
        let request = TokenRequest::new(name, Role::Approver);
        rig.handle.create_token(request, caller("eve")).await
    };
    make("Alice").await.unwrap();
    let again = make("alice").await.unwrap_err();
    assert!(
        matches!(&again, Refusal::Conflict(why) if why.contains("`Alice`") && why.contains("case")),
        "{again}"
    );
    make("alice2").await.unwrap();
}
