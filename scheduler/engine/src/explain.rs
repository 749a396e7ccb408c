//! Why an instance stands where it stands, as data: the chain from what is so to what would move
//! it, and what happens next by itself. Called by the API for people and by the tests, which assert
//! that everything that waits can say what would end it. It decides nothing: the situation comes
//! from `converge.rs`, who holds a place from the lanes.

use schema::api::{Cause, Explanation, decision_flags};
use schema::cause::CauseCode;
use schema::id::{ChannelName, InstanceId, JobId};
use schema::status::{ApprovalKind, Decision, JobKind};
use schema::time::Timestamp;

mod situation;

use crate::action::StopReason;
use crate::approve::{name_of, words_of};
use crate::desired::Observe;
use crate::event::Wait;
use crate::limiter::{Blocked, ConcurrencyLimiter, Holder};
use crate::limits::LINGERING_FETCHES;
use crate::standing::stops_once_more;
use crate::state::{ApplyEnd, Approval, Job, State};
use crate::step::{duration, in_words};

/// Whether this cause names the channels of [`Surroundings::together`].
pub fn names_together(cause: &Cause) -> bool {
    matches!(cause.code, CauseCode::UpstreamUnstable | CauseCode::NoRelease)
}

/// What a channel pursues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PursuedVersion {
    /// The version.
    pub version: String,
    /// Whether it was taken back to that.
    pub is_rollback: bool,
}

/// What an explanation tells of the rest of the world.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// `service/channel` of another instance, for those who hold a place.
    pub name: &'a dyn Fn(InstanceId) -> String,
    /// What another channel of the service pursues; none before a release goes there.
    pub pursued: &'a dyn Fn(&ChannelName) -> Option<PursuedVersion>,
    /// The channels to which one release has to go for this one to come out of its wait for
    /// others, this one among them.
    pub together: &'a dyn Fn() -> Vec<ChannelName>,
    /// The words that name this instance in a command of `pvnctl`: `web --app shop --channel eu`.
    pub target: &'a str,
}

/// Of nobody and nothing.
impl Default for Surroundings<'_> {
    fn default() -> Self {
        Self { name: &|_| String::new(), pursued: &|_| None, together: &Vec::new, target: "" }
    }
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Surroundings").field(&self.target).finish()
    }
}

/// The chain of causes.
pub fn explain(
    state: &State,
    lanes: &ConcurrencyLimiter,
    now: Timestamp,
    around: Surroundings<'_>,
) -> Explanation {
    let standing = state.standing();
    let mut chain = CauseChain { state, lanes, now, around, causes: Vec::new() };
    chain.main();
    chain.beside();
    Explanation {
        status: standing.status,
        reason: standing.reason,
        message: standing.message.clone(),
        causes: chain.causes,
        next: state.next_actions(),
    }
}

/// The commands that bring a service back into a channel that was taken away, and what each brings.
/// `target`: as in [`Surroundings`]; `had`: [`State::had`].
pub fn brings_back(target: &str, had: Option<&str>) -> String {
    let channels = |flags: &str| target.replacen(" --channel ", &format!("{flags} --channels "), 1);
    let push = format!("`pvnctl services push {}`", channels(""));
    match had {
        Some(version) => {
            let back = channels(&format!(" --to {version}"));
            format!(
                "`pvnctl services rollback {back}` brings it back as it was at {version}, and \
                 {push} brings the newest values there"
            )
        }
        None => format!("{push} brings it back"),
    }
}

/// What ends that a person's word keeps an apply back: this command, a new release, or somebody who
/// looks and finds this.
fn ways_out(state: &State, command: &str, found: &str) -> String {
    match state.desired().map(|desired| &desired.observe) {
        Some(Observe::Poll(_)) => {
            format!("{command}, a new release, or a fetch that finds {found}")
        }
        Some(Observe::Watch(_)) => {
            format!("{command}, a new release, or a watch that finds {found}")
        }
        Some(Observe::Never) | None => format!("{command} or a new release"),
    }
}

struct CauseChain<'a> {
    state: &'a State,
    lanes: &'a ConcurrencyLimiter,
    now: Timestamp,
    around: Surroundings<'a>,
    causes: Vec<Cause>,
}

