//! The codes of what `explain` tells, one for each kind of cause. `docs/words.md` is made from this
//! table.

use crate::words::words;

words! {
    /// What kind of cause it is: what is so, what holds an instance up, or what comes next.
    CauseCode {
        /// The release channel or the service was taken away; it comes back with a config and a
        /// release.
        Deleted = "DELETED",
        /// Nothing was released to the channel yet.
        NoRelease = "NO_RELEASE",
        /// A person paused it, or nobody knows who did; `services resume` ends it.
        Paused = "PAUSED",
        /// Its stored state cannot be used; a person starts it anew.
        Broken = "BROKEN",
        /// The daemon cannot store anything at present, so nothing starts anywhere.
        NothingStored = "NOTHING_STORED",
        /// The release is past its `progressDeadline`.
        Stuck = "STUCK",
        /// `autoRollback` cannot take the release back, and why.
        RollbackRefused = "ROLLBACK_REFUSED",
        /// `autoRollback` took the channel back to an earlier version.
        RolledBack = "ROLLED_BACK",
        /// What fetch found to do.
        WorkFound = "WORK_FOUND",
        /// A person leaves the drift as it is, who, why, and until when.
        DriftAcknowledged = "DRIFT_ACKNOWLEDGED",
        /// The versions are right, and an object reports that it failed.
        ObjectFailed = "OBJECT_FAILED",
        /// The versions are right, and an object is still on its way.
        ObjectPending = "OBJECT_PENDING",
        /// Why a person should doubt what the last fetch answered.
        DoubtfulFetch = "DOUBTFUL_FETCH",
        /// It was converged when fetch last answered, which is a while ago.
        NotSeen = "NOT_SEEN",
        /// The last fetch gave no answer, or the watch could not see, and why.
        FetchFailed = "FETCH_FAILED",
        /// The watch was silent for longer than what it tells counts, and since when.
        NotHeard = "NOT_HEARD",
        /// What the watch tells next decides, and by when it has to be heard of.
        WatchAwaited = "WATCH_AWAITED",
        /// A fetch was given up and may still run; no apply starts beside it.
        FetchUnsettled = "FETCH_UNSETTLED",
        /// The next fetch tells how things are, and when it comes.
        FetchDue = "FETCH_DUE",
        /// The schedule of fetch has no instant left.
        NoFetchDue = "NO_FETCH_DUE",
        /// As desired, and who goes on looking.
        Converged = "CONVERGED",
        /// What the last apply left running, and what became of that.
        LeftBehind = "LEFT_BEHIND",
        /// The last apply succeeded, and its effect is waited for.
        Applied = "APPLIED",
        /// Applies succeed one after the other, and there still is work: apply and fetch do not
        /// mean the same.
        WithoutEffect = "WITHOUT_EFFECT",
        /// The last apply ended with an exit code that is tried again.
        RetryableExit = "RETRYABLE_EXIT",
        /// The last apply could not be started.
        NotStarted = "NOT_STARTED",
        /// The last apply failed, and how.
        ApplyFailed = "APPLY_FAILED",
        /// Nobody can say how the last apply ended.
        ApplyUnknown = "APPLY_UNKNOWN",
        /// An apply was given up and may still run; no other starts beside it.
        ApplyUnsettled = "APPLY_UNSETTLED",
        /// A person cancelled the last apply.
        Cancelled = "CANCELLED",
        /// When the next attempt comes, by the retry policy.
        BackOff = "BACK_OFF",
        /// Until when the effect of the last apply is waited for.
        GracePeriod = "GRACE_PERIOD",
        /// Nothing moves it by itself; with what a person does.
        WaitsForPerson = "WAITS_FOR_PERSON",
        /// Observer mode, or a person wants it to be observed only: it looks and never applies.
        Observer = "OBSERVER",
        /// Another channel is not converged at this version, and what would bring it there.
        UpstreamUnstable = "UPSTREAM_UNSTABLE",
        /// Another channel was converged at this version, and is at another one by now.
        UpstreamLeft = "UPSTREAM_LEFT",
        /// People are asked, who has answered, and the commands that answer.
        ApprovalPending = "APPROVAL_PENDING",
        /// A person said no, and why.
        ApprovalRejected = "APPROVAL_REJECTED",
        /// What is approved will be too old when it could be used.
        ApprovalLapses = "APPROVAL_LAPSES",
        /// The apply window is shut, and until when.
        WindowShut = "WINDOW_SHUT",
        /// A person lets this version start outside its window: who, why, and until when.
        WindowLifted = "WINDOW_LIFTED",
        /// Many fetches or applies of the runtime failed together: its applies are stopped, or
        /// tried a few at a time, since when, and until when.
        FleetBreaker = "FLEET_BREAKER",
        /// All places are taken, who has them, and who is next.
        LimitFull = "LIMIT_FULL",
        /// What piled up while the daemon was down is let through at a bounded pace.
        RestartPace = "RESTART_PACE",
        /// It is ready and has the next free place.
        StartsNow = "STARTS_NOW",
        /// A job has not started: what its place says, and what would end that.
        JobWaits = "JOB_WAITS",
        /// A job was handed to its place and has not begun.
        JobStarting = "JOB_STARTING",
        /// A job runs, and until when at most.
        JobRunning = "JOB_RUNNING",
        /// A job was asked to stop, why, and how long it has.
        JobStopping = "JOB_STOPPING",
        /// getInfo failed, which changes nothing else.
        GetInfoFailed = "GET_INFO_FAILED",
    }
}
