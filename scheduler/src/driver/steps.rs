//! How far the wall clock has jumped against elapsed time: while the daemon runs by its steady
//! clock, across a restart in the same boot of the machine by how long that is up. Where neither
//! helps, on another machine say, the wall's time counts. And for how long there was no daemon that
//! could go on: by when it last noted that there was one, and while nothing can be stored.

use std::time::Duration;

use engine::event::{ClockStep, Event};
use engine::limits::CLOCK_SLACK;
use schema::time::Timestamp;
use tokio::time::Instant;

use super::Health;
use super::batch::Batch;
use super::run::DriverLoop;
use crate::clock::{Clock, ClockReading};
use crate::store::{Change, Store, StoreError};

/// Where the last run noted how its wall clock stood to its boot.
const META: &str = "clock";

/// Where it notes that it is there, for progress deadlines.
const LOOKED: &str = "looked_at";

/// How often it does while a progress deadline runs: what a crash loses of it is given to the
/// release, and a commit costs little.
const LOOKED_EVERY: Duration = Duration::from_secs(30);

/// Wall clock less steady clock, in this process.
#[derive(Debug)]
pub(super) struct Steps {
    offset_ms: i64,
    /// What is stored.
    noted: Option<(String, i64)>,
    /// What the last run tells; taken once the instances know.
    pub(super) while_down_ms: Option<i64>,
    /// When the last run was certainly there, by its clock.
    looked_at: Timestamp,
    /// When that is noted next.
    pub(super) look_noted: Instant,
}

/// What is no jump.
fn slack_ms() -> u64 {
    u64::try_from(CLOCK_SLACK.as_millis()).unwrap_or(u64::MAX)
}

fn offset_ms(reading: ClockReading) -> i64 {
    reading.wall.as_millis().saturating_sub(reading.steady_ms)
}

/// How the wall clock stands to the boot, as it is stored.
fn note(clock: &Clock) -> Option<(String, i64)> {
    let boot = clock.boot()?;
    Some((boot.id, clock.now().as_millis().saturating_sub(boot.uptime_ms)))
}

impl Steps {
    /// Compares the clocks with what the last run noted.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(super) async fn since_last_run(store: &Store, clock: &Clock) -> Result<Self, StoreError> {
        let read = async |key| match store.meta(key).await {
            // As after a restart of the machine: the wall's time counts.
            Err(StoreError::Corrupt(_)) => Ok(None),
            other => other,
        };
        let looked_at = read(LOOKED)
            .await?
            .and_then(|text| text.parse().ok())
            .unwrap_or(Timestamp::from_millis(0));
        let noted = read(META).await?;
        let noted = noted
            .as_deref()
            .and_then(|text| text.split_once(' '))
            .and_then(|(id, ms)| Some((id.to_owned(), ms.parse().ok()?)));
        let stepped_ms = match (&noted, note(clock)) {
            (Some((before, then_ms)), Some((boot, now_ms))) if *before == boot => {
                now_ms.saturating_sub(*then_ms)
            }
            _ => 0,
        };
        let offset_ms = offset_ms(clock.read());
        Ok(Self {
            offset_ms,
            noted,
            while_down_ms: Some(stepped_ms),
            looked_at,
            look_noted: Instant::now(),
        })
    }

    /// That the instances know is stored: from here on only what comes after counts.
    pub(super) fn settle(&mut self, by_ms: i64) {
        self.offset_ms = self.offset_ms.saturating_add(by_ms);
        self.while_down_ms = None;
    }
}

impl DriverLoop {
    /// Tells the instances that the clock jumped, before anything else of this batch. Returns by
    /// how much, to be settled once it is stored.
    pub(super) fn tell_steps(&mut self, batch: &mut Batch, reading: ClockReading) -> i64 {
        let by_ms = offset_ms(reading).saturating_sub(self.steps.offset_ms);
        let jumped = by_ms.unsigned_abs() > slack_ms();
        let by_ms = if jumped { by_ms } else { 0 };
        if jumped {
            tracing::warn!(
                by_ms,
                "the wall clock jumped; deadlines of what runs follow elapsed time"
            );
        }
        let no_store_since = match &*self.health.borrow() {
            Health::Degraded { since, .. } => Some(*since),
            Health::Ready => None,
        };
        // As one event: by the time of the second, deadlines would count from the clock as it is
        // now already.
        if let Some(stepped_ms) = self.steps.while_down_ms {
            let stepped = ClockStep::from_millis(stepped_ms.saturating_add(by_ms));
            let (now, looked_at) = (batch.now, self.steps.looked_at);
            self.tell_all(batch, &Event::Recovered { stepped, looked_at }, |state| {
                state.follows_elapsed_time() || state.seen_at() > now
            });
        } else if let Some(looked_at) = no_store_since {
            // Of what has ended meanwhile the runners tell only by and by.
            let event = Event::Recovered { stepped: ClockStep::from_millis(by_ms), looked_at };
            self.tell_all(batch, &event, |state| state.follows_elapsed_time() || by_ms < 0);
            self.listen_to_once();
        } else if jumped {
            self.tell_all(
                batch,
                &Event::ClockStepped { by: ClockStep::from_millis(by_ms) },
                |state| by_ms < 0 || state.follows_elapsed_time(),
            );
        }
        if self.steps.look_noted <= Instant::now() {
            self.steps.look_noted = Instant::now() + LOOKED_EVERY;
            if self.world.instances.values().any(|kept| kept.state.is_pressed()) {
                batch.changes.push(Change::Meta(LOOKED, batch.now.to_string()));
            }
        }
        if (jumped || self.steps.while_down_ms.is_some())
            && let Some((boot, ms)) = note(&self.clock)
            && self.steps.noted.as_ref().is_none_or(|(before, then_ms)| {
                *before != boot || then_ms.abs_diff(ms) > slack_ms()
            })
        {
            batch.changes.push(Change::Meta(META, format!("{boot} {ms}")));
            self.steps.noted = Some((boot, ms));
        }
        by_ms
    }
}
