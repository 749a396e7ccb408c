//! Going back: a release of the old values under the gates, the runtime and the commands of today.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use engine::action::Action;
use pvn_scheduler::clock::{Clock, Manual};
use pvn_scheduler::driver::{Ask, Health, Refusal};
use pvn_scheduler::runner::{JobSpec, RunnerEvent};
use pvn_scheduler::store::{EventFilter, JobFilter, PageRequest};
use schema::api::{PushRequest, RollbackRequest};
use schema::cause::CauseCode;
use schema::status::{JobKind, JobStatus, Reason, Status};
use schema::time::Timestamp;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::round::{tidy_world, variable};
use super::{Rig, TWO_CHANNELS, any_plan, caller, report, target};

mod pending;
mod today;

const WINDOW: &str = "{schedule: \"0 0 0 29 2 *\", duration: 1s}";

fn to(version: &str, channels: Option<&[&str]>) -> RollbackRequest {
    let channels = channels.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    RollbackRequest { version: Some(version.to_owned()), channels }
}

/// With a runtime that asks for `w`, which a service may give.
pub(super) fn with_w(is_required: bool, given: bool) -> String {
    let asked = format!(
        "string: {{defaultValue: small}}\n    - {{name: w, {}}}",
        if is_required { "required: true, string: {}" } else { "string: {defaultValue: w}" }
    );
    let text = TWO_CHANNELS.replace("string: {defaultValue: small}", &asked);
    if given { text + "    - {name: w, string: given}\n" } else { text }
}

/// With a progress deadline and a way back, both short.
pub(super) fn goes_back(text: &str) -> String {
    let policy = "  application: app\n  progressDeadline: 2s\n  autoRollback: {}\n  parameters";
    text.replace("  application: app\n  parameters", policy)
}

/// A world that is as desired where the wanted version is what was applied last in the channel, and
/// in which one version never comes right in one channel.
pub(super) fn sick(
    version: &'static str,
    channel: &'static str,
) -> impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static {
    let applied: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
    move |spec| {
        let (wanted, here) =
            (variable(spec, "PVN_SERVICE_VERSION"), variable(spec, "PVN_RELEASE_CHANNEL"));
        let is_sick = (wanted.as_str(), here.as_str()) == (version, channel);
        let mut applied = applied.lock().unwrap();
        match spec.kind {
            JobKind::Apply => {
                applied.insert(here, if is_sick { "half of it".to_owned() } else { wanted });
                Some(i32::from(is_sick))
            }
            _ => Some(if applied.get(&here) == Some(&wanted) { 0 } else { 2 }),
        }
    }
}

impl Rig {
    async fn back(&self, request: RollbackRequest) -> Result<schema::api::Pushed, Refusal> {
        self.handle.rollback("app".into(), "web".into(), request, caller("eve")).await
    }

    async fn releases(&self) -> u64 {
        self.store.releases(&Default::default(), &PageRequest::default()).await.unwrap().total
    }

    /// Waits until both channels have converged at a version.
    pub(super) async fn until_converged(&self, version: &str) {
        for channel in ["staging", "production"] {
            self.until(&format!("{channel} being converged at {version}"), async || {
                let instance = self.instance(channel).await;
                (instance.status == Status::Converged
                    && instance.converged_version.as_deref() == Some(version))
                .then_some(())
            })
            .await;
        }
    }

