//! Status, reason and sentence of each situation. A part of [`super`].

use schema::id::{ChannelName, JobId};
use schema::status::{JobKind, Reason, Status};
use schema::time::Timestamp;

use super::stops_once_more;
use crate::approve::name_of;
use crate::converge::Situation;
use crate::limits::LANE_PATIENCE;
use crate::state::{ApplyAttempts, ApplyEnd, Finding, Job, State};
use crate::step::in_words;

/// Where an instance stands, why, and the sentence for people.
type InWords = (Status, Option<Reason>, String);

impl State {
    pub(super) fn words(&self, situation: &Situation, now: Timestamp) -> InWords {
        let version = self.version_in_words();
        let work_reason = self.work().map(|work| work.reason);
        match situation {
            Situation::Deleted => {
                (Status::Deleted, None, with_running(self.main.as_deref(), &gone(self.had())))
            }
            Situation::NoRelease => (
                Status::Converging,
                Some(Reason::NoCurrentState),
                match self.paused {
                    true => format!(
                        "no release yet, and {}; `pvnctl services explain` names the ways on",
                        self.paused_in_words()
                    ),
                    false => "no release yet; `pvnctl services explain` names the command that \
                              makes one"
                        .to_owned(),
                },
            ),
            Situation::Paused => {
                let beneath = match self.ended_badly() {
                    true => format!("; before that {}", self.apply_ended()),
                    false => String::new(),
                };
                let words = format!(
                    "{}; `pvnctl services resume` goes on{beneath}",
                    self.paused_in_words()
                );
                (Status::Paused, None, with_running(self.main.as_deref(), &words))
            }
            Situation::Applying => {
                (Status::Converging, work_reason, self.applying_in_words(version))
            }
            Situation::Converged => self.converged_in_words(version),
            Situation::Unseen | Situation::Unlooked | Situation::Looking => {
                self.unseen_in_words(situation)
            }
            Situation::Pending | Situation::Broken => self.objects_in_words(situation),
            Situation::Cancelled => {
                (Status::Failed, Some(Reason::Cancelled), self.cancelled_in_words())
            }
            Situation::Unsettled(job) => self.unsettled_in_words(*job),
            Situation::ApplyFailed(at) => {
                (Status::Failed, Some(Reason::ApplyFailed), self.ended_and_again(*at))
            }
            Situation::ApplyUnknown(None) => {
                (Status::Failed, Some(Reason::ApplyFailed), self.ended_and_again(None))
            }
            Situation::ApplyUnknown(at) => {
                let message = format!(
                    "{}; {} decides what is next; {}",
                    self.apply_ended(),
                    self.who_looks(),
                    self.again_in_words(*at)
                );
                (Status::Converging, Some(Reason::ApplyFailed), message)
            }
            Situation::Retrying(at) => (
                Status::Converging,
                work_reason,
                format!("{}; next attempt after {at}", self.apply_ended()),
            ),
            Situation::Misfired(at) => (
                Status::Converging,
                work_reason,
                format!("{}; next try after {at}", self.apply_ended()),
            ),
            Situation::Grace(until) => {
                let left = match self.chain_end() {
                    Some((_, _, ApplyEnd::SucceededLeaving(left))) => format!("its apply {left}; "),
                    _ => String::new(),
                };
                let in_a_row = self.in_a_row();
                let message = format!(
                    "{version} is applied, and its effect has until {until} to show{in_a_row}; \
                     {left}{}",
                    self.what()
                );
                (Status::Converging, work_reason, message)
            }
            Situation::Observing => {
                let when = self
                    .conditions(now)
                    .map_or_else(|| "now".to_owned(), |conditions| format!("once {conditions}"));
                let message = format!(
                    "observer mode: it would apply {version} {when}, but only looks; {}",
                    self.what()
                );
                (Status::Converging, work_reason, message)
            }
            Situation::Upstream(channels) => self.upstream_in_words(channels),
            Situation::Ask(_) => (Status::WaitingManualApproval, work_reason, self.what()),
            Situation::Approval(at) => {
                (Status::WaitingManualApproval, work_reason, self.approval_in_words(*at))
            }
            Situation::Rejected(at) => {
                (Status::Failed, Some(Reason::ManualApprovalRejected), self.rejected_in_words(*at))
            }
            Situation::WindowShut(opens_at) => self.window_in_words(*opens_at),
            Situation::Ready(_) => self.ready_in_words(now, work_reason, &self.what()),
        }
    }

