//! Where an instance is, in words: status, reason and the sentence for people, made where it is
//! decided and stored with it. Called at the end of each step; a change of status or reason is
//! written into the log.

use schema::api::NextAction;
use schema::id::{ChannelName, JobId};
use schema::log_kind::LogKind;
use schema::status::{JobKind, Reason, Status};
use schema::time::Timestamp;

mod words;

use crate::action::Action;
use crate::action::log;
use crate::approve::name_of;
use crate::converge::{ShutGate, Situation};
use crate::state::{Job, RolledBack, State, StatusSummary};
use crate::step::duration;

impl State {
    /// Puts the situation into words.
    pub(crate) fn stand(&mut self, situation: &Situation, now: Timestamp, out: &mut Vec<Action>) {
        let (mut status, mut reason, mut message) = self.words(situation, now);
        let final_anyway = matches!(
            situation,
            Situation::Deleted | Situation::Paused | Situation::Converged | Situation::Cancelled
        );
        let at_a_gate =
            matches!(status, Status::WaitingManualApproval | Status::WaitingPreconditions);
        if self.pursuit.stuck
            && !final_anyway
            && !at_a_gate
            && reason != Some(Reason::ManualApprovalRejected)
        {
            let deadline =
                self.desired().and_then(|desired| desired.progress_deadline).unwrap_or_default();
            let refused = self
                .pursuit
                .rollback_refused
                .as_ref()
                .map_or_else(String::new, |why| format!(" and not taken back: {why}"));
            message = format!(
                "not converged within the progress deadline of {}{refused}; {message}",
                duration(deadline)
            );
            status = Status::Failed;
            reason = Some(Reason::Stuck);
        }
        if let Some(error) = self
            .look
            .error
            .as_ref()
            .filter(|error| self.looks() && self.look.misses > 0 && !message.contains(*error))
        {
            let times = if self.look.misses > 1 {
                format!(", {} times in a row", self.look.misses)
            } else {
                String::new()
            };
            message.push_str(&format!("; as last seen{times}: {error}"));
        }
        message.push_str(&self.main.as_deref().map_or_else(String::new, what_it_waits_for));
        let next = self.next_actions();
        let next_action_at = next
            .iter()
            .find(|next| next.action != JobKind::GetInfo.as_str())
            .or(next.first())
            .map(|next| next.at);
        let changed = self.standing.status != status || self.standing.reason != reason;
        if changed {
            let mut data = vec![("from", self.standing.status.as_str()), ("to", status.as_str())];
            data.extend(reason.map(|reason| ("reason", reason.as_str())));
            out.push(log(LogKind::InstanceStatus, None, message.clone(), &data));
        }
        let since = if changed { now } else { self.standing.since };
        self.standing = StatusSummary { status, reason, message, since, next_action_at };
    }

