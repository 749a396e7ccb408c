//! Everything that can happen to a service instance. Late and repeated events are ordinary.

use schema::id::{ApprovalId, BlobId, ChannelName, JobId, ReleaseId};
use schema::output::{Info, RuntimeObject};
use schema::status::{Decision, JobKind};
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use crate::clock_step::ClockStep;
use crate::desired::Desired;
use crate::observation::Observation;
pub use crate::state::Wait;
use crate::state::{AppliesHeld, DriftAcknowledgement, RolledBack, WindowLift};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A release, or a release recompiled after a change of config, which is fetched again. The
    /// same one again changes nothing. What was deleted comes back with another release only.
    Desired(Box<Desired>),
    /// The service or the channel is no longer wanted.
    Deleted,
    /// Time may have passed. Sent at [`crate::next_wake`], and harmless at any other moment.
    Tick,
    /// The wall clock jumped against elapsed time; sent to whoever has a deadline that runs, and to
    /// all when it was set back.
    ClockStepped {
        /// By so much.
        #[serde(rename = "by_ms")]
        by: ClockStep,
    },
    /// The daemon is back, or can store things again. Sent before anything else to whoever has a
    /// deadline that runs, and to all that are ahead of the clock.
    Recovered {
        /// By how much the wall clock jumped against elapsed time meanwhile; by nothing where
        /// nobody knows.
        #[serde(rename = "stepped_ms")]
        stepped: ClockStep,
        /// Until when, by the clock of then, there was certainly a daemon that could go on.
        looked_at: Timestamp,
    },
    /// The lane has room for a job of this kind. Every gate is checked again before it is used.
    Granted(JobKind),
    /// The job was decided, and no runner has it: it waited, or the daemon died before it could
    /// hand it over. An apply is withdrawn unless every gate is still open.
    Unstarted {
        job: JobId,
        /// Its runner had it and took it back before it began, because it was told then that a gate
        /// had shut: which, for people. It is withdrawn, whether that is open again or not.
        taken_back: Option<String>,
    },
    /// The runner says that the job's command runs.
    JobStarted {
        job: JobId,
        /// Since when.
        at: Timestamp,
    },
    /// The runner says what keeps the job from starting; `None` when that has passed.
    JobWaits {
        job: JobId,
        /// What it waits for.
        wait: Option<Box<Wait>>,
    },
    /// The runner says that the job is over.
    JobEnded {
        job: JobId,
        /// How.
        outcome: Outcome,
    },
    /// Somebody who watches the world tells what was seen, or why nothing was. What is not of the
    /// watch that is wanted now ([`crate::State::watch_generation`]) changes nothing.
    Observed(Box<Observation>),
    /// How this service stands in another channel that a gate of this instance names.
    Upstream {
        /// The other channel.
        channel: ChannelName,
        /// The version at which it is CONVERGED now, if it is.
        converged_version: Option<String>,
        /// What was taken back there by itself to that version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rolled_back: Option<Box<RolledBack>>,
    },
    /// A person decided on an approval. For a shared one every instance of the release gets the
    /// event.
    Decided {
        approval: ApprovalId,
        /// The person: name of the token used.
        who: String,
        /// Yes or no.
        decision: Decision,
        /// In their words.
        reason: Option<String>,
    },
    /// A person's token was revoked: their yes counts no more where nothing has come of it. Sent to
    /// whoever [`crate::State::counts_on`] them.
    Disowned {
        /// The person: name of the token.
        who: String,
    },
    /// A person pauses the instance, or says of a paused one what for.
    Pause {
        /// The person.
        who: String,
        /// What for, in their words.
        reason: Option<String>,
    },
    /// A person wants the instance to be observed only: fetch and getInfo go on, no apply starts
    /// and nobody is asked. What was paused is looked at again. Of one that is observed only a
    /// reason is news.
    ObserveOnly {
        /// The person.
        who: String,
        /// What for, in their words.
        reason: Option<String>,
    },
    /// A person lets an instance go on that is paused, or observed only.
    Resume,
    /// Observer mode on or off: look, never apply.
    Observe(bool),
    /// A person wants to know how it is now: fetch and getInfo run at once. Where a watch tells,
    /// another one begins and no fetch is run.
    Refresh {
        /// The person.
        who: String,
        /// Whether what failed by itself is tried again too: not what a person cancelled or
        /// rejected, what has an unknown end or may still run, nor what is still to show
        /// its effect. Otherwise nothing else ends by it.
        tries_again: bool,
    },
    /// A person asks to try again now: ends FAILED, back-off, grace and rejection.
    Retry {
        /// The person.
        who: String,
    },
    /// The rollback that was asked for cannot be done. It is asked for again when the release is
    /// stuck again.
    RollbackRefused {
        /// The release that is stuck.
        from: ReleaseId,
        /// Why, and what to do.
        why: String,
    },
    /// The rollback that was asked for is not carried out, because [`crate::go_back_now`] said so.
    /// Nothing went back.
    RollbackDropped {
        /// The release that was stuck.
        from: ReleaseId,
    },
    /// A person leaves a drift as it is until then: nothing is applied because of it, and nobody is
    /// told of it. Of another one than the one that there is nothing is said by that.
    Acknowledge {
        /// Which, [`crate::state::DriftRecord::fingerprint`].
        fingerprint: BlobId,
        /// Who, until when and why.
        by: DriftAcknowledgement,
    },
    /// A person ends that: what is there is repaired again.
    EndAcknowledged {
        /// The person.
        who: String,
    },
    /// A person lets the release that is desired start outside its window: until then, until it has
    /// arrived, or until another takes its place. Where it has no window, or has arrived, nothing
    /// is said by that.
    LiftWindow(Box<WindowLift>),
    /// A person ends that: the window counts again.
    EndWindowLift {
        /// The person.
        who: String,
    },
    /// The applies of its runtime are held, in another way than it knows, or not any more. Sent to
    /// whoever waits for one; what holds them are the lanes.
    Held(Option<Box<AppliesHeld>>),
    /// A person asks to stop a job.
    Cancel {
        job: JobId,
        /// The person.
        who: String,
    },
}

