//! What is said of an instance that is left alone: without a release, paused, observed only, or no
//! longer wanted.

use schema::status::{JobKind, Reason, Status};

use super::{Because, Description, WayOut};
use crate::converge::Situation;
use crate::state::State;

impl State {
    /// Wherever people see it they see its channel too, so a config has it again. The commands
    /// need the names of the channel and of its service, which are not known here: without them
    /// they would release to every channel.
    pub(super) fn describe_deleted(&self) -> Description<'static> {
        let values = self.had().map_or_else(
            || "the newest values".to_owned(),
            |version| format!("what it had, {version}, or the newest values"),
        );
        let gone = format!(
            "no longer wanted, because its release channel or its service was taken away; once a \
             config has it again, a release to it brings it back with {values}: `pvnctl services \
             explain` names the commands"
        );
        Description::new(Status::Deleted, None, self.with_running(gone), WayOut::Restored)
    }

    pub(super) fn describe_no_release(&self) -> Description<'static> {
        let message = match self.paused {
            true => format!(
                "no release yet, and {}; `pvnctl services explain` names the ways on",
                self.paused_in_words()
            ),
            false => "no release yet; `pvnctl services explain` names the command that makes one"
                .to_owned(),
        };
        let reason = Some(Reason::NoCurrentState);
        Description::new(Status::Converging, reason, message, WayOut::FirstRelease)
            .besides(self.paused.then_some(Because::Paused))
    }

    /// Who takes over has to know what it was paused for.
    pub(super) fn describe_paused(&self) -> Description<'static> {
        let ended_badly = self.ended_badly();
        let beneath = match ended_badly {
            true => format!("; before that {}", self.apply_ended()),
            false => String::new(),
        };
        let words =
            format!("{}; `pvnctl services resume` goes on{beneath}", self.paused_in_words());
        Description::new(Status::Paused, None, self.with_running(words), WayOut::Resume)
            .besides(ended_badly.then_some(Because::ApplyEnded))
    }

    /// Who paused it and what for, without a subject.
    pub(crate) fn paused_in_words(&self) -> String {
        if self.pause_is_assumed {
            return "paused, because nobody knows any more whether a person had paused it"
                .to_owned();
        }
        let who = self.paused_by.as_deref().unwrap_or("a person");
        match &self.pause_reason {
            Some(reason) => format!("paused by {who} ({reason})"),
            None => format!("paused by {who}"),
        }
    }

    /// That a person wants it to be observed only, unless that was said: whoever finds it has to
    /// know, also while there is nothing to apply.
    pub(super) fn tell_observed(&self, situation: &Situation, described: &mut Description<'_>) {
        let is_said = match situation {
            Situation::Deleted => true,
            Situation::Observing => !self.observer,
            _ => false,
        };
        let Some(wish) = self.observe_wish().filter(|_| !is_said) else { return };
        let words =
            format!("; {}: no apply starts until `pvnctl services resume`", wish.in_words());
        described.message.push_str(&words);
    }

    /// What is said of an instance that is left alone, and of an apply that runs all the same.
    fn with_running(&self, message: String) -> String {
        let Some(job) = self.main.as_deref().filter(|job| job.kind == JobKind::Apply) else {
            return message;
        };
        let does = match (&job.stop, job.started_at) {
            (Some(_), _) => "is being stopped",
            (None, Some(_)) => "goes on to its end",
            (None, None) => {
                "is starting: it is withdrawn if its command has not begun, and else goes on to \
                 its end"
            }
        };
        format!("{message}; apply {} of {} {does}", job.id, job.version)
    }
}