    /// The one that is desired.
    fn version_in_words(&self) -> &str {
        self.desired().map_or("", |desired| desired.version.as_str())
    }

    /// The work that is to be done.
    fn what(&self) -> String {
        self.work().map_or_else(
            || format!("{} is not applied yet", self.version_in_words()),
            |work| work.what.clone(),
        )
    }

    /// Job, attempt and end of the apply that ended last.
    fn chain_end(&self) -> Option<(JobId, u32, &ApplyEnd)> {
        self.pursuit
            .chain
            .as_ref()
            .and_then(|chain| Some((chain.job, chain.attempt, chain.end.as_ref()?)))
    }

    /// Whether the last apply of what is desired went as nobody wished.
    pub(crate) fn ended_badly(&self) -> bool {
        matches!(
            self.chain_end(),
            Some((_, _, ApplyEnd::Failed(_) | ApplyEnd::Unknown(_) | ApplyEnd::Cancelled(_)))
        )
    }

    /// How many applies there were in a row, as a part of a sentence about the last.
    fn in_a_row(&self) -> String {
        self.pursuit.chain.as_ref().map_or_else(String::new, ApplyAttempts::in_a_row_in_words)
    }

    fn apply_ended(&self) -> String {
        let version = self.version_in_words();
        let others = self.pursuit.chain.as_ref().map_or("", ApplyAttempts::other_commands_in_words);
        let in_a_row = self.in_a_row();
        match self.chain_end() {
            Some((job, attempt, end)) if attempt > 1 => {
                format!(
                    "apply {job} of {version}{others} {} (attempt {attempt}){in_a_row}",
                    in_words(end)
                )
            }
            Some((job, _, end)) => {
                format!("apply {job} of {version}{others} {}{in_a_row}", in_words(end))
            }
            None => format!("apply of {version} ended"),
        }
    }

    /// The same before what follows, where one ended.
    fn after(&self) -> String {
        self.chain_end().map_or_else(String::new, |_| format!("{}; ", self.apply_ended()))
    }

    fn again_in_words(&self, at: Option<Timestamp>) -> String {
        let who = self.who_looks();
        match at {
            Some(at) => match self.conditions(at) {
                Some(conditions) => {
                    format!("tried again after {at} if {who} still sees work, once {conditions}")
                }
                None => format!(
                    "tried again after {at} if {who} still sees work, or at once with `pvnctl \
                     services retry`"
                ),
            },
            None => "a new release or `pvnctl services retry` tries again".to_owned(),
        }
    }

    fn ended_and_again(&self, at: Option<Timestamp>) -> String {
        format!("{}; {}", self.apply_ended(), self.again_in_words(at))
    }

    fn applying_in_words(&self, version: &str) -> String {
        let Some(job) = self.main.as_deref() else { return String::new() };
        let attempt =
            if job.attempt > 1 { format!(" (attempt {})", job.attempt) } else { String::new() };
        let does = match (&job.stop, job.started_at) {
            (Some(_), _) => "is being stopped",
            (None, Some(_)) => "runs",
            (None, None) => "is starting",
        };
        let no = self.approvals.iter().find(|approval| approval.is_no());
        if let Some(no) = no.filter(|_| job.version == version) {
            let (id, name) = (job.id, name_of(no));
            let who = no.votes.last().map_or("someone", |vote| vote.who.as_str());
            format!(
                "apply {id} of {version}{attempt} {does}, and no other follows: {who} rejected \
                 {name}; `pvnctl jobs cancel {id}` stops it"
            )
        } else if job.version == version {
            format!("apply {} of {version}{attempt} {does}", job.id)
        } else {
            format!("apply {} of {} {does}; {version} comes after its end", job.id, job.version)
        }
    }

    /// Who paused it, without a subject.
    pub(crate) fn paused_in_words(&self) -> String {
        match &self.paused_by {
            _ if self.pause_is_assumed => {
                "paused, because nobody knows any more whether a person had paused it".to_owned()
            }
            Some(who) => format!("paused by {who}"),
            None => "paused by a person".to_owned(),
        }
    }

