//! What people order: releases, new configs, and what they ask of one instance.

use super::*;

impl Driver {
    pub(super) fn ask(&mut self, instance: usize, event: Event) {
        if let Event::Decided { approval, .. } = &event {
            let shared = self.states[instance]
                .approvals()
                .iter()
                .any(|at| at.id == *approval && at.kind == ApprovalKind::Shared);
            if shared {
                self.handle(instance ^ 1, event.clone());
            }
        }
        self.handle(instance, event);
    }

    /// A release for both channels, or for one of them only.
    pub(super) fn release(&mut self, service: usize, only: Option<usize>) {
        self.releases += 1;
        for instance in [service * 2, service * 2 + 1]
            .into_iter()
            .filter(|instance| only.is_none_or(|only| only == *instance))
        {
            let shape = &mut self.shapes[instance];
            shape.release = ReleaseId::derive(&[&self.releases.to_le_bytes()]);
            shape.version = format!("s{service}-{}", self.releases);
            shape.compiled = BlobId::of(shape.version.as_bytes());
            shape.released_at = Timestamp::from_millis(START_MS + self.true_ms + self.offset_ms);
            let event = Event::Desired(Box::new(shape.clone()));
            self.after(0, Happening::Deliver(instance, Box::new(event)));
        }
    }

    pub(super) fn after_release(&mut self, service: usize) {
        if self.calm || !self.random.one_in(3) {
            self.release(service, None);
        }
    }

    /// Another config under the same release: other commands, other gates, or another of
    /// everything.
    pub(super) fn recompile(&mut self, service: usize) {
        self.releases += 1;
        let instance = service * 2 + self.random.below(2) as usize;
        let production = instance % 2 == 1;
        let shape = &mut self.shapes[instance];
        if self.random.one_in(3) {
            let Desired { release, version, released_at, runtime, max_concurrency, .. } =
                shape.clone();
            let other = people::configure(&mut self.random, production, watches(self.seed));
            *shape = Desired { release, version, released_at, runtime, max_concurrency, ..other };
        }
        if self.random.one_in(2) {
            shape.gates = people::gates(&mut self.random, production);
            shape.require_approval_before_apply = self.random.one_in(4);
            shape.require_approval_for_destroy = self.random.one_in(4);
        }
        if self.random.one_in(2) {
            shape.compiled = BlobId::of(&self.releases.to_le_bytes());
        }
        let event = Event::Desired(Box::new(shape.clone()));
        self.after(0, Happening::Deliver(instance, Box::new(event)));
    }

    /// A person who asks for a retry takes the responsibility for an apply that is not known to be
    /// gone.
    pub(super) fn forgive(&mut self, instance: usize, state: &State) {
        for process in self.world.processes.values_mut() {
            process.forgiven |=
                process.instance == instance && state.job(process.start.job).is_none();
        }
    }
}
