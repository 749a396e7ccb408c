//! What asks for a person's attention, with the real daemon: a fetch that fails again and again, a
//! 2 that may be a mistake, applies without effect, what an apply left running, drift.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::scheduler::Scheduler;
use tests::{scale, wait};

/// One service `web` in one channel `eu` of the application `shop`, with these commands in a
/// directory of its own.
struct Shop {
    scheduler: Scheduler,
}

impl Shop {
    /// `fetch` stands beside the command of fetch, which is `./fetch.sh`; apply is `./apply.sh`.
    fn open(fetch: &Value) -> Self {
        let shop = Self { scheduler: Scheduler::start() };
        std::fs::create_dir_all(shop.directory()).expect("a directory can be made");
        shop.release_with(fetch);
        shop
    }

    fn directory(&self) -> PathBuf {
        self.scheduler.home().join("commands")
    }

    /// Applies the configs, and releases nothing.
    fn release_with(&self, fetch: &Value) {
        let command = |name: &str| json!({"program": {"name": "do", "entrypoint": ["sh", name], "workingDirectory": self.directory()}});
        let mut whole = json!({"pollInterval": "200ms", "taskConfig": command("fetch.sh")});
        let more = fetch.as_object().expect("it is one").clone();
        whole.as_object_mut().expect("it is one").extend(more);
        let custom = json!({
            "proxyRuntime": {"runtime": "local"},
            "fetch": whole,
            "apply": {"taskConfig": command("apply.sh")},
            "convergenceGracePeriod": "1s",
        });
        let channels = json!([{"name": "eu", "runtimes": [{"runtime": "tool"}]}]);
        let documents = [
            json!({"runtime": {"name": "tool", "custom": custom}}),
            json!({"application": {"name": "shop", "releaseChannels": channels}}),
            json!({"service": {"name": "web", "application": "shop"}}),
        ];
        let documents: Vec<String> = documents.iter().map(|one| format!("---\n{one}\n")).collect();
        self.scheduler.apply(&documents.concat());
    }

    /// Writes a whole script in one go: one that is read while it is written is another one.
    fn script(&self, name: &str, text: &str) {
        let (half, whole) = (self.directory().join("half"), self.directory().join(name));
        std::fs::write(&half, text).expect("a file can be written");
        std::fs::rename(half, whole).expect("a file can be moved");
    }

    fn channel(&self) -> Value {
        self.scheduler.json(&["services", "get", "web", "--app", "shop"])["channels"][0].clone()
    }

    fn causes(&self, code: &str) -> Vec<Value> {
        let told = self.scheduler.json(&[
            "services",
            "explain",
            "web",
            "--app",
            "shop",
            "--channel",
            "eu",
        ]);
        let causes = told["causes"].as_array().expect("causes are a list").clone();
        causes.into_iter().filter(|cause| cause["code"] == code).collect()
    }

    /// Entries of the log of this kind, in their order.
    fn events(&self, kind: &str) -> Vec<Value> {
        let (_, body) = self.scheduler.get("/v1/events?limit=1000").expect("it answers");
        let page: Value = serde_json::from_str(&body).expect("a page is JSON");
        let all = page["items"].as_array().expect("items are a list").clone();
        all.into_iter().filter(|entry| entry["kind"] == kind).collect()
    }

    /// A date that is not over soon.
    fn tomorrow(&self) -> String {
        let now: schema::time::Timestamp = self.channel()["since"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .expect("it stands since some time");
        now.plus_ms(2 * 86_400_000).to_string()[..10].to_owned()
    }

    fn push_and_wait(&self) -> (Option<i32>, String) {
        let output = self.scheduler.pvnctl([
            "services",
            "push",
            "web",
            "--app",
            "shop",
            "--wait",
            "--timeout",
            "120s",
        ]);
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }
}

#[test]
fn rule_02_a_push_whose_fetch_fails_again_and_again_ends_with_2_and_recovers_by_itself() {
    // The script is missing at first: `sh` ends with 2 for that, so another code means work.
    let shop = Shop::open(&json!({"workExitCodes": [10]}));
    shop.script("apply.sh", "touch applied");
    let (code, said) = shop.push_and_wait();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("fetch failed 3 times in a row"), "{said}");
    let channel = shop.channel();
    assert_eq!(
        (&channel["status"], &channel["reason"]),
        (&json!("FAILED"), &json!("FETCH_FAILED"))
    );
    let listed = shop.scheduler.ok(&["services", "list", "--app", "shop"]);
    assert!(listed.contains("FAILED"), "{listed}");
    assert!(
        shop.causes("FETCH_FAILED")[0]["message"]
            .as_str()
            .is_some_and(|message| message.contains("times in a row")),
    );
    assert!(!shop.directory().join("applied").exists(), "nothing is applied on an error");
    shop.script("fetch.sh", "[ -e applied ] || exit 10");
    wait::until("it to become well by itself", || {
        (shop.channel()["status"] == "CONVERGED").then_some(())
    });
    assert!(shop.directory().join("applied").exists());
}