    fn converged_in_words(&self, version: &str) -> InWords {
        match self.look.error.as_deref().filter(|_| self.look.misses > 0) {
            Some(error) => (
                Status::Converged,
                Some(Reason::FetchFailed),
                format!("{version} as last seen; {error}"),
            ),
            None if self.is_outdated() => {
                (Status::Converged, None, format!("{version} {}", self.outdated_in_words()))
            }
            None => {
                let looks = self.desired().is_some_and(|desired| desired.observe.looks());
                let left = self
                    .left_behind
                    .as_ref()
                    .filter(|_| !looks)
                    .map_or_else(String::new, |left| format!("; {left}"));
                let doubt = self
                    .look
                    .doubt
                    .as_ref()
                    .map_or_else(String::new, |doubt| format!(", but {doubt}"));
                let unsettled = self.unsettled_apply().map_or_else(String::new, |(job, _)| {
                    format!(
                        "; apply {job} was given up and may still run: see `pvnctl services \
                         explain`"
                    )
                });
                (
                    Status::Converged,
                    None,
                    format!("{version} is as desired{left}{doubt}{unsettled}"),
                )
            }
        }
    }

    /// Nothing goes on before something was seen.
    fn unseen_in_words(&self, situation: &Situation) -> InWords {
        let (version, who) = (self.version_in_words(), self.who_looks());
        let (reason, message) = match (situation, self.look.error.as_deref()) {
            (Situation::Unseen, error) => {
                let seen =
                    self.look.answered_at.map_or_else(String::new, |at| format!(" since {at}"));
                let error = error.map_or_else(|| format!("{who} does not answer"), str::to_owned);
                (
                    Some(Reason::FetchFailed),
                    format!("{version} was converged and has not been seen{seen}: {error}"),
                )
            }
            (Situation::Unlooked, Some(error)) => {
                (Some(Reason::FetchFailed), format!("nothing is known of {version} yet: {error}"))
            }
            (Situation::Unlooked, None) => (
                Some(Reason::NoCurrentState),
                format!("waits for the first answer of {who} for {version}"),
            ),
            (_, error) => {
                let work_reason = self.work().map(|work| work.reason);
                let reason =
                    if self.look.misses > 0 { Some(Reason::FetchFailed) } else { work_reason };
                let error = error.map_or_else(String::new, |error| format!(": {error}"));
                (
                    reason,
                    format!("{}waits for {who} to tell how things are now{error}", self.after()),
                )
            }
        };
        (Status::Converging, reason, message)
    }

    fn objects_in_words(&self, situation: &Situation) -> InWords {
        let what = match &self.look.finding {
            Finding::Pending(what) | Finding::Broken(what) => what.as_str(),
            _ => "",
        };
        let message = format!("every object runs {}, but {what}", self.version_in_words());
        if *situation == Situation::Broken {
            (Status::Failed, Some(Reason::RuntimeObjectFailed), message)
        } else {
            (Status::Converging, (self.look.misses > 0).then_some(Reason::FetchFailed), message)
        }
    }

    fn cancelled_in_words(&self) -> String {
        let ended = self.apply_ended();
        match self.unsettled {
            Some(job) => format!(
                "{ended}, but is not known to be gone and may still run; no apply starts until it \
                 is ({}), or until `pvnctl services retry` says that one may",
                stops_once_more(job)
            ),
            None => format!("{ended}; a new release or `pvnctl services retry` tries again"),
        }
    }

    fn unsettled_in_words(&self, job: JobId) -> InWords {
        let way_out = format!(
            "no apply starts until it is known to be gone ({}), or until `pvnctl services retry` \
             says that one may",
            stops_once_more(job)
        );
        let kind = self.given_up_kind(job);
        let ended = match self.chain_end() {
            Some((ended, ..)) if ended == job => self.apply_ended(),
            _ => format!("{kind} {job} was given up"),
        };
        let reason = if kind == JobKind::Apply { Reason::ApplyFailed } else { Reason::FetchFailed };
        (Status::Failed, Some(reason), format!("{ended}; it may still run, and {way_out}"))
    }

    fn upstream_in_words(&self, channels: &[ChannelName]) -> InWords {
        let version = self.version_in_words();
        let names: Vec<String> = channels.iter().map(|channel| format!("`{channel}`")).collect();
        let are = if names.len() == 1 { "is" } else { "are" };
        let is_back = channels.iter().any(|channel| self.taken_back_in(channel).is_some());
        let back = match is_back {
            true => format!(
                "; {version} got stuck there and was taken back, so that takes a new release"
            ),
            false => String::new(),
        };
        let message = format!(
            "waits until {} {are} converged at {version}{back}; {}",
            names.join(" and "),
            self.what()
        );
        (Status::WaitingPreconditions, Some(Reason::ReleaseChannelDependencyUnmet), message)
    }

