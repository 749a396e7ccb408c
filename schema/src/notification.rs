//! What people are told of without asking, and what became of a message: the words of the config,
//! of the message that a webhook is sent, and of the list.

use crate::words::words;

words! {
    /// What a notification tells.
    NotificationEvent {
        /// People are asked for a yes.
        ApprovalAsked = "APPROVAL_ASKED",
        /// A service failed in a channel.
        Failed = "FAILED",
        /// A release is past its `progressDeadline`.
        Stuck = "STUCK",
        /// A service stands still in a channel: its stored state cannot be used.
        Broken = "BROKEN",
        /// What was converged is not any more.
        DriftFound = "DRIFT_FOUND",
        /// It is converged again after drift.
        DriftRepaired = "DRIFT_REPAIRED",
        /// Many fetches or applies of a runtime failed together, and no apply starts there.
        AppliesStopped = "APPLIES_STOPPED",
        /// It is well again, after one of the others was told.
        Recovered = "RECOVERED",
        /// A release has arrived in a channel.
        Converged = "CONVERGED",
    }
}

impl NotificationEvent {
    /// Those that are told where a target names none: all that a person has to know of. That a
    /// release has arrived is expected, so it is told to those who ask for it.
    pub const DEFAULT: &[Self] = &[
        Self::ApprovalAsked,
        Self::Failed,
        Self::Stuck,
        Self::Broken,
        Self::DriftFound,
        Self::DriftRepaired,
        Self::AppliesStopped,
        Self::Recovered,
    ];
}

words! {
    /// What a message is about: an event, or many at once.
    NotificationKind {
        /// [`NotificationEvent::ApprovalAsked`].
        ApprovalAsked = "APPROVAL_ASKED",
        /// [`NotificationEvent::Failed`].
        Failed = "FAILED",
        /// [`NotificationEvent::Stuck`].
        Stuck = "STUCK",
        /// [`NotificationEvent::Broken`].
        Broken = "BROKEN",
        /// [`NotificationEvent::DriftFound`].
        DriftFound = "DRIFT_FOUND",
        /// [`NotificationEvent::DriftRepaired`].
        DriftRepaired = "DRIFT_REPAIRED",
        /// [`NotificationEvent::AppliesStopped`].
        AppliesStopped = "APPLIES_STOPPED",
        /// [`NotificationEvent::Recovered`].
        Recovered = "RECOVERED",
        /// [`NotificationEvent::Converged`].
        Converged = "CONVERGED",
        /// Many at once, told in one message that counts them.
        Digest = "DIGEST",
    }
}

impl From<NotificationEvent> for NotificationKind {
    fn from(event: NotificationEvent) -> Self {
        match event {
            NotificationEvent::ApprovalAsked => Self::ApprovalAsked,
            NotificationEvent::Failed => Self::Failed,
            NotificationEvent::Stuck => Self::Stuck,
            NotificationEvent::Broken => Self::Broken,
            NotificationEvent::DriftFound => Self::DriftFound,
            NotificationEvent::DriftRepaired => Self::DriftRepaired,
            NotificationEvent::AppliesStopped => Self::AppliesStopped,
            NotificationEvent::Recovered => Self::Recovered,
            NotificationEvent::Converged => Self::Converged,
        }
    }
}

words! {
    /// How a message stands.
    NotificationStatus {
        /// Not sent yet; tried, or tried again, by itself.
        Pending = "PENDING",
        /// The target took it.
        Sent = "SENT",
        /// Told with others in one message, a digest.
        Digested = "DIGESTED",
        /// Given up: the target refused it, or could not be reached for too long. A person may send
        /// it again.
        Dead = "DEAD",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_and_its_message_have_one_word() {
        for event in NotificationEvent::ALL {
            assert_eq!(NotificationKind::from(*event).as_str(), event.as_str());
        }
    }
}