#[test]
fn a_2_that_may_be_a_mistake_is_told_until_somebody_names_the_codes() {
    let shop = Shop::open(&json!({}));
    shop.script("apply.sh", "touch applied");
    shop.script("fetch.sh", "if true; then");
    shop.scheduler.ok(&["services", "push", "web", "--app", "shop"]);
    wait::until("the mistake to be applied", || {
        shop.directory().join("applied").exists().then_some(())
    });
    let told = wait::until("the doubt to be told", || {
        let message = shop.channel()["message"].as_str().unwrap_or_default().to_owned();
        message.contains("is also what a shell's syntax error ends with").then_some(message)
    });
    assert!(told.contains("printed only errors"), "{told}");
    let doubt = shop.causes("DOUBTFUL_FETCH");
    assert!(
        doubt[0]["message"].as_str().is_some_and(|told| told.contains("`workExitCodes: [10]`")),
        "{doubt:?}"
    );
    shop.release_with(&json!({"workExitCodes": [10]}));
    wait::until("the mistake to be an error", || {
        (shop.channel()["reason"] == "FETCH_FAILED").then_some(())
    });
    shop.script("fetch.sh", "exit 0");
    wait::until("the mended fetch to answer", || {
        (shop.channel()["status"] == "CONVERGED").then_some(())
    });
    assert_eq!(shop.causes("DOUBTFUL_FETCH"), Vec::<Value>::new());
}

#[test]
fn rule_05_applies_that_succeed_without_effect_are_told_as_that() {
    let shop = Shop::open(&json!({}));
    shop.script("fetch.sh", "echo the page is old; exit 2");
    shop.script("apply.sh", "echo done >> runs");
    shop.scheduler.ok(&["services", "push", "web", "--app", "shop"]);
    let told =
        wait::until("three applies to be without effect", || shop.causes("WITHOUT_EFFECT").pop());
    let message = told["message"].as_str().unwrap_or_default();
    assert!(message.contains("each apply succeeded, and fetch still sees work"), "{message}");
    let listed = shop.channel()["message"].as_str().unwrap_or_default().to_owned();
    assert!(listed.contains("times in a row"), "{listed}");
    assert!(!shop.events("apply.without_effect").is_empty());
    shop.script("apply.sh", "echo done >> runs; touch new");
    shop.script("fetch.sh", "[ -e new ] || exit 2");
    wait::until("the next apply to have an effect", || {
        (shop.channel()["status"] == "CONVERGED").then_some(())
    });
    assert_eq!(shop.causes("WITHOUT_EFFECT"), Vec::<Value>::new());
}

#[test]
fn what_an_apply_leaves_running_is_said_at_once_with_the_way_out() {
    let shop = Shop::open(&json!({}));
    shop.script("fetch.sh", "kill -0 $(cat pid) 2>/dev/null || exit 2");
    shop.script("apply.sh", "sleep 1000 >/dev/null 2>&1 & echo $! > pid");
    shop.scheduler.ok(&["services", "push", "web", "--app", "shop"]);
    let left = wait::until("it to be said", || shop.events("job.left_behind").pop());
    let message = left["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("left 1 process behind, which was stopped")
            && message.contains("`leaveRunning: true`"),
        "{message}"
    );
    let told = wait::until("it to be told where it stands", || shop.causes("LEFT_BEHIND").pop());
    assert!(told["message"].as_str().is_some_and(|told| told.contains("`leaveRunning: true`")));
}

