//! Where an instance is, in words: status, reason and the sentence for people, made where it is decided and stored with
//! it. Called at the end of each step; a change of status or reason is written into the log.

use schema::api::NextAction;
use schema::id::{ChannelName, JobId};
use schema::status::{JobKind, Reason, Status};
use schema::time::Timestamp;

use crate::action::Action;
use crate::approve::{is_no, name_of};
use crate::converge::{ShutGate, Situation};
use crate::limits::LANE_PATIENCE_MS;
use crate::state::{ApplyAttempts, ApplyEnd, Finding, Job, RolledBack, State, StatusSummary};
use crate::step::{duration, in_words, log};

impl State {
    /// Puts the situation into words.
    pub(crate) fn stand(&mut self, situation: &Situation, now: Timestamp, out: &mut Vec<Action>) {
        let (mut status, mut reason, mut message) = self.words(situation, now);
        let final_anyway = matches!(situation, Situation::Deleted | Situation::Paused | Situation::Converged | Situation::Cancelled);
        let at_a_gate = matches!(status, Status::WaitingManualApproval | Status::WaitingPreconditions);
        if self.pursuit.stuck && !final_anyway && !at_a_gate && reason != Some(Reason::ManualApprovalRejected) {
            let deadline = self.desired().and_then(|desired| desired.progress_deadline_ms).unwrap_or(0);
            let refused = self.pursuit.rollback_refused.as_ref().map_or_else(String::new, |why| format!(" and not taken back: {why}"));
            message = format!("not converged within the progress deadline of {}{refused}; {message}", duration(deadline));
            status = Status::Failed;
            reason = Some(Reason::Stuck);
        }
        if let Some(error) = self.look.error.as_ref().filter(|error| self.looks() && self.look.misses > 0 && !message.contains(*error)) {
            let times = if self.look.misses > 1 { format!(", {} times in a row", self.look.misses) } else { String::new() };
            message.push_str(&format!("; as last seen{times}: {error}"));
        }
        message.push_str(&self.main.as_deref().map_or_else(String::new, what_it_waits_for));
        let next = self.next_actions();
        let next_action_at = next.iter().find(|next| next.action != JobKind::GetInfo.as_str()).or(next.first()).map(|next| next.at);
        let changed = self.standing.status != status || self.standing.reason != reason;
        if changed {
            let mut data = vec![("from", self.standing.status.as_str()), ("to", status.as_str())];
            data.extend(reason.map(|reason| ("reason", reason.as_str())));
            out.push(log("instance.status", None, message.clone(), &data));
        }
        let since = if changed { now } else { self.standing.since };
        self.standing = StatusSummary { status, reason, message, since, next_action_at };
    }

