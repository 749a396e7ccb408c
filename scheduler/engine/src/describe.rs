//! What is said of a situation, in one place: status, reason and the sentence for people, what led
//! to it, what holds it up, what ends it, and what comes next by itself. `standing` stores the
//! first three with the state; `explain` says the others with the names, lanes and commands of the
//! world around. Neither of both looks at the situation itself, so they cannot tell two stories.
//! The parts are what a situation can be about: what was seen, the applies, the gates.

use schema::api::NextAction;
use schema::id::JobId;
use schema::status::{Reason, Status};
use schema::time::Timestamp;

mod applies;
mod gates;
mod left_alone;
mod next;
mod seen;

use crate::converge::Situation;
use crate::desired::Unmet;
use crate::duration::duration;
use crate::state::{Finding, Job, State};

/// Everything that is said of where an instance is.
#[derive(Debug)]
pub(crate) struct Description<'a> {
    pub(crate) status: Status,
    pub(crate) reason: Option<Reason>,
    /// The sentence for people.
    pub(crate) message: String,
    /// What led to it in particular, after [`Situation::led_to_by`], in the order in which people
    /// want to know it.
    pub(crate) because: Vec<Because>,
    /// What would end it.
    pub(crate) way_out: WayOut<'a>,
    /// What whoever goes that way should know.
    pub(crate) besides: Vec<Because>,
    /// What happens by itself, soonest first.
    pub(crate) next: Vec<NextAction>,
}

impl<'a> Description<'a> {
    fn new(
        status: Status,
        reason: Option<Reason>,
        message: String,
        way_out: WayOut<'a>,
    ) -> Description<'a> {
        let (because, besides, next) = (Vec::new(), Vec::new(), Vec::new());
        Self { status, reason, message, because, way_out, besides, next }
    }

    fn because(mut self, because: impl IntoIterator<Item = Because>) -> Self {
        self.because.extend(because);
        self
    }

    fn besides(mut self, besides: impl IntoIterator<Item = Because>) -> Self {
        self.besides.extend(besides);
        self
    }
}

/// Something that is so and that matters to where the instance is. The state has the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Because {
    /// The release did not converge within its progress deadline.
    Stuck,
    /// Nothing was taken back when it was stuck.
    RollbackRefused,
    /// It was taken back by itself.
    RolledBack,
    /// What was seen last is not what is desired.
    Found,
    /// Why to doubt what was seen, since when.
    Doubted(Option<Timestamp>),
    /// It was converged, and has not been seen since.
    NotSeen,
    /// Applies succeed again and again, and there still is work.
    WithoutEffect(u32),
    /// Looking brought no answer.
    NotAnswered,
    /// How the newest apply ended.
    ApplyEnded,
    /// This job was given up and may still run.
    Lingers(JobId),
    Paused,
    /// The apply succeeded, and what it left running was stopped.
    LeftBehind,
    /// Channels that it has waited for are at another version by now.
    LeftUpstream,
    /// What is approved is too old before then.
    Lapses(Timestamp),
}

/// What ends a situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WayOut<'a> {
    /// None is wanted: it stays until something changes.
    Converged,
    /// What is acknowledged until then counts as drift again.
    Unacknowledged(Timestamp),
    /// A config has the channel and the service again, and a release goes there.
    Restored,
    FirstRelease,
    Resume,
    /// The apply in flight ends; that is said of the job.
    EndOfApply,
    /// People are asked, at once.
    Question,
    /// What is seen next decides.
    Look,
    /// A person says that another apply may start.
    PersonAgrees,
    /// This job is known to be gone, or a person takes the responsibility for another apply.
    Gone(JobId),
    /// What is seen by then still is work.
    StillWork(Timestamp),
    /// What is seen says how the apply ended, and still is work then.
    Decided(Timestamp),
    /// A person tries again, or another release comes.
    TriedAgain,
    /// The next attempt by the retry policy.
    NextAttempt(Timestamp),
    /// The next try to start it.
    NextTry(Timestamp),
    /// The effect of an apply shows by then, or it comes again.
    EffectShows(Timestamp),
    /// The scheduler is not an observer any more, and no person wants it to only look.
    ObserverEnds,
    /// What a gate waits for has come about.
    Met(&'a Unmet),
    /// People answer the approval of this index, or think better of it.
    Answer(usize),
    /// The apply window opens then, or never.
    WindowOpens(Option<Timestamp>),
    /// A place in the lane of applies.
    Place,
}

