//! The values that a push keeps for channels to which the last release did not go: those that they
//! have, never those for which they only wait.

use std::collections::BTreeMap;

use pvn_scheduler::driver::Ask;
use pvn_scheduler::runner::JobSpec;
use pvn_scheduler::store::PageRequest;
use schema::api::{ConfigFile, ConfigsRequest, PushRequest, RollbackRequest};
use schema::cause::CauseCode;
use schema::status::{JobKind, Status};

use super::rollbacks::{goes_back, sick};
use super::round::variable;
use super::{Rig, TWO_CHANNELS, any_plan, caller, target};

mod asked;
mod back;

/// With a third channel between the two.
fn three_channels() -> String {
    let middle = "  - name: middle\n    runtimes: [{runtime: tool}]\n    preconditions:\n    - \
                  releaseChannelStable: {releaseChannel: staging}\n";
    let text =
        TWO_CHANNELS.replace("  - name: production\n", &format!("{middle}  - name: production\n"));
    let (head, tail) = text.split_once("  - name: production\n").unwrap();
    format!(
        "{head}  - name: production\n{}",
        tail.replace("{releaseChannel: staging}", "{releaseChannel: middle}")
    )
}

/// A world in which no apply with this size ends well in this channel.
fn dislikes(
    size: &'static str,
    channel: &'static str,
) -> impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static {
    let world = sick("none", "none");
    move |spec| {
        let is_sick = variable(spec, "PVN_RELEASE_CHANNEL") == channel
            && spec.command.argv.last().is_some_and(|last| last == size);
        if spec.kind == JobKind::Apply && is_sick { Some(1) } else { world(spec) }
    }
}

impl Rig {
    /// The size with which each channel applied a version last.
    fn sizes(&self, version: &str) -> BTreeMap<String, String> {
        let seen = self.runner.seen.lock().unwrap();
        let applies = seen.iter().filter(|spec| {
            spec.kind == JobKind::Apply && variable(spec, "PVN_SERVICE_VERSION") == version
        });
        applies
            .map(|spec| {
                (variable(spec, "PVN_RELEASE_CHANNEL"), spec.command.argv.last().unwrap().clone())
            })
            .collect()
    }

    async fn until_at(&self, channel: &str, version: &str) {
        self.until(&format!("{channel} being converged at {version}"), async || {
            let instance = self.instance(channel).await;
            (instance.status == Status::Converged
                && instance.converged_version.as_deref() == Some(version))
            .then_some(())
        })
        .await;
    }

    async fn take_back(&self, channel: &str) {
        let request = RollbackRequest {
            version: Some("web-1".to_owned()),
            channels: Some(vec![channel.to_owned()]),
        };
        self.handle.rollback("app".into(), "web".into(), request, caller("eve")).await.unwrap();
        self.until_at(channel, "web-1").await;
    }

    async fn params(&self, version: &str) -> BTreeMap<String, String> {
        let releases =
            self.store.releases(&Default::default(), &PageRequest::default()).await.unwrap().items;
        releases.into_iter().find(|release| release.version == version).unwrap().params
    }

    /// A push of `size` with a value for `production` alone.
    async fn push_apart(&self, all: &str, production: &str) {
        let size = |value: &str| [("size".to_owned(), value.to_owned())].into();
        let request = PushRequest {
            params: size(all),
            params_for_channel: [("production".to_owned(), size(production))].into(),
            ..PushRequest::default()
        };
        self.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    }
}

