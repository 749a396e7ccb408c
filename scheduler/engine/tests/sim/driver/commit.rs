//! What the daemon does with one event: step, commit, perform; a crash may come between any two.

use super::*;

impl Driver {
    /// One event: step, commit, perform; a crash may come between any two.
    pub(super) fn handle(&mut self, instance: usize, event: Event) {
        if self.crashed {
            if let Event::Desired(_) = event {
                // Whoever asked asks again.
                self.after(1, Happening::Deliver(instance, Box::new(event)));
            }
            return;
        }
        if !self.calm && !self.whole && self.random.one_in(3_000) {
            self.crashed = true; // before the commit: event, state and actions are lost
            return self.handle(instance, event);
        }
        self.steps += 1;
        let now = self.wall();
        let clue = self.clue(instance, &event);
        let (state, actions) = self.step_checked(instance, &event, now);
        if let Event::Retry { .. } = event {
            self.forgive(instance, &state);
        }
        self.states[instance] = state;
        self.perform_all(instance, actions);
        self.index(instance);
        self.mind_runtime(instance, clue);
        if self.steps.is_multiple_of(64) && !self.crashed {
            self.look_closely(instance);
        }
        if let Some(job) = void_start(&self.states[instance], now)
            .filter(|job| self.waiting.contains(job) && !self.crashed)
        {
            self.handle(instance, Event::Unstarted { job, taken_back: None });
        }
    }

    /// Every step has to leave a state that holds together, can be stored, and keeps the promises.
    fn step_checked(
        &mut self,
        instance: usize,
        event: &Event,
        now: Timestamp,
    ) -> (State, Vec<Action>) {
        let old = self
            .oracle
            .wants_copy(&self.states[instance], event)
            .then(|| self.states[instance].clone());
        let state = std::mem::replace(
            &mut self.states[instance],
            State::new(InstanceId::from_bytes([0; 16]), now),
        );
        let (state, actions) = step(state, event.clone(), now);
        self.trace.push_back((now, instance, event.clone(), state.standing().status));
        if self.trace.len() > TRACED {
            self.trace.pop_front();
        }
        state.check().unwrap_or_else(|broken| panic!("{broken}: {state:#?}"));
        let stored = serde_json::to_string(&state).unwrap();
        let read: State =
            serde_json::from_str(&stored).unwrap_or_else(|error| panic!("{error}: {stored}"));
        assert_eq!(read, state, "a state survives being stored");
        let state = read;
        assert!(
            next_wake(&state).is_none_or(|at| at > state.seen_at()),
            "a wake in the past: {state:#?}"
        );
        if let Some(old) = old {
            let ticked = step(old, Event::Tick, now);
            assert_eq!(
                (&state, &actions),
                (&ticked.0, &ticked.1),
                "P4: a result that is not awaited moves nothing"
            );
        }
        self.oracle.observe(instance, event, &state, &actions, &self.world, now, self.true_ms);
        (state, actions)
    }

    fn perform_all(&mut self, instance: usize, actions: Vec<Action>) {
        let crash_at = if !self.calm && !self.whole && self.random.one_in(3_000) {
            self.random.below(actions.len() as u64 + 1) as usize
        } else {
            usize::MAX
        };
        for (number, action) in actions.into_iter().enumerate() {
            if number == crash_at || self.crashed {
                self.crashed = true;
                self.pending.push((instance, action)); // committed, not performed
            } else {
                if crash_at != usize::MAX {
                    self.pending.push((instance, action.clone())); // performed, and nobody noted it
                }
                self.perform(instance, action);
            }
        }
        self.crashed |= crash_at != usize::MAX;
    }

    pub(super) fn index(&mut self, instance: usize) {
        let state = &self.states[instance];
        self.lanes.update(state, service_of(instance));
        let wake = next_wake(state);
        if let Some(old) = std::mem::replace(&mut self.wake_of[instance], wake) {
            self.wakes.remove(&(old, instance));
        }
        self.wakes.extend(wake.map(|at| (at, instance)));
        let version = state.converged_version().map(str::to_owned);
        self.follow(instance);
        let state = &self.states[instance];
        if instance.is_multiple_of(2) && self.told[instance] != version {
            self.told[instance].clone_from(&version);
            let delay = self.random.between(0, 50);
            let rolled_back = state.rolled_back().cloned().map(Box::new);
            let event = Event::Upstream {
                channel: "staging".parse().unwrap(),
                converged_version: version,
                rolled_back,
            };
            self.after(delay, Happening::Deliver(instance + 1, Box::new(event)));
        }
    }

    pub(super) fn perform(&mut self, instance: usize, action: Action) {
        match action {
            Action::Start(start) if !self.calm && self.random.one_in(6) => {
                // Nobody has it yet: its turn comes.
                self.waiting.insert(start.job);
                let delay = self.random.between(1, if self.calm { 100 } else { 120_000 });
                self.after(delay, Happening::HandOver(instance, Box::new(start)));
            }
            Action::Start(start) => self.spawn(instance, start),
            Action::Withdraw { job, .. } => {
                let started = self.world.processes.get(&job);
                assert!(
                    started.is_none_or(|process| process.fate == Fate::TakenBack),
                    "{job} is withdrawn and was started"
                );
                self.waiting.remove(&job);
            }
            Action::Stop { job, .. } => {
                self.world.stop(job);
                self.tell_later(job);
            }
            Action::Rollback { .. } => {
                let delay = if self.random.one_in(2) { self.random.between(1, 120_000) } else { 0 };
                self.after(delay, Happening::GoBack(instance, Box::new(action)));
            }
            Action::Log(_) => {}
        }
    }
}
