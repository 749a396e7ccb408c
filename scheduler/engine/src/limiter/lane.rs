//! One kind of job in one runtime: who waits, who holds a place, and how many there may be.

use std::collections::{BTreeMap, BTreeSet};

use schema::id::{InstanceId, ServiceId};
use schema::time::Timestamp;

use super::Head;
use super::line::{Line, Waiter};

/// Who holds a place, since when.
pub(super) type Occupant = (Timestamp, InstanceId);

/// One kind of job in one runtime.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Those that piled up, and fresh ones.
    pub(super) lines: [Line; 2],
    pub(super) holders: BTreeSet<Occupant>,
    /// Those whose apply was given up and may still run: they count against `caps` alone.
    pub(super) given_up: BTreeSet<Occupant>,
    /// Places by service; none that holds nothing.
    pub(super) held_by: BTreeMap<ServiceId, u32>,
    /// The limits that instances know for this runtime; the least counts while a change of config
    /// is on its way.
    pub(super) caps: BTreeMap<u32, usize>,
    /// The most of now, whatever those are; none perhaps.
    pub(super) bound: Option<u32>,
    pub(super) shown: [Option<Head>; 2],
}

impl Lane {
    pub(super) fn unqueue(&mut self, service: ServiceId, waiter: Waiter) {
        let held = self.held_by.get(&service).copied().unwrap_or(0);
        self.lines.iter_mut().for_each(|line| line.remove(service, waiter, held));
    }

    pub(super) fn hold(&mut self, service: ServiceId, holder: Occupant) {
        self.holders.insert(holder);
        let held = self.held_by.entry(service).or_default();
        *held += 1;
        let held = *held;
        self.lines.iter_mut().for_each(|line| line.sort(service, held));
    }

    pub(super) fn release(&mut self, service: ServiceId, holder: Occupant) {
        self.holders.remove(&holder);
        let held = self.held_by.get(&service).map_or(0, |held| held.saturating_sub(1));
        if held == 0 {
            self.held_by.remove(&service);
        } else {
            self.held_by.insert(service, held);
        }
        self.lines.iter_mut().for_each(|line| line.sort(service, held));
    }
}