impl WayOut<'_> {
    /// When the next apply comes if it waits for nothing but time (and a look).
    fn again_at(self) -> Option<Timestamp> {
        match self {
            Self::StillWork(at)
            | Self::Decided(at)
            | Self::NextAttempt(at)
            | Self::NextTry(at)
            | Self::EffectShows(at) => Some(at),
            Self::Converged
            | Self::Unacknowledged(_)
            | Self::Restored
            | Self::FirstRelease
            | Self::Resume
            | Self::EndOfApply
            | Self::Question
            | Self::Look
            | Self::PersonAgrees
            | Self::Gone(_)
            | Self::TriedAgain
            | Self::ObserverEnds
            | Self::Met(_)
            | Self::Answer(_)
            | Self::WindowOpens(_)
            | Self::Place => None,
        }
    }
}

/// Who or what keeps the release from being as desired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldUpBy {
    /// It is as desired, or nothing is.
    Nothing,
    /// Somebody wants it to stay as it is.
    Person,
    Gate,
    ObserverMode,
    /// A job that was given up and may still run.
    LostJob,
    /// The apply in flight.
    Apply,
    /// Too few places in the lane of applies.
    Lane,
    /// What is around the command: it could not be started.
    Surroundings,
    /// The release itself, and the commands that bring it about and look at it.
    Release,
}

impl HeldUpBy {
    /// Whether it is worth saying that the release is late. Where people hold it up they know, and
    /// what they are to do comes first.
    fn may_be_late(self) -> bool {
        match self {
            Self::Nothing | Self::Person | Self::Gate => false,
            Self::ObserverMode
            | Self::LostJob
            | Self::Apply
            | Self::Lane
            | Self::Surroundings
            | Self::Release => true,
        }
    }
}

