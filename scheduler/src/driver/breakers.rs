//! The fleet breakers of all runtimes: fed with the ends of jobs and with what people order, they
//! bound the lanes, tell the instances that wait, and write into the log. What they decide is
//! committed together with the step that led to it, and read again at the start.

use std::collections::BTreeMap;

use engine::State;
use engine::breaker::{BreakerNews, EndedTry, FleetBreaker};
use engine::event::Event;
use engine::state::AppliesHeld;
use schema::id::{InstanceId, RuntimeName};
use schema::status::JobKind;
use schema::time::Timestamp;

use super::batch::Batch;
use super::world::{InstanceEntry, World};
use super::{Caller, Refusal};
use crate::store::{Change, Store, StoreError};

/// Where those are stored that hold something.
const META: &str = "fleet_breakers";

/// One for each runtime that something was heard of.
#[derive(Debug, Clone, Default)]
pub(super) struct Breakers(BTreeMap<RuntimeName, FleetBreaker>);

impl Breakers {
    /// What the last run stored. What cannot be read holds nothing: it is no gate, and the next
    /// failures trip it again.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(super) async fn stored(store: &Store, now: Timestamp) -> Result<Self, StoreError> {
        let unreadable = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "which runtimes had their applies stopped cannot be read");
        };
        let text = match store.meta(META).await {
            Err(error @ StoreError::Corrupt(_)) => {
                unreadable(&error);
                None
            }
            other => other?,
        };
        let read = text.as_deref().map(serde_json::from_str).transpose();
        let mut all: BTreeMap<RuntimeName, FleetBreaker> =
            read.inspect_err(|error| unreadable(error)).ok().flatten().unwrap_or_default();
        all.values_mut().for_each(|breaker| breaker.bound(now));
        Ok(Self(all))
    }

    /// As they are stored: those that hold something.
    fn written(&self) -> String {
        let held: BTreeMap<_, _> =
            self.0.iter().filter(|(_, breaker)| breaker.limit().is_some()).collect();
        serde_json::to_string(&held).expect("our own types have JSON forms")
    }

    /// When one of them goes on by itself.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        self.0.values().filter_map(FleetBreaker::next_wake).min()
    }

    /// How many applies of each runtime may run at a time, where that is bounded.
    pub(super) fn limits(&self) -> impl Iterator<Item = (&RuntimeName, u32)> {
        self.0.iter().filter_map(|(runtime, breaker)| Some((runtime, breaker.limit()?)))
    }

    fn held(&self, runtime: &RuntimeName) -> Option<AppliesHeld> {
        self.0.get(runtime)?.held()
    }

    /// How they would be held once a person has released something there.
    pub(super) fn held_after_order(
        &self,
        runtime: &RuntimeName,
        now: Timestamp,
    ) -> Option<AppliesHeld> {
        let mut breaker = self.0.get(runtime)?.clone();
        breaker.encourage(now);
        breaker.held()
    }

    /// Whether this instance has to be told how it is.
    fn is_news_for(&self, state: &State) -> Option<Event> {
        let concerns = state.wants(JobKind::Apply).is_some() || state.applies_held().is_some();
        let held = self.held(&state.desired().filter(|_| concerns)?.runtime);
        (held.as_ref() != state.applies_held()).then(|| Event::Held(held.map(Box::new)))
    }
}

/// What a step may say of a runtime, known before it is taken.
pub(super) enum RuntimeClue {
    /// A job ends.
    End(EndedTry),
    /// A person does something about an instance.
    Order,
}

impl RuntimeClue {
    /// What this event is for the breaker of the instance's runtime.
    pub(super) fn of(event: &Event, state: &State) -> Option<Self> {
        match event {
            Event::JobEnded { job, outcome } => {
                EndedTry::of(state.job(*job)?, outcome).map(Self::End)
            }
            Event::Desired(desired) => {
                let old = state.desired().map(|old| (old.release, old.compiled));
                (old != Some((desired.release, desired.compiled))).then_some(Self::Order)
            }
            Event::Retry { .. } | Event::Refresh { tries_again: true, .. } => Some(Self::Order),
            _ => None,
        }
    }
}

