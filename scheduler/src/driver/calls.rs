//! What people ask of the loop, through [`super::Handle`]: decide on an approval, pause, retry,
//! cancel, explain, foretell, dry runs, and the plans that the planner made.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::action::Action;
use engine::desired::Desired;
use engine::event::Event;
use engine::{Forecast, Surroundings};
use schema::api::{Explanation, LogEntry};
use schema::id::{InstanceId, JobId, RuntimeName};
use tokio::sync::oneshot;

mod acknowledge;
mod decide;
mod forecasts;
mod open_window;
mod people;

use super::batch::{Batch, Task};
use super::checks::ServedInstance;
use super::going_back::Rollback;
use super::once::DryRun;
use super::run::DriverLoop;
use super::together::ConfiguredUpstream;
use super::upcoming::UpcomingAction;
use super::world::{InstanceEntry, World};
use super::{Ask, Caller, Refusal, Remark};
use crate::names::InstanceNames;
use crate::store::{Change, PendingAction};

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Refusal>>;

/// What is asked.
#[derive(Debug)]
pub(super) enum Call {
    Person {
        instance: InstanceId,
        ask: Ask,
        caller: Caller,
        reply: Reply<()>,
    },
    Cancel {
        job: JobId,
        caller: Caller,
        reply: Reply<()>,
    },
    /// `upstream`: what each channel waits for by the config, where that is known.
    Explain {
        instance: InstanceId,
        upstream: ConfiguredUpstream,
        reply: Reply<Explanation>,
    },
    /// What would come of these releases, each in an instance that may not be there yet.
    Forecast {
        releases: Vec<(Arc<InstanceNames>, Box<Desired>)>,
        reply: Reply<Vec<Forecast>>,
    },
    /// What comes next of itself, at most so many of what is not converged.
    Upcoming {
        limit: usize,
        reply: Reply<Vec<UpcomingAction>>,
    },
    RunOnce {
        instance: InstanceId,
        what: DryRun,
        caller: Caller,
        reply: Reply<JobId>,
    },
    /// Which service instances these runtimes serve.
    ServedBy {
        runtimes: Vec<RuntimeName>,
        reply: Reply<Vec<ServedInstance>>,
    },
    Plan {
        plan: Box<Plan>,
        reply: Reply<()>,
    },
    Remark {
        remark: Box<Remark>,
        reply: Reply<()>,
    },
    Metrics {
        reply: Reply<BTreeMap<String, f64>>,
    },
    LetAppliesStart {
        reply: Reply<()>,
    },
    /// The applies of a runtime go on, whatever failed there.
    ResumeRuntime {
        runtime: RuntimeName,
        caller: Caller,
        reply: Reply<()>,
    },
}

/// Changes that the planner prepared, to be committed as one.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Rows.
    pub(super) changes: Vec<Change>,
    /// Log entries, complete but for number and time.
    pub(super) entries: Vec<LogEntry>,
    /// Instances that must exist.
    pub(super) instances: Vec<(Arc<InstanceNames>, RuntimeName)>,
    /// What is sent to instances, in order.
    pub(super) events: Vec<(InstanceId, Event)>,
    /// The automatic rollback that this is, or whose refusal it is: stored only while that is
    /// still wanted.
    pub(super) rollback: Option<Rollback>,
}

impl Plan {
    /// Takes in another one, which comes after this one.
    pub(super) fn append(&mut self, other: Self) {
        let Self { changes, entries, instances, events, rollback } = other;
        self.changes.extend(changes);
        self.entries.extend(entries);
        self.instances.extend(instances);
        self.events.extend(events);
        self.rollback = self.rollback.take().or(rollback);
    }

    /// Gives back the room that its lists have and do not use: thousands of plans with two or
    /// three things each wait for one another.
    pub(super) fn shrink(&mut self) {
        self.changes.shrink_to_fit();
        self.entries.shrink_to_fit();
        self.instances.shrink_to_fit();
        self.events.shrink_to_fit();
    }
}

/// An answer that waits for the commit.
pub(super) struct PendingAnswer(Box<dyn FnOnce(Result<(), Refusal>) + Send>);

impl PendingAnswer {
    /// Answers with `value` once it is stored. A caller that no longer waits is no error.
    fn later<T: Send + 'static>(reply: Reply<T>, value: T) -> Self {
        Self(Box::new(move |stored| drop(reply.send(stored.map(|()| value)))))
    }

    pub(super) fn give(self, stored: Result<(), Refusal>) {
        (self.0)(stored);
    }
}

impl Call {
    /// Says no.
    pub(super) fn refuse(self, why: Refusal) {
        // A caller that no longer waits is no error.
        match self {
            Self::Person { reply, .. }
            | Self::Cancel { reply, .. }
            | Self::Plan { reply, .. }
            | Self::Remark { reply, .. }
            | Self::LetAppliesStart { reply }
            | Self::ResumeRuntime { reply, .. } => drop(reply.send(Err(why))),
            Self::Explain { reply, .. } => drop(reply.send(Err(why))),
            Self::Forecast { reply, .. } => drop(reply.send(Err(why))),
            Self::Upcoming { reply, .. } => drop(reply.send(Err(why))),
            Self::RunOnce { reply, .. } => drop(reply.send(Err(why))),
            Self::ServedBy { reply, .. } => drop(reply.send(Err(why))),
            Self::Metrics { reply } => drop(reply.send(Err(why))),
        }
    }
}