impl Situation {
    /// Everything that is said of it.
    pub(crate) fn describe(&self, state: &State, now: Timestamp) -> Description<'_> {
        let described = match self {
            Self::Deleted => state.describe_deleted(),
            Self::NoRelease => state.describe_no_release(),
            Self::Paused => state.describe_paused(),
            Self::Applying => state.describe_applying(),
            Self::Converged => state.describe_converged(),
            Self::Acknowledged(until) => state.describe_acknowledged(*until, now),
            Self::Unseen => state.describe_unseen(),
            Self::Unlooked => state.describe_unlooked(),
            Self::Pending => state.describe_pending(),
            Self::Broken => state.describe_broken(),
            Self::Cancelled => state.describe_cancelled(),
            Self::Unsettled(job) => state.describe_unsettled(*job),
            Self::ApplyFailed(at) => state.describe_failed(*at),
            Self::ApplyUnknown(at) => state.describe_unknown(*at),
            Self::Retrying(at) => state.describe_retrying(*at),
            Self::Misfired(at) => state.describe_misfired(*at),
            Self::Looking => state.describe_looking(),
            Self::Grace(until) => state.describe_grace(*until),
            Self::Observing => state.describe_observing(now),
            Self::Unmet(unmet) => state.describe_unmet(unmet),
            Self::Ask(_) => state.describe_question(),
            Self::Approval(at) => state.describe_approval(*at),
            Self::Rejected(at) => state.describe_rejected(*at),
            Self::WindowShut(opens_at) => state.describe_window(*opens_at),
            Self::Ready(_) => state.describe_ready(now),
        };
        let next = state.next_actions(described.way_out.again_at());
        let mut described = Description { next, ..described };
        if self.held_up_by().may_be_late() {
            state.tell_stuck(&mut described);
        }
        state.tell_error(&mut described);
        state.tell_observed(self, &mut described);
        described
            .message
            .push_str(&state.main.as_deref().map_or_else(String::new, what_it_waits_for));
        described
    }

    /// Who or what keeps it from being as desired.
    pub(crate) fn held_up_by(&self) -> HeldUpBy {
        match self {
            Self::Deleted | Self::NoRelease | Self::Converged => HeldUpBy::Nothing,
            Self::Paused | Self::Cancelled | Self::Acknowledged(_) => HeldUpBy::Person,
            Self::Unmet(_)
            | Self::Ask(_)
            | Self::Approval(_)
            | Self::Rejected(_)
            | Self::WindowShut(_) => HeldUpBy::Gate,
            Self::Observing => HeldUpBy::ObserverMode,
            Self::Unsettled(_) => HeldUpBy::LostJob,
            Self::Applying => HeldUpBy::Apply,
            Self::Ready(_) => HeldUpBy::Lane,
            Self::Misfired(_) => HeldUpBy::Surroundings,
            Self::Unseen
            | Self::Unlooked
            | Self::Pending
            | Self::Broken
            | Self::ApplyFailed(_)
            | Self::ApplyUnknown(_)
            | Self::Retrying(_)
            | Self::Looking
            | Self::Grace(_) => HeldUpBy::Release,
        }
    }

    /// What became of the release, and what is known of the world, before anything else that led to
    /// it. Not a part of the description, which is made at each step.
    pub(crate) fn led_to_by(&self, state: &State) -> Vec<Because> {
        let mut because = Vec::new();
        if state.rollout.is_stuck() {
            because.push(Because::Stuck);
            because.extend(state.rollout.rollback_refused().map(|_| Because::RollbackRefused));
        }
        if *self == Self::Deleted {
            return because;
        }
        because.extend(state.rolled_back().map(|_| Because::RolledBack));
        if *self == Self::NoRelease {
            return because;
        }
        match state.observed.finding() {
            Finding::Work(_) | Finding::Broken(_) | Finding::Pending(_) => {
                because.push(Because::Found);
            }
            Finding::Clean | Finding::Nothing => {}
        }
        because.extend(state.without_effect().map(Because::WithoutEffect));
        if *self != Self::Converged {
            because
                .extend(state.observed.doubt().map(|_| Because::Doubted(state.observed.since())));
        }
        if *self == Self::Unseen {
            because.push(Because::NotSeen);
        }
        because.extend(state.observed.error().map(|_| Because::NotAnswered));
        because
    }
}

impl State {
    /// The one that is desired.
    pub(crate) fn version_in_words(&self) -> &str {
        self.desired().map_or("", |desired| desired.version.as_str())
    }

    /// The work that is to be done.
    fn what(&self) -> String {
        self.work().map_or_else(
            || format!("{} is not applied yet", self.version_in_words()),
            |work| work.what.clone(),
        )
    }

    fn work_reason(&self) -> Option<Reason> {
        self.work().map(|work| work.reason)
    }

    /// That the release is late, before what it waits for, unless that is for others.
    fn tell_stuck(&self, described: &mut Description<'_>) {
        let is_at_a_gate = matches!(
            described.status,
            Status::WaitingManualApproval | Status::WaitingPreconditions
        );
        if !self.rollout.is_stuck() || is_at_a_gate {
            return;
        }
        let deadline =
            self.desired().and_then(|desired| desired.progress_deadline).unwrap_or_default();
        let refused = self
            .rollout
            .rollback_refused()
            .map_or_else(String::new, |why| format!(" and not taken back: {why}"));
        described.message = format!(
            "not converged within the progress deadline of {}{refused}; {}",
            duration(deadline),
            described.message
        );
        (described.status, described.reason) = (Status::Failed, Some(Reason::Stuck));
    }

    /// That looking brings no answer, unless that was said.
    fn tell_error(&self, described: &mut Description<'_>) {
        let is_in_the_way = self.looks() && self.observed.misses() > 0;
        let error = self
            .observed
            .error()
            .filter(|error| is_in_the_way && !described.message.contains(error));
        let Some(error) = error else { return };
        let times = match self.observed.misses() {
            0 | 1 => String::new(),
            times => format!(", {times} times in a row"),
        };
        described.message.push_str(&format!("; as last seen{times}: {error}"));
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