impl CauseChain<'_> {
    fn say(
        &mut self,
        code: CauseCode,
        message: String,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) {
        self.causes.push(Cause { code, message, since, until });
    }

    /// The way out is what is seen next.
    fn looks(&mut self) {
        let state = self.state;
        if state.main.is_some() {
            return; // told beside
        }
        if let Some(watch) = &state.look.watch {
            let text = "what the watch tells next decides; no fetch is run. If nothing is heard \
                        of it by then, that is told as an error";
            self.say(
                CauseCode::WatchAwaited,
                text.into(),
                Some(watch.heard_at),
                Some(watch.stale_at),
            );
            return;
        }
        if state.fetches_linger() {
            let jobs: Vec<String> = state.lingering.iter().map(JobId::to_string).collect();
            let text = format!(
                "{LINGERING_FETCHES} fetches were given up and may still run ({}); no other \
                 starts beside them, which ends when the runner says that they are gone, or with \
                 `pvnctl services retry`",
                jobs.join(", ")
            );
            self.say(CauseCode::FetchUnsettled, text, None, None);
            return;
        }
        match state.look.due {
            Some(due) if state.wants.fetch.is_some() => {
                self.waits_for_place(JobKind::Fetch, Some(due))
            }
            Some(due) => self.say(
                CauseCode::FetchDue,
                "the next fetch tells how things are".into(),
                None,
                Some(due),
            ),
            None => {
                let text = "the fetch's schedule has no instant left; `pvnctl services retry` \
                            looks now, another pollSchedule keeps looking";
                self.say(CauseCode::NoFetchDue, text.into(), None, None);
            }
        }
    }

    fn unsettled_way_out(&self, job: JobId) -> String {
        format!(
            "ends when the runner says that it is gone ({}), or when `pvnctl services retry` \
             takes the responsibility for another apply beside it",
            stops_once_more(job)
        )
    }

    fn lingers(&mut self, job: JobId, since: Option<Timestamp>) {
        let (code, kind) = match self.state.given_up_kind(job) {
            JobKind::Apply => (CauseCode::ApplyUnsettled, JobKind::Apply),
            kind => (CauseCode::FetchUnsettled, kind),
        };
        let text = format!(
            "{kind} {job} was given up and nobody has said that it is gone; an apply beside it \
             could do harm"
        );
        self.say(code, text, since, None);
    }

    fn again(&mut self, what: &str, at: Option<Timestamp>) {
        match at {
            Some(at) => {
                let once = self
                    .state
                    .conditions(at)
                    .map_or_else(String::new, |conditions| format!(", once {conditions}"));
                self.say(
                    CauseCode::GracePeriod,
                    format!("{what}{once}; `pvnctl services retry` does not wait for the time"),
                    None,
                    Some(at),
                );
                if at <= self.state.seen_at() {
                    self.looks();
                }
            }
            None => self.say(
                CauseCode::WaitsForPerson,
                "ends with `pvnctl services retry` or a new release".into(),
                None,
                None,
            ),
        }
    }

    fn apply_end(&mut self) {
        let Some(chain) = &self.state.pursuit.chain else { return };
        let Some(end) = &chain.end else { return };
        let code = match end {
            ApplyEnd::Succeeded | ApplyEnd::SucceededLeaving(_) => CauseCode::Applied,
            ApplyEnd::Retryable(_) => CauseCode::RetryableExit,
            ApplyEnd::Misfired(_) => CauseCode::NotStarted,
            ApplyEnd::Failed(_) => CauseCode::ApplyFailed,
            ApplyEnd::Unknown(_) => CauseCode::ApplyUnknown,
            ApplyEnd::Cancelled(_) => CauseCode::Cancelled,
        };
        let (others, in_a_row) = (chain.other_commands_in_words(), chain.in_a_row_in_words());
        let text = format!(
            "apply {} (attempt {}){others} {}{in_a_row}",
            chain.job,
            chain.attempt,
            in_words(end)
        );
        self.say(code, text, Some(chain.ended_at), None);
    }

    fn approval(&mut self, approval: &Approval) {
        let digest =
            approval.plan_digest().map_or_else(String::new, |digest| format!(", for {digest}"));
        let yes: Vec<&str> = approval.yes().map(|vote| vote.who.as_str()).collect();
        if let Some(no) = approval.votes.iter().find(|vote| vote.decision == Decision::Reject) {
            let why = no.reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            let text =
                format!("{} rejected {} {}{digest}{why}", no.who, name_of(approval), approval.id);
            self.say(CauseCode::ApprovalRejected, text, Some(no.at), None);
            let found = if approval.kind == ApprovalKind::Apply {
                "something else"
            } else {
                "nothing left to do"
            };
            let retry = match self.state.asks_anew() {
                true => "`pvnctl services retry`, which asks anew",
                false => "`pvnctl services retry`, which applies it without asking anybody",
            };
            let ways = ways_out(self.state, retry, found);
            self.say(CauseCode::WaitsForPerson, format!("ends with {ways}"), None, None);
            return;
        }
        let by = if yes.is_empty() { String::new() } else { format!(" ({})", yes.join(", ")) };
        let counted = format!("{} of {} people said yes{by}", yes.len(), approval.needed);
        let words = words_of(approval)
            .map_or_else(String::new, |words| format!(", with the words \"{words}\""));
        let (target, flags) = (
            self.around.target,
            decision_flags(
                approval.id,
                approval.plan_digest().map(|digest| digest.to_string()).as_deref(),
            ),
        );
        let text = format!(
            "{} is asked{digest}{words}: {counted}; ends with `pvnctl services approve {target} \
             {flags}`, or `pvnctl services reject {target} {flags}`",
            name_of(approval)
        );
        self.say(
            CauseCode::ApprovalPending,
            text,
            Some(approval.requested_at),
            approval.expires_at,
        );
        let state = self.state;
        let version = state.desired().map_or("", |desired| desired.version.as_str());
        for (channel, at) in state.left_upstream() {
            let text = format!(
                "channel `{channel}` was converged at {version}, for which this one waited, and \
                 is at {at} by now: a yes lets {version} go on here all the same"
            );
            self.say(CauseCode::UpstreamLeft, text, None, None);
        }
    }

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

    fn waits_for_place(&mut self, kind: JobKind, since: Option<Timestamp>) {
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

    /// What is in flight or may still be, and what getInfo has to say.
    fn beside(&mut self) {
        let state = self.state;
        if let Some((job, runtime)) = state
            .unsettled_apply()
            .filter(|_| !self.causes.iter().any(|cause| cause.code == CauseCode::ApplyUnsettled))
        {
            let text = format!(
                "apply {job} was given up and nobody has said that it is gone: no other apply \
                 starts here, and it has a place in runtime `{runtime}` where those are counted; \
                 {}",
                self.unsettled_way_out(job)
            );
            self.say(CauseCode::ApplyUnsettled, text, None, None);
        }
        for job in state.jobs_in_flight().filter(|_| state.desired().is_some()) {
            self.job(job);
        }
        if let Some(error) = state.telling.error.as_ref().filter(|_| !state.deleted) {
            self.say(
                CauseCode::GetInfoFailed,
                format!("{error}; this changes nothing else"),
                state.telling.failed_at,
                state.telling.due,
            );
        }
    }

    /// It has not started, and the place where it is to run says why.
    fn waits(&mut self, job: &Job, wait: &Wait) {
        let after = if wait.tried_again {
            "then another job takes its place"
        } else {
            "then it has failed"
        };
        let text = format!(
            "{} {} of {} (attempt {}) has not started: {}; ends when {}, or at its deadline: \
             {after}",
            job.kind, job.id, job.version, job.attempt, wait.why, wait.ends_when
        );
        self.say(CauseCode::JobWaits, text, job.waits_since, job.starts_by());
    }

    /// What a job does that began then. Whoever runs it keeps its timeout; ours is for one that
    /// does not.
    fn runs(&self, job: &Job, began_at: Timestamp) -> String {
        match job.timeout.filter(|timeout| began_at.plus(*timeout) <= self.now) {
            Some(timeout) => format!(
                "is past its timeout of {} and is being stopped where it runs",
                duration(timeout)
            ),
            None => "runs".to_owned(),
        }
    }

    fn job(&mut self, job: &Job) {
        let (kind, id) = (job.kind, job.id);
        let limit = match (job.deadline, job.started_at) {
            (Some(_), None) if job.stop.is_none() => {
                "it is stopped if it does not start in time".to_owned()
            }
            (Some(_), Some(_)) if job.stop.is_none() => {
                "it is stopped if it does not end in time".to_owned()
            }
            (Some(_), _) => "if nothing is heard of it by then, its end is unknown".to_owned(),
            (None, _) => {
                format!("it has no timeout and ends by itself or with `pvnctl jobs cancel {id}`")
            }
        };
        // From then on its deadline counts.
        let stopped_at = job.deadline.map_or(job.decided_at, |at| at.minus(job.stop_within()));
        let (code, does, since) = match (&job.stop, job.started_at) {
            (Some(StopReason::Person(who)), _) => {
                (CauseCode::JobStopping, format!("is being stopped for {who}"), stopped_at)
            }
            (Some(StopReason::Deadline), _) => {
                (CauseCode::JobStopping, "is being stopped, it was overdue".to_owned(), stopped_at)
            }
            (Some(StopReason::NotWanted), _) => (
                CauseCode::JobStopping,
                "is being stopped, its answer is no longer wanted".to_owned(),
                stopped_at,
            ),
            (None, Some(at)) => (CauseCode::JobRunning, self.runs(job, at), at),
            (None, None) => match job.waits.as_ref().filter(|wait| !wait.is_unseen) {
                Some(wait) => return self.waits(job, wait),
                None => (CauseCode::JobStarting, "is starting".to_owned(), job.decided_at),
            },
        };
        let unseen = job.waits.as_ref().filter(|wait| wait.is_unseen);
        let unseen = unseen.map_or_else(String::new, |wait| {
            format!("; {}; ends when {}", wait.why, wait.ends_when)
        });
        let text = format!(
            "{kind} {id} of {} (attempt {}) {does}{unseen}; {limit}",
            job.version, job.attempt
        );
        self.say(code, text, Some(since), job.deadline);
    }
}
