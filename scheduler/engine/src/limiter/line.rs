//! Instances of one runtime that wait for a place in one lane: by service first, so that a service
//! with a thousand channels does not stand before one with a single channel.

use std::collections::{BTreeMap, BTreeSet};

use schema::id::{InstanceId, ServiceId};
use schema::time::Timestamp;

/// Who waits: since when, and of those of one moment who asked first.
pub(super) type Waiter = (Timestamp, u64, InstanceId);

/// Those who wait, the service with the fewest places first, and in it who has waited longest.
#[derive(Debug, Default)]
pub(super) struct Line {
    services: BTreeMap<ServiceId, Seat>,
    order: BTreeSet<(u32, Waiter, ServiceId)>,
}

#[derive(Debug, Default)]
struct Seat {
    waiters: BTreeSet<Waiter>,
    key: Option<(u32, Waiter)>,
}

impl Line {
    /// Takes in one who waits; its service holds so many places.
    pub(super) fn push(&mut self, service: ServiceId, waiter: Waiter, held: u32) {
        self.services.entry(service).or_default().waiters.insert(waiter);
        self.sort(service, held);
    }

    /// Takes one out, if it is here.
    pub(super) fn remove(&mut self, service: ServiceId, waiter: Waiter, held: u32) {
        if self.services.get_mut(&service).is_some_and(|seat| seat.waiters.remove(&waiter)) {
            self.sort(service, held);
        }
    }

    /// The service holds another number of places now.
    pub(super) fn sort(&mut self, service: ServiceId, held: u32) {
        let Some(seat) = self.services.get_mut(&service) else { return };
        let key = seat.waiters.first().map(|first| (held, *first));
        if key != seat.key {
            if let Some((held, first)) = std::mem::replace(&mut seat.key, key) {
                self.order.remove(&(held, first, service));
            }
            self.order.extend(key.map(|(held, first)| (held, first, service)));
        }
        if key.is_none() {
            self.services.remove(&service);
        }
    }

    /// Who is next.
    pub(super) fn first(&self) -> Option<Waiter> {
        self.order.first().map(|(_, waiter, _)| *waiter)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.services.values().map(|seat| seat.waiters.len()).sum()
    }

    /// How many have waited longer than this one.
    pub(super) fn before(&self, waiter: Waiter) -> usize {
        self.services.values().map(|seat| seat.waiters.range(..waiter).count()).sum()
    }

    /// Takes everybody out.
    pub(super) fn drain(&mut self) -> Vec<(ServiceId, Waiter)> {
        self.order.clear();
        let services = std::mem::take(&mut self.services);
        services
            .into_iter()
            .flat_map(|(service, seat)| {
                seat.waiters.into_iter().map(move |waiter| (service, waiter))
            })
            .collect()
    }
}
