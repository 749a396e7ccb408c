//! How a batch ends: as one commit, or undone as if nothing of it had been.

use schema::id::JobId;

use super::super::breakers;
use super::super::world::World;
use super::Batch;
use crate::names::InstanceNames;
use crate::store::{Commit, InstanceRow};

impl Batch {
    /// The rows of the instances that are not as they were. Many are asked and few change: a
    /// decision goes to all channels of a service, the turn of the clock to everybody. In the order
    /// of their names, in which the first commit puts them side by side: what is released together
    /// later is then on the same pages.
    fn changed_instances(&mut self, world: &mut World) -> Vec<InstanceRow> {
        let mut rows = Vec::new();
        for (id, before) in &mut self.before {
            if let Some(kept) = world.instances.get_mut(id) {
                if !before.as_mut().is_some_and(|before| before.says_the_same(kept)) {
                    kept.revision += 1;
                    rows.push(kept.row());
                }
            } else if let Some(stopped) =
                world.broken.get_mut(id).filter(|stopped| !stopped.needs_hand())
            {
                stopped.revision += 1;
                rows.push(stopped.row());
            }
        }
        rows.extend(
            self.written
                .iter()
                .filter(|id| !self.before.contains_key(id))
                .filter_map(|id| world.row(*id)),
        );
        rows.sort_by_cached_key(|row: &InstanceRow| {
            world.names(row.id).map(|names| {
                let InstanceNames { application, service, channel } = names.as_ref();
                (application.1.clone(), service.1.clone(), channel.1.clone())
            })
        });
        rows
    }

    /// The transaction.
    pub(in crate::driver) fn commit(&mut self, world: &mut World) -> Commit {
        let instances = self.changed_instances(world);
        let job = |id: &JobId| self.over.get(id).or_else(|| world.jobs.get(id)).cloned();
        Commit {
            changes: std::mem::take(&mut self.changes),
            instances,
            jobs: self.jobs.iter().filter_map(job).collect(),
            actions: std::mem::take(&mut self.actions),
            performed: self.performed.iter().chain(&self.settled).copied().collect(),
            events: std::mem::take(&mut self.events),
            ..Commit::default()
        }
    }

    /// Makes the world as it was before.
    pub(in crate::driver) fn undo(self, world: &mut World) {
        world.counters = self.counters;
        self.withdrawn.iter().for_each(|claim| claim.restore());
        for id in &self.stopped {
            world.broken.remove(id);
        }
        for id in &self.written {
            world.broken.entry(*id).and_modify(|stopped| stopped.revision -= 1);
        }
        breakers::undo(world, self.breakers_before);
        for (id, before) in self.before {
            match before {
                Some(kept) => world.put(kept),
                None => world.remove(id),
            }
        }
        self.mended.into_iter().for_each(|stopped| world.put_broken(stopped));
        for (id, before) in self.jobs_before {
            match before {
                Some(job) => world.jobs.insert(id, job),
                None => world.jobs.remove(&id),
            };
        }
    }
}
