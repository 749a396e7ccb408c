//! The approvals of an instance: asked for, answered, in force or history. What follows from a word
//! of people, and what takes it out of force, is decided here over the list; which questions there
//! are, and when the release is past them, its callers know (`approve`).

use std::ops::Index;

use schema::id::{ApprovalId, BlobId, ReleaseId};
use schema::status::{ApprovalKind, ApprovalStatus, Decision};
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Approval, BrokenInvariant, PlanChanges, Vote, Work};
use crate::desired::Question;

/// Most approvals remembered; the oldest ones that no longer count are forgotten first. Enough for
/// what people look back at; the log has all of them.
pub const APPROVALS_KEPT: usize = 12;

/// Oldest first; an id stands for one of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Approvals(Vec<Approval>);

/// By what [`Approvals::standing`] and [`Approvals::last_no`] tell, until the list changes.
impl Index<usize> for Approvals {
    type Output = Approval;

    fn index(&self, at: usize) -> &Approval {
        &self.0[at]
    }
}

// ---- what stands ----

impl Approvals {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those in force and history, oldest first.
    pub(crate) fn all(&self) -> &[Approval] {
        &self.0
    }

    /// Those that are asked for or given: each of them may get too old.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Approval> {
        self.0.iter().filter(|approval| approval.is_live())
    }

    /// Those that are asked for.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Approval> {
        self.live().filter(|approval| approval.status == ApprovalStatus::Pending)
    }

    /// Those that are given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &Approval> {
        self.live().filter(|approval| approval.status == ApprovalStatus::Approved)
    }

    /// The oldest no that stands, to whatever question.
    pub(crate) fn first_no(&self) -> Option<&Approval> {
        self.0.iter().find(|approval| approval.is_no())
    }

    /// The newest no that stands and is such.
    pub(crate) fn last_no(&self, is_such: impl Fn(&Approval) -> bool) -> Option<usize> {
        self.0.iter().rposition(|approval| approval.is_no() && is_such(approval))
    }

    /// The one that is not over, if it has this id.
    pub(crate) fn in_force(&self, id: ApprovalId) -> Option<&Approval> {
        self.0.iter().find(|approval| approval.id == id && !approval.over)
    }

    /// The one that answers this question now. A no stands until a retry or a new release, whatever
    /// is said elsewhere to the same question about other commands. `work`: the fingerprint of what
    /// is known.
    pub(crate) fn standing(&self, question: &Question<'_>, work: Option<BlobId>) -> Option<usize> {
        let is_answer = |approval: &Approval| approval.answers(question, work);
        let no = self.last_no(is_answer);
        no.or_else(|| self.0.iter().rposition(is_answer))
    }

    /// How the plan differed each time that this release was asked this and another plan took the
    /// place of the one that was asked about.
    pub(crate) fn changes(&self, gate: &str, release: ReleaseId) -> Option<Box<PlanChanges>> {
        let is_of = |old: &&Approval| {
            old.gate == gate && old.asked_for.as_ref().is_some_and(|(of, _)| *of == release)
        };
        let last = self.0.iter().rev().find(is_of)?;
        let is_replaced = last.over && last.status == ApprovalStatus::Expired;
        last.changes.clone().filter(|_| is_replaced && !last.other_commands)
    }

    /// What would stand once nobody's no did.
    pub(crate) fn standing_but_for_no(
        &self,
        question: &Question<'_>,
        work: Option<BlobId>,
    ) -> Option<&Approval> {
        let mut newest = self.0.iter().rev();
        newest.find(|approval| approval.answers(question, work) && !approval.is_no())
    }

    /// Those that nothing changes any more: decided, and the release has passed them (`is_past`),
    /// or the single apply that they are for runs (`running`: what it was let through by).
    pub(crate) fn settled(&self, is_past: bool, running: &[ApprovalId]) -> Vec<ApprovalId> {
        let is_settled = |approval: &&Approval| match approval.status {
            ApprovalStatus::Pending => false,
            ApprovalStatus::Approved if approval.kind == ApprovalKind::Apply => {
                running.contains(&approval.id)
            }
            ApprovalStatus::Approved => is_past,
            ApprovalStatus::Rejected | ApprovalStatus::Expired => true,
        };
        self.0.iter().filter(is_settled).map(|approval| approval.id).collect()
    }

    /// When each that is not over gets too old.
    pub(crate) fn expiries(&self) -> impl Iterator<Item = Timestamp> {
        self.0.iter().filter(|approval| !approval.over).filter_map(|approval| approval.expires_at)
    }

    /// The plans of them, for a clock that jumps. What was refused or has expired keeps its time,
    /// which people read.
    pub(crate) fn expiries_mut(&mut self) -> impl Iterator<Item = &mut Option<Timestamp>> {
        self.0
            .iter_mut()
            .filter(|approval| match approval.status {
                ApprovalStatus::Pending | ApprovalStatus::Approved => true,
                ApprovalStatus::Rejected | ApprovalStatus::Expired => false,
            })
            .map(|approval| &mut approval.expires_at)
    }

    /// `gates`: how many the release has, each of which may be asked about.
    pub(crate) fn check(&self, gates: usize) -> Result<(), BrokenInvariant> {
        if self.0.len() > APPROVALS_KEPT + gates {
            return Err(BrokenInvariant::TooManyApprovals);
        }
        let is_unearned = |approval: &Approval| approval.votes.len() < approval.needed as usize;
        if self.given().any(is_unearned) {
            return Err(BrokenInvariant::GrantedWithoutVotes);
        }
        Ok(())
    }
}

