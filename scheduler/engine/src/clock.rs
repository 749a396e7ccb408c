//! What a clock that jumps does to the plans in a state. Called first in every step.
//!
//! Forward: everything in between is due at once, and the lanes bound what starts. Back: every planned instant moves
//! along, so that a wait of ten minutes stays one of ten minutes; nothing hangs until the old time comes round again,
//! and nothing runs twice in a burst.

use schema::time::Timestamp;

use crate::limits::CLOCK_SLACK_MS;
use crate::state::State;

impl State {
    /// Takes note of the time and returns the one that counts.
    pub(crate) fn take_time(&mut self, now: Timestamp) -> Timestamp {
        let back = self.seen_at.since_ms(now);
        if back > CLOCK_SLACK_MS {
            self.shift(-back);
            self.seen_at = now;
        }
        self.seen_at = self.seen_at.max(now);
        self.seen_at
    }

    fn shift(&mut self, ms: i64) {
        let waits = [&mut self.main, &mut self.side].into_iter().flatten().filter_map(|job| job.waits.as_mut());
        waits.for_each(|wait| wait.until = wait.until.plus_ms(ms));
        let chain = self.pursuit.chain.as_mut().map(|chain| [&mut chain.grace_until, &mut chain.again_at]);
        let pursuit = [&mut self.pursuit.ready_since, &mut self.pursuit.window_at, &mut self.pursuit.stuck_at];
        let dues = [&mut self.look.due, &mut self.telling.due];
        let jobs = [&mut self.main, &mut self.side].into_iter().flatten().map(|job| &mut job.deadline);
        let approvals = self.approvals.iter_mut().map(|approval| &mut approval.expires_at);
        let maybe = pursuit.into_iter().chain(dues).chain(jobs).chain(approvals).flatten();
        for planned in maybe.chain(chain.into_iter().flatten()) {
            *planned = planned.plus_ms(ms);
        }
    }
}
