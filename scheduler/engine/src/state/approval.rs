//! An approval: what is asked, who answered, and what became of it.

use schema::id::{ApprovalId, BlobId, ReleaseId};
use schema::status::{ApprovalKind, ApprovalStatus, Decision};
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{PlanChanges, is_false};
use crate::desired::Question;

/// An approval asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    /// What is approved.
    pub kind: ApprovalKind,
    /// Which gate asks; stable over recompiles as long as gates keep their names.
    pub(crate) gate: String,
    /// The name that the config gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the config tells the people who are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The release that it is asked for, with its version; `None` where it was asked for before
    /// this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_for: Option<(ReleaseId, String)>,
    /// How it stands.
    pub status: ApprovalStatus,
    /// The fingerprint of the work that it is about. An approval of kind `apply` is bound to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<BlobId>,
    /// What the plan would do, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// How the plan changed since people were first asked; of one that another plan took the place
    /// of, how that one differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<Box<PlanChanges>>,
    /// Whether it was withdrawn because the commands are others now.
    #[serde(default, skip_serializing_if = "is_false")]
    pub other_commands: bool,
    /// How many different people must say yes.
    pub needed: u32,
    /// Who said what, oldest first, one entry a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
    /// Since when it is asked.
    pub requested_at: Timestamp,
    /// When it stops being valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Used up, withdrawn or replaced: it is history and opens nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub over: bool,
}

impl Approval {
    /// What a yes has to name: the fingerprint, unless it is that of no bytes, where a fetch said
    /// nothing that anybody could look at and name.
    pub fn plan_digest(&self) -> Option<BlobId> {
        self.fingerprint.filter(|digest| !digest.is_of_nothing())
    }

    /// Whether it asks the same of the same release as an earlier one, about another plan.
    pub fn is_asked_in_place_of(&self, earlier: &Self) -> bool {
        let release = |it: &Self| it.asked_for.as_ref().map(|(release, _)| *release);
        self.gate == earlier.gate
            && release(self) == release(earlier)
            && !earlier.other_commands
            && self.fingerprint != earlier.fingerprint
    }

    /// Somebody said no, and nobody has asked anew since.
    pub(crate) fn is_no(&self) -> bool {
        !self.over && self.status == ApprovalStatus::Rejected
    }

    /// It is asked for or given.
    pub(crate) fn is_live(&self) -> bool {
        !self.over && matches!(self.status, ApprovalStatus::Pending | ApprovalStatus::Approved)
    }

    /// Whether it asks this.
    pub(crate) fn is_of(&self, question: &Question<'_>) -> bool {
        self.gate == question.gate && self.kind == question.kind
    }

    /// Whether it answers this now: for the work that is known, where it is bound. `work`: the
    /// fingerprint of that.
    pub(super) fn answers(&self, question: &Question<'_>, work: Option<BlobId>) -> bool {
        let is_about = self.kind != ApprovalKind::Apply || self.fingerprint == work;
        !self.over && self.is_of(question) && is_about
    }

    /// Who said yes, oldest first.
    pub fn yes(&self) -> impl Iterator<Item = &Vote> {
        self.votes.iter().filter(|vote| vote.decision == Decision::Approve)
    }

    /// Whether as many people said yes as must.
    pub(super) fn has_enough(&self) -> bool {
        self.yes().count() >= self.needed as usize
    }

    /// Whether it is given, now that other votes or another number of people count. `expires_at`:
    /// when it gets too old if that has changed.
    pub(super) fn count(&mut self, expires_at: Option<Timestamp>) {
        let status =
            if self.has_enough() { ApprovalStatus::Approved } else { ApprovalStatus::Pending };
        if std::mem::replace(&mut self.status, status) != status {
            self.expires_at = expires_at;
        }
    }

    /// Other work was found than the one that it is about.
    pub(super) fn note_change(&mut self, explanation: Option<&str>) {
        let (was, is) = (self.explanation.as_deref().unwrap_or(""), explanation.unwrap_or(""));
        self.changes = PlanChanges::after(self.changes.as_deref(), was, is);
    }

    pub(super) fn withdraw(&mut self) {
        self.status = ApprovalStatus::Expired;
        self.over = true;
    }

    /// To history: what was decided stays as it was, what is still asked for is withdrawn.
    pub(super) fn retire(&mut self) {
        if self.status == ApprovalStatus::Pending {
            self.withdraw();
        }
        self.over = true;
    }
}

/// What one person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// The person.
    pub who: String,
    /// When.
    pub at: Timestamp,
    /// What.
    pub decision: Decision,
    /// In their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
