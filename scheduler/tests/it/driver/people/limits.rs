//! What tokens are limited to: how such a token is made, and what is within its limits.

use schema::access::TokenScope;

use super::*;

/// Somebody who may change only this channel.
fn only(channel: &str) -> pvn_scheduler::driver::Caller {
    let channels = [channel.parse().unwrap()].into();
    pvn_scheduler::driver::Caller {
        scope: TokenScope { channels, ..TokenScope::default() },
        ..caller("ci")
    }
}

fn forbidden(refusal: &Refusal, part: &str) {
    assert!(matches!(refusal, Refusal::Forbidden(why) if why.contains(part)), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_for_several_channels_is_of_those_who_may_say_it_for_all_of_them() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(&with_shared_approval("tool"), true).await.unwrap();
    rig.until_status("staging", Status::WaitingManualApproval).await;
    rig.until_status("production", Status::WaitingManualApproval).await;
    for ask in [Ask::Approve(any_plan()), Ask::Reject(DecisionRequest::default())] {
        let refused = rig.handle.ask(target("staging"), ask, only("staging")).await.unwrap_err();
        forbidden(&refused, "this is about channel production of application app");
    }
    assert_eq!(rig.instance("production").await.approvals[0].by, []);
    rig.handle.ask(target("staging"), Ask::Approve(any_plan()), caller("eve")).await.unwrap();
    rig.until_status("production", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_for_one_channel_is_within_the_limits_of_whoever_may_change_that_one() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(THREE_GATES, true).await.unwrap();
    rig.until_status("one", Status::WaitingManualApproval).await;
    rig.until_status("two", Status::WaitingManualApproval).await;
    rig.handle.ask(target("one"), Ask::Approve(any_plan()), only("one")).await.unwrap();
    rig.until_status("one", Status::Converged).await;
    let ask = Ask::Approve(any_plan());
    let refused = rig.handle.ask(target("two"), ask, only("one")).await.unwrap_err();
    forbidden(&refused, "may change only channel one of every application");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn going_back_is_refused_as_a_whole_where_one_channel_is_beyond_the_limits() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(THREE_GATES, true).await.unwrap();
    let releases = async || {
        let page = PageRequest::default();
        rig.store.releases(&Default::default(), &page).await.unwrap().total
    };
    let before = releases().await;
    let back = schema::api::RollbackRequest {
        version: Some("web-1".into()),
        ..schema::api::RollbackRequest::default()
    };
    let go = async |request, caller| {
        rig.handle.rollback("app".into(), "web".into(), request, caller).await
    };
    let refused = go(back.clone(), only("one")).await.unwrap_err();
    forbidden(&refused, "this is about channels three and two of application app");
    assert_eq!(releases().await, before);
    let one = schema::api::RollbackRequest { channels: Some(vec!["one".into()]), ..back };
    go(one, only("one")).await.unwrap();
    assert_eq!(releases().await, before + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_made_with_limits_that_are_there_and_never_with_an_empty_one() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let of = |applications, channels| TokenRequest {
        applications,
        channels,
        ..TokenRequest::new("ci", Role::Deployer)
    };
    let make = async |request| rig.handle.create_token(request, caller("eve")).await;
    let said = async |request: TokenRequest| make(request).await.unwrap_err().to_string();
    for (request, part) in [
        (of(names(&[]), None), "`applications` is empty"),
        (of(None, names(&[])), "`channels` is empty"),
        (of(names(&["shpo"]), None), "application `shpo` does not exist"),
        (of(names(&["app"]), names(&["prod"])), "there are production, staging"),
        (of(None, names(&["Prod"])), "is not a"),
        (TokenRequest { role: Some(Role::Admin), ..of(names(&["app"]), None) }, "and limited"),
        (TokenRequest { role: None, ..of(None, None) }, "`role` is missing"),
    ] {
        let said = said(request).await;
        assert!(said.contains(part), "{said}");
    }
    let made = make(TokenRequest {
        roles: vec![Role::Viewer, Role::Approver],
        ..of(names(&["app"]), names(&["staging"]))
    })
    .await
    .unwrap();
    assert_eq!((made.role, &made.roles[..]), (None, &[Role::Deployer, Role::Approver][..]));
    let row = rig.store.token(&made.token).await.unwrap().unwrap();
    assert_eq!(row.rights.scope.in_words(), "channel staging of application app");
    let filter = EventFilter { kind: Some("token.created".into()), ..Default::default() };
    let entry = rig.store.events(&filter, &PageRequest::default()).await.unwrap().items.remove(0);
    assert_eq!(
        entry.message,
        "eve makes the token `ci` with the roles deployer and approver, which may change only \
         channel staging of application app"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_is_let_go_on_and_checked_by_whoever_may_change_all_that_it_serves() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let refused =
        rig.handle.resume_runtime("tool".parse().unwrap(), only("staging")).await.unwrap_err();
    forbidden(&refused, "this is about all that runtime tool serves");
    let all = pvn_scheduler::driver::CheckedInstances::default();
    let refused = rig.handle.check_runtime("tool".into(), all, only("staging")).await.unwrap_err();
    forbidden(&refused, "this is about all that runtime tool serves");
    let filter = EventFilter { kind: Some("runtime".into()), ..Default::default() };
    let told = rig.store.events(&filter, &PageRequest::default()).await.unwrap().items;
    assert!(told.is_empty(), "{told:?}");
}