    /// What is said of a version that was seen as desired, and is looked at again.
    pub(crate) fn outdated_in_words(&self) -> &'static str {
        if self.look.other_commands {
            "was as desired before its commands changed; fetch looks again with the new ones"
        } else {
            "was as desired when fetch last looked; it looks again"
        }
    }

    fn words(&self, situation: &Situation, now: Timestamp) -> (Status, Option<Reason>, String) {
        let version = self.desired().map_or("", |desired| desired.version.as_str());
        let fetch_error = self.look.error.as_deref();
        let work_reason = self.work().map(|work| work.reason);
        let what = || self.work().map_or_else(|| format!("{version} is not applied yet"), |work| work.what.clone());
        let chain_end = || self.pursuit.chain.as_ref().and_then(|chain| Some((chain.job, chain.attempt, chain.end.as_ref()?)));
        let others = self.pursuit.chain.as_ref().map_or("", ApplyAttempts::other_commands_in_words);
        let apply_ended = || match chain_end() {
            Some((job, attempt, end)) if attempt > 1 => format!("apply {job} of {version}{others} {} (attempt {attempt})", in_words(end)),
            Some((job, _, end)) => format!("apply {job} of {version}{others} {}", in_words(end)),
            None => format!("apply of {version} ended"),
        };
        let after = || chain_end().map_or_else(String::new, |_| format!("{}; ", apply_ended()));
        let again = |at: &Option<Timestamp>| match at {
            Some(at) => match self.conditions(*at) {
                Some(conditions) => format!("tried again after {at} if fetch still sees work, once {conditions}"),
                None => format!("tried again after {at} if fetch still sees work, or at once with `pvnctl services retry`"),
            },
            None => "a new release or `pvnctl services retry` tries again".to_owned(),
        };
        match situation {
            Situation::Deleted => (Status::Deleted, None, with_running(self.main.as_deref(), &gone(self.had()))),
            Situation::NoRelease => {
                (Status::Converging, Some(Reason::NoCurrentState), "no release yet; `pvnctl services push` makes one".to_owned())
            }
            Situation::Paused => {
                (Status::Paused, None, with_running(self.main.as_deref(), "paused by a person; `pvnctl services resume` goes on"))
            }
            Situation::Applying => (Status::Converging, work_reason, self.applying_in_words(version)),
            Situation::Converged => match fetch_error.filter(|_| self.look.misses > 0) {
                Some(error) => (Status::Converged, Some(Reason::FetchFailed), format!("{version} as last seen; {error}")),
                None if self.is_outdated() => (Status::Converged, None, format!("{version} {}", self.outdated_in_words())),
                None => {
                    let looks = self.desired().is_some_and(|desired| desired.fetch.is_some());
                    let left = self.left_behind.as_ref().filter(|_| !looks).map_or_else(String::new, |left| format!("; {left}"));
                    let doubt = self.look.doubt.as_ref().map_or_else(String::new, |doubt| format!(", but {doubt}"));
                    let unsettled = self.unsettled_apply().map_or_else(String::new, |(job, _)| {
                        format!("; apply {job} was given up and may still run: see `pvnctl services explain`")
                    });
                    (Status::Converged, None, format!("{version} is as desired{left}{doubt}{unsettled}"))
                }
            },
            Situation::Unseen => {
                let seen = self.look.answered_at.map_or_else(String::new, |at| format!(" since {at}"));
                let error = fetch_error.unwrap_or("fetch does not answer");
                (Status::Converging, Some(Reason::FetchFailed), format!("{version} was converged and has not been seen{seen}: {error}"))
            }
            Situation::Unlooked => match fetch_error {
                Some(error) => (Status::Converging, Some(Reason::FetchFailed), format!("nothing is known of {version} yet: {error}")),
                None => (Status::Converging, Some(Reason::NoCurrentState), format!("waits for the first answer of fetch for {version}")),
            },
            Situation::Pending | Situation::Broken => {
                let what = match &self.look.finding {
                    Finding::Pending(what) | Finding::Broken(what) => what.as_str(),
                    _ => "",
                };
                if *situation == Situation::Broken {
                    (Status::Failed, Some(Reason::RuntimeObjectFailed), format!("every object runs {version}, but {what}"))
                } else {
                    let reason = (self.look.misses > 0).then_some(Reason::FetchFailed);
                    (Status::Converging, reason, format!("every object runs {version}, but {what}"))
                }
            }
            Situation::Cancelled => {
                let message = match self.unsettled {
                    Some(job) => format!(
                        "{}, but is not known to be gone and may still run; no apply starts until it is ({}), or until `pvnctl services \
                         retry` says that one may",
                        apply_ended(),
                        stops_once_more(job)
                    ),
                    None => format!("{}; a new release or `pvnctl services retry` tries again", apply_ended()),
                };
                (Status::Failed, Some(Reason::Cancelled), message)
            }
            Situation::Unsettled(job) => {
                let way_out = format!(
                    "no apply starts until it is known to be gone ({}), or until `pvnctl services retry` says that one may",
                    stops_once_more(*job)
                );
                let kind = self.given_up_kind(*job);
                let ended = match chain_end() {
                    Some((ended, ..)) if ended == *job => apply_ended(),
                    _ => format!("{kind} {job} was given up"),
                };
                let reason = if kind == JobKind::Apply { Reason::ApplyFailed } else { Reason::FetchFailed };
                (Status::Failed, Some(reason), format!("{ended}; it may still run, and {way_out}"))
            }
            Situation::ApplyFailed(at) => (Status::Failed, Some(Reason::ApplyFailed), format!("{}; {}", apply_ended(), again(at))),
            Situation::ApplyUnknown(None) => (Status::Failed, Some(Reason::ApplyFailed), format!("{}; {}", apply_ended(), again(&None))),
            Situation::ApplyUnknown(at) => {
                (Status::Converging, Some(Reason::ApplyFailed), format!("{}; fetch decides what is next; {}", apply_ended(), again(at)))
            }
            Situation::Retrying(at) => (Status::Converging, work_reason, format!("{}; next attempt after {at}", apply_ended())),
            Situation::Misfired(at) => (Status::Converging, work_reason, format!("{}; next try after {at}", apply_ended())),
            Situation::Looking => {
                let reason = if self.look.misses > 0 { Some(Reason::FetchFailed) } else { work_reason };
                let error = fetch_error.map_or_else(String::new, |error| format!(": {error}"));
                (Status::Converging, reason, format!("{}waits for fetch to tell how things are now{error}", after()))
            }
            Situation::Grace(until) => {
                let left = match chain_end() {
                    Some((_, _, ApplyEnd::SucceededLeaving(left))) => format!("its apply {left}; "),
                    _ => String::new(),
                };
                let message = format!("{version} is applied, and its effect has until {until} to show; {left}{}", what());
                (Status::Converging, work_reason, message)
            }
            Situation::Observing => {
                let when = self.conditions(now).map_or_else(|| "now".to_owned(), |conditions| format!("once {conditions}"));
                (Status::Converging, work_reason, format!("observer mode: it would apply {version} {when}, but only looks; {}", what()))
            }
            Situation::Upstream(channels) => {
                let names: Vec<String> = channels.iter().map(|channel| format!("`{channel}`")).collect();
                let are = if names.len() == 1 { "is" } else { "are" };
                let is_back = channels.iter().any(|channel| self.taken_back_in(channel).is_some());
                let back = if is_back {
                    format!("; {version} got stuck there and was taken back, so that takes a new release")
                } else {
                    String::new()
                };
                let message = format!("waits until {} {are} converged at {version}{back}; {}", names.join(" and "), what());
                (Status::WaitingPreconditions, Some(Reason::ReleaseChannelDependencyUnmet), message)
            }
            Situation::Ask(_) => (Status::WaitingManualApproval, work_reason, what()),
            Situation::Approval(at) => {
                let approval = &self.approvals[*at];
                let yes = approval.yes().count();
                let before = self.asked_before(approval).map_or_else(String::new, |before| format!("{before}; "));
                let left: String =
                    self.left_upstream().map(|(channel, at)| format!("`{channel}` is at {at} by now, not at {version}; ")).collect();
                // Whoever says yes once more should know what came of the last one.
                let tried = after();
                let message = format!(
                    "waits for {} ({yes} of {} people said yes); {left}{before}{tried}{}",
                    name_of(approval),
                    approval.needed,
                    what()
                );
                (Status::WaitingManualApproval, work_reason, message)
            }
            Situation::Rejected(at) => {
                let approval = &self.approvals[*at];
                let who = approval.votes.last().map_or("someone", |vote| vote.who.as_str());
                let why = approval.votes.last().and_then(|vote| vote.reason.as_ref()).map_or_else(String::new, |why| format!(": {why}"));
                let way_out = match self.asks_anew() {
                    true => "a new release or `pvnctl services retry` asks anew",
                    false => "a new release ends that, and so does `pvnctl services retry`, which applies it: nobody is asked any more",
                };
                let message = format!("{who} rejected {}{why}; {way_out}", name_of(approval));
                (Status::Failed, Some(Reason::ManualApprovalRejected), message)
            }
            Situation::WindowShut(opens_at) => {
                let opens = opens_at.map_or_else(|| "never opens again: change its schedule".to_owned(), |at| format!("opens at {at}"));
                let lapses = opens_at.and_then(|at| self.lapses(at)).map_or_else(String::new, |lapses| format!("; {lapses}"));
                let failed = chain_end().filter(|(.., end)| !matches!(end, ApplyEnd::Succeeded | ApplyEnd::SucceededLeaving(_)));
                let failed = failed.map_or_else(String::new, |_| format!("; {}", apply_ended()));
                let message = format!("outside the apply window, which {opens}{lapses}; {}{failed}", what());
                (Status::WaitingPreconditions, Some(Reason::OutsideWindow), message)
            }
            Situation::Ready(_) => self.ready_in_words(now, work_reason, &what()),
        }
    }

    /// That the version which is desired here was taken back in another channel, which will therefore not come to it.
    pub(crate) fn taken_back_in(&self, channel: &ChannelName) -> Option<&RolledBack> {
        self.upstream_back.get(channel).filter(|back| self.desired().is_some_and(|desired| desired.version == back.from))
    }

    /// Channels that were converged at this version when that was asked, and are at another one by now: whoever approves should know.
    pub(crate) fn left_upstream(&self) -> impl Iterator<Item = (&ChannelName, &str)> {
        let version = self.desired().map_or("", |desired| desired.version.as_str());
        let others = self.upstream.iter().filter(move |(channel, at)| *at != version && self.pursuit.met.contains(*channel));
        others.map(|(channel, at)| (channel, at.as_str()))
    }

    fn applying_in_words(&self, version: &str) -> String {
        let Some(job) = self.main.as_deref() else { return String::new() };
        let attempt = if job.attempt > 1 { format!(" (attempt {})", job.attempt) } else { String::new() };
        let does = match (&job.stop, job.started_at) {
            (Some(_), _) => "is being stopped",
            (None, Some(_)) => "runs",
            (None, None) => "is starting",
        };
        let no = self.approvals.iter().find(|approval| is_no(approval));
        if let Some(no) = no.filter(|_| job.version == version) {
            let (id, name) = (job.id, name_of(no));
            let who = no.votes.last().map_or("someone", |vote| vote.who.as_str());
            format!(
                "apply {id} of {version}{attempt} {does}, and no other follows: {who} rejected {name}; `pvnctl jobs cancel {id}` stops it"
            )
        } else if job.version == version {
            format!("apply {} of {version}{attempt} {does}", job.id)
        } else {
            format!("apply {} of {} {does}; {version} comes after its end", job.id, job.version)
        }
    }

    /// All gates are open; after a moment without a place people are told that a limit is full.
    fn ready_in_words(&self, now: Timestamp, reason: Option<Reason>, what: &str) -> (Status, Option<Reason>, String) {
        let told = self.standing.reason == Some(Reason::ConcurrencyLimitExceeded);
        let waited = self.lacks_place_since(now).is_some_and(|since| now.since_ms(since) >= LANE_PATIENCE_MS);
        let runtime = self.desired().map_or("", |desired| desired.runtime.as_str());
        let fetch =
            self.main.as_deref().map(|job| format!("once {} {}, which is under way, has ended and found nothing else", job.kind, job.id));
        let message = match fetch {
            None if waited || told => format!("waits for one of the applies of runtime `{runtime}` to end, as many run as may; {what}"),
            // Whether the limit is full by now is told when it is the turn of this one again.
            Some(fetch) if told => format!("goes on {fetch}, and fewer applies of runtime `{runtime}` run than may; {what}"),
            None => return (Status::Converging, reason, format!("ready to apply: {what}")),
            Some(fetch) => return (Status::Converging, reason, format!("ready to apply {fetch}: {what}")),
        };
        (Status::WaitingPreconditions, Some(Reason::ConcurrencyLimitExceeded), message)
    }

    /// From when nothing but a place was in the way of its apply: its own fetch was until it answered.
    pub(crate) fn lacks_place_since(&self, now: Timestamp) -> Option<Timestamp> {
        let looked_at = self.look.answered_at.filter(|at| *at <= now);
        self.pursuit.ready_since.map(|since| looked_at.map_or(since, |at| at.max(since)))
    }

    /// What happens by itself, soonest first.
    pub(crate) fn next_actions(&self) -> Vec<NextAction> {
        let mut next = Vec::new();
        let mut add = |action: String, at: Option<Timestamp>| next.extend(at.map(|at| NextAction { action, at }));
        let idle = self.main.is_none();
        add("fetch".to_owned(), self.look.due.filter(|_| idle && self.looks()));
        let has_work =
            !self.deleted && !self.paused && !self.observer && self.pursuit.chain.as_ref().is_some_and(|chain| chain.end.is_some());
        add("apply".to_owned(), self.again_by_itself().filter(|_| idle && has_work));
        add("apply".to_owned(), self.wants.apply);
        let shut = self.pursuit.window_at.filter(|_| self.pursuit.ready_since.is_none());
        add("apply".to_owned(), shut.filter(|opens_at| self.lapses_before(*opens_at).is_none()));
        add("getInfo".to_owned(), self.telling.due.filter(|_| self.side.is_none() && !self.deleted));
        if let Some(job) = self.main.as_deref() {
            let what = match (&job.stop, job.started_at) {
                (Some(_), _) => "the end of a stopped",
                (None, Some(_)) => "the end of",
                (None, None) => "the start of",
            };
            let waits = job.stop.is_none() && job.started_at.is_none();
            add(format!("deadline: {what} {}", job.kind), if waits { job.starts_by() } else { job.deadline });
        }
        for approval in self.live_approvals() {
            add("deadline: approval".to_owned(), approval.expires_at);
        }
        add("deadline: progress".to_owned(), self.pursuit.stuck_at.filter(|_| !self.cannot_look(self.seen_at)));
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
            Some(ShutGate::Window(opens_at)) => opens_at.filter(|opens_at| self.lapses_before(*opens_at).is_none()),
            Some(ShutGate::Upstream(_) | ShutGate::Ask(_) | ShutGate::Approval(_) | ShutGate::Rejected(_)) => None,
        }
    }

    /// What would have to come about before an apply at `at`, after "once"; `None` when nothing is in its way.
    pub(crate) fn conditions(&self, at: Timestamp) -> Option<String> {
        let words = |gate| match gate {
            ShutGate::Upstream(channels) => {
                let names: Vec<String> = channels.iter().map(|channel| format!("`{channel}`")).collect();
                let are = if names.len() == 1 { "is" } else { "are" };
                format!("{} {are} converged at its version", names.join(" and "))
            }
            ShutGate::Ask(asker) => format!("{} is asked for and given", self.asked_by(asker).unwrap_or_default()),
            ShutGate::Approval(at) => format!("{} is given", name_of(&self.approvals[at])),
            ShutGate::Rejected(at) if self.asks_anew() => {
                format!("{}, which was rejected, is asked for anew and given", name_of(&self.approvals[at]))
            }
            ShutGate::Rejected(at) => format!("`pvnctl services retry` ends that {} is rejected", name_of(&self.approvals[at])),
            ShutGate::Window(Some(opens_at)) => format!("the apply window opens at {opens_at}"),
            ShutGate::Window(None) => "the schedule of the apply window has an instant left".to_owned(),
        };
        let lapses = self.lapses_before(at).map(|approval| {
            let lapses_at = approval.expires_at.map_or_else(String::new, |at| format!(", which lapses at {at},"));
            format!("{}{lapses_at} is asked for anew and given", name_of(approval))
        });
        let words: Vec<String> = lapses.into_iter().chain(self.shut_gates(at).map(words)).collect();
        (!words.is_empty()).then(|| words.join(" and "))
    }

    /// That what is approved is too old by then.
    pub(crate) fn lapses(&self, by: Timestamp) -> Option<String> {
        let approval = self.lapses_before(by)?;
        let at = approval.expires_at.map_or_else(String::new, |at| format!(" at {at}"));
        Some(format!("{} lapses before that{at}, and is asked for again (`approvalTimeout`)", name_of(approval)))
    }
}

