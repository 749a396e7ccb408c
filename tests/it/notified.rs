//! `kill -9` of the daemon while notifications are under way: none that was committed is lost, each
//! target gets them in order, and what comes twice has the id that it had.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use fakes::http::{Framing, Reply};
use serde_json::Value;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

/// A message as a target got it.
#[derive(Debug, Clone)]
struct GotMessage {
    target: String,
    id: String,
    service: String,
    /// Whether the sender has had no answer, and will have none.
    is_held: bool,
}

/// A server that lets whoever sends a message for the first time wait until they are dead, and
/// takes it the second time.
struct Receiver {
    url: String,
    got: Arc<Mutex<Vec<GotMessage>>>,
}

impl Receiver {
    fn start() -> Self {
        let got: Arc<Mutex<Vec<GotMessage>>> = Arc::default();
        let keeps = got.clone();
        let address = fakes::listen("127.0.0.1:0", move |request| {
            let message: Value = serde_json::from_slice(&request.body).expect("it is JSON");
            let target = request.path.trim_start_matches('/').to_owned();
            let id = request.header("webhook-id").unwrap_or_default().to_owned();
            let service = message["data"]["service"].as_str().unwrap_or_default().to_owned();
            let mut got = keeps.lock().expect("nobody panics with it");
            let is_held = !got.iter().any(|known| known.target == target && known.id == id);
            got.push(GotMessage { target, id, service, is_held });
            // Held until whoever has sent it is dead, or has waited long enough.
            let framing = if is_held { Framing::Never } else { Framing::Right };
            Some(Reply::empty(204).framed(framing))
        });
        Self { url: format!("http://{address}"), got }
    }

    fn got(&self) -> Vec<GotMessage> {
        self.got.lock().expect("nobody panics with it").clone()
    }
}

const SERVICES: [&str; 4] = ["s0", "s1", "s2", "s3"];
const TARGETS: [&str; 2] = ["one", "two"];

/// Services whose apply fails, and targets that are told.
fn configs(url: &str) -> String {
    let target = |name: &str| {
        format!("  - {{name: {name}, webhook: {{url: {{value: \"{url}/{name}\"}}}}}}\n")
    };
    let targets: String = TARGETS.iter().map(|name| target(name)).collect();
    let service = |name: &str| format!("---\nservice: {{name: {name}, application: app}}\n");
    let services: String = SERVICES.iter().map(|name| service(name)).collect();
    format!(
        "runtime:\n  name: tool\n  custom:\n    proxyRuntime: {{runtime: local}}\n    apply: \
         {{taskConfig: {{program: {{name: do, entrypoint: [\"false\"]}}}}}}\n---\napplication:\n  \
         name: app\n  releaseChannels: [{{name: c0, runtimes: [{{runtime: \
         tool}}]}}]\n  notifications:\n{targets}{services}"
    )
}

/// What the daemon has on record, oldest first.
fn recorded(scheduler: &Scheduler) -> Vec<Value> {
    let list = scheduler.json(&["notifications", "list", "--limit", "200"]);
    let mut list = list.as_array().expect("a list").clone();
    list.reverse();
    list
}

/// The ids of a target, oldest first.
fn ids_of(messages: &[Value], target: &str) -> Vec<String> {
    let of_target = messages.iter().filter(|message| message["target"] == target);
    of_target.map(|message| message["id"].as_str().expect("it has an id").to_owned()).collect()
}

#[test]
fn p5_killed_while_it_notifies_it_loses_no_message_and_keeps_their_order() {
    let receiver = Receiver::start();
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    scheduler.apply(&configs(&receiver.url));
    for service in SERVICES {
        scheduler.ok(&["services", "push", service, "--app", "app"]);
    }
    let expected = SERVICES.len() * TARGETS.len();
    let mut kills = 0;
    let mut seen = 0;
    let messages = wait::until("every message to be taken", || {
        let got = receiver.got();
        if got[seen..].iter().any(|message| message.is_held) {
            seen = got.len();
            scheduler.kill();
            kills += 1;
            scheduler.run(&Start::default());
            return None;
        }
        let messages = recorded(&scheduler);
        let is_over = messages.iter().all(|message| message["status"] == "SENT");
        (messages.len() == expected && is_over).then_some(messages)
    });
    assert!(kills >= SERVICES.len(), "it was killed {kills} times");

    let got = receiver.got();
    for target in TARGETS {
        let recorded = ids_of(&messages, target);
        assert_eq!(recorded.len(), SERVICES.len(), "{target}: {messages:#?}");
        let mut taken: Vec<String> =
            got.iter().filter(|one| one.target == target).map(|one| one.id.clone()).collect();
        assert!(taken.len() >= 2 * SERVICES.len(), "each was held once: {got:#?}");
        // What comes again comes before the next.
        taken.dedup();
        assert_eq!(taken, recorded, "{target}: {got:#?}");
    }
    let mut ids: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for one in got {
        ids.entry((one.target, one.service)).or_default().insert(one.id);
    }
    assert_eq!(ids.len(), expected);
    assert!(ids.values().all(|ids| ids.len() == 1), "a message has one id: {ids:#?}");
}
