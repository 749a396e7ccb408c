//! What people ask of one instance or of one job, and when it is refused.

use engine::State;
use engine::action::StopReason;
use engine::event::Event;
use schema::api::{DecisionRequest, ObserveRequest, PauseRequest, RefreshRequest};
use schema::id::{InstanceId, JobId};
use schema::log_kind::LogKind;
use schema::status::{Decision, JobKind};

use super::super::batch::Batch;
use super::super::run::DriverLoop;
use super::super::world::InstanceEntry;
use super::super::{Ask, Caller, Refusal};
use super::acknowledge::acknowledgement;
use super::decide::decision;
use super::open_window::opening;

/// Most characters of a reason: it is in the state that every commit writes, and in one line of a
/// list.
const REASON_LIMIT: usize = 1_000;

/// What a person says why.
fn reason_of(ask: &Ask) -> Option<&str> {
    match ask {
        Ask::Approve(request) | Ask::Reject(request) => request.reason.as_deref(),
        Ask::Pause(request) => request.reason.as_deref(),
        Ask::Observe(request) => request.reason.as_deref(),
        Ask::Acknowledge(request) => request.reason.as_deref(),
        Ask::OpenWindow(request) => request.reason.as_deref(),
        Ask::Resume | Ask::Refresh(_) | Ask::Retry => None,
    }
}

fn bounded(reason: &str) -> Result<(), Refusal> {
    let length = reason.trim().chars().count();
    if length <= REASON_LIMIT {
        return Ok(());
    }
    Err(Refusal::Invalid(format!(
        "`reason` has {length} characters, and {REASON_LIMIT} at most are kept; say it shorter"
    )))
}

impl DriverLoop {
    pub(super) fn person(
        &mut self,
        batch: &mut Batch,
        id: InstanceId,
        ask: Ask,
        caller: &Caller,
    ) -> Result<(), Refusal> {
        if let Some(names) = self.world.names(id) {
            caller.reaches_instance(names)?;
        }
        if self.world.broken.contains_key(&id) && matches!(ask, Ask::Retry) {
            return self.mend(batch, id, caller);
        }
        if let Some(stopped) = self.world.broken.get(&id) {
            return Err(stopped.refusal());
        }
        let Some(kept) = self.world.instances.get(&id) else {
            return Err(Refusal::NotFound("the service does not exist in that channel".to_owned()));
        };
        let names = kept.names.clone();
        let label = names.label();
        if kept.state.is_deleted() && !matches!(ask, Ask::Approve(_) | Ask::Reject(_)) {
            return Err(deleted(kept));
        }
        if let Some(reason) = reason_of(&ask) {
            bounded(reason)?;
        }
        let decide = |request, decided| self.decided(kept, request, decided, caller);
        let events: Vec<(InstanceId, Event)> = match ask {
            Ask::Approve(request) => decide(request, Decision::Approve)?,
            Ask::Reject(request) => decide(request, Decision::Reject)?,
            Ask::Pause(request) => vec![(id, pause(request, caller))],
            Ask::Observe(request) => vec![(id, observe(request, caller))],
            Ask::Resume => vec![(id, Event::Resume)],
            Ask::Acknowledge(request) => {
                vec![(id, acknowledgement(kept, request, caller, batch.now)?)]
            }
            Ask::OpenWindow(request) => vec![(id, opening(kept, request, caller, batch.now)?)],
            Ask::Refresh(_) | Ask::Retry if kept.state.desired().is_none() => {
                return Err(Refusal::Conflict(format!(
                    "{label} has no release yet; make one with `pvnctl services push`"
                )));
            }
            Ask::Refresh(_) if kept.state.is_paused() => {
                return Err(Refusal::Conflict(format!(
                    "{label} is paused; `pvnctl services resume {}` looks at it again",
                    names.target()
                )));
            }
            Ask::Refresh(RefreshRequest { try_again }) => {
                vec![(id, Event::Refresh { who: caller.who.clone(), tries_again: try_again })]
            }
            Ask::Retry => {
                retry_now(&kept.state, &label)?;
                vec![(id, Event::Retry { who: caller.who.clone() })]
            }
        };
        let before = held_back(&kept.state);
        for (instance, event) in events {
            batch.send(&mut self.world, instance, event, Some(caller));
        }
        self.log_held_back(batch, id, before, caller);
        Ok(())
    }

    /// Where somebody holds it back by now, or in another way, or not any more: that.
    fn log_held_back(
        &mut self,
        batch: &mut Batch,
        id: InstanceId,
        before: Option<HeldBack>,
        caller: &Caller,
    ) {
        let Some(kept) = self.world.instances.get(&id) else { return };
        let (names, after) = (kept.names.clone(), held_back(&kept.state));
        if after == before {
            return;
        }
        let (kind, why) = match after {
            Some((kind, _, why)) => (kind, why),
            None => (LogKind::InstanceResume, None),
        };
        let does = match kind {
            LogKind::InstancePause => "pauses",
            LogKind::InstanceObserve => "observes",
            _ => "resumes",
        };
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let message = format!("{} {does} {}{why}", caller.who, names.label());
        let data = serde_json::json!({});
        batch.log(&mut self.world, Some(&names), kind, caller.on_record(), message, data);
    }