// ---- people ----

impl Approvals {
    /// People are asked. It takes the place of one with the same id.
    pub(crate) fn ask(&mut self, approval: Approval) {
        self.0.retain(|old| old.id != approval.id);
        self.0.push(approval);
        self.trim();
    }

    /// Somebody decided: gives the approval if that changed it. One vote a person, the last one
    /// counts; a rejection ends it, also one that is given until the release is past it
    /// (`is_past`). `expires_at`: when it gets too old if it is given now.
    pub(crate) fn decide(
        &mut self,
        id: ApprovalId,
        vote: Vote,
        is_past: bool,
        expires_at: Option<Timestamp>,
    ) -> Option<&Approval> {
        let approval = self.0.iter_mut().find(|approval| approval.id == id && !approval.over)?;
        let is_open = match approval.status {
            ApprovalStatus::Pending => true,
            ApprovalStatus::Approved => vote.decision == Decision::Reject && !is_past,
            ApprovalStatus::Rejected | ApprovalStatus::Expired => false,
        };
        let says_the_same = |old: &Vote| old.who == vote.who && old.decision == vote.decision;
        if !is_open || approval.votes.iter().any(says_the_same) {
            return None;
        }
        let is_no = vote.decision == Decision::Reject;
        approval.votes.retain(|old| old.who != vote.who);
        approval.votes.push(vote);
        if is_no {
            (approval.status, approval.expires_at) = (ApprovalStatus::Rejected, None);
        } else if approval.has_enough() {
            (approval.status, approval.expires_at) = (ApprovalStatus::Approved, expires_at);
        }
        Some(approval)
    }

    /// No yes of this person counts any more, but where it is settled; a no does, as it is on the
    /// safe side. Gives those that had one.
    pub(crate) fn disown(
        &mut self,
        who: &str,
        settled: &[ApprovalId],
        expires_at: Option<Timestamp>,
    ) -> Vec<&Approval> {
        let mut changed = Vec::new();
        for approval in self.0.iter_mut().filter(|one| one.is_live() && !settled.contains(&one.id))
        {
            let before = approval.votes.len();
            approval.votes.retain(|vote| vote.who != who || vote.decision == Decision::Reject);
            if approval.votes.len() != before {
                approval.count(expires_at);
                changed.push(&*approval);
            }
        }
        changed
    }

    /// Other questions are asked of the same release: what none of them asks for any more is
    /// history, but for a no, which is about the release, however the config asks from now on; and
    /// what is asked for, unless it is settled, needs as many people as its question says.
    pub(crate) fn ask_instead(
        &mut self,
        questions: &[Question<'_>],
        settled: &[ApprovalId],
        expires_at: Option<Timestamp>,
    ) {
        for approval in self.0.iter_mut().filter(|approval| !approval.over) {
            // One without a name is known by its words, for its place may be another's now.
            let is_same = |question: &&Question<'_>| {
                let is_known = question.name.is_some()
                    || question.description == approval.description.as_deref()
                    || approval.status == ApprovalStatus::Rejected;
                approval.is_of(question) && is_known
            };
            let Some(question) = questions.iter().find(is_same) else {
                if approval.status != ApprovalStatus::Rejected {
                    approval.retire();
                }
                continue;
            };
            approval.description = question.description.map(str::to_owned);
            if !settled.contains(&approval.id) && approval.needed != question.needed {
                approval.needed = question.needed;
                approval.count(expires_at);
            }
        }
        self.trim();
    }
}

// ---- out of force ----