/// How a job ended. The border (`driver`) makes it from the report; the engine gives it its
/// meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The command ran to an exit code.
    Exited {
        /// 0 to 255 (128+n after a signal).
        code: i32,
        /// When its command started.
        started_at: Timestamp,
        /// When it ended.
        ended_at: Timestamp,
        /// A line of what it printed that says most about this end, for people; empty when there
        /// is none.
        said: String,
        /// For a fetch.
        seen: Box<FetchResult>,
        /// For a getInfo: what it told, or why that is unreadable.
        info: Option<Result<Vec<Info>, String>>,
    },
    /// It is known that the command never started (no such program, image cannot be pulled).
    NotStarted {
        /// Why, for people.
        why: String,
        /// Whether the surroundings are to blame (no process slots, cluster away), so that another
        /// try makes sense.
        surroundings: bool,
    },
    /// It is known that the command never started, because a file of the fetch that it was to be
    /// given is lost.
    InputLost {
        /// What is lost, for people.
        why: String,
    },
    /// The command ended well, but what it had to leave is missing or wrong: a declared output
    /// file, say.
    BadOutput {
        /// What, for people, as the end of the sentence "the job …".
        why: String,
    },
    /// It ran past its timeout and was stopped.
    TimedOut,
    /// It was stopped because a person asked.
    Cancelled {
        /// Whether every process of it is known to be gone.
        gone: bool,
    },
    /// Nobody can say whether or how it ended.
    Unknown {
        /// What is known, for people.
        why: String,
        /// Whether every process of it is known to be gone all the same. On a node that does not
        /// answer it may still run.
        gone: bool,
    },
}

impl Outcome {
    /// Whether processes of it may still be running although nothing more comes of it.
    pub(crate) fn may_still_run(&self) -> bool {
        matches!(self, Self::Cancelled { gone: false } | Self::Unknown { gone: false, .. })
    }
}

/// What a fetch brought back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FetchResult {
    /// The objects of a structured fetch, or what was wrong with its output; `None` in mode
    /// EXIT_CODE.
    pub objects: Option<Result<Vec<RuntimeObject>, String>>,
    /// The output file named `plan`.
    pub plan: Option<BlobId>,
    /// The output file named `plan-explanation`.
    pub explanation: Option<BlobId>,
    /// Its text for people; of more than 64 KiB head and tail.
    pub explanation_text: Option<String>,
    /// Digest of what the fetch printed (of the normalised objects in structured mode); of output
    /// that is not whole one that no other fetch has.
    pub output: Option<BlobId>,
    /// Whether the output file named `plan-destroys` says that nothing is destroyed, by having
    /// nothing in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub destroys_nothing: bool,
    /// Whether the output is all that tells what there is to do, and is not whole.
    #[serde(default)]
    pub is_cut: bool,
    /// Why a person should doubt that the answer means what it says, as a sentence without its
    /// end.
    pub doubt: Option<String>,
}

impl FetchResult {
    /// What an approval is bound to: the explanation's digest, else the plan's, else the output's.
    pub fn fingerprint(&self) -> Option<BlobId> {
        self.explanation.or(self.plan).or(self.output)
    }
}