    /// `at`: which of the approvals.
    fn approval_in_words(&self, at: usize) -> String {
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
        format!(
            "waits for {} ({yes} of {} people said yes); {left}{before}{tried}{}",
            name_of(approval),
            approval.needed,
            self.what()
        )
    }

    /// `at`: which of the approvals.
    fn rejected_in_words(&self, at: usize) -> String {
        let approval = &self.approvals[at];
        let who = approval.votes.last().map_or("someone", |vote| vote.who.as_str());
        let why = approval
            .votes
            .last()
            .and_then(|vote| vote.reason.as_ref())
            .map_or_else(String::new, |why| format!(": {why}"));
        let way_out = match self.asks_anew() {
            true => "a new release or `pvnctl services retry` asks anew",
            false => {
                "a new release ends that, and so does `pvnctl services retry`, which applies it: \
                 nobody is asked any more"
            }
        };
        format!("{who} rejected {}{why}; {way_out}", name_of(approval))
    }

    fn window_in_words(&self, opens_at: Option<Timestamp>) -> InWords {
        let opens = opens_at.map_or_else(
            || "never opens again: change its schedule".to_owned(),
            |at| format!("opens at {at}"),
        );
        let lapses = opens_at
            .and_then(|at| self.lapses(at))
            .map_or_else(String::new, |lapses| format!("; {lapses}"));
        let failed = self.chain_end().filter(|(.., end)| {
            !matches!(end, ApplyEnd::Succeeded | ApplyEnd::SucceededLeaving(_))
        });
        let failed = failed.map_or_else(String::new, |_| format!("; {}", self.apply_ended()));
        let message =
            format!("outside the apply window, which {opens}{lapses}; {}{failed}", self.what());
        (Status::WaitingPreconditions, Some(Reason::OutsideWindow), message)
    }

    /// All gates are open; after a moment without a place people are told that a limit is full.
    fn ready_in_words(&self, now: Timestamp, reason: Option<Reason>, what: &str) -> InWords {
        let told = self.standing.reason == Some(Reason::ConcurrencyLimitExceeded);
        let waited =
            self.lacks_place_since(now).is_some_and(|since| now.since(since) >= LANE_PATIENCE);
        let runtime = self.desired().map_or("", |desired| desired.runtime.as_str());
        let fetch = self.main.as_deref().map(|job| {
            format!(
                "once {} {}, which is under way, has ended and found nothing else",
                job.kind, job.id
            )
        });
        let message = match fetch {
            None if waited || told => format!(
                "waits for one of the applies of runtime `{runtime}` to end, as many run as may; \
                 {what}"
            ),
            // Whether the limit is full by now is told when it is the turn of this one again.
            Some(fetch) if told => format!(
                "goes on {fetch}, and fewer applies of runtime `{runtime}` run than may; {what}"
            ),
            None => return (Status::Converging, reason, format!("ready to apply: {what}")),
            Some(fetch) => {
                return (Status::Converging, reason, format!("ready to apply {fetch}: {what}"));
            }
        };
        (Status::WaitingPreconditions, Some(Reason::ConcurrencyLimitExceeded), message)
    }
}

/// Wherever people see it they see the channel too, so the config has it again. The commands need
/// the names of the channel and of its service, which are not known here: without them they would
/// release to every channel.
fn gone(had: Option<&str>) -> String {
    let values = had.map_or_else(
        || "the newest values".to_owned(),
        |version| format!("what it had, {version}, or the newest values"),
    );
    format!(
        "no longer wanted, because a config took the release channel away; once the config has \
         the channel again, a release to it brings it back with {values}: `pvnctl services \
         explain` names the commands"
    )
}

fn with_running(job: Option<&Job>, message: &str) -> String {
    let Some(job) = job.filter(|job| job.kind == JobKind::Apply) else { return message.to_owned() };
    let does = match (&job.stop, job.started_at) {
        (Some(_), _) => "is being stopped",
        (None, Some(_)) => "goes on to its end",
        (None, None) => {
            "is starting: it is withdrawn if its command has not begun, and else goes on to its end"
        }
    };
    format!("{message}; apply {} of {} {does}", job.id, job.version)
}
