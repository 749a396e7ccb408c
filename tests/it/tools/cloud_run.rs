//! `googleCloudRun`, by the real `gcloud`.

use fakes::clients;
use fakes::cloud_run::{CloudRunServer, Trouble};
use fakes::turnstile::Moment;

use super::*;

/// A runtime, an application with one channel, a service. `more`: what the channel says beside its
/// runtime.
fn documents(more: &str) -> String {
    format!(
        r#"
runtime:
  name: run
  googleCloudRun: {{project: p, region: europe-west1, pollInterval: 1s, steadyStatePollInterval: 1s}}
---
application:
  name: app
  releaseChannels:
  - name: production
    runtimes: [{{runtime: run}}]
{more}
---
service:
  name: page
  application: app
  parameters: [{{name: tag, required: true, string: {{}}}}]
  googleCloudRun:
    inlined: |
      apiVersion: serving.knative.dev/v1
      kind: Service
      metadata: {{name: web}}
      spec: {{template: {{spec: {{containers: [{{image: "registry.example.com/page:{{{{.Params.tag}}}}"}}]}}}}}}
"#
    )
}

/// A cloud, and a daemon whose jobs find it.
pub(super) struct Google {
    pub(super) server: CloudRunServer,
    pub(super) scheduler: Scheduler,
}

impl Google {
    /// `None`, counted as skipped, without the tool.
    pub(super) fn start(test: &str) -> Option<Self> {
        if !is_there("gcloud", test) {
            return None;
        }
        let mut google = Self { server: CloudRunServer::start(), scheduler: Scheduler::stopped() };
        std::fs::write(google.path("token"), "good").expect("a file can be written");
        google.run();
        Some(google)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.scheduler.home().join(name)
    }

    fn run(&mut self) {
        self.with_start(|scheduler, start| scheduler.run(start));
    }

    /// Does something that starts the daemon.
    fn with_start(&mut self, act: impl FnOnce(&mut Scheduler, &Start<'_>)) {
        let (token, config) = (self.path("token"), self.path("gcloud"));
        let port = self.server.address.port().to_string();
        let own = [("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", &token), ("CLOUDSDK_CONFIG", &config)];
        let own = own.map(|(name, path)| (name, path.to_str().expect("the path is UTF-8")));
        let variables = [&own[..], &clients::of_cloud_run(&port)].concat();
        act(&mut self.scheduler, &Start { variables: &variables, ..Start::default() });
    }

    fn page(&self) -> Followed<'_> {
        Followed { scheduler: &self.scheduler, service: "page", channel: "production" }
    }

    fn trouble(&self, method: &'static str, trouble: Trouble) {
        self.server.state().troubles.push_back((method, trouble));
    }

    fn revisions(&self) -> usize {
        self.server.state().revisions.len()
    }

    fn image(&self) -> String {
        let state = self.server.state();
        let image = &state.services["web"]["spec"]["template"]["spec"]["containers"][0]["image"];
        image.as_str().expect("a text").to_owned()
    }
}

#[test]
fn a_cloud_run_service_converges_and_what_was_deployed_by_hand_is_asked_about_and_repaired() {
    let Some(google) = Google::start("a_cloud_run_service_converges") else { return };
    let page = google.page();
    google
        .scheduler
        .apply(&documents("    preconditions: [{manualApproval: {everyAction: true}}]"));
    let version = page.push("1");
    page.becomes("WAITING_MANUAL_APPROVAL");
    assert_eq!(google.revisions(), 0, "nothing is made before the approval");
    page.is_asked_and_approves();
    let converged = page.arrives(&version);
    let console = "https://console.cloud.google.com/run/detail/europe-west1/web/metrics?project=p";
    assert_eq!(link(&converged, "Cloud Run"), console);
    assert_eq!(link(&converged, "web"), "https://web-x.a.run.app");
    page.info("url", "https://web-x.a.run.app");
    page.info("console", console);

    google.server.state().deploy_by_hand("web", "x:hotfix");
    page.becomes("WAITING_MANUAL_APPROVAL");
    let cause = page.cause("WORK_FOUND");
    let what = "CloudRun `web` was changed behind pvn's back: drift: \
                spec.template.spec.containers[0].image is `x:hotfix`, wanted \
                `registry.example.com/page:1`";
    assert!(cause["message"].to_string().contains(what), "{cause:#}");
    let seen = page.jobs("fetch").iter().any(|job| job["endedAt"] == cause["since"]);
    assert!(seen, "since the fetch that has found it: {cause:#}");
    assert_eq!((google.image().as_str(), google.revisions()), ("x:hotfix", 2), "nobody said yes");
    page.is_asked_and_approves();
    page.arrives(&version);
    assert_eq!(google.image(), "registry.example.com/page:1");

    google.server.state().services.remove("web");
    let asked = page.is_asked_and_approves();
    let what = format!("there are no objects yet that run {version}");
    assert!(asked["message"].to_string().contains(&what), "{asked:#}");
    page.arrives(&version);
    assert_eq!(page.applies().len(), 3);
}

