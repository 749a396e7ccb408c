//! The wall clock, which jumps both ways while the daemon runs and while it is down.

use engine::event::ClockStep;

use super::*;

impl Driver {
    pub(super) fn jump(&mut self) {
        let ms = self.random.between(1, 7_200) * 500;
        let back = self.random.one_in(2);
        self.step_clock(if back { -ms } else { ms });
    }

    /// The daemon sees it at once: its steady clock shows by how much.
    pub(super) fn step_clock(&mut self, by_ms: i64) {
        self.offset_ms += by_ms;
        self.whole = true;
        for instance in 0..self.states.len() {
            if by_ms < 0 || self.states[instance].follows_elapsed_time() {
                self.handle(instance, Event::ClockStepped { by: ClockStep::from_millis(by_ms) });
            }
        }
        self.whole = false;
        self.known_offset_ms = self.offset_ms;
    }

    /// It may have jumped while the daemon was down; in the same boot of the machine that is known,
    /// elsewhere it is not.
    pub(super) fn clock_while_down(&mut self) {
        let looked_at = self.wall();
        if !self.calm && self.random.one_in(3) {
            self.offset_ms += self.random.between(-7_200, 7_200) * 500;
        }
        let same_boot = self.calm || !self.random.one_in(3);
        let stepped_ms = if same_boot { self.offset_ms - self.known_offset_ms } else { 0 };
        self.oracle.recovered(same_boot);
        self.known_offset_ms = self.offset_ms;
        self.whole = true;
        let now = self.wall();
        for instance in 0..self.states.len() {
            let state = &self.states[instance];
            if state.follows_elapsed_time() || state.seen_at() > now {
                self.handle(
                    instance,
                    Event::Recovered { stepped: ClockStep::from_millis(stepped_ms), looked_at },
                );
            }
        }
        self.whole = false;
    }
}