#[test]
fn rule_19_drift_that_is_acknowledged_is_left_until_somebody_ends_that() {
    let mut shop = Shop::open(&json!({"steadyStatePollInterval": "200ms"}));
    shop.script("fetch.sh", "[ \"$(cat state)\" = right ] || { echo it is $(cat state); exit 2; }");
    shop.script("apply.sh", "echo right > state");
    shop.script("state", "right");
    shop.scheduler.ok(&["services", "push", "web", "--app", "shop"]);
    wait::until("it to be there", || (shop.channel()["status"] == "CONVERGED").then_some(()));
    // Nothing is repaired before somebody has acknowledged it.
    shop.script("apply.sh", "exit 1");
    shop.script("state", "wrong");
    wait::until("the drift to be found", || shop.channel()["drift"]["count"].as_u64());
    let refused = shop.scheduler.pvnctl(["acknowledge", "shop/web@eu", "--until", "2099-01-01"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let day = shop.tomorrow();
    wait::until("it to be acknowledged", || {
        // An apply that is being decided in this moment ends first.
        let output = shop.scheduler.pvnctl([
            "acknowledge",
            "shop/web@eu",
            "--until",
            &day,
            "--reason",
            "audit",
        ]);
        output.status.success().then_some(())
    });
    let left = |shop: &Shop| {
        let channel = shop.channel();
        let is_left = channel["status"] == "CONVERGED"
            && channel["drift"]["acknowledged"]["reason"] == "audit";
        is_left.then_some(channel)
    };
    let channel = wait::until("it to be left as it is", || left(&shop));
    assert!(channel["message"].as_str().is_some_and(|told| told.contains("acknowledged until")));
    assert_eq!(shop.causes("DRIFT_ACKNOWLEDGED").len(), 1);
    assert_eq!(shop.events("drift.acknowledged").len(), 1);
    shop.script("apply.sh", "echo right > state; touch repaired");
    let looked = |shop: &Shop| shop.channel()["drift"]["count"].as_u64().unwrap_or_default();
    let before = looked(&shop);
    shop.scheduler.kill();
    shop.scheduler.run(&tests::scheduler::Start::default());
    wait::until("more looks after a restart", || (looked(&shop) > before + 2).then_some(()));
    assert!(left(&shop).is_some() && !shop.directory().join("repaired").exists());
    shop.scheduler.ok(&["acknowledge", "shop/web@eu", "--end"]);
    wait::until("it to be repaired", || shop.directory().join("repaired").exists().then_some(()));
    wait::until("it to be as desired", || {
        let channel = shop.channel();
        (channel["status"] == "CONVERGED" && channel["drift"].is_null()).then_some(())
    });
}

#[test]
fn rule_20_a_runtime_where_many_fail_together_stops_and_recovers_a_few_at_a_time() {
    let mut scheduler = Scheduler::start();
    let directory = scheduler.home().join("commands");
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    let services: Vec<String> = (0..6).map(|number| format!("s{number}")).collect();
    let script = |text: &str| {
        std::fs::write(directory.join("half"), text).expect("a file can be written");
        std::fs::rename(directory.join("half"), directory.join("apply.sh")).expect("it is there");
    };
    script("exit 1");
    let command = json!({"program": {"name": "do", "entrypoint": ["sh", "apply.sh"], "workingDirectory": directory}});
    let custom = json!({"proxyRuntime": {"runtime": "local"}, "apply": {"taskConfig": command}});
    let channels = json!([{"name": "eu", "runtimes": [{"runtime": "tool"}]}]);
    let mut documents = format!(
        "---\n{}\n---\n{}\n",
        json!({"runtime": {"name": "tool", "custom": custom}}),
        json!({"application": {"name": "shop", "releaseChannels": channels}})
    );
    for service in &services {
        let document = json!({"service": {"name": service, "application": "shop"}});
        documents.push_str(&format!("---\n{document}\n"));
    }
    scheduler.apply_and_push(&documents);
    let events = |scheduler: &Scheduler, kind: &str| {
        let (_, body) = scheduler.get("/v1/events?limit=1000").expect("it answers");
        let page: Value = serde_json::from_str(&body).expect("a page is JSON");
        let all = page["items"].as_array().expect("items are a list").clone();
        all.into_iter().filter(|entry| entry["kind"] == kind).count()
    };
    wait::until("applies to be stopped", || {
        (events(&scheduler, "runtime.applies_stopped") == 1).then_some(())
    });
    let channel = |scheduler: &Scheduler, service: &str| {
        scheduler.json(&["services", "get", service, "--app", "shop"])["channels"][0].clone()
    };
    // Held over a crash. What a person orders is tried, fails, and stops it again.
    scheduler.kill();
    scheduler.run(&tests::scheduler::Start::default());
    scheduler.ok(&["retry", "shop/s0@eu"]);
    wait::until("the trial to fail", || {
        (events(&scheduler, "runtime.applies_stopped") == 2).then_some(())
    });
    scheduler.kill();
    scheduler.run(&tests::scheduler::Start::default());
    script("touch applied; exit 0");
    let push = |service: &str| {
        scheduler.ok(&["services", "push", service, "--app", "shop"]);
    };
    push("s1");
    wait::until("the first to go well", || {
        (channel(&scheduler, "s1")["status"] == "CONVERGED").then_some(())
    });
    assert_eq!(events(&scheduler, "runtime.applies_go_on"), 0, "one alone is no recovery");
    let held = |scheduler: &Scheduler| {
        scale::metric(scheduler, "pvn_runtime_applies_held{runtime=\"tool\"}")
    };
    assert_eq!(held(&scheduler), 1.0);
    scheduler.ok(&["runtimes", "resume", "tool"]);
    assert_eq!(held(&scheduler), 0.0);
    assert_eq!(events(&scheduler, "runtime.applies_go_on"), 1);
    assert_eq!(scheduler.pvnctl(["runtimes", "resume", "tool"]).status.code(), Some(1));
    services.iter().for_each(|service| push(service));
    wait::until("all to go well", || {
        let is_well = |service: &String| channel(&scheduler, service)["status"] == "CONVERGED";
        services.iter().all(is_well).then_some(())
    });
}
