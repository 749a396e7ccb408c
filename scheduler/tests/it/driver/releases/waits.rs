//! What a channel waits for is told, with the push that ends the wait.

use super::*;

/// Two channels that wait for a third would be released in turns for ever, each with the third and
/// without the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_channel_waits_for_is_told_and_a_release_that_takes_it_away_says_so() {
    let rig = Rig::start(|spec| match (spec.kind, variable(spec, "PVN_RELEASE_CHANNEL")) {
        (JobKind::Fetch, _) => Some(2),
        (_, channel) => (channel != "staging").then_some(0),
    })
    .await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::WaitingPreconditions).await;
    let way_out = async || {
        let told = rig.handle.explain(super::target("production")).await.unwrap();
        told.causes
            .into_iter()
            .find(|cause| cause.code == CauseCode::UpstreamUnstable)
            .map(|cause| cause.message)
            .unwrap()
    };
    let told = way_out().await;
    assert!(
        told.contains(
            "`pvnctl services explain web --app app --channel staging` says what that waits for"
        ),
        "{told}"
    );
    assert!(!told.contains("push"), "it was released there: {told}");
    let only = |channel: &str| PushRequest {
        channels: Some(vec![channel.to_owned()]),
        ..PushRequest::default()
    };
    let pushed =
        rig.handle.push("app".into(), "web".into(), only("staging"), caller("eve")).await.unwrap();
    let warning = "`production` waits until `staging` is converged at web-1, which this release \
                   takes from it: release to all of them with `pvnctl services push web --app app \
                   --channels staging,production`";
    assert_eq!(pushed.warnings, [warning]);
    let told = way_out().await;
    assert!(
        told.contains("web-2 is what was released there last: release to all of them with"),
        "{told}"
    );
    let again =
        rig.handle.push("app".into(), "web".into(), only("staging"), caller("eve")).await.unwrap();
    assert!(again.warnings.is_empty(), "this one takes nothing from it: {:?}", again.warnings);
}

/// A world in which each channel has work until this very version was applied there.
fn versioned_world() -> impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static {
    let done = std::sync::Mutex::new(std::collections::BTreeSet::new());
    move |spec| {
        let mut done = done.lock().unwrap();
        let is_done =
            (variable(spec, "PVN_RELEASE_CHANNEL"), variable(spec, "PVN_SERVICE_VERSION"));
        match spec.kind {
            JobKind::Fetch => Some(if done.contains(&is_done) { 0 } else { 2 }),
            JobKind::Apply => Some(i32::from(!done.insert(is_done))),
            JobKind::GetInfo => Some(0),
        }
    }
}

/// Each step that is suggested would leave another channel at a version that does not come, round
/// and round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_suggested_for_a_channel_at_the_end_of_a_chain_goes_to_the_whole_chain() {
    let rig = Rig::start(versioned_world()).await;
    let production = "  - name: production\n";
    let last = "  - name: last\n    runtimes: [{runtime: tool}]\n    preconditions:\n    - \
                releaseChannelStable: {releaseChannel: production}\n";
    rig.request(&TWO_CHANNELS.replace(production, &format!("{last}{production}")), true)
        .await
        .unwrap();
    rig.until_status("last", Status::Converged).await;
    let only_last = PushRequest {
        params: [("size".to_owned(), "large".to_owned())].into(),
        channels: Some(vec!["last".to_owned()]),
        ..PushRequest::default()
    };
    let pushed =
        rig.handle.push("app".into(), "web".into(), only_last, caller("eve")).await.unwrap();
    let way = "`pvnctl services push web --app app --channels staging,production,last`";
    assert!(pushed.warnings[0].contains(way), "{:?}", pushed.warnings);
    rig.until_status("last", Status::WaitingPreconditions).await;
    let told = rig.handle.explain(super::target("last")).await.unwrap();
    let cause = told.causes.iter().find(|cause| cause.code == CauseCode::UpstreamUnstable).unwrap();
    assert!(cause.message.contains(way), "{}", cause.message);
    // Of the first two alone the third is told.
    let two = PushRequest {
        channels: Some(vec!["staging".to_owned(), "production".to_owned()]),
        ..PushRequest::default()
    };
    let pushed = rig.handle.push("app".into(), "web".into(), two, caller("eve")).await.unwrap();
    assert!(
        pushed.warnings.iter().all(|warning| !warning.contains("last")),
        "it waited for another version before: {:?}",
        pushed.warnings
    );
    let all = ["staging", "production", "last"].map(str::to_owned).to_vec();
    let whole = PushRequest { channels: Some(all), ..PushRequest::default() };
    let pushed = rig.handle.push("app".into(), "web".into(), whole, caller("eve")).await.unwrap();
    assert!(pushed.warnings.is_empty(), "{:?}", pushed.warnings);
    rig.until_status("last", Status::Converged).await;
}