/// What keeps the fetch or apply in flight from starting, from being looked at, or from being stopped, belongs to whatever else is said.
fn what_it_waits_for(job: &Job) -> String {
    let Some(wait) = job.waits.as_ref().filter(|wait| job.stop.is_none() || wait.is_unseen) else { return String::new() };
    let until = if job.started_at.is_some() { job.deadline } else { job.starts_by() };
    let until = until.map_or_else(String::new, |at| format!(" (until {at})"));
    format!("; {} {} waits{until}: {}", job.kind, job.id, wait.why)
}

/// What ends a job that was given up and may still run, for people.
pub(crate) fn stops_once_more(job: JobId) -> String {
    format!("`pvnctl jobs cancel {job}` stops it once more where somebody still has it, and kills it when asked again")
}

/// Wherever people see it they see the channel too, so the config has it again.
fn gone(had: Option<&str>) -> String {
    let way = had.map_or_else(String::new, |version| format!("`pvnctl services rollback --to {version}`, or with the newest values "));
    format!(
        "no longer wanted, because a config took the release channel away; a release ({way}`pvnctl services push`) brings it back once the \
         config has the channel again"
    )
}

fn with_running(job: Option<&Job>, message: &str) -> String {
    match job.filter(|job| job.kind == JobKind::Apply) {
        Some(job) => format!("{message}; apply {} of {} goes on to its end", job.id, job.version),
        None => message.to_owned(),
    }
}
