//! What stands below the live table of a wait: what runs there just now and who is asked. Only a
//! person who watches gets it, and whoever waits goes on without it where it cannot be had.

use std::time::Duration;

use schema::api::{Overview, Service};
use tokio::time::Instant;

use super::Goal;
use crate::client::Client;
use crate::console::Paper;
use crate::under_way;

/// How often to ask: elapsed times are told in seconds.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Longest wait for an answer: the table goes first.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// Most services that are asked about: more have no room on a terminal.
const MOST_SERVICES: usize = 8;

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct Beneath {
    asked_at: Option<Instant>,
    told: Vec<Overview>,
}

impl Beneath {
    /// Asks about these goals, unless that was just done.
    pub(super) async fn look(&mut self, goals: impl Iterator<Item = &Goal>, client: &Client) {
        if self.asked_at.is_some_and(|asked| asked.elapsed() < ASK_EVERY) {
            return;
        }
        self.asked_at = Some(Instant::now());
        self.told.clear();
        for goal in goals.take(MOST_SERVICES) {
            let query =
                [("application", goal.application.clone()), ("service", goal.service.clone())];
            let asked = client.get(&["v1", "status"], &query);
            if let Ok(Ok(overview)) = tokio::time::timeout(ANSWER_WITHIN, asked).await {
                self.told.push(overview);
            }
        }
    }

    /// The part about those channels that the goals want.
    pub(super) fn text(&self, goals: &[Goal], seen: &[Option<Service>], paper: &Paper) -> String {
        let mut text = String::new();
        for overview in &self.told {
            let wanted = overview.instances.iter().filter(|told| {
                let seen =
                    goals.iter().zip(seen).filter_map(|(goal, of)| Some((goal, of.as_ref()?)));
                let mut of = seen.filter(|(_, service)| {
                    (&service.application, &service.name) == (&told.application, &told.service)
                });
                of.any(|(goal, service)| {
                    goal.wanted(service).any(|one| one.channel == told.channel)
                })
            });
            text += &under_way::beneath(wanted, overview.at, paper);
        }
        text
    }
}
