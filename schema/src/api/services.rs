//! Services, their instances, approvals and explanations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cause::CauseCode;
use crate::id::{
    ApplicationName, ApprovalId, BlobId, ChannelId, ChannelName, ReleaseId, RuntimeName, ServiceId,
    ServiceName,
};
use crate::output::{Info, RuntimeObject};
use crate::status::{ApprovalKind, ApprovalStatus, Decision, GateKind, Reason, Status};
use crate::time::Timestamp;

body! {
    /// A service with all its channels: `services get`.
    Service {
        /// Its id.
        id: ServiceId,
        /// Its name.
        name: ServiceName,
        /// The application that it belongs to.
        application: ApplicationName,
        /// The version of its newest release; absent before the first.
        version: Option<String>,
        /// One entry for each channel, in the order of the application's config.
        channels: Vec<Instance>,
    }
}

body! {
    /// A service in one line: `services list`.
    ServiceSummary {
        /// Its id.
        id: ServiceId,
        /// Its name.
        name: ServiceName,
        /// The application that it belongs to.
        application: ApplicationName,
        /// The version of its newest release.
        version: Option<String>,
        /// Channel by channel how it stands.
        channels: Vec<ChannelStatus>,
    }
}

body! {
    /// How one channel stands.
    ChannelStatus {
        /// The channel.
        channel: ChannelName,
        /// How it stands.
        status: Status,
        /// In lists of services the version that it should be at; absent before the first, and in
        /// other lists.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    }
}

body! {
    /// A service instance in one line: what the pages list.
    InstanceSummary {
        /// The application.
        application: ApplicationName,
        /// The service.
        service: ServiceName,
        /// The channel.
        channel: ChannelName,
        /// How it stands.
        status: Status,
        /// Why, when there is more to say than the status.
        reason: Option<Reason>,
        /// A sentence for people.
        message: String,
        /// What it should be; absent before the first release.
        desired_version: Option<String>,
        /// Since when status and reason are what they are.
        since: Timestamp,
    }
}

body! {
    /// A service instance: one service in one channel.
    Instance {
        /// The channel.
        channel: ChannelName,
        /// The channel's id.
        channel_id: ChannelId,
        /// The runtime that serves it.
        runtime: RuntimeName,
        /// How it stands.
        status: Status,
        /// Why, when there is more to say than the status.
        reason: Option<Reason>,
        /// A sentence for people.
        message: String,
        /// What it should be; absent before the first release.
        desired_version: Option<String>,
        /// The release that makes it so; absent before the first. Servers of before tell none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        release: Option<ReleaseId>,
        /// The version that `autoRollback` took back here, as long as the release that it went back
        /// with is pursued.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken_back_version: Option<String>,
        /// The newest version that was seen converged.
        converged_version: Option<String>,
        /// Since when status and reason are what they are.
        since: Timestamp,
        /// When something happens next by itself.
        next_action_at: Option<Timestamp>,
        /// When a fetch last answered.
        last_fetch_at: Option<Timestamp>,
        /// Whether it stands as was seen before its commands changed, or before somebody asked to
        /// look again: a fetch is to come.
        #[serde(default)]
        outdated: bool,
        /// What the last answering structured fetch saw.
        objects: Vec<RuntimeObject>,
        /// What the last getInfo told.
        info: Vec<Info>,
        /// Approvals asked for, newest first.
        approvals: Vec<Approval>,
        /// Whether a person paused it.
        paused: bool,
        /// Whether it only looks and never applies: by the scheduler's observer mode, or because a
        /// person wants it so.
        observer: bool,
        /// Who wants it to be observed only; absent where nobody does. Servers of before tell none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        observed: Option<ObservedOnly>,
        /// What is not as it was when the release arrived, where anything tells it from other
        /// drift.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drift: Option<Drift>,
        /// Who lets the desired version start outside its apply window; absent where nobody does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window_lift: Option<LiftedWindow>,
        /// What its next apply waits for, in the order in which it is looked at; absent where it
        /// waits for none of these. Servers of before tell none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waits_for: Vec<GateAhead>,
        /// The channels that have to be converged at the same version first, as the config of its
        /// release says, whether they are or not. Servers of before tell none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        upstream: Vec<ChannelName>,
    }
}

body! {
    /// That a person wants it to be observed only: it is looked at, and nothing is applied.
    ObservedOnly {
        /// Name of the token used.
        who: String,
        /// Since when.
        since: Timestamp,
        /// What for, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
}

body! {
    /// Something that an apply waits for.
    GateAhead {
        /// Of what kind it is.
        kind: GateKind,
        /// In a few words, as in `stable: staging`, `approval: 1 of 2`.
        words: String,
        /// When it opens by itself, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opens_at: Option<Timestamp>,
    }
}

body! {
    /// That a person lets a version start outside its apply window; other gates count as ever.
    LiftedWindow {
        /// Name of the token used.
        who: String,
        /// When.
        at: Timestamp,
        /// Until when, unless the version arrives or another takes its place before that.
        until: Timestamp,
        /// In their words.
        reason: String,
    }
}

request! {
    /// Body of `POST …/channels/{channel}/open-window`.
    OpenWindowRequest {
        /// The version that may start: refused when another one is desired by now.
        version: Option<String>,
        /// Why, in the person's words; 1 to 1,000 characters. Needed unless it `end`s.
        reason: Option<String>,
        /// For how long, seconds: 1 to 86,400; an hour where it is not said.
        for_seconds: Option<u64>,
        /// Ends it instead: the window counts again.
        end: bool,
    }
}

body! {
    /// Drift: what was as desired and is not any more.
    Drift {
        /// The digest of its plan's explanation, else of its plan, else of what fetch saw: the same
        /// value for the same drift.
        fingerprint: BlobId,
        /// What it is, for people.
        what: String,
        /// When it was found first, since the release arrived.
        first_seen: Timestamp,
        /// When it was found last.
        last_seen: Timestamp,
        /// How many looks found it.
        count: u32,
        /// Who leaves it as it is; absent where it is repaired.
        acknowledged: Option<Acknowledgement>,
    }
}

body! {
    /// That a person leaves a drift as it is: nothing is applied because of it.
    Acknowledgement {
        /// Name of the token used.
        who: String,
        /// When.
        at: Timestamp,
        /// Until when.
        until: Timestamp,
        /// In their words.
        reason: Option<String>,
    }
}

request! {
    /// Body of `POST …/channels/{channel}/acknowledge`.
    AcknowledgeRequest {
        /// The drift that was looked at, its `fingerprint`: refused when it is another one by now.
        fingerprint: Option<BlobId>,
        /// Until when it is left as it is: RFC 3339, later than now, a year at most.
        until: Option<Timestamp>,
        /// In the person's words.
        reason: Option<String>,
        /// Ends what was acknowledged instead.
        end: bool,
    }
}

body! {
    /// An approval asked for.
    Approval {
        /// Its id.
        id: ApprovalId,
        /// What is approved.
        kind: ApprovalKind,
        /// The name that the config gave it.
        name: Option<String>,
        /// What the config tells the people who are asked.
        description: Option<String>,
        /// The release that it was asked for; unknown of one that an earlier pvn asked for.
        release: Option<ReleaseId>,
        /// The version of that release.
        version: Option<String>,
        /// How it stands.
        status: ApprovalStatus,
        /// The fingerprint of what is approved: of the explanation, else of the plan, else of what
        /// fetch saw.
        plan_digest: Option<String>,
        /// What the plan would do, for people (text of `plan-explanation`; of more than 64 KiB head
        /// and tail, with the command that prints all of it between them).
        explanation: Option<String>,
        /// How many different people must say yes.
        needed: u32,
        /// Who said what.
        by: Vec<ApprovalVote>,
        /// Since when it is asked.
        requested_at: Timestamp,
        /// When it stops being valid.
        expires_at: Option<Timestamp>,
        /// The channels of the service in which a yes or a no counts, while it is asked for:
        /// whoever decides has to be allowed to change all of them. Absent where that is the one
        /// alone in which it is asked; servers of before tell none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        channels: Vec<ChannelName>,
    }
}

/// The flags of `pvnctl services approve` and `reject` that mean this approval and no other, and
/// its plan as it is now: what every command that is suggested to people carries, so that nobody
/// approves what came after they looked.
pub fn decision_flags(approval: ApprovalId, plan_digest: Option<&str>) -> String {
    plan_digest.map_or_else(
        || format!("--approval {approval}"),
        |digest| format!("--approval {approval} --plan-digest {digest}"),
    )
}

body! {
    /// What one person said about an approval.
    ApprovalVote {
        /// Name of the token used.
        who: String,
        /// When.
        when: Timestamp,
        /// What.
        decision: Decision,
        /// In their words.
        reason: Option<String>,
    }
}

body! {
    /// Why an instance stands where it stands: `services explain`.
    Explanation {
        /// How it stands.
        status: Status,
        /// Why.
        reason: Option<Reason>,
        /// The sentence for people.
        message: String,
        /// From what is so to what would end it.
        causes: Vec<Cause>,
        /// What happens next by itself, soonest first.
        next: Vec<NextAction>,
    }
}

body! {
    /// One link in the chain of causes.
    Cause {
        /// What kind of cause it is, for programs.
        code: CauseCode,
        /// The sentence for people, with names and numbers in it, and what would end it.
        message: String,
        /// Since when.
        since: Option<Timestamp>,
        /// Until when at the latest, where that is known.
        until: Option<Timestamp>,
    }
}

body! {
    /// Something that will happen by itself.
    NextAction {
        /// What: `fetch`, `apply`, `getInfo`, `deadline: …`, or `store`: whether something can be
        /// stored again is tried.
        action: String,
        /// When.
        at: Timestamp,
    }
}

request! {
    /// Body of `POST …/channels/{channel}/approve` and `…/reject`.
    DecisionRequest {
        /// Which approval, by id or name; absent means the one that is pending. `approve` takes
        /// nothing but the id for one that has no plan, but for `anyPlan`.
        approval: Option<String>,
        /// In the person's words.
        reason: Option<String>,
        /// The plan that is decided on, the approval's `planDigest`: refused when it is another one
        /// by now. `approve` takes nothing else for an approval that has one, but for `anyPlan`.
        plan_digest: Option<String>,
        /// `approve` whichever plan the approval is about when this arrives, unseen.
        any_plan: bool,
    }
}

request! {
    /// Body of `POST …/channels/{channel}/observe`.
    ObserveRequest {
        /// What for, in the person's words; told wherever it is seen that it is observed only.
        /// Whoever asks again for what is observed takes it over with their name where they give
        /// one.
        reason: Option<String>,
    }
}

request! {
    /// Body of `POST …/channels/{channel}/pause`.
    PauseRequest {
        /// What for, in the person's words; told wherever the pause is. Whoever pauses what is
        /// paused takes it over with their name where they give one.
        reason: Option<String>,
    }
}
