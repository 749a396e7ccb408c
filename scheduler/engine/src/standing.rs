//! What an instance is shown with, where many are listed: the description of its situation, stored
//! with it. Called at the end of each step; a change of status or reason is written into the log.

use schema::log_kind::LogKind;
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::action::{Action, log};
use crate::converge::Situation;
use crate::describe::Description;
use crate::state::{State, StatusSummary};

impl State {
    /// Keeps how the instance stands.
    pub(crate) fn stand(&mut self, situation: &Situation, now: Timestamp, out: &mut Vec<Action>) {
        let Description { status, reason, message, next, .. } = situation.describe(self, now);
        let next_action_at = next
            .iter()
            .find(|next| next.action != JobKind::GetInfo.as_str())
            .or(next.first())
            .map(|next| next.at);
        let changed = self.standing.status != status || self.standing.reason != reason;
        if changed {
            let mut data = vec![("from", self.standing.status.as_str()), ("to", status.as_str())];
            data.extend(reason.map(|reason| ("reason", reason.as_str())));
            data.extend(self.is_outdated().then_some(("outdated", "true")));
            out.push(log(LogKind::InstanceStatus, None, message.clone(), &data));
        }
        let since = if changed { now } else { self.standing.since };
        self.standing = StatusSummary { status, reason, message, since, next_action_at };
    }
}
