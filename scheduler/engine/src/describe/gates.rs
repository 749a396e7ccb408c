//! What is said of an instance that waits at a gate before its apply: another channel, people, the
//! window, a place. And what an apply would have to wait for at another instant.

use schema::id::ChannelName;
use schema::status::{Reason, Status};
use schema::time::Timestamp;

use super::{Because, Description, WayOut};
use crate::approve::name_of;
use crate::converge::ShutGate;
use crate::desired::Unmet;
use crate::limits::LANE_PATIENCE;
use crate::state::{ApplyEnd, RolledBack, State};

/// The way out for what cannot wait for a window.
pub(crate) const LIFTS: &str =
    "where it cannot wait, `pvnctl services open-window` lifts the window for this version";

impl State {
    pub(super) fn describe_observing(&self, now: Timestamp) -> Description<'static> {
        let when = self
            .conditions(now)
            .map_or_else(|| "now".to_owned(), |conditions| format!("once {conditions}"));
        let (who, until) = match self.observe_wish() {
            Some(wish) if !self.observer => (wish.in_words(), " until `pvnctl services resume`"),
            _ => ("observer mode".to_owned(), ""),
        };
        let message = format!(
            "{who}: it would apply {} {when}, but only looks{until}; {}",
            self.version_in_words(),
            self.what()
        );
        let reason = self.work_reason();
        Description::new(Status::Converging, reason, message, WayOut::ObserverEnds)
    }

    pub(super) fn describe_unmet<'a>(&self, unmet: &'a Unmet) -> Description<'a> {
        let version = self.version_in_words();
        let is_back = unmet.channels().iter().any(|channel| self.taken_back_in(channel).is_some());
        let back = match is_back {
            true => format!(
                "; {version} got stuck there and was taken back, so that takes a new release"
            ),
            false => String::new(),
        };
        let message = format!("waits until {}{back}; {}", unmet.until(version), self.what());
        let reason = Some(unmet.reason());
        Description::new(Status::WaitingPreconditions, reason, message, WayOut::Met(unmet))
    }

    /// Nobody sees it: whoever asks does so in the same step.
    pub(super) fn describe_question(&self) -> Description<'static> {
        let (reason, what) = (self.work_reason(), self.what());
        Description::new(Status::WaitingManualApproval, reason, what, WayOut::Question)
    }

    /// `at`: which of the approvals.
    pub(super) fn describe_approval(&self, at: usize) -> Description<'static> {
        let (approval, version) = (&self.approvals[at], self.version_in_words());
        let yes = approval.yes().count();
        let before =
            self.asked_before(approval).map_or_else(String::new, |before| format!("{before}; "));
        let left: String = self
            .left_upstream()
            .map(|(channel, at)| format!("`{channel}` is at {at} by now, not at {version}; "))
            .collect();
        // Whoever says yes once more should know what came of the last one.
        let tried = self.after();
        let message = format!(
            "waits for {} ({yes} of {} people said yes); {left}{before}{tried}{}",
            name_of(approval),
            approval.needed,
            self.what()
        );
        let reason = self.work_reason();
        Description::new(Status::WaitingManualApproval, reason, message, WayOut::Answer(at))
            .besides([Because::LeftUpstream])
    }

    /// `at`: which of the approvals.
    pub(super) fn describe_rejected(&self, at: usize) -> Description<'static> {
        let approval = &self.approvals[at];
        let no = approval.votes.last();
        let who = no.map_or("someone", |vote| vote.who.as_str());
        let why = no
            .and_then(|vote| vote.reason.as_ref())
            .map_or_else(String::new, |why| format!(": {why}"));
        let way_out = match self.asks_anew() {
            true => "a new release or `pvnctl services retry` asks anew",
            false => {
                "a new release ends that, and so does `pvnctl services retry`, which applies it: \
                 nobody is asked any more"
            }
        };
        let message = format!("{who} rejected {}{why}; {way_out}", name_of(approval));
        let reason = Some(Reason::ManualApprovalRejected);
        Description::new(Status::Failed, reason, message, WayOut::Answer(at))
    }

    pub(super) fn describe_window(&self, opens_at: Option<Timestamp>) -> Description<'static> {
        let opens = opens_at.map_or_else(
            || "never opens again: change its schedule".to_owned(),
            |at| format!("opens at {}", self.in_window_zone(at)),
        );
        let lapses = opens_at
            .and_then(|at| self.lapses(at))
            .map_or_else(String::new, |lapses| format!("; {lapses}"));
        let failed = self.chain_end().filter(|(.., end)| {
            !matches!(end, ApplyEnd::Succeeded | ApplyEnd::SucceededLeaving(_))
        });
        let failed = failed.map_or_else(String::new, |_| format!("; {}", self.apply_ended()));
        let message = format!(
            "outside the apply window, which {opens}{lapses}; {}{failed}; {LIFTS}",
            self.what()
        );
        let (reason, way_out) = (Some(Reason::OutsideWindow), WayOut::WindowOpens(opens_at));
        Description::new(Status::WaitingPreconditions, reason, message, way_out)
            .because([Because::ApplyEnded])
            .besides(opens_at.map(Because::Lapses))
    }

    /// The instant, and how a clock in the zone of the window shows it: whoever wrote the window
    /// thinks in that one.
    pub(crate) fn in_window_zone(&self, at: Timestamp) -> String {
        let window = self.desired().and_then(|desired| desired.apply.window.as_ref());
        match window.and_then(|window| window.opens.shown_in_zone(at)) {
            Some(shown) => format!("{at} ({shown})"),
            None => at.to_string(),
        }
    }

    /// All gates are open; after a moment without a place people are told that a limit is full.
    pub(super) fn describe_ready(&self, now: Timestamp) -> Description<'static> {
        if let Some(held) = &self.held {
            let runtime = self.desired().map_or("", |desired| desired.runtime.as_str());
            let message =
                format!("applies of runtime `{runtime}` {}; {}", held.in_words(), self.what());
            let reason = Some(Reason::ConcurrencyLimitExceeded);
            return Description::new(Status::WaitingPreconditions, reason, message, WayOut::Place);
        }
        let told = self.standing.reason == Some(Reason::ConcurrencyLimitExceeded);
        let waited =
            self.lacks_place_since(now).is_some_and(|since| now.since(since) >= LANE_PATIENCE);
        let runtime = self.desired().map_or("", |desired| desired.runtime.as_str());
        let what = self.what();
        let fetch = self.main.as_deref().map(|job| {
            format!(
                "once {} {}, which is under way, has ended and found nothing else",
                job.kind, job.id
            )
        });
        let ready = |message| {
            let reason = self.work_reason();
            Description::new(Status::Converging, reason, message, WayOut::Place)
        };
        let message = match fetch {
            None if waited || told => format!(
                "waits for one of the applies of runtime `{runtime}` to end, as many run as may; \
                 {what}"
            ),
            // Whether the limit is full by now is told when it is the turn of this one again.
            Some(fetch) if told => format!(
                "goes on {fetch}, and fewer applies of runtime `{runtime}` run than may; {what}"
            ),
            None => return ready(format!("ready to apply: {what}")),
            Some(fetch) => return ready(format!("ready to apply {fetch}: {what}")),
        };
        let reason = Some(Reason::ConcurrencyLimitExceeded);
        Description::new(Status::WaitingPreconditions, reason, message, WayOut::Place)
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
            .filter(move |(channel, at)| *at != version && self.rollout.met().contains(*channel));
        others.map(|(channel, at)| (channel, at.as_str()))
    }

    /// From when nothing but a place was in the way of its apply: its own fetch was until it
    /// answered.
    pub(crate) fn lacks_place_since(&self, now: Timestamp) -> Option<Timestamp> {
        let looked_at = self.observed.answered_at().filter(|at| *at <= now);
        self.rollout.ready_since().map(|since| looked_at.map_or(since, |at| at.max(since)))
    }

    /// What would have to come about before an apply at `at`, after "once"; `None` when nothing is
    /// in its way.
    pub(crate) fn conditions(&self, at: Timestamp) -> Option<String> {
        let lapses = self.lapses_before(at).map(|approval| {
            let lapses_at = approval
                .expires_at
                .map_or_else(String::new, |at| format!(", which lapses at {at},"));
            format!("{}{lapses_at} is asked for anew and given", name_of(approval))
        });
        let gates = self.shut_gates(at).map(|gate| self.condition(&gate));
        let words: Vec<String> = lapses.into_iter().chain(gates).collect();
        (!words.is_empty()).then(|| words.join(" and "))
    }

    /// What opens one gate, after "once".
    pub(crate) fn condition(&self, gate: &ShutGate) -> String {
        match gate {
            ShutGate::Unmet(unmet) => unmet.until("its version"),
            ShutGate::Ask(asker) => {
                format!("{} is asked for and given", self.asked_by(*asker).unwrap_or_default())
            }
            ShutGate::Approval(at) => format!("{} is given", name_of(&self.approvals[*at])),
            ShutGate::Rejected(at) if self.asks_anew() => {
                format!(
                    "{}, which was rejected, is asked for anew and given",
                    name_of(&self.approvals[*at])
                )
            }
            ShutGate::Rejected(at) => format!(
                "`pvnctl services retry` ends that {} is rejected",
                name_of(&self.approvals[*at])
            ),
            ShutGate::Window(Some(opens_at)) => {
                format!("the apply window opens at {}", self.in_window_zone(*opens_at))
            }
            ShutGate::Window(None) => {
                "the schedule of the apply window has an instant left".to_owned()
            }
        }
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