fn sizes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(channel, size)| ((*channel).to_owned(), (*size).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_what_a_channel_only_waited_for_is_not_its_own_value_after_the_channel_before_it_was_taken_back()
 {
    let rig = Rig::start(dislikes("bad", "staging")).await;
    rig.request(&three_channels(), false).await.unwrap();
    rig.push(&[("size", "good")]).await.unwrap();
    rig.until_at("production", "web-1").await;
    rig.push(&[("size", "bad")]).await.unwrap();
    rig.until_status("staging", Status::Failed).await;
    for channel in ["middle", "production"] {
        rig.until_status(channel, Status::WaitingPreconditions).await;
    }
    rig.take_back("staging").await;
    for channel in ["middle", "production"] {
        let waits = rig.instance(channel).await;
        assert_eq!(
            (waits.status, waits.desired_version.as_deref()),
            (Status::WaitingPreconditions, Some("web-2")),
            "it waits on"
        );
    }
    let pushed = rig.push(&[]).await.unwrap();
    assert_eq!((pushed.version.as_str(), pushed.warnings), ("web-4", Vec::new()));
    rig.until_at("production", "web-4").await;
    assert_eq!(
        rig.sizes("web-4"),
        sizes(&[("staging", "good"), ("middle", "good"), ("production", "good")])
    );
    assert_eq!(rig.params("web-4").await, sizes(&[("size", "good")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_nor_is_it_after_an_automatic_rollback_and_the_push_that_explain_names() {
    let rig = Rig::start(dislikes("bad", "staging")).await;
    rig.request(&goes_back(TWO_CHANNELS), false).await.unwrap();
    rig.push(&[("size", "good")]).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[("size", "bad")]).await.unwrap();
    rig.until("staging being taken back", async || {
        let staging = rig.instance("staging").await;
        (staging.status == Status::Converged && staging.desired_version.as_deref() == Some("web-1"))
            .then_some(())
    })
    .await;
    let causes = rig.handle.explain(super::target("production")).await.unwrap().causes;
    let waits = causes.into_iter().find(|cause| cause.code == CauseCode::UpstreamUnstable).unwrap();
    assert!(
        waits
            .message
            .contains("`pvnctl services push web --app app --channels staging,production`"),
        "{}",
        waits.message
    );
    assert!(waits.message.contains("without `--param`"), "{}", waits.message);
    let channels = Some(vec!["staging".to_owned(), "production".to_owned()]);
    let request = PushRequest { channels, ..PushRequest::default() };
    rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    rig.until_converged("web-4").await;
    assert_eq!(rig.sizes("web-4"), sizes(&[("staging", "good"), ("production", "good")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_channel_has_that_the_channel_before_it_gave_back_is_kept_and_warned_of_until_a_value_is_given()
 {
    let rig = Rig::start(sick("none", "none")).await;
    rig.request(TWO_CHANNELS, false).await.unwrap();
    rig.push(&[("size", "old")]).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[("size", "new")]).await.unwrap();
    rig.until_converged("web-2").await;
    rig.take_back("staging").await;
    let said = "`production` keeps values of web-2 that differ from those of `staging`, for which \
                it waits";
    let warned = rig.push(&[]).await.unwrap().warnings;
    assert!(
        matches!(&warned[..], [one] if one.contains(said) && one.contains("`--param-for-channel`")),
        "{warned:?}"
    );
    rig.until_converged("web-4").await;
    assert_eq!(rig.sizes("web-4"), sizes(&[("staging", "old"), ("production", "new")]));

    // Also by the release after that, and by the other command.
    let file = ConfigFile {
        path: "test.pvn.yaml".into(),
        text: TWO_CHANNELS.into(),
        ..ConfigFile::default()
    };
    let request = ConfigsRequest { files: vec![file], push: true, ..ConfigsRequest::default() };
    let warned = rig.handle.apply_configs(request, caller("root")).await.unwrap().warnings;
    assert!(warned.iter().any(|warning| warning.message.contains(said)), "{warned:?}");
    rig.until_converged("web-5").await;
    assert_eq!(rig.sizes("web-5"), sizes(&[("staging", "old"), ("production", "new")]));

    // The other way round: what waits was taken back.
    rig.take_back("production").await;
    rig.push(&[("size", "newer")]).await.unwrap();
    rig.until_converged("web-7").await;
    rig.take_back("production").await;
    let warned = rig.push(&[]).await.unwrap().warnings;
    let said = "`staging` keeps values of web-7 that differ from those of `production`, which \
                waits for it";
    assert!(matches!(&warned[..], [one] if one.contains(said)), "{warned:?}");

    assert_eq!(rig.push(&[("size", "one")]).await.unwrap().warnings, Vec::<String>::new());
    assert_eq!(rig.params("web-10").await, sizes(&[("size", "one")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_was_given_for_a_channel_stays_its_own_and_is_not_warned_of() {
    let rig = Rig::start(dislikes("bad", "staging")).await;
    rig.request(TWO_CHANNELS, false).await.unwrap();
    rig.push(&[("size", "good")]).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push_apart("bad", "huge").await;
    rig.until_status("staging", Status::Failed).await;
    rig.take_back("staging").await;
    assert_eq!(rig.push(&[]).await.unwrap().warnings, Vec::<String>::new());
    rig.until_converged("web-4").await;
    assert_eq!(rig.sizes("web-4"), sizes(&[("staging", "good"), ("production", "huge")]));
    // Had, and given: no warning either.
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-5").await;
    rig.take_back("staging").await;
    assert_eq!(rig.push(&[]).await.unwrap().warnings, Vec::<String>::new());
    rig.until_converged("web-7").await;
    assert_eq!(rig.sizes("web-7"), sizes(&[("staging", "good"), ("production", "huge")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_for_all_takes_a_channels_own_away_only_where_the_release_goes_and_that_is_told() {
    let rig = Rig::start(sick("none", "none")).await;
    rig.request(TWO_CHANNELS, false).await.unwrap();
    rig.push_apart("small", "huge").await;
    rig.until_converged("web-1").await;
    let only = |channel: &str| PushRequest {
        params: [("size".to_owned(), "new".to_owned())].into(),
        channels: Some(vec![channel.to_owned()]),
        ..PushRequest::default()
    };
    let warned = rig
        .handle
        .push("app".into(), "web".into(), only("staging"), caller("root"))
        .await
        .unwrap()
        .warnings;
    assert_eq!(warned, Vec::<String>::new());
    assert_eq!(rig.params("web-2").await, sizes(&[("size", "new"), ("production:size", "huge")]));
    let warned = rig.push(&[("size", "newer")]).await.unwrap().warnings;
    assert!(
        matches!(&warned[..], [one] if one.contains("that `production` had of its own") && one.contains("production:size=…")),
        "{warned:?}"
    );
    assert_eq!(rig.params("web-3").await, sizes(&[("size", "newer")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_what_a_channel_began_to_apply_is_its_own_until_somebody_takes_it_back_there() {
    let world = sick("none", "none");
    // Web-2 never ends well in production, and never ends there by itself.
    let rig = Rig::start(move |spec: &JobSpec| {
        let here = (variable(spec, "PVN_RELEASE_CHANNEL"), variable(spec, "PVN_SERVICE_VERSION"));
        let hangs = spec.kind == JobKind::Apply
            && (here.0.as_str(), here.1.as_str()) == ("production", "web-2");
        if hangs { None } else { world(spec) }
    })
    .await;
    rig.request(TWO_CHANNELS, false).await.unwrap();
    rig.push(&[("size", "old")]).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[("size", "new")]).await.unwrap();
    rig.until("production applying web-2", async || {
        let seen = rig.runner.seen.lock().unwrap();
        seen.iter()
            .any(|spec| {
                spec.kind == JobKind::Apply
                    && spec.command.argv == ["do", "new"]
                    && is_of(spec, "production")
            })
            .then_some(())
    })
    .await;
    rig.take_back("staging").await;
    let warned = rig.push(&[]).await.unwrap().warnings;
    assert!(
        matches!(&warned[..], [one] if one.contains("`production` keeps values of web-2")),
        "{warned:?}"
    );
    assert_eq!(rig.params("web-4").await, sizes(&[("size", "old"), ("production:size", "new")]));

    // It waits for the end of that apply, and nothing of what it goes back to is there yet: what
    // was taken back must not come again.
    let request = RollbackRequest {
        version: Some("web-1".to_owned()),
        channels: Some(vec!["production".to_owned()]),
    };
    rig.handle.rollback("app".into(), "web".into(), request.clone(), caller("eve")).await.unwrap();
    let request = RollbackRequest { channels: Some(vec!["staging".to_owned()]), ..request };
    rig.handle.rollback("app".into(), "web".into(), request, caller("eve")).await.unwrap();
    assert_eq!(rig.push(&[]).await.unwrap().warnings, Vec::<String>::new());
    assert_eq!(rig.params("web-7").await, sizes(&[("size", "old")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_a_channel_keeps_to_what_the_definition_says_as_to_any_value() {
    let rig = Rig::start(sick("none", "none")).await;
    rig.request(TWO_CHANNELS, false).await.unwrap();
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[("size", "large")]).await.unwrap();
    rig.until_converged("web-2").await;
    rig.take_back("production").await;
    let request = PushRequest {
        params: [("size".to_owned(), "huge".to_owned())].into(),
        channels: Some(vec!["staging".to_owned()]),
        ..PushRequest::default()
    };
    rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    rig.until_at("staging", "web-4").await;
    let request = RollbackRequest {
        version: Some("web-2".to_owned()),
        channels: Some(vec!["staging".to_owned()]),
    };
    rig.handle.rollback("app".into(), "web".into(), request, caller("eve")).await.unwrap();
    rig.until_at("staging", "web-2").await;
    let warnings = rig.push(&[]).await.unwrap().warnings;
    assert!(
        warnings
            .iter()
            .any(|warning| warning.starts_with("`production` keeps values of web-1 that differ")),
        "{warnings:?}"
    );
    assert_eq!(
        rig.params("web-6").await,
        sizes(&[("size", "large"), ("production:size", "(default)")])
    );
    rig.until_converged("web-6").await;
    assert_eq!(rig.sizes("web-6"), sizes(&[("staging", "large"), ("production", "medium")]));
}

fn is_of(spec: &JobSpec, channel: &str) -> bool {
    variable(spec, "PVN_RELEASE_CHANNEL") == channel
}
