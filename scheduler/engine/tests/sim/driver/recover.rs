//! The daemon comes back: with another flag, another config, by another clock; and hands over what it had only decided.

use super::*;

impl Driver {
    /// Starting up and recovering are the same: rebuild from the database, perform what is pending, relist, look at
    /// the time.
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
        self.clock_while_down();
        self.lanes = ConcurrencyLimiter::new(limits(), self.wall());
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
                Action::Start(start) if !self.world.processes.contains_key(&start.job) => self.hand_over(instance, start),
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
            Start::Holds { until } => assert!(until.is_none_or(|until| until > now), "what holds is not over: {until:?}"),
            Start::Void => {
                self.handle(instance, Event::Unstarted { job });
                if self.crashed {
                    self.pending.push((instance, Action::Start(start)));
                } else {
                    assert!(self.states[instance].job(job).is_none(), "what is void is withdrawn");
                }
                return;
            }
            Start::Stopped => {
                self.waiting.remove(&job);
                let outcome = Outcome::NotStarted { why: "stopped before it was started".to_owned(), surroundings: true };
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
            GoBack::Later => self.after(5_000, Happening::GoBack(instance, action)),
            GoBack::Dropped(_) => {
                self.handle(instance, Event::RollbackDropped { from });
                if self.crashed {
                    self.pending.push((instance, action));
                }
            }
        }
    }
}
