//! What an explanation says of a place that is waited for: who has those that there are.

use schema::cause::CauseCode;
use schema::status::JobKind;
use schema::time::Timestamp;

use super::CauseChain;
use crate::limiter::{Blocked, Holder};

impl CauseChain<'_> {
    fn names_of(&self, holders: &[Holder], held: usize) -> String {
        let name = |holder: &Holder| {
            let lost = match (holder.is_given_up, holder.is_deleted) {
                (false, _) => "",
                (true, false) => {
                    " (given up and may still run, until `pvnctl services retry` there says \
                     otherwise)"
                }
                (true, true) => {
                    " (given up and may still run; its channel has left the config: once that is \
                     back and pushed, `pvnctl services retry` there says otherwise)"
                }
            };
            format!(
                "{} with {} since {}{lost}",
                (self.around.name)(holder.instance),
                holder.job,
                holder.since
            )
        };
        let mut names: Vec<String> = holders.iter().map(name).collect();
        if held > holders.len() {
            names.push(format!("{} more", held - holders.len()));
        }
        names.join(", ")
    }

    pub(super) fn waits_for_place(&mut self, kind: JobKind, since: Option<Timestamp>) {
        // It comes when the fetch has ended, if there is a place by then.
        let looks_first = self.state.main.is_some() && kind == JobKind::Apply;
        match self.lanes.blocked(self.state, kind, self.now) {
            Blocked::Pace | Blocked::NotBlocked if looks_first => {}
            Blocked::Runtime { runtime, limit, holders, held, ahead } => {
                let held_by = self.names_of(&holders, held);
                let before = match ahead {
                    _ if looks_first => "the fetch that is under way comes first".to_owned(),
                    0 => "it is next".to_owned(),
                    ahead => format!("{ahead} have waited longer"),
                };
                let text = format!(
                    "{held} of {limit} places for {kind} in runtime `{runtime}` are taken by \
                     {held_by}; {before}"
                );
                self.say(CauseCode::LimitFull, text, since, None);
            }
            Blocked::Share { runtime, limit, free, holders, held } => {
                let held_by = self.names_of(&holders, held);
                let text = format!(
                    "runtime `{runtime}` has its share, {held} of the daemon's {limit} places for \
                     {kind}, taken by {held_by}; the other {free} are kept for other runtimes; \
                     ends when one of these jobs ends"
                );
                self.say(CauseCode::LimitFull, text, since, None);
            }
            Blocked::Daemon { limit, holders } => {
                let by = |(runtime, held, longest): &(_, usize, Holder)| {
                    let name = (self.around.name)(longest.instance);
                    format!(
                        "{held} by runtime `{runtime}`, longest by {name} with {} since {}",
                        longest.job, longest.since
                    )
                };
                let held_by: Vec<String> = holders.iter().map(by).collect();
                let text = format!(
                    "all {limit} places of this daemon for {kind} are taken: {}; ends when one of \
                     these jobs ends",
                    held_by.join("; ")
                );
                self.say(CauseCode::LimitFull, text, since, None);
            }
            Blocked::Pace => {
                let text = format!(
                    "{kind} was due while the daemon was down; what piled up is let through at a \
                     bounded pace, oldest first"
                );
                self.say(CauseCode::RestartPace, text, since, self.lanes.next_wake(self.now));
            }
            Blocked::NotBlocked => self.say(
                CauseCode::StartsNow,
                format!("{kind} is ready and starts with the next free place"),
                since,
                None,
            ),
        }
    }
}
