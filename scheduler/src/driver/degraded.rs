//! The loop while nothing can be stored: the disk is full, the database locked or away. Called by
//! `run`. What a runner told is held back, people are told why nothing is done, and the next try
//! comes with back-off.

use std::time::Duration;

use schema::api::{Cause, Explanation, NextAction};
use schema::cause::CauseCode;
use tokio::time::Instant;

use super::batch::Batch;
use super::calls::PendingAnswer;
use super::intake::PreparedEvent;
use super::run::{BATCH_LIMIT, DriverLoop, Fatal, TurnInput};
use super::{Health, Refusal};
use crate::store::{RENEW_AGAIN, StoreError, Unrenewed};

/// First and longest wait after a commit that failed.
const RETRY_WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// When the next try is.
#[derive(Debug, Clone)]
pub(super) struct Retry {
    pub(super) at: Instant,
    wait: Duration,
    why: String,
}

impl DriverLoop {
    /// Nothing was stored: the world becomes what it was, and callers are told.
    pub(super) fn fall_back(
        &mut self,
        mut batch: Batch,
        news: Vec<PreparedEvent>,
        answers: Vec<PendingAnswer>,
        plans: Vec<PendingAnswer>,
        error: StoreError,
    ) -> Result<(), Fatal> {
        self.performed.append(&mut batch.performed);
        self.late.append(&mut batch.regated);
        batch.undo(&mut self.world);
        self.held = news;
        match error {
            // A plan brings rows of its own; only they can meet one that is there. Without the plan
            // the rest goes through.
            StoreError::Conflict(why) if !plans.is_empty() => {
                for answer in plans {
                    answer.give(Err(Refusal::Conflict(why.clone())));
                }
                for answer in answers {
                    answer.give(Err(Refusal::Conflict(
                        "something else that was asked at the same time could not be stored; ask \
                         again"
                            .to_owned(),
                    )));
                }
                Ok(())
            }
            StoreError::Conflict(why) => Err(Fatal::Foreign(why)),
            StoreError::Unavailable(why) => {
                for answer in answers.into_iter().chain(plans) {
                    answer.give(Err(unavailable(&why)));
                }
                self.failed(why);
                Ok(())
            }
            error => Err(Fatal::Store(error)),
        }
    }

    fn failed(&mut self, why: String) {
        let wait =
            self.retry.as_ref().map_or(RETRY_WAIT.0, |retry| (retry.wait * 2).min(RETRY_WAIT.1));
        if self.retry.is_none() {
            tracing::error!(
                why,
                "nothing can be stored; nothing new is started until that works again"
            );
        }
        self.numbers.commit_failures += 1;
        let since = match &*self.health.borrow() {
            Health::Degraded { since, .. } => *since,
            Health::Ready => self.clock.now(),
        };
        self.retry = Some(Retry { at: Instant::now() + wait, wait, why: why.clone() });
        self.health.send_replace(Health::Degraded { why, since });
    }

    /// While nothing can be stored that comes before whatever else an instance waits for, and
    /// nothing else comes next.
    pub(super) fn tell_red(&self, explanation: &mut Explanation) {
        let now = self.clock.now();
        let (why, since, wait) = match (&self.retry, &*self.health.borrow(), self.store.unrenewed())
        {
            (Some(retry), Health::Degraded { why, since }, _) => {
                (why.clone(), *since, retry.at.saturating_duration_since(Instant::now()))
            }
            // Nothing was to be stored, and nothing could be.
            (_, _, Some(Unrenewed { why, since })) => (why, since, RENEW_AGAIN),
            _ => return,
        };
        let message = format!(
            "the scheduler can store nothing ({why}), so it starts nothing and takes note of \
             nothing that has ended; it tries again by itself, and this ends when that works"
        );
        let first =
            Cause { code: CauseCode::NothingStored, message, since: Some(since), until: None };
        explanation.causes.insert(0, first);
        let wait_ms = schema::time::millis(wait);
        explanation.next =
            vec![NextAction { action: "store".to_owned(), at: now.plus_ms(wait_ms) }];
    }

    /// Takes in what the runners have told meanwhile, before the next try: it comes before what has
    /// become due since, and before what people ask for now.
    pub(super) fn hear(&mut self) {
        while self.held.len() < BATCH_LIMIT
            && let Some(arrived) = self.inbox.news_here()
        {
            self.held.push(arrived);
        }
    }

    pub(super) fn recovered(&mut self) {
        if self.retry.take().is_some() {
            tracing::info!("storing works again");
            self.health.send_replace(Health::Ready);
        }
    }

    /// While nothing can be stored: what only reads is answered, the rest is refused, notes are
    /// taken.
    pub(super) fn refuse(&mut self, inputs: Vec<TurnInput>) {
        let why = self.retry.as_ref().map(|retry| retry.why.clone()).unwrap_or_default();
        for input in inputs {
            match input {
                TurnInput::Call(call) => {
                    if let Some(call) = self.read_only(*call) {
                        call.refuse(unavailable(&why));
                    }
                }
                TurnInput::Arrived(arrived) => self.held.push(*arrived),
                TurnInput::Done(done) => self.note(done),
            }
        }
    }
}

fn unavailable(why: &str) -> Refusal {
    Refusal::Unavailable(format!(
        "nothing can be stored at present ({why}); nothing was changed, try again later"
    ))
}
