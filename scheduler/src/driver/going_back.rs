//! Rollbacks that the engine decided, until what came of each is stored. They wait for the planner,
//! which may be busy for long, so they take no place of starts and stops. Each is decided again in
//! the turn in which it is stored: the release may have arrived meanwhile, or a person may have
//! come. The action is over in the very commit that has the new release, the refusal, or that
//! nobody wants it any more; until then it stays pending and is tried again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::GoBack;
use engine::event::Event;
use schema::id::ReleaseId;
use tokio::time::Instant;

use super::Refusal;
use super::batch::Batch;
use super::run::{DriverLoop, TaskResult};
use crate::names::InstanceNames;

/// Rollbacks that wait for the planner at a time. It makes one plan at a time, and people who ask
/// wait behind as many.
const AT_A_TIME: usize = 4;

/// How long one waits that could not be stored, or whose instance waits for a fetch.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// A rollback that was decided.
#[derive(Debug, Clone)]
pub(super) struct Rollback {
    /// Number of the pending action.
    pub(super) action: i64,
    pub(super) names: Arc<InstanceNames>,
    /// The release that is stuck.
    pub(super) from: ReleaseId,
    /// The last one that converged.
    pub(super) to: ReleaseId,
}

/// Those that are not over.
#[derive(Debug, Default)]
pub(super) struct GoingBack {
    /// By when they are tried next, and their numbers.
    waiting: BTreeMap<(Instant, i64), Rollback>,
}

impl GoingBack {
    /// Takes one in.
    pub(super) fn add(&mut self, rollback: Rollback) {
        self.waiting.insert((Instant::now(), rollback.action), rollback);
    }

    /// Nothing came of it yet.
    pub(super) fn again(&mut self, rollback: Rollback) {
        self.waiting.insert((Instant::now() + AGAIN_AFTER, rollback.action), rollback);
    }
}

impl DriverLoop {
    /// When the next one can be tried.
    pub(super) fn next_rollback(&self) -> Option<Instant> {
        let has_room = self.inbox.going_back.len() < AT_A_TIME;
        let first = self.going_back.waiting.first_key_value().filter(|_| has_room);
        first.map(|((due, _), _)| *due)
    }

    /// Asks the planner for those that are due.
    pub(super) fn go_back(&mut self) {
        // Nothing can be stored, or nobody knows yet whether this run only looks.
        if self.retry.is_some() || !self.told_to_observe {
            return;
        }
        let now = self.clock.now();
        while self.next_rollback().is_some_and(|due| due <= Instant::now())
            && let Some((_, rollback)) = self.going_back.waiting.pop_first()
        {
            let kept = self.world.instances.get(&rollback.names.instance());
            if kept.is_some_and(|kept| {
                engine::go_back_now(&kept.state, rollback.from, now) == GoBack::Later
            }) {
                self.going_back.again(rollback);
                continue;
            }
            let planner = self.planner.clone();
            self.inbox.going_back.spawn(async move {
                let is_settled = planner.roll_back(rollback.clone()).await;
                TaskResult::WentBack { rollback, is_settled }
            });
        }
    }

    /// Whether a plan that carries a rollback out, or refuses it, is stored: as long as the
    /// rollback is wanted. If it is not any more, its instance hears that. Whatever it is, the
    /// action is over with this commit.
    ///
    /// # Errors
    /// When that cannot be said yet.
    pub(super) fn settle(
        &mut self,
        batch: &mut Batch,
        rollback: Option<&Rollback>,
    ) -> Result<bool, Refusal> {
        let Some(Rollback { action, names, from, .. }) = rollback else { return Ok(true) };
        let instance = names.instance();
        let kept = self.world.instances.get(&instance);
        let decided = kept.map_or(GoBack::Dropped("it stands still"), |kept| {
            engine::go_back_now(&kept.state, *from, batch.now)
        });
        match decided {
            GoBack::Later => {
                return Err(Refusal::Unavailable(
                    "fetch has to look at what was applied last".to_owned(),
                ));
            }
            GoBack::Now => {}
            GoBack::Dropped(why) => {
                tracing::info!(
                    instance = names.label(), %from, why,
                    "the automatic rollback is not done"
                );
                batch.send(&mut self.world, instance, Event::RollbackDropped { from: *from }, None);
            }
        }
        batch.settled.push(*action);
        Ok(decided == GoBack::Now)
    }
}