/// A push alone would apply again what somebody has just taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_channel_that_was_taken_back_the_first_way_out_is_to_go_back_too() {
    let rig = Rig::start(|spec| {
        Some(
            i32::from(
                spec.kind == JobKind::Fetch && variable(spec, "PVN_SERVICE_VERSION") == "web-2",
            ) * 2,
        )
    })
    .await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    rig.push(&[]).await.unwrap();
    rig.until_status("production", Status::WaitingPreconditions).await;
    let back =
        RollbackRequest { version: Some("web-1".into()), channels: Some(vec!["staging".into()]) };
    rig.handle.rollback("app".into(), "web".into(), back, caller("eve")).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    let told = rig.handle.explain(super::target("production")).await.unwrap();
    let cause = told
        .causes
        .iter()
        .find(|cause| cause.code == CauseCode::UpstreamUnstable)
        .unwrap()
        .message
        .clone();
    let first = "it was taken back to web-1; `pvnctl services rollback web --app app --to web-1 \
                 --channels production` takes this one back too";
    assert!(cause.contains(first), "{cause}");
    let mended = cause.find("once what was wrong is mended").unwrap();
    assert!(cause.find("services push").is_some_and(|push| mended < push), "{cause}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_past_the_channel_that_must_be_stable_first_is_warned_of_and_says_the_way() {
    let rig = Rig::start(tidy_world()).await;
    let first = rig.request(TWO_CHANNELS, true).await.unwrap();
    assert!(first.warnings.is_empty(), "{first:?}");
    rig.until_converged("web-1").await;
    let request =
        PushRequest { channels: Some(vec!["production".to_owned()]), ..PushRequest::default() };
    let pushed =
        rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    let warnings = serde_json::to_value(pushed).unwrap()["warnings"].clone();
    let way = "pvnctl services push web --app app --channels staging,production";
    let warning = warnings[0].as_str().unwrap_or_default();
    assert!(
        warning.contains("`production` waits until `staging` is converged at web-2")
            && warning.contains(way),
        "{warnings}"
    );
    assert_eq!(warnings.as_array().unwrap().len(), 1);
    let both = serde_json::to_value(rig.push(&[]).await.unwrap()).unwrap();
    assert!(both.get("warnings").is_none(), "nothing to warn of: {both}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_was_put_into_a_row_names_the_push_that_moves_the_whole_row() {
    let rig = Rig::start(versioned_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_converged("web-1").await;
    let production = "  - name: production\n";
    let middle = "  - name: middle\n    runtimes: [{runtime: tool}]\n    preconditions:\n    - \
                  releaseChannelStable: {releaseChannel: staging}\n";
    let (before, after) = TWO_CHANNELS.split_once(production).unwrap();
    let after = after.replace("{releaseChannel: staging}", "{releaseChannel: middle}");
    rig.apply(&format!("{before}{middle}{production}{after}")).await.unwrap();
    let told = async |channel: &str| {
        let told = rig.handle.explain(super::target(channel)).await.unwrap();
        told.causes
            .into_iter()
            .map(|cause| format!("{}: {}", cause.code, cause.message))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let middle = told("middle").await;
    assert!(
        middle.contains(
            "NO_RELEASE: there is no release yet; `pvnctl services push web --app app --channels \
             staging,middle` makes one"
        ),
        "{middle}"
    );
    let request =
        PushRequest { channels: Some(vec!["production".to_owned()]), ..PushRequest::default() };
    rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    rig.until_status("production", Status::WaitingPreconditions).await;
    let production = told("production").await;
    assert!(
        production
            .contains("`pvnctl services push web --app app --channels staging,middle,production`"),
        "{production}"
    );
}
