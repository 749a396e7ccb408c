//! The kinds of entries of the log, which `GET /v1/events` streams. `docs/words.md` is made from
//! this table.

use crate::words::words;

words! {
    /// What happened.
    LogKind {
        /// Applies succeed one after the other, and there still is work: `count` of them.
        ApplyWithoutEffect = "apply.without_effect",
        /// People are asked for a yes.
        ApprovalAsked = "approval.asked",
        /// A person said yes or no.
        ApprovalDecided = "approval.decided",
        /// What was approved, or asked, has become too old.
        ApprovalExpired = "approval.expired",
        /// A question, or the answer to it, counts no more, and why.
        ApprovalWithdrawn = "approval.withdrawn",
        /// A person applied config documents.
        ConfigApplied = "config.applied",
        /// A person deleted config documents, with what they stood for.
        ConfigDeleted = "config.deleted",
        /// The data was brought back from a backup.
        DatabaseRestored = "database.restored",
        /// A person leaves a drift as it is: `fingerprint`, `until`.
        DriftAcknowledged = "drift.acknowledged",
        /// That is over: its time, or a person has ended it.
        DriftAcknowledgementEnded = "drift.acknowledgement_ended",
        /// What was converged is not any more: `fingerprint` tells the same drift from other drift,
        /// `count` says how often it was found, since `firstSeen`.
        DriftFound = "drift.found",
        /// The stored state of an instance cannot be used; it stands still.
        InstanceBroken = "instance.broken",
        /// A person started a broken instance anew.
        InstanceMended = "instance.mended",
        /// A person wants an instance to be observed only.
        InstanceObserve = "instance.observe",
        /// A person paused an instance.
        InstancePause = "instance.pause",
        /// A person had fetch and getInfo run at once.
        InstanceRefresh = "instance.refresh",
        /// A person let an instance go on that was paused, or observed only.
        InstanceResume = "instance.resume",
        /// A person asked to try again now.
        InstanceRetry = "instance.retry",
        /// Status or reason of an instance changed: `from`, `to`, `reason`; `outdated` where it
        /// stands as was seen before and a fetch is to come.
        InstanceStatus = "instance.status",
        /// A person cancelled a job.
        JobCancel = "job.cancel",
        /// A job is over, and how; or what was given up is known to be gone.
        JobEnded = "job.ended",
        /// An apply succeeded, and what it left running was stopped: what, and how it is kept.
        JobLeftBehind = "job.left_behind",
        /// A report of a job came whose end was stored already; it is kept and moves nothing.
        JobLateReport = "job.late_report",
        /// An upload of a job came whose end was stored already.
        JobLateUpload = "job.late_upload",
        /// An upload was refused, and why.
        JobRefusedUpload = "job.refused_upload",
        /// A person ran a command dry.
        JobRun = "job.run",
        /// A job does not start, and what its place says of it.
        JobWaits = "job.waits",
        /// An apply that was decided was not handed over, because a gate had shut.
        JobWithdrawn = "job.withdrawn",
        /// Local commands start in another directory than before.
        LocalRootChanged = "local.root_changed",
        /// A person had a notification sent again.
        NotificationResent = "notification.resent",
        /// A release was made.
        ReleaseCreated = "release.created",
        /// A release keeps its commands, since those of now do not compile.
        ReleaseNotRecompiled = "release.not_recompiled",
        /// `autoRollback` was not carried out, because it was not wanted any more.
        ReleaseRollbackDropped = "release.rollback_dropped",
        /// `autoRollback` could not be carried out, and why.
        ReleaseRollbackRefused = "release.rollback_refused",
        /// A release went back to an earlier version.
        ReleaseRolledBack = "release.rolled_back",
        /// The applies of a `runtime` start again as ever.
        RuntimeAppliesGoOn = "runtime.applies_go_on",
        /// Many fetches or applies of a `runtime` failed together: no apply starts there for a
        /// while.
        RuntimeAppliesStopped = "runtime.applies_stopped",
        /// One apply of a `runtime` is tried, and more while they go well.
        RuntimeAppliesTried = "runtime.applies_tried",
        /// A person had a runtime checked.
        RuntimeChecked = "runtime.checked",
        /// A person deleted a secret.
        SecretDeleted = "secret.deleted",
        /// A person set a secret; the value is never told.
        SecretSet = "secret.set",
        /// The directory of running jobs is another one than before; what ran there has an unknown
        /// end.
        SpoolReplaced = "spool.replaced",
        /// A token was made.
        TokenCreated = "token.created",
        /// A token was revoked.
        TokenRevoked = "token.revoked",
        /// A watch could not see, or was not heard of.
        WatchFailed = "watch.failed",
        /// A lifted window counts again: its time, a person, the arrival or another release has
        /// ended it.
        WindowLiftEnded = "window.lift_ended",
        /// A person lets a `version` start outside its window: `until`, `reason`.
        WindowLifted = "window.lifted",
    }
}
