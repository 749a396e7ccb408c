//! The end of a run: faults and people stop, and everything desired has to become so within a
//! bound.

use std::time::Duration;

use engine::desired::{Cadence, Observe};
use engine::limiter::Blocked;
use schema::cause::CauseCode;

use super::*;

impl Driver {
    pub(super) fn calm_down(&mut self) {
        self.calm = true;
        let jobs: Vec<JobId> = self.world.processes.keys().copied().collect();
        for job in jobs {
            let process = self.world.processes.get_mut(&job).unwrap();
            process.mute = false;
            if process.alive {
                let over = if process.outcome.is_none() {
                    Happening::End(job)
                } else {
                    Happening::Bury(job)
                };
                self.after(1_000, over);
            }
        }
        for shape in &mut self.shapes {
            // People give a schedule that has run out another one.
            if let Observe::Poll(policy) = &mut shape.observe {
                policy.cadence = Cadence::Interval {
                    poll: Duration::from_secs(30),
                    steady: Duration::from_secs(300),
                };
            }
        }
        for service in 0..SERVICES {
            // Whatever was deleted is wanted again, and every channel the same.
            self.release(service, None);
        }
        self.after(300_000, Happening::SetBack);
        self.after(0, Happening::Help);
    }

    // ---- looking at it from outside ----

    pub(super) fn unconverged(&self) -> Option<usize> {
        let done = |instance: usize| {
            let (state, target) = (&self.states[instance], &self.world.targets[instance]);
            let looks = self.shapes[instance].observe.looks();
            let so = target.version.as_ref() == Some(&self.shapes[instance].version)
                && target.drift == 0;
            state.converged_version() == Some(self.shapes[instance].version.as_str())
                && (so || !looks)
        };
        (0..self.states.len()).find(|instance| !done(*instance))
    }

    /// Now and then: the limits over all instances, and that whatever waits can say why.
    pub(super) fn look_closely(&self, instance: usize) {
        self.oracle.check_limits(&self.states, &limits(), max_concurrency);
        self.others_go_on();
        let state = &self.states[instance];
        let told = explain(
            state,
            &self.lanes,
            self.wall(),
            Surroundings {
                name: &|id| format!("instance {}", self.ids[&id]),
                ..Surroundings::default()
            },
        );
        assert!(
            !told.causes.is_empty() && told.causes.iter().all(|cause| !cause.message.is_empty()),
            "nothing to say: {told:#?}"
        );
        let waits_for_world = told
            .causes
            .iter()
            .any(|cause| ["ends", "pvnctl"].iter().any(|word| cause.message.contains(word)));
        let moves = !told.next.is_empty()
            || waits_for_world
            || told
                .causes
                .iter()
                .any(|cause| cause.until.is_some() || cause.code == CauseCode::StartsNow);
        let rests = matches!(told.status, Status::Converged | Status::Deleted);
        assert!(moves || rests, "P3: no way out: {told:#?}");
    }

    /// Whoever holds places for ever: a runtime that holds none has one when it wants one, or one
    /// of the last three is in others' hands for moments only.
    fn others_go_on(&self) {
        for kind in [JobKind::Fetch, JobKind::Apply] {
            let mut held: BTreeMap<&str, usize> = BTreeMap::new();
            let mut all = 0;
            for job in
                self.states.iter().flat_map(State::jobs_in_flight).filter(|job| job.kind == kind)
            {
                *held.entry(job.runtime.as_str()).or_default() += 1;
                all += 1;
            }
            let total = limits().fetch.total as usize;
            let sick = held.get("sick").copied().unwrap_or(0);
            assert!(
                sick <= total * 3 / 4,
                "{kind}: the runtime that hangs has {sick} of {total} places"
            );
            for state in self.states.iter().filter(|_| all < total && !self.crashed) {
                let Some(desired) = state.desired().filter(|_| state.wants(kind).is_some()) else {
                    continue;
                };
                if held.contains_key(desired.runtime.as_str())
                    || kind == JobKind::Apply && self.is_bound(&desired.runtime)
                    || self.lanes.next_wake(self.wall()).is_some()
                {
                    continue;
                }
                let blocked = self.lanes.blocked(state, kind, self.wall());
                // Its own limit, and what may still run counts against that until a person says
                // otherwise.
                let is_given_up = match &blocked {
                    Blocked::Runtime { holders, .. } => {
                        holders.iter().any(|holder| holder.is_given_up)
                    }
                    _ => false,
                };
                assert!(
                    is_given_up || matches!(blocked, Blocked::NotBlocked | Blocked::Pace),
                    "{blocked:?}"
                );
            }
        }
    }

    pub(super) fn describe(&self, instance: usize) -> String {
        let told = explain(
            &self.states[instance],
            &self.lanes,
            self.wall(),
            Surroundings {
                name: &|id| format!("instance {}", self.ids[&id]),
                ..Surroundings::default()
            },
        );
        let (shape, target) = (&self.shapes[instance], &self.world.targets[instance]);
        format!(
            "instance {instance}: {told:#?}\nwanted {shape:?}\nis {target:?}\n{:#?}",
            self.states[instance]
        )
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (at, instance, event, status) in &self.trace {
                let text = format!("{event:?}");
                eprintln!(
                    "{at} instance {instance}: {} -> {status}",
                    text.get(..240).unwrap_or(&text)
                );
            }
            eprintln!(
                "seed {}, step {}: run again with PVN_SIM_SEED={}",
                self.seed, self.steps, self.seed
            );
        }
    }
}