    /// What is said of a version that was seen as desired, and is looked at again.
    pub(crate) fn outdated_in_words(&self) -> &'static str {
        match (self.look.other_commands, self.look.watch.is_some()) {
            (true, false) => {
                "was as desired before its commands changed; fetch looks again with the new ones"
            }
            (true, true) => "was as desired before its commands changed; the watch looks anew",
            (false, false) => "was as desired when fetch last looked; it looks again",
            (false, true) => {
                "was as desired when the watch last told; it looks anew, and no fetch is run"
            }
        }
    }

    /// Who tells how the world is, in the middle of a sentence.
    pub(crate) fn who_looks(&self) -> &'static str {
        self.desired().map_or("fetch", |desired| desired.observe.who_looks())
    }

    /// That the version which is desired here was taken back in another channel, which will
    /// therefore not come to it.
    pub(crate) fn taken_back_in(&self, channel: &ChannelName) -> Option<&RolledBack> {
        self.upstream_back
            .get(channel)
            .filter(|back| self.desired().is_some_and(|desired| desired.version == back.from))
    }

    /// Channels that were converged at this version when that was asked, and are at another one by
    /// now: whoever approves should know.
    pub(crate) fn left_upstream(&self) -> impl Iterator<Item = (&ChannelName, &str)> {
        let version = self.desired().map_or("", |desired| desired.version.as_str());
        let others = self
            .upstream
            .iter()
            .filter(move |(channel, at)| *at != version && self.pursuit.met.contains(*channel));
        others.map(|(channel, at)| (channel, at.as_str()))
    }

    /// From when nothing but a place was in the way of its apply: its own fetch was until it
    /// answered.
    pub(crate) fn lacks_place_since(&self, now: Timestamp) -> Option<Timestamp> {
        let looked_at = self.look.answered_at.filter(|at| *at <= now);
        self.pursuit.ready_since.map(|since| looked_at.map_or(since, |at| at.max(since)))
    }

    /// What happens by itself, soonest first.
    pub(crate) fn next_actions(&self) -> Vec<NextAction> {
        let mut next = Vec::new();
        let mut add = |action: String, at: Option<Timestamp>| {
            next.extend(at.map(|at| NextAction { action, at }))
        };
        let idle = self.main.is_none();
        add("fetch".to_owned(), self.look.due.filter(|_| idle && self.looks()));
        let has_work = !self.deleted
            && !self.paused
            && !self.observer
            && self.pursuit.chain.as_ref().is_some_and(|chain| chain.end.is_some());
        add("apply".to_owned(), self.again_by_itself().filter(|_| idle && has_work));
        add("apply".to_owned(), self.wants.apply);
        let shut = self.pursuit.window_at.filter(|_| self.pursuit.ready_since.is_none());
        add("apply".to_owned(), shut.filter(|opens_at| self.lapses_before(*opens_at).is_none()));
        add(
            "getInfo".to_owned(),
            self.telling.due.filter(|_| self.side.is_none() && !self.deleted),
        );
        if let Some(job) = self.main.as_deref() {
            let what = match (&job.stop, job.started_at) {
                (Some(_), _) => "the end of a stopped",
                (None, Some(_)) => "the end of",
                (None, None) => "the start of",
            };
            let waits = job.stop.is_none() && job.started_at.is_none();
            add(
                format!("deadline: {what} {}", job.kind),
                if waits { job.starts_by() } else { job.deadline },
            );
        }
        for approval in self.live_approvals() {
            add("deadline: approval".to_owned(), approval.expires_at);
        }
        add("deadline: watch".to_owned(), self.look.watch.as_ref().map(|watch| watch.stale_at));
        add(
            "deadline: progress".to_owned(),
            self.pursuit.stuck_at.filter(|_| !self.cannot_look(self.seen_at)),
        );
        next.sort_by_key(|next| next.at);
        next
    }

    /// When the next apply comes if it waits for nothing but time (and a fetch).
    fn again_by_itself(&self) -> Option<Timestamp> {
        let at = match self.situate(self.seen_at) {
            Situation::ApplyFailed(at) | Situation::ApplyUnknown(at) => at,
            Situation::Retrying(at) | Situation::Misfired(at) | Situation::Grace(at) => Some(at),
            _ => None,
        }?;
        match self.shut_gates(at).next() {
            None => Some(at).filter(|at| self.lapses_before(*at).is_none()),
            Some(ShutGate::Window(opens_at)) => {
                opens_at.filter(|opens_at| self.lapses_before(*opens_at).is_none())
            }
            Some(
                ShutGate::Upstream(_)
                | ShutGate::Ask(_)
                | ShutGate::Approval(_)
                | ShutGate::Rejected(_),
            ) => None,
        }
    }

    /// What would have to come about before an apply at `at`, after "once"; `None` when nothing is
    /// in its way.
    pub(crate) fn conditions(&self, at: Timestamp) -> Option<String> {
        let words = |gate| match gate {
            ShutGate::Upstream(channels) => {
                let names: Vec<String> =
                    channels.iter().map(|channel| format!("`{channel}`")).collect();
                let are = if names.len() == 1 { "is" } else { "are" };
                format!("{} {are} converged at its version", names.join(" and "))
            }
            ShutGate::Ask(asker) => {
                format!("{} is asked for and given", self.asked_by(asker).unwrap_or_default())
            }
            ShutGate::Approval(at) => format!("{} is given", name_of(&self.approvals[at])),
            ShutGate::Rejected(at) if self.asks_anew() => {
                format!(
                    "{}, which was rejected, is asked for anew and given",
                    name_of(&self.approvals[at])
                )
            }
            ShutGate::Rejected(at) => format!(
                "`pvnctl services retry` ends that {} is rejected",
                name_of(&self.approvals[at])
            ),
            ShutGate::Window(Some(opens_at)) => format!("the apply window opens at {opens_at}"),
            ShutGate::Window(None) => {
                "the schedule of the apply window has an instant left".to_owned()
            }
        };
        let lapses = self.lapses_before(at).map(|approval| {
            let lapses_at = approval
                .expires_at
                .map_or_else(String::new, |at| format!(", which lapses at {at},"));
            format!("{}{lapses_at} is asked for anew and given", name_of(approval))
        });
        let words: Vec<String> = lapses.into_iter().chain(self.shut_gates(at).map(words)).collect();
        (!words.is_empty()).then(|| words.join(" and "))
    }

    /// That what is approved is too old by then.
    pub(crate) fn lapses(&self, by: Timestamp) -> Option<String> {
        let approval = self.lapses_before(by)?;
        let at = approval.expires_at.map_or_else(String::new, |at| format!(" at {at}"));
        Some(format!(
            "{} lapses before that{at}, and is asked for again (`approvalTimeout`)",
            name_of(approval)
        ))
    }
}

/// What keeps the fetch or apply in flight from starting, from being looked at, or from being
/// stopped, belongs to whatever else is said.
fn what_it_waits_for(job: &Job) -> String {
    let Some(wait) = job.waits.as_ref().filter(|wait| job.stop.is_none() || wait.is_unseen) else {
        return String::new();
    };
    let until = if job.started_at.is_some() { job.deadline } else { job.starts_by() };
    let until = until.map_or_else(String::new, |at| format!(" (until {at})"));
    format!("; {} {} waits{until}: {}", job.kind, job.id, wait.why)
}

/// What ends a job that was given up and may still run, for people.
pub(crate) fn stops_once_more(job: JobId) -> String {
    format!(
        "`pvnctl jobs cancel {job}` stops it once more where somebody still has it, and kills it \
         when asked again"
    )
}