impl Approvals {
    /// Takes out of force, and gives, those that were asked for or given too long ago.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<&Approval> {
        let mut expired = Vec::new();
        for approval in self.0.iter_mut().filter(|approval| approval.is_live()) {
            if approval.expires_at.is_some_and(|at| at <= now) {
                approval.withdraw();
                expired.push(&*approval);
            }
        }
        expired
    }

    /// Other work was found than the one that was asked about: those bound to that are withdrawn,
    /// and those of the release that are still asked show the new work. `binds_manual`: whether
    /// those of kind `manual` are bound to a plan that was shown in words. Gives the withdrawn ones
    /// to which somebody had said something.
    pub(crate) fn rebind(&mut self, work: &Work, binds_manual: bool) -> Vec<&Approval> {
        let mut withdrawn = Vec::new();
        for approval in self.0.iter_mut().filter(|approval| approval.is_live()) {
            if approval.fingerprint == work.fingerprint {
                continue;
            }
            approval.note_change(work.explanation.as_deref());
            // The bytes of a plan without words differ each time.
            let has_words = work.explanation.is_some() || approval.explanation.is_some();
            let was_said = approval.kind == ApprovalKind::Manual
                && binds_manual
                && has_words
                && !approval.votes.is_empty();
            if approval.kind == ApprovalKind::Apply || was_said {
                approval.withdraw();
                withdrawn.extend(Some(&*approval).filter(|approval| !approval.votes.is_empty()));
            } else if approval.status == ApprovalStatus::Pending {
                approval.fingerprint = work.fingerprint;
                approval.explanation = work.explanation.clone();
            }
        }
        withdrawn
    }

    /// There is nothing to approve now: what is asked is withdrawn, and what was granted for an
    /// apply that never came. Votes on a shared one stay until the channel has arrived, because
    /// in the other channels they count on under the same id.
    pub(crate) fn withdraw_for_nothing_to_do(&mut self, is_clean: bool) {
        for approval in self.0.iter_mut().filter(|approval| approval.is_live()) {
            if approval.kind == ApprovalKind::Shared && !is_clean {
                continue;
            }
            if approval.status == ApprovalStatus::Pending || approval.kind == ApprovalKind::Apply {
                approval.withdraw();
            }
        }
    }

    /// The commands are others than those that these kinds were about. What an apply has used
    /// (`was_used`) stays as it was. Gives the withdrawn ones to which somebody had said something.
    pub(crate) fn withdraw_for_commands(
        &mut self,
        kinds: &[ApprovalKind],
        was_used: bool,
    ) -> Vec<&Approval> {
        let mut withdrawn = Vec::new();
        for approval in self.0.iter_mut().filter(|one| one.is_live() && kinds.contains(&one.kind)) {
            match approval.kind {
                ApprovalKind::Manual | ApprovalKind::Shared if was_used => approval.retire(),
                ApprovalKind::Apply | ApprovalKind::Manual | ApprovalKind::Shared => {
                    approval.withdraw();
                    approval.other_commands = true;
                    withdrawn
                        .extend(Some(&*approval).filter(|approval| !approval.votes.is_empty()));
                }
            }
        }
        withdrawn
    }

    /// Another release, or none: everything asked for this one is history.
    pub(crate) fn withdraw_all(&mut self) {
        self.0.iter_mut().for_each(Approval::retire);
        self.trim();
    }

    /// An apply is over that was let through by these: what was said for a single apply is history,
    /// but for a no.
    pub(crate) fn use_up(&mut self, used: &[ApprovalId]) {
        let of_apply = |approval: &&mut Approval| approval.kind == ApprovalKind::Apply;
        for approval in self.0.iter_mut().filter(of_apply) {
            let is_used =
                approval.status == ApprovalStatus::Approved || used.contains(&approval.id);
            if is_used && approval.is_live() {
                approval.retire();
            }
        }
        self.trim();
    }

    /// A person wants another try: rejections no longer stand, so that people are asked anew.
    pub(crate) fn forget_rejections(&mut self) {
        for approval in &mut self.0 {
            approval.over |= approval.status == ApprovalStatus::Rejected;
        }
    }

    /// Bounds the history: first what is over goes, then the oldest rejections; what is asked or
    /// granted stays. Only what counts, and the newest, keeps its text.
    fn trim(&mut self) {
        while self.0.len() > APPROVALS_KEPT {
            let over = self.0.iter().position(|approval| approval.over);
            let rejected = |approval: &Approval| approval.status == ApprovalStatus::Rejected;
            let Some(at) = over.or_else(|| self.0.iter().position(rejected)) else { break };
            self.0.remove(at);
        }
        let newest = self.0.len().saturating_sub(1);
        for approval in self.0[..newest].iter_mut().filter(|approval| approval.over) {
            approval.explanation = None;
        }
    }
}

#[cfg(test)]
mod tests;