#[test]
fn a_revision_of_cloud_run_that_does_not_start_is_failed_by_the_next_poll() {
    let Some(google) = Google::start("a_revision_of_cloud_run_that_does_not_start") else { return };
    let page = google.page();
    google.scheduler.apply(&documents(""));
    let first = page.push("1");
    page.arrives(&first);
    google.server.state().broken = Some("The container failed to listen on PORT=8080.");
    page.push("2");
    let failed = page.becomes("FAILED");
    assert_eq!(failed["reason"], "RUNTIME_OBJECT_FAILED", "{failed:#}");
    let message = failed["message"].to_string();
    let why = "Ready is False (HealthCheckContainerError): The container failed to listen";
    assert!(message.contains(why), "{failed:#}");
    assert!(message.contains(&format!("runs {first} instead of")), "what serves: {failed:#}");
    let applied = page.applies()[0]["endedAt"].as_str().expect("it has ended").to_owned();
    let told = failed["since"].as_str().expect("a time").to_owned();
    let since = page.jobs("fetch").into_iter().filter(|job| {
        let of = |field: &str| job[field].as_str().unwrap_or_default().to_owned();
        of("startedAt") >= applied && of("endedAt") <= told
    });
    assert_eq!(since.count(), 1, "{:#?}", page.jobs("fetch"));
    google.server.state().broken = None;
    let third = page.push("3");
    page.arrives(&third);
}

#[test]
fn p4_p5_a_daemon_killed_in_an_apply_makes_no_second_revision() {
    let Some(mut google) = Google::start("a_daemon_killed_in_an_apply_of_cloud_run") else {
        return;
    };
    google.scheduler.apply(&documents(""));
    let mut dice = Dice::new(5);
    for (round, (method, moment)) in
        [("POST", Moment::Before), ("PUT", Moment::Before), ("PUT", Moment::After)]
            .into_iter()
            .enumerate()
    {
        google.trouble(method, Trouble::Wait(moment));
        let version = google.page().push(&round.to_string());
        let turnstile = google.server.turnstile.clone();
        google.with_start(|scheduler, start| killed_at(scheduler, &turnstile, start, &mut dice));
        google.page().arrives(&version);
        assert_eq!(google.revisions(), round + 1, "{:?}", google.server.state().calls);
        assert_eq!(google.page().applies().len(), round + 1);
    }
    // Made anew: the answer to that is waited for.
    google.trouble("POST", Trouble::Wait(Moment::After));
    google.server.state().services.remove("web");
    let turnstile = google.server.turnstile.clone();
    google.with_start(|scheduler, start| killed_at(scheduler, &turnstile, start, &mut dice));
    google.page().comes_to("there again", |channel| channel["status"] == "CONVERGED");
    let seed = tests::dice::number("PVN_FUZZ_SEED", 13);
    let mut dice = Dice::new(seed);
    let made = google.revisions();
    let rounds = tests::dice::number("PVN_FUZZ_BATCHES", 2);
    for round in 1..=rounds {
        let before = google.server.state().calls.len();
        let version = google.page().push(&format!("r{round}"));
        let calls = before + dice.below(6);
        let seen = || (google.server.state().calls.len() >= calls).then_some(());
        wait::until("that many calls", seen);
        google.scheduler.kill();
        google.run();
        google.page().arrives(&version);
        let rounds = usize::try_from(round).expect("rounds are few");
        assert_eq!(google.revisions(), made + rounds, "seed {seed}");
        assert_eq!(google.page().applies().len(), 4 + rounds, "seed {seed}");
    }
}

#[test]
fn trouble_with_cloud_run_passes_or_is_told_in_its_own_words() {
    let Some(google) = Google::start("trouble_with_cloud_run_passes") else { return };
    let page = google.page();
    google.scheduler.apply(&documents(""));
    let throttled = || Trouble::Refuse(429, "RESOURCE_EXHAUSTED", "Quota exceeded.");
    for _ in 0..4 {
        google.trouble("GET", throttled());
    }
    // It has acted, and the next attempt finds what was made.
    google.trouble("POST", Trouble::LoseAnswer);
    let version = page.push("1");
    page.says(&["Cloud Run throttles this project, or a quota of it is used up", "Quota exceeded"]);
    page.arrives(&version);
    assert_eq!(google.revisions(), 1);

    // gcloud itself asks again when its credentials are refused.
    for _ in 0..6 {
        google.trouble("PUT", Trouble::Refuse(401, "UNAUTHENTICATED", "Token expired."));
    }
    let version = page.push("2");
    let failed = page.becomes("FAILED");
    assert_eq!(failed["reason"], "APPLY_FAILED", "{failed:#}");
    let why = "Cloud Run does not accept the credentials: they have expired or were revoked";
    assert!(failed["message"].to_string().contains(why), "{failed:#}");
    google.server.state().troubles.clear();
    page.decide("retry", &[]);
    page.arrives(&version);

    // The token is no longer good, and then is renewed.
    let applied = page.applies().len();
    google.server.state().token = Some("renewed");
    let seen = page.says(&["as last seen", why]);
    assert_eq!((&seen["status"], &seen["reason"]), (&"CONVERGED".into(), &"FETCH_FAILED".into()));
    std::fs::write(google.path("token"), "renewed").expect("a file can be written");
    page.comes_to("seen again", |at| at["status"] == "CONVERGED" && at["reason"].is_null());
    assert_eq!(page.applies().len(), applied, "and nothing was applied for it");
    assert_eq!(google.revisions(), 2);
}