impl Batch {
    /// A step was taken that was a clue: what the breaker makes of it, and what this instance has
    /// to know.
    pub(super) fn mind_runtime(
        &mut self,
        world: &mut World,
        kept: &InstanceEntry,
        clue: Option<RuntimeClue>,
    ) -> Vec<(InstanceId, Event)> {
        let (id, now) = (kept.state.instance(), self.now);
        let mut told = Vec::new();
        match clue {
            Some(RuntimeClue::End(end)) => {
                if let Some(is_failed) = end.failed(&kept.state) {
                    told = self.change_breaker(world, &end.runtime, |breaker| {
                        breaker.record(id, end.kind, is_failed, now)
                    });
                }
            }
            Some(RuntimeClue::Order) if world.breakers.0.contains_key(&kept.runtime) => {
                told = self.change_breaker(world, &kept.runtime, |breaker| breaker.encourage(now));
            }
            Some(RuntimeClue::Order) | None => {}
        }
        // It is out of the world while it is stepped.
        told.extend(world.breakers.is_news_for(&kept.state).map(|event| (id, event)));
        told
    }

    /// Time has passed for those that hold something; perhaps backwards.
    pub(super) fn tick_breakers(&mut self, world: &mut World) {
        let now = self.now;
        world.breakers.0.values_mut().for_each(|breaker| breaker.bound(now));
        if world.breakers.next_wake().is_none_or(|at| at > self.now) {
            return;
        }
        let all: Vec<RuntimeName> = world.breakers.0.keys().cloned().collect();
        for runtime in all {
            let told = self.change_breaker(world, &runtime, |breaker| breaker.tick(now));
            self.tell_held(world, told);
        }
    }

    /// A person lets the applies of a runtime go on.
    ///
    /// # Errors
    /// Where nothing holds them.
    pub(super) fn resume_runtime(
        &mut self,
        world: &mut World,
        runtime: &RuntimeName,
        caller: &Caller,
    ) -> Result<(), Refusal> {
        caller.reaches_everything(&format!("all that runtime {runtime} serves"))?;
        if world.breakers.held(runtime).is_none() {
            return Err(Refusal::Conflict(format!(
                "the applies of runtime `{runtime}` are not stopped; `pvnctl services explain` \
                 tells of a service what it waits for"
            )));
        }
        let told = self.change_breaker_for(world, runtime, caller.on_record(), |breaker| {
            breaker.end(&caller.who)
        });
        self.tell_held(world, told);
        Ok(())
    }

    /// After a start: whoever knows otherwise than it is.
    pub(super) fn tell_all_held(&mut self, world: &mut World) {
        let told = whoever(world, |_| true);
        self.tell_held(world, told);
    }

    fn tell_held(&mut self, world: &mut World, told: Vec<(InstanceId, Event)>) {
        told.into_iter().for_each(|(id, event)| self.send(world, id, event, None));
    }

    /// Something is said to the breaker of a runtime. Gives who has to know what comes of it.
    fn change_breaker(
        &mut self,
        world: &mut World,
        runtime: &RuntimeName,
        change: impl FnOnce(&mut FleetBreaker) -> Option<BreakerNews>,
    ) -> Vec<(InstanceId, Event)> {
        self.change_breaker_for(world, runtime, (None, None), change)
    }

    /// The same for a person, as an entry of the log names them with their address.
    fn change_breaker_for(
        &mut self,
        world: &mut World,
        runtime: &RuntimeName,
        by: (Option<String>, Option<String>),
        change: impl FnOnce(&mut FleetBreaker) -> Option<BreakerNews>,
    ) -> Vec<(InstanceId, Event)> {
        let breaker = world.breakers.0.entry(runtime.clone()).or_default();
        let before = breaker.clone_held();
        let news = change(breaker);
        if breaker.limit() == before.limit() && breaker.next_wake() == before.next_wake() {
            return Vec::new();
        }
        self.breakers_before.entry(runtime.clone()).or_insert(before);
        world.lanes.bound_applies(runtime, breaker.limit());
        // Of several changes of a batch the last one is written.
        self.changes.push(Change::Meta(META, world.breakers.written()));
        if let Some(news) = news {
            let line = news.line(runtime.as_str());
            tracing::warn!("{}", line.message);
            let data = serde_json::json!(line.data);
            self.log(world, None, line.kind, by, line.message, data);
        }
        whoever(world, |kept| kept.runtime == *runtime)
    }
}

/// Those of these that have to be told how it is.
fn whoever(world: &World, concerned: impl Fn(&InstanceEntry) -> bool) -> Vec<(InstanceId, Event)> {
    let concerned = world.instances.iter().filter(|(_, kept)| concerned(kept));
    concerned
        .filter_map(|(id, kept)| Some((*id, world.breakers.is_news_for(&kept.state)?)))
        .collect()
}

/// Makes the breakers as they were before a batch.
pub(super) fn undo(world: &mut World, before: BTreeMap<RuntimeName, FleetBreaker>) {
    for (runtime, breaker) in before {
        world.lanes.bound_applies(&runtime, breaker.limit());
        world.breakers.0.insert(runtime, breaker);
    }
}