impl DriverLoop {
    /// Answers what changes nothing; gives back what does.
    pub(super) fn read_only(&mut self, call: Call) -> Option<Call> {
        match call {
            Call::Explain { instance, upstream, reply } => {
                let mut explanation = match self.world.instances.get(&instance) {
                    Some(kept) => Ok(self.explain(kept, &upstream)),
                    None => match self.world.broken.get(&instance) {
                        Some(stopped) => Ok(stopped.explain()),
                        None => Err(Refusal::NotFound(
                            "the service does not exist in that channel".to_owned(),
                        )),
                    },
                };
                if let Ok(explanation) = &mut explanation {
                    self.tell_red(explanation);
                }
                drop(reply.send(explanation));
                None
            }
            Call::Forecast { releases, reply } => {
                drop(reply.send(Ok(self.forecasts(releases))));
                None
            }
            Call::Upcoming { limit, reply } => {
                drop(reply.send(Ok(self.upcoming(limit))));
                None
            }
            Call::Metrics { reply } => {
                drop(reply.send(Ok(self.metrics())));
                None
            }
            Call::ServedBy { runtimes, reply } => {
                drop(reply.send(Ok(self.world.served_by(&runtimes))));
                None
            }
            other => Some(other),
        }
    }

    /// Why an instance stands where it stands.
    pub(super) fn explain(
        &self,
        kept: &InstanceEntry,
        upstream: &ConfiguredUpstream,
    ) -> Explanation {
        let around = Surroundings {
            name: &|other| self.world.short_name(other),
            pursued: &|channel| self.world.pursued(kept.names.service.0, channel),
            together: &|| self.world.together(&kept.names, upstream),
            target: &kept.names.target(),
        };
        engine::explain(&kept.state, &self.world.lanes, self.clock.now(), around)
    }

    /// Does what is asked; what it changes is answered after the commit.
    pub(super) fn call(
        &mut self,
        batch: &mut Batch,
        call: Call,
        answers: &mut Vec<PendingAnswer>,
        plans: &mut Vec<PendingAnswer>,
    ) {
        let Some(call) = self.read_only(call) else { return };
        match call {
            Call::Person { instance, ask, caller, reply } => {
                match self.person(batch, instance, ask, &caller) {
                    Ok(()) => answers.push(PendingAnswer::later(reply, ())),
                    Err(why) => drop(reply.send(Err(why))),
                }
            }
            Call::Cancel { job, caller, reply } => match self.cancel(batch, job, &caller) {
                Ok(()) => answers.push(PendingAnswer::later(reply, ())),
                Err(why) => drop(reply.send(Err(why))),
            },
            Call::RunOnce { instance, what, caller, reply } => {
                match self.run_once(batch, instance, what, &caller) {
                    Ok(job) => answers.push(PendingAnswer::later(reply, job)),
                    Err(why) => drop(reply.send(Err(why))),
                }
            }
            Call::Plan { plan, reply } => match self.settle(batch, plan.rollback.as_ref()) {
                Ok(is_wanted) => {
                    if is_wanted {
                        self.plan(batch, *plan);
                    }
                    plans.push(PendingAnswer::later(reply, ()));
                }
                Err(why) => drop(reply.send(Err(why))),
            },
            Call::Remark { remark, reply } => {
                let Remark { instance, kind, message, data } = *remark;
                let names = self.world.names(instance).cloned();
                batch.log(&mut self.world, names.as_deref(), kind, (None, None), message, data);
                answers.push(PendingAnswer::later(reply, ()));
            }
            Call::LetAppliesStart { reply } => {
                self.world.lanes.hold_applies(false);
                answers.push(PendingAnswer::later(reply, ()));
            }
            Call::ResumeRuntime { runtime, caller, reply } => {
                match batch.resume_runtime(&mut self.world, &runtime, &caller) {
                    Ok(()) => answers.push(PendingAnswer::later(reply, ())),
                    Err(why) => drop(reply.send(Err(why))),
                }
            }
            Call::Explain { .. }
            | Call::Forecast { .. }
            | Call::Upcoming { .. }
            | Call::Metrics { .. }
            | Call::ServedBy { .. } => {}
        }
    }

    fn plan(&mut self, batch: &mut Batch, plan: Plan) {
        let revoked = plan.changes.iter().find_map(|change| match change {
            Change::TokenRevoked { name, .. } => Some(name.clone()),
            _ => None,
        });
        batch.changes.extend(plan.changes);
        for (names, runtime) in plan.instances {
            if self.world.names(names.instance()).is_none() {
                let kept = InstanceEntry::new(names, runtime, self.observer, batch.now);
                batch.add_instance(&mut self.world, kept);
            }
        }
        for entry in plan.entries {
            batch.log_entry(&mut self.world, entry);
        }
        for (instance, event) in plan.events {
            batch.send(&mut self.world, instance, event, None);
        }
        if let Some(who) = revoked {
            self.tell_all(batch, &Event::Disowned { who: who.clone() }, |state| {
                state.counts_on(&who)
            });
        }
    }
}

/// A pending action of an earlier run becomes a task again.
pub(super) fn again(
    pending: PendingAction,
    names: Option<Arc<InstanceNames>>,
    world: &World,
) -> Option<Task> {
    match (pending.action, names) {
        (Action::Stop { job, .. }, _) => Some(Task::Stop(pending.id, world.placed(job))),
        (Action::Rollback { from, to }, Some(names)) => {
            Some(Task::Rollback(Rollback { action: pending.id, names, from, to }))
        }
        _ => None,
    }
}