    fn last_apply(&self) -> JobSpec {
        self.runner
            .seen
            .lock()
            .unwrap()
            .iter()
            .rfind(|spec| spec.kind == JobKind::Apply)
            .unwrap()
            .clone()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_version_or_a_channel_the_newest_release_is_undone_where_it_went() {
    let rig = Rig::start(sick("web-3", "staging")).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-2").await;
    let only =
        PushRequest { channels: Some(vec!["staging".parse().unwrap()]), ..Default::default() };
    rig.handle.push("app".into(), "web".into(), only, caller("eve")).await.unwrap();
    let undo = || RollbackRequest { version: None, channels: None };
    assert_eq!(rig.back(undo()).await.unwrap().version, "web-2");
    rig.until_converged("web-2").await;
    // A second person, or one who has not seen that pvn did it, means web-3.
    let refused = rig.back(undo()).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "`staging` is back at web-2 already, from web-3; to go further back name the version, \
         with `pvnctl services rollback web --app app --to VERSION`"
    );
    rig.back(to("web-1", Some(&["staging"]))).await.unwrap();
    rig.until("staging being at web-1", async || {
        let instance = rig.instance("staging").await;
        (instance.converged_version.as_deref() == Some("web-1")
            && instance.status == Status::Converged)
            .then_some(())
    })
    .await;
    assert_eq!(rig.instance("production").await.desired_version.as_deref(), Some("web-2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_can_be_gone_back_to_in_every_channel_that_had_it_in_any_release() {
    let rig = Rig::start(sick("none", "none")).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-2").await;
    rig.back(to("web-1", Some(&["production"]))).await.unwrap();
    rig.back(to("web-1", Some(&["staging"]))).await.expect("its first release went there");
    rig.until_converged("web-1").await;
    rig.back(to("web-2", Some(&["staging"]))).await.unwrap();
    rig.back(to("web-2", None)).await.unwrap();
    rig.until_converged("web-2").await;
    rig.back(to("web-1", Some(&["production"]))).await.unwrap();
    let back = async || {
        (rig.instance("production").await.converged_version.as_deref() == Some("web-1"))
            .then_some(())
    };
    rig.until("production being back at web-1", back).await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-8").await;
    rig.back(to("web-1", None)).await.unwrap();
    rig.until_converged("web-1").await;
    let request =
        PushRequest { channels: Some(vec!["staging".to_owned()]), ..PushRequest::default() };
    rig.handle.push("app".into(), "web".into(), request, caller("eve")).await.unwrap();
    let refused = rig.back(to("web-10", Some(&["production"]))).await.unwrap_err();
    assert!(refused.to_string().contains("was never released to production"), "{refused}");
    // Where all are asked for, it is told which stay.
    let told = rig.back(to("web-10", None)).await.unwrap().warnings;
    let expected =
        "web-10 was never released to all channels: `production` at web-1 stays as it is";
    assert!(told.iter().any(|warning| warning.starts_with(expected)), "{told:?}");
    assert_eq!(rig.back(to("web-1", None)).await.unwrap().warnings, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolling_back_without_a_version_goes_by_what_each_channel_had_and_never_forward() {
    let rig = Rig::start(sick("web-2", "production")).await;
    rig.request(&goes_back(TWO_CHANNELS), true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[]).await.unwrap();
    let taken_back = async || {
        let (good, back) = (rig.instance("staging").await, rig.instance("production").await);
        let versions = (good.converged_version.as_deref(), back.desired_version.as_deref());
        (versions == (Some("web-2"), Some("web-1")) && back.status == Status::Converged)
            .then_some(())
    };
    rig.until("web-2 in staging alone, and production taken back", taken_back).await;

    // Not web-2 again, which was never right in production.
    let only =
        |channel: &str| RollbackRequest { version: None, channels: Some(vec![channel.to_owned()]) };
    let refused = rig.back(only("production")).await.unwrap_err().to_string();
    assert!(
        refused.contains(
            "`production` was never converged at an earlier version than what it pursues"
        ),
        "{refused}"
    );
    assert!(
        refused.contains(
            "name a version with `pvnctl services rollback web --app app --to VERSION --channels \
             production`"
        ),
        "{refused}"
    );
    let pushed = rig.back(RollbackRequest::default()).await.unwrap();
    assert_eq!(
        (pushed.version.as_str(), pushed.warnings.len()),
        ("web-1", 1),
        "{:?}",
        pushed.warnings
    );
    rig.until_converged("web-1").await;
    let refused = rig.back(RollbackRequest::default()).await.unwrap_err().to_string();
    assert!(
        refused.contains("there is no version to take app/web back to")
            && refused.contains("--to VERSION"),
        "{refused}"
    );

    rig.push(&[]).await.unwrap();
    rig.until_converged("web-5").await;
    rig.back(to("web-1", Some(&["staging"]))).await.unwrap();
    let back = async || {
        (rig.instance("staging").await.converged_version.as_deref() == Some("web-1")).then_some(())
    };
    rig.until("staging at web-1", back).await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-7").await;
    let refused = rig.back(RollbackRequest::default()).await.unwrap_err().to_string();
    assert!(
        refused.contains("had different versions before: `production` web-5, `staging` web-1"),
        "{refused}"
    );
    rig.back(only("production")).await.unwrap();
    let back = async || {
        (rig.instance("production").await.converged_version.as_deref() == Some("web-5"))
            .then_some(())
    };
    rig.until("production at web-5", back).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_after_a_rollback_of_one_channel_keeps_what_each_channel_has() {
    let rig = Rig::start(sick("none", "none")).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[("size", "large")]).await.unwrap();
    rig.until_converged("web-2").await;
    rig.back(to("web-1", Some(&["staging"]))).await.unwrap();
    let back = async || {
        (rig.instance("staging").await.converged_version.as_deref() == Some("web-1")).then_some(())
    };
    rig.until("staging at web-1", back).await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-4").await;
    let sizes: BTreeMap<String, String> = {
        let seen = rig.runner.seen.lock().unwrap();
        let applies = seen.iter().filter(|spec| {
            spec.kind == JobKind::Apply && variable(spec, "PVN_SERVICE_VERSION") == "web-4"
        });
        applies
            .map(|spec| {
                (variable(spec, "PVN_RELEASE_CHANNEL"), spec.command.argv.last().unwrap().clone())
            })
            .collect()
    };
    assert_eq!((sizes["staging"].as_str(), sizes["production"].as_str()), ("medium", "large"));
    rig.push(&[("size", "small")]).await.unwrap();
    rig.until_converged("web-5").await;
    assert_eq!(
        rig.last_apply().command.argv.last().map(String::as_str),
        Some("small"),
        "what is given for all counts for all"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_12_what_a_person_went_back_to_is_not_taken_back_to_what_they_left() {
    let is_down = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (down, world) = (is_down.clone(), tidy_world());
    let rig = Rig::start(move |spec: &JobSpec| {
        if down.load(std::sync::atomic::Ordering::SeqCst) { Some(2) } else { world(spec) }
    })
    .await;
    rig.request(&goes_back(TWO_CHANNELS), true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-2").await;
    is_down.store(true, std::sync::atomic::Ordering::SeqCst);
    rig.back(to("web-1", None)).await.unwrap();
    let stuck = rig
        .until("the rollback being stuck", async || {
            let staging = rig.instance("staging").await;
            (staging.reason == Some(Reason::Stuck)).then_some(staging)
        })
        .await;
    assert_eq!(stuck.desired_version.as_deref(), Some("web-1"));
    assert!(
        stuck.message.contains("not taken back: web-1 is itself what it went back to"),
        "{}",
        stuck.message
    );
    assert_eq!(rig.releases().await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_12_neither_pvn_nor_a_person_goes_forward_to_what_was_left_for_a_version_that_did_not_arrive()
 {
    let is_down = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (down, world) = (is_down.clone(), tidy_world());
    let rig = Rig::start(move |spec: &JobSpec| {
        if down.load(std::sync::atomic::Ordering::SeqCst) { Some(2) } else { world(spec) }
    })
    .await;
    rig.request(&goes_back(TWO_CHANNELS), true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-2").await;
    is_down.store(true, std::sync::atomic::Ordering::SeqCst);
    rig.back(to("web-1", None)).await.unwrap();
    rig.push(&[]).await.unwrap();
    // Web-4 is stuck, and what was left for web-1 is nothing to go back to, whatever became of
    // web-1.
    let back = async || {
        (rig.instance("staging").await.desired_version.as_deref() == Some("web-1")).then_some(())
    };
    rig.until("staging being taken back to web-1", back).await;
    rig.push(&[]).await.unwrap();
    assert_eq!(rig.back(RollbackRequest::default()).await.unwrap().version, "web-1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_12_a_channel_goes_back_to_what_it_had_although_the_one_before_it_has_moved_on() {
    let rig = Rig::start(sick("web-2", "production")).await;
    rig.request(&goes_back(TWO_CHANNELS), true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[]).await.unwrap();
    let production = rig.until("production being back at web-1", async || {
        let production = rig.instance("production").await;
        (rig.releases().await == 3 && production.desired_version.as_deref() == Some("web-1"))
            .then_some(production)
    });
    production.await;
    rig.until_status("production", Status::Converged).await;
    assert_eq!(rig.instance("staging").await.converged_version.as_deref(), Some("web-2"));
    // A change of config leaves it as met.
    rig.apply(&goes_back(
        &TWO_CHANNELS.replace("entrypoint: [look]", "entrypoint: [look, harder]"),
    ))
    .await
    .unwrap();
    rig.until_status("production", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_12_going_back_to_a_version_that_the_channel_never_had_waits_for_the_channel_before_it()
 {
    let rig = Rig::start(sick("web-1", "production")).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Failed).await;
    let channels = Some(vec!["staging".to_owned()]);
    let request = PushRequest { channels, ..PushRequest::default() };
    rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    rig.until("staging at web-2", async || {
        (rig.instance("staging").await.converged_version.as_deref() == Some("web-2")).then_some(())
    })
    .await;
    let back = rig.back(to("web-1", Some(&["production"]))).await.unwrap();
    let production = rig.until_status("production", Status::WaitingPreconditions).await;
    assert_eq!(production.reason, Some(Reason::ReleaseChannelDependencyUnmet));
    let causes = rig.handle.explain(super::target("production")).await.unwrap().causes;
    let cause =
        causes.into_iter().find(|cause| cause.code == CauseCode::UpstreamUnstable).unwrap().message;
    let way = "`pvnctl services rollback web --app app --to web-1 --channels staging,production`";
    assert!(
        back.warnings[0].contains("`staging`") && back.warnings[0].contains(way),
        "{:?}",
        back.warnings
    );
    assert!(
        cause.contains(way) && !cause.contains("push"),
        "it would bring what was taken back: {cause}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_going_back_in_no_channel_at_all_is_refused_as_a_push_is() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let refused = rig.back(to("web-1", Some(&[]))).await.unwrap_err();
    assert!(
        matches!(&refused, Refusal::Invalid(why) if why.contains("at least one channel")),
        "{refused:?}"
    );
}
