//! `kill -9` of the daemon while notifications are under way: none that was committed is lost, each
//! target gets them in order, and what comes twice has the id that it had.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

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
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let got: Arc<Mutex<Vec<GotMessage>>> = Arc::default();
        let keeps = got.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let keeps = keeps.clone();
                std::thread::spawn(move || serve(connection, &keeps));
            }
        });
        Self { url, got }
    }

    fn got(&self) -> Vec<GotMessage> {
        self.got.lock().expect("nobody panics with it").clone()
    }
}

/// One connection, until it is over.
fn serve(connection: TcpStream, got: &Mutex<Vec<GotMessage>>) -> Option<()> {
    let mut reader = BufReader::new(connection);
    loop {
        let (target, id, body) = request(&mut reader)?;
        let message: Value = serde_json::from_slice(&body).expect("a message is JSON");
        let service = message["data"]["service"].as_str().unwrap_or_default().to_owned();
        let is_held = {
            let mut got = got.lock().expect("nobody panics with it");
            let is_held = !got.iter().any(|known| known.target == target && known.id == id);
            got.push(GotMessage { target, id, service, is_held });
            is_held
        };
        if is_held {
            // Ends when whoever has sent it is dead, or has waited long enough.
            let _ends_some_time = reader.read(&mut [0]);
            return None;
        }
        reader.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok()?;
    }
}

/// The path, the id, and the body of a request.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let target = line.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    let (mut id, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "webhook-id" => id = value.to_owned(),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((target, id, body))
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
