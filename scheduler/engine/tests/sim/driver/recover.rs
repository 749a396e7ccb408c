//! The daemon comes back: with another flag, another config, by another clock; and hands over what
//! it had only decided.

use super::*;

impl Driver {
    /// Starting up and recovering are the same: rebuild from the database, perform what is pending,
    /// relist, look at the time.
    pub(super) fn restart(&mut self) {
        self.crashed = false;
        self.waiting.clear();
        let mut lost = Vec::new();
        self.queue.retain(|_, happening| match happening {
            Happening::Deliver(_, event) => matches!(**event, Event::Desired(_)),
            Happening::HandOver(instance, start) => {
                lost.push((*instance, Action::Start((**start).clone())));
                false
            }
            _ => true,
        });
        self.pending.extend(lost);
        self.told = vec![None; self.states.len()];
        self.watchers.iter_mut().for_each(Watcher::forget);
        self.clock_while_down();
        self.lanes = ConcurrencyLimiter::new(limits(), self.wall());
        self.read_breakers();
        // Another flag, and another config, which came before anything was taken up.
        self.observer = !self.calm && self.random.one_in(8);
        if !self.calm && self.random.one_in(3) {
            let service = self.random.below(SERVICES as u64) as usize;
            self.recompile(service);
        }
        for instance in 0..self.states.len() {
            self.index(instance);
            if self.states[instance].is_observer() != self.observer {
                self.handle(instance, Event::Observe(self.observer));
            }
        }
        let mut again = std::mem::take(&mut self.pending);
        while !self.crashed
            && let Some((instance, action)) = again.pop()
        {
            match action {
                Action::Start(start) if !self.world.processes.contains_key(&start.job) => {
                    self.hand_over(instance, start)
                }
                action => {
                    if self.random.one_in(3) {
                        self.perform(instance, action.clone());
                    }
                    self.perform(instance, action);
                }
            }
        }
        self.pending.append(&mut again);
        for instance in 0..self.states.len() {
            self.handle(instance, Event::Tick);
        }
        self.relist();
    }

    /// Hands a start over that waited, if it still may start.
    pub(super) fn hand_over(&mut self, instance: usize, start: StartJob) {
        let job = start.job;
        let now = self.wall();
        match start_now(&self.states[instance], job, now) {
            Start::Holds { until } => {
                assert!(until.is_none_or(|until| until > now), "what holds is not over: {until:?}")
            }
            Start::Void { .. } => {
                self.handle(instance, Event::Unstarted { job, taken_back: None });
                if self.crashed {
                    self.pending.push((instance, Action::Start(start)));
                } else {
                    assert!(self.states[instance].job(job).is_none(), "what is void is withdrawn");
                }
                return;
            }
            Start::Stopped => {
                self.waiting.remove(&job);
                let outcome = Outcome::NotStarted {
                    why: "stopped before it was started".to_owned(),
                    surroundings: true,
                };
                return self.handle(instance, Event::JobEnded { job, outcome });
            }
            Start::Over => {
                self.waiting.remove(&job);
                return;
            }
        }
        self.waiting.remove(&job);
        self.spawn(instance, start);
    }

    /// Carries a rollback out that was decided, if it still is.
    pub(super) fn go_back(&mut self, instance: usize, action: Action) {
        let Action::Rollback { from, .. } = action else { return };
        match go_back_now(&self.states[instance], from, self.wall()) {
            GoBack::Now => self.after_release(instance / 2),
            GoBack::Later => self.after(5_000, Happening::GoBack(instance, Box::new(action))),
            GoBack::Dropped(_) => {
                self.handle(instance, Event::RollbackDropped { from });
                if self.crashed {
                    self.pending.push((instance, action));
                }
            }
        }
    }

    /// The runner lists everything that it knows of, and every channel is told again how the one
    /// before it stands.
    pub(super) fn relist(&mut self) {
        for instance in 0..self.states.len() {
            if instance.is_multiple_of(2) {
                let converged_version =
                    self.states[instance].converged_version().map(str::to_owned);
                let rolled_back = self.states[instance].rolled_back().cloned().map(Box::new);
                let event = Event::Upstream {
                    channel: "staging".parse().unwrap(),
                    converged_version,
                    rolled_back,
                };
                self.after(0, Happening::Deliver(instance + 1, Box::new(event)));
            }
            let jobs: Vec<_> = self.states[instance]
                .jobs_in_flight()
                .map(|job| (job.id, job.started_at.is_some()))
                .collect();
            for (job, started) in jobs {
                let Some(process) = self.world.processes.get(&job).filter(|process| !process.mute)
                else {
                    continue;
                };
                if process.outcome.is_some() {
                    self.after(0, Happening::Tell(job));
                } else if !started {
                    let event = Event::JobStarted { job, at: process.began_at };
                    self.after(0, Happening::Deliver(instance, Box::new(event)));
                }
            }
        }
        let states = &self.states;
        let queued: BTreeSet<JobId> = self
            .queue
            .values()
            .filter_map(
                |happening| if let Happening::Tell(job) = happening { Some(*job) } else { None },
            )
            .collect();
        self.world.forget(|job| {
            queued.contains(&job)
                || states.iter().any(|state| {
                    state.job(job).is_some() || state.given_up().any(|known| known == job)
                })
        });
    }
}
