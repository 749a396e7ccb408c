//! The watches of the fake API server.

use super::*;

impl Fake {
    /// Every watch that is open ends; `too_old` of those that follow are told 410.
    pub(in super::super) fn end_watches(&self, too_old: u32) {
        self.world.lock().unwrap().too_old = too_old;
        // Nobody may be watching.
        let _ = self.changes.send(Change::End);
    }

    /// How many watches are open; what changes from now on they are told.
    pub(in super::super) fn watchers(&self) -> usize {
        self.changes.receiver_count()
    }

    pub(super) fn watch(&self, path: &str, query: &str) -> Response {
        let list = if path.ends_with("/pods") { "pods" } else { "jobs" };
        let since = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("resourceVersion=")?.parse::<u64>().ok())
            .unwrap_or_default();
        // Under one lock, so that no change falls between what was and what will be.
        let (too_old, past, changes) = {
            let mut world = self.world.lock().unwrap();
            let too_old = world.too_old > 0;
            world.too_old = world.too_old.saturating_sub(1);
            let below = format!("{path}/");
            let version = |object: &Value| {
                object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap()
            };
            let newer = world
                .objects
                .iter()
                .filter(|(name, object)| name.starts_with(&below) && version(object) > since);
            let past: Vec<String> = newer
                .map(|(_, object)| format!("{}\n", json!({"type": "MODIFIED", "object": object})))
                .collect();
            (too_old, past, self.changes.subscribe())
        };
        if too_old {
            let gone = json!({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old resource version"}});
            return format!("{gone}\n").into_response();
        }
        let changes = futures::stream::unfold(changes, |mut changes| async move {
            Some((changes.recv().await.ok()?, changes))
        });
        let lines = changes
            .take_while(|change| futures::future::ready(!matches!(change, Change::End)))
            .filter_map(move |change| {
                let line = match change {
                    Change::Event(about, event) if about == list => {
                        Some(Ok::<_, std::io::Error>(format!("{event}\n")))
                    }
                    _ => None,
                };
                futures::future::ready(line)
            });
        Response::new(Body::from_stream(
            futures::stream::iter(past.into_iter().map(Ok)).chain(lines),
        ))
    }
}