    /// What a yes or a no means, which may be about the other channels of the service too.
    fn decided(
        &self,
        kept: &InstanceEntry,
        request: DecisionRequest,
        decided: Decision,
        caller: &Caller,
    ) -> Result<Vec<(InstanceId, Event)>, Refusal> {
        let event = decision(kept, request, decided, caller, &kept.names.label())?;
        let siblings = self.world.siblings(kept.names.service.0);
        let others = siblings.iter().filter_map(|id| self.world.instances.get(id));
        let heard = others.filter(|other| is_heard(&other.state, &kept.state, &event));
        caller.reaches(&kept.names.application.1, heard.map(|other| &other.names.channel.1))?;
        Ok(siblings.into_iter().map(|id| (id, event.clone())).collect())
    }

    pub(super) fn cancel(
        &mut self,
        batch: &mut Batch,
        id: JobId,
        caller: &Caller,
    ) -> Result<(), Refusal> {
        let Some(row) = self.world.jobs.get(&id) else {
            return Err(Refusal::NotFound(format!("{id} is over; there is nothing to cancel")));
        };
        let instance = row.instance;
        if let Some(names) = self.world.names(instance) {
            caller.reaches_instance(names)?;
        }
        if row.ended_at.is_some() && !self.performer.hears(&row.placed()) {
            return Err(Refusal::Conflict(format!(
                "{id} was given up, and nobody has it any more who could stop it: look for its \
                 processes where it ran, and end them there"
            )));
        }
        if row.ended_at.is_some() {
            // Given up, and its runner may still have it: the stop after the first one kills.
            let names = self.world.instances.get(&instance).map(|kept| kept.names.clone());
            let message = format!(
                "{} stops {} {id} once more, which was given up and may still run",
                caller.who, row.kind
            );
            batch.log(
                &mut self.world,
                names.as_deref(),
                LogKind::JobCancel,
                caller.on_record(),
                message,
                serde_json::json!({"job": id}),
            );
            batch.stop(&mut self.world, instance, id, StopReason::Person(caller.who.clone()));
            return Ok(());
        }
        if self.world.broken.contains_key(&instance) && !row.once {
            // A person may end what nobody looks after.
            let why = StopReason::Person(caller.who.clone());
            batch.stop(&mut self.world, instance, id, why);
            return Ok(());
        }
        if !row.once {
            batch.send(
                &mut self.world,
                instance,
                Event::Cancel { job: id, who: caller.who.clone() },
                Some(caller),
            );
            return Ok(());
        }
        self.cancel_once(batch, id, caller);
        Ok(())
    }
}

/// Whether what was decided of an approval that is asked for in one channel counts in another.
fn is_heard(other: &State, asked: &State, decided: &Event) -> bool {
    matches!(decided, Event::Decided { approval, .. } if other.hears(asked, *approval))
}

fn pause(request: PauseRequest, caller: &Caller) -> Event {
    Event::Pause { who: caller.who.clone(), reason: said(request.reason) }
}

fn observe(request: ObserveRequest, caller: &Caller) -> Event {
    Event::ObserveOnly { who: caller.who.clone(), reason: said(request.reason) }
}

/// A reason that says something.
fn said(reason: Option<String>) -> Option<String> {
    let reason = reason.map(|reason| reason.trim().to_owned());
    reason.filter(|reason| !reason.is_empty())
}

/// What a person holds back, by the entry that tells of it; by whom, and what for.
type HeldBack = (LogKind, Option<String>, Option<String>);

fn held_back(state: &State) -> Option<HeldBack> {
    if let Some(wish) = state.observe_wish() {
        return Some((LogKind::InstanceObserve, Some(wish.who.clone()), wish.reason.clone()));
    }
    let [by, why] = [state.paused_by(), state.pause_reason()].map(|one| one.map(str::to_owned));
    state.is_paused().then_some((LogKind::InstancePause, by, why))
}

fn deleted(kept: &InstanceEntry) -> Refusal {
    Refusal::Conflict(format!(
        "{} is DELETED, because its release channel or its service was taken away: nothing \
         runs or waits there; once a config has it again, {}",
        kept.names.label(),
        engine::brings_back(&kept.names.target(), kept.state.had())
    ))
}

/// Whether a person's wish for another try does something now: nobody would remember it.
fn retry_now(state: &State, label: &str) -> Result<(), Refusal> {
    if state.is_deleted() {
        return Err(Refusal::Conflict(format!(
            "{label} is no longer wanted; there is nothing to try again"
        )));
    }
    let Some(job) = state.jobs_in_flight().find(|job| job.kind == JobKind::Apply) else {
        return Ok(());
    };
    Err(Refusal::Conflict(match job.stop {
        None => format!(
            "an apply of {label} is under way; ask again when it is over, or stop it with `pvnctl \
             jobs cancel {}` and ask then",
            job.id
        ),
        Some(_) => {
            format!("the apply {} of {label} is being stopped; ask again when it is over", job.id)
        }
    }))
}
