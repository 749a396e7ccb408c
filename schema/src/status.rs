//! The words for how things stand, the same in the engine, the tables, the API, the client and the
//! pages.

use crate::words::words;

words! {
    /// How a service instance stands.
    Status {
        /// On its way.
        Converging = "CONVERGING",
        /// As desired, as far as the last look told.
        Converged = "CONVERGED",
        /// Needs a person, a new release or time; the reason says which.
        Failed = "FAILED",
        /// Work to do, and a gate other than an approval is closed: a precondition, a window, a
        /// limit.
        WaitingPreconditions = "WAITING_PRECONDITIONS",
        /// Work to do, and people have to say yes.
        WaitingManualApproval = "WAITING_MANUAL_APPROVAL",
        /// Stopped by a person.
        Paused = "PAUSED",
        /// A newer release took its place (said of releases).
        Replaced = "REPLACED",
        /// No longer wanted.
        Deleted = "DELETED",
        /// It stands still: its stored state cannot be used, or a step broke an invariant. A person
        /// starts it anew.
        Broken = "BROKEN",
    }
}

words! {
    /// Why it stands so.
    Reason {
        /// Nothing is known yet of the world.
        NoCurrentState = "NO_CURRENT_STATE",
        /// The last fetch did not answer.
        FetchFailed = "FETCH_FAILED",
        /// The last apply failed.
        ApplyFailed = "APPLY_FAILED",
        /// Fetch sees work to do.
        RuntimeObjectApplyNeeded = "RUNTIME_OBJECT_APPLY_NEEDED",
        /// A runtime object reports that it failed.
        RuntimeObjectFailed = "RUNTIME_OBJECT_FAILED",
        /// An object runs another version than the desired one.
        VersionMismatch = "VERSION_MISMATCH",
        /// An object was changed behind pvn's back.
        VersionDirty = "VERSION_DIRTY",
        /// A person said no.
        ManualApprovalRejected = "MANUAL_APPROVAL_REJECTED",
        /// A person cancelled the job.
        Cancelled = "CANCELLED",
        /// An upstream channel is not stable at this version.
        ReleaseChannelDependencyUnmet = "RELEASE_CHANNEL_DEPENDENCY_UNMET",
        /// As many applies run as the runtime allows.
        ConcurrencyLimitExceeded = "CONCURRENCY_LIMIT_EXCEEDED",
        /// The apply window is shut.
        OutsideWindow = "OUTSIDE_WINDOW",
        /// The release is past its progress deadline.
        Stuck = "STUCK",
    }
}

words! {
    /// Which of the three commands a job runs.
    JobKind {
        /// Is there work to do?
        Fetch = "fetch",
        /// Do it.
        Apply = "apply",
        /// Show people something.
        GetInfo = "getInfo",
    }
}

words! {
    /// How a job stands. What its exit code means for the instance is the engine's business.
    JobStatus {
        /// Decided, not yet handed to the runner.
        Pending = "PENDING",
        /// Handed to the runner.
        Starting = "STARTING",
        /// Its command runs.
        Running = "RUNNING",
        /// Its command ended with an exit code that has a meaning (0, or 2 for a fetch).
        Succeeded = "SUCCEEDED",
        /// It ended otherwise, or could not start.
        Failed = "FAILED",
        /// A person stopped it.
        Cancelled = "CANCELLED",
        /// Nobody can say whether or how it ended.
        Unknown = "UNKNOWN",
    }
}

words! {
    /// What a person is asked to approve.
    ApprovalKind {
        /// The release, in this channel.
        Manual = "manual",
        /// One apply.
        Apply = "apply",
        /// The release, in every channel that names the same approval.
        Shared = "shared",
    }
}

words! {
    /// What a service instance waits for before its next apply.
    GateKind {
        /// Other channels are to be converged at its version first.
        Channels = "channels",
        /// People are asked.
        Approval = "approval",
        /// Somebody said no.
        Rejected = "rejected",
        /// Its apply window is shut.
        Window = "window",
        /// Somebody paused it.
        Pause = "pause",
        /// Somebody wants it to be observed only.
        Observe = "observe",
        /// As many applies run as may.
        Place = "place",
    }
}

words! {
    /// How an approval stands.
    ApprovalStatus {
        /// Still asked for.
        Pending = "PENDING",
        /// Enough people said yes.
        Approved = "APPROVED",
        /// Somebody said no.
        Rejected = "REJECTED",
        /// Too old, or what it saw is no longer so.
        Expired = "EXPIRED",
    }
}

words! {
    /// What one person said.
    Decision {
        /// Yes.
        Approve = "APPROVE",
        /// No.
        Reject = "REJECT",
    }
}

words! {
    /// What the holder of a token may do. They are no ladder: [`Role::capabilities`] is the table.
    Role {
        /// Read everything but secrets' values; run fetch and getInfo dry.
        Viewer = "viewer",
        /// Also release and roll back.
        Deployer = "deployer",
        /// What a viewer may, and approve and reject.
        Approver = "approver",
        /// What a viewer may, and pause, observe, resume, retry, cancel, fetch now, acknowledge
        /// drift.
        Operator = "operator",
        /// What a viewer may, and let a release start outside its apply window.
        BreakGlass = "break-glass",
        /// Everything.
        Admin = "admin",
    }
}

impl Status {
    /// Whether nothing more will happen by itself because all is well.
    pub const fn is_converged(self) -> bool {
        matches!(self, Self::Converged)
    }
}

impl JobStatus {
    /// Whether the job has ended.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled | Self::Unknown)
    }
}

words! {
    /// What is checked of a runtime, in the order in which a job needs it.
    CheckKind {
        /// The cluster is reached and accepts the credentials.
        Connection = "connection",
        /// The scheduler's account may do what jobs need.
        Rights = "rights",
        /// The namespace is there, or can be made where it is ours.
        Namespace = "namespace",
        /// The wrapper's image is pulled and runs.
        WrapperImage = "wrapperImage",
        /// A Pod reaches the scheduler.
        WayBack = "wayBack",
        /// The wrapper is on the scheduler's machine.
        Wrapper = "wrapper",
        /// The directory in which commands start is there, on the scheduler's machine.
        Directory = "directory",
        /// The program of a command is there, on the scheduler's machine.
        Command = "command",
        /// A fetch on the scheduler's machine, run twice, only looks.
        Fetch = "fetch",
        /// A service instance whose job looks, or why none does.
        Instance = "instance",
        /// That job ran, and said what it found.
        Job = "job",
        /// The tool is there, in a version that will do.
        Tool = "tool",
        /// Whom the tool works for.
        Credentials = "credentials",
        /// What the tool works on is reached: a backend, a stack, a cluster, a region.
        Target = "target",
    }
}

impl CheckKind {
    /// What is checked of a place on a cluster, in order.
    pub const OF_CLUSTER: &[Self] =
        &[Self::Connection, Self::Rights, Self::Namespace, Self::WrapperImage, Self::WayBack];
}

words! {
    /// What a check of a runtime found.
    CheckStatus {
        /// It works.
        Ok = "OK",
        /// It does not; there is a remedy.
        Failed = "FAILED",
        /// It was not tried; the message says why.
        Skipped = "SKIPPED",
    }
}
