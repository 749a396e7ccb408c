//! Asking people: which approvals a release or an apply needs, what they are bound to, who said what. Called by the
//! step; [`State::askers`] is read by `converge.rs`.
//!
//! An approval of kind `apply` is bound to the fingerprint of the work. One of kind `manual` holds for the release in this
//! channel, from the first apply on whatever its plan is; until then it is for the plan that was shown in words, if there is one. One of
//! kind `shared` holds for the release. All of them are for the commands of the moment: other commands are another question, under
//! another id, so that nobody says yes to what was not shown. One that is `over` (used, withdrawn, replaced, expired) opens nothing
//! ever again.

use schema::id::{ApprovalId, BlobId};
use schema::status::{ApprovalKind, ApprovalStatus, Decision};
use schema::time::Timestamp;

use crate::action::Action;
use crate::desired::{Desired, Gate};
use crate::state::{APPROVALS_KEPT, Approval, Finding, State, Vote};
use crate::step::log;

/// Most characters of a description within a sentence: a dozen lines of a terminal. The API has all of it.
const WORDS_LIMIT_CHARS: usize = 1_000;

/// From how many questions on that other work took the place of people are told why.
const ASKED_AGAIN: usize = 2;

/// Who asks for an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The gate at this index of `Desired::gates`.
    Gate(usize),
    /// `requireApprovalBeforeApply`.
    Apply,
}

/// What an asker asks for.
struct Question<'a> {
    gate: String,
    kind: ApprovalKind,
    name: Option<&'a str>,
    description: Option<&'a str>,
    needed: u32,
}

fn question(desired: &Desired, asker: Asker) -> Option<Question<'_>> {
    let Asker::Gate(at) = asker else {
        return Some(Question { gate: "apply".to_owned(), kind: ApprovalKind::Apply, name: None, description: None, needed: 1 });
    };
    match desired.gates.get(at)? {
        Gate::ChannelsStable { .. } => None,
        Gate::ManualApproval { name, description, every_action, min_approvers } => Some(Question {
            gate: name.as_ref().map_or_else(|| format!("manual {at}"), |name| format!("manual:{name}")),
            kind: if *every_action { ApprovalKind::Apply } else { ApprovalKind::Manual },
            name: name.as_deref(),
            description: description.as_deref(),
            needed: (*min_approvers).max(1),
        }),
        Gate::SharedApproval { name, description, min_approvers } => Some(Question {
            gate: format!("shared:{name}"),
            kind: ApprovalKind::Shared,
            name: Some(name),
            description: description.as_deref(),
            needed: (*min_approvers).max(1),
        }),
    }
}

/// The id that a shared approval has in every instance of the release, for the commands that they all have now.
fn shared_id(desired: &Desired, name: &str) -> ApprovalId {
    let commands = desired.shared_for.map(|commands| commands.to_string());
    let parts: [&[u8]; 3] = [b"shared", desired.release.as_bytes(), name.as_bytes()];
    let parts: Vec<&[u8]> = parts.into_iter().chain(commands.as_deref().map(str::as_bytes)).collect();
    ApprovalId::derive(&parts)
}

impl State {
    /// Who has to be asked before an apply, in order. After the release has arrived only what is asked for every apply, unless the
    /// commands are others than those with which it arrived.
    pub(crate) fn askers(&self) -> impl Iterator<Item = Asker> {
        let gates = self.desired().map_or(&[][..], |desired| &desired.gates);
        let arrived = self.pursuit.arrived && !self.pursuit.other_commands;
        let asks = move |gate: &Gate| match gate {
            Gate::ChannelsStable { .. } => false,
            Gate::ManualApproval { every_action, .. } => *every_action || !arrived,
            Gate::SharedApproval { .. } => !arrived,
        };
        let before_apply = self.desired().is_some_and(|desired| desired.require_approval_before_apply);
        let gates = gates.iter().enumerate().filter(move |(_, gate)| asks(gate)).map(|(at, _)| Asker::Gate(at));
        gates.chain(before_apply.then_some(Asker::Apply))
    }

    /// The approval that answers this asker now, if one was asked for: for the work that is known, where it is bound.
    pub(crate) fn standing_approval(&self, asker: Asker) -> Option<usize> {
        let question = question(self.desired()?, asker)?;
        let fingerprint = self.fingerprint();
        self.approvals.iter().rposition(|approval| {
            !approval.over
                && approval.gate == question.gate
                && approval.kind == question.kind
                && (approval.kind != ApprovalKind::Apply || approval.fingerprint == fingerprint)
        })
    }

    /// What became of earlier answers to the question that this approval asks again, for people who have answered before; `None` when
    /// there were none.
    pub(crate) fn asked_before(&self, approval: &Approval) -> Option<String> {
        let of_release = approval.asked_for.as_ref().map(|(release, _)| *release);
        let same = self.approvals.iter().filter(|old| {
            let was_of = old.asked_for.as_ref().map(|(release, _)| *release);
            old.over && old.status == ApprovalStatus::Expired && old.gate == approval.gate && was_of == of_release
        });
        let others: Vec<&Approval> = same.filter(|old| old.other_commands || old.fingerprint != approval.fingerprint).collect();
        let yes = others.iter().rev().find_map(|old| Some((old, old.votes.iter().rev().find(|vote| vote.decision == Decision::Approve)?)));
        let lapsed = yes.map(|(old, vote)| {
            let what = if old.other_commands { "other commands than the config has now" } else { "other work than fetch finds now" };
            format!("the yes of {} at {} was for {what}", vote.who, vote.at)
        });
        let differs =
            (others.iter().filter(|old| !old.other_commands).count() >= ASKED_AGAIN && approval.explanation.is_none()).then(|| {
                "what fetch prints differs each time, so each fetch asks anew: let it leave a `plan-explanation` without times in it"
                    .to_owned()
            });
        let told: Vec<String> = lapsed.into_iter().chain(differs).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// What this asker asks for, in the middle of a sentence.
    pub(crate) fn asked_by(&self, asker: Asker) -> Option<String> {
        question(self.desired()?, asker).map(|question| named(question.kind, question.name))
    }

    /// The first approval that is given now and is too old at `at`.
    pub(crate) fn lapses_before(&self, at: Timestamp) -> Option<&Approval> {
        let given = self.askers().filter_map(|asker| self.standing_approval(asker)).map(|at| &self.approvals[at]);
        given.filter(|approval| approval.expires_at.is_some_and(|expires_at| expires_at <= at)).min_by_key(|approval| approval.expires_at)
    }

    /// Those that are asked for or given: each of them may get too old.
    pub(crate) fn live_approvals(&self) -> impl Iterator<Item = &Approval> {
        self.approvals.iter().filter(|approval| live(approval))
    }

    fn fingerprint(&self) -> Option<BlobId> {
        self.work().and_then(|work| work.fingerprint)
    }

    /// Whether an apply approval for exactly the known work is asked or granted: then its plan must not change.
    pub(crate) fn plan_is_bound(&self) -> bool {
        let fingerprint = self.fingerprint();
        self.approvals.iter().any(|approval| live(approval) && approval.kind == ApprovalKind::Apply && approval.fingerprint == fingerprint)
    }

    /// Whether approvals of kind `manual` are for the plan that was shown in words: no command of an apply of the release has begun. One
    /// that could not be started has not.
    fn binds_manual(&self) -> bool {
        !self.pursuit.chain.as_ref().is_some_and(|chain| chain.begun)
    }

    /// Asks people.
    pub(crate) fn ask(&mut self, asker: Asker, now: Timestamp, out: &mut Vec<Action>) {
        let Some(desired) = self.desired.take() else { return };
        if let Some(question) = question(&desired, asker) {
            let approval = self.make(&desired, &question, now);
            let what = name_of(&approval);
            let words = words_of(&approval).map_or_else(String::new, |words| format!(": {words}"));
            out.push(about("approval.asked", None, format!("{what} is asked for {}{words}", desired.version), &approval));
            self.approvals.retain(|old| old.id != approval.id);
            self.approvals.push(approval);
        }
        self.desired = Some(desired);
        self.trim_approvals();
    }

    fn make(&mut self, desired: &Desired, question: &Question<'_>, now: Timestamp) -> Approval {
        self.asked = self.asked.saturating_add(1);
        let id = match question.kind {
            ApprovalKind::Shared => shared_id(desired, question.name.unwrap_or_default()),
            ApprovalKind::Manual | ApprovalKind::Apply => ApprovalId::derive(&[
                self.instance.as_bytes(),
                desired.release.as_bytes(),
                question.gate.as_bytes(),
                &self.asked.to_le_bytes(),
            ]),
        };
        Approval {
            id,
            kind: question.kind,
            gate: question.gate.clone(),
            name: question.name.map(str::to_owned),
            description: question.description.map(str::to_owned),
            asked_for: Some((desired.release, desired.version.clone())),
            status: ApprovalStatus::Pending,
            fingerprint: self.fingerprint(),
            explanation: self.work().and_then(|work| work.explanation.clone()),
            other_commands: false,
            needed: question.needed,
            votes: Vec::new(),
            requested_at: now,
            expires_at: expiry(Some(desired), now),
            over: false,
        }
    }

    /// A person decided. One vote a person, the last one counts; a rejection ends it; an approval that is over, or that
    /// a running apply uses, is past deciding.
    pub(crate) fn decide(
        &mut self,
        id: ApprovalId,
        who: String,
        decision: Decision,
        reason: Option<String>,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let uses = self.applies_desired();
        let known = self.approvals.iter().position(|approval| approval.id == id && !approval.over);
        let Some(at) = known.or_else(|| self.foresee_shared(id, now)) else { return };
        let expires_at = expiry(self.desired(), now);
        let version = self.desired().map(|desired| desired.version.clone()).unwrap_or_default();
        let approval = &mut self.approvals[at];
        let open = match approval.status {
            ApprovalStatus::Pending => true,
            ApprovalStatus::Approved => decision == Decision::Reject && !uses,
            ApprovalStatus::Rejected | ApprovalStatus::Expired => false,
        };
        if !open || approval.votes.iter().any(|vote| vote.who == who && vote.decision == decision) {
            return;
        }
        approval.votes.retain(|vote| vote.who != who);
        approval.votes.push(Vote { who: who.clone(), at: now, decision, reason });
        let yes = approval.votes.iter().filter(|vote| vote.decision == Decision::Approve).count();
        let plan = approval.plan_digest().map_or_else(String::new, |digest| format!(", plan {digest}"));
        let what = format!("{} of {version}{plan}", name_of(approval));
        let sentence = if decision == Decision::Reject {
            approval.status = ApprovalStatus::Rejected;
            approval.expires_at = None;
            format!("{who} rejects {what}")
        } else if yes >= approval.needed as usize {
            approval.status = ApprovalStatus::Approved;
            approval.expires_at = expires_at;
            format!("{who} approves {what}: it is given")
        } else {
            format!("{who} approves {what}: {yes} of {} people", approval.needed)
        };
        out.push(about("approval.decided", Some(who), sentence, approval));
    }

    /// Somebody decided on a shared approval that another instance of the release asks for already: it counts here too.
    fn foresee_shared(&mut self, id: ApprovalId, now: Timestamp) -> Option<usize> {
        if self.deleted
            || self.pursuit.arrived && !self.pursuit.other_commands
            || self.approvals.iter().any(|approval| approval.id == id && !approval.over)
        {
            return None;
        }
        let desired = self.desired.take()?;
        let asker =
            desired.gates.iter().position(|gate| matches!(gate, Gate::SharedApproval { name, .. } if shared_id(&desired, name) == id));
        let made = asker.and_then(|at| question(&desired, Asker::Gate(at))).map(|question| self.make(&desired, &question, now));
        self.desired = Some(desired);
        self.approvals.retain(|old| made.as_ref().is_none_or(|made| old.id != made.id));
        let mut made = made?;
        if !self.look.fresh {
            // What was found before is not what this is about.
            (made.fingerprint, made.explanation) = (None, None);
        }
        self.approvals.push(made);
        self.trim_approvals();
        self.approvals.iter().position(|approval| approval.id == id)
    }

    /// Takes approvals out of force that were asked or given too long ago; a fetch then looks again before anybody is
    /// asked again.
    pub(crate) fn expire(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        if self.applies_desired() {
            return;
        }
        let mut expired = false;
        for approval in self.approvals.iter_mut().filter(|approval| live(approval)) {
            if approval.expires_at.is_some_and(|at| at <= now) {
                approval.status = ApprovalStatus::Expired;
                approval.over = true;
                expired = true;
                out.push(about("approval.expired", None, format!("{} has expired", name_of(approval)), approval));
            }
        }
        if expired {
            self.look_in_time(now);
        }
    }

    /// Other work was found than the one that was asked about: approvals bound to that are withdrawn, and those of the
    /// release that are still asked show the new work.
    pub(crate) fn rebind(&mut self, out: &mut Vec<Action>) {
        let binds_manual = self.binds_manual();
        let Finding::Work(work) = &self.look.finding else { return };
        for approval in self.approvals.iter_mut().filter(|approval| live(approval)) {
            if approval.fingerprint == work.fingerprint {
                continue;
            }
            // The bytes of a plan without words differ each time.
            let has_words = work.explanation.is_some() || approval.explanation.is_some();
            let was_said = approval.kind == ApprovalKind::Manual && binds_manual && has_words && !approval.votes.is_empty();
            if approval.kind == ApprovalKind::Apply || was_said {
                withdraw(approval);
                if !approval.votes.is_empty() {
                    let what = format!("{} is withdrawn: fetch has found other work than what was said yes to", name_of(approval));
                    out.push(about("approval.withdrawn", None, what, approval));
                }
            } else if approval.status == ApprovalStatus::Pending {
                approval.fingerprint = work.fingerprint;
                approval.explanation = work.explanation.clone();
            }
        }
    }

    /// There is nothing to approve now: what is asked is withdrawn, and what was granted for an apply that never came. Votes on a shared
    /// one stay until the channel has arrived, because in the other channels they count on under the same id.
    pub(crate) fn withdraw_for_nothing_to_do(&mut self) {
        let is_clean = self.look.finding == Finding::Clean;
        for approval in self.approvals.iter_mut().filter(|approval| live(approval)) {
            if approval.kind == ApprovalKind::Shared && !is_clean {
                continue;
            }
            if approval.status == ApprovalStatus::Pending || approval.kind == ApprovalKind::Apply {
                withdraw(approval);
            }
        }
    }

    /// The commands changed: what was approved is not what would run, and what was shown to whoever is about to answer is not what is
    /// asked about. A yes that an apply has used stays as it was.
    pub(crate) fn withdraw_for_commands(&mut self, out: &mut Vec<Action>) {
        self.withdraw_kinds(&[ApprovalKind::Apply, ApprovalKind::Manual, ApprovalKind::Shared], out);
    }

    /// The commands of another channel changed, which shares approvals with this one.
    pub(crate) fn withdraw_for_others(&mut self, out: &mut Vec<Action>) {
        if !self.pursuit.arrived || self.pursuit.other_commands {
            self.withdraw_kinds(&[ApprovalKind::Shared], out);
        }
    }

    fn withdraw_kinds(&mut self, kinds: &[ApprovalKind], out: &mut Vec<Action>) {
        let was_used = self.pursuit.arrived || self.pursuit.chain.is_some();
        for approval in self.approvals.iter_mut().filter(|approval| live(approval) && kinds.contains(&approval.kind)) {
            match approval.kind {
                ApprovalKind::Manual | ApprovalKind::Shared if was_used => retire(approval),
                ApprovalKind::Apply | ApprovalKind::Manual | ApprovalKind::Shared => {
                    withdraw(approval);
                    approval.other_commands = true;
                    if !approval.votes.is_empty() {
                        let what = format!("{} is withdrawn: the config has other commands than what was said yes to", name_of(approval));
                        out.push(about("approval.withdrawn", None, what, approval));
                    }
                }
            }
        }
    }

    /// The same release under other gates: what no gate asks for any more is history, and what is asked for needs as many
    /// people as the config now says. A decision that an apply has used, or that the release has passed, stands.
    pub(crate) fn regate(&mut self, desired: &Desired, now: Timestamp) {
        let askers = (0..desired.gates.len()).map(Asker::Gate).chain(desired.require_approval_before_apply.then_some(Asker::Apply));
        let questions: Vec<_> = askers.filter_map(|asker| question(desired, asker)).collect();
        let (uses, has_passed) = (self.applies(desired), self.pursuit.arrived && !self.pursuit.other_commands);
        for approval in self.approvals.iter_mut().filter(|approval| !approval.over) {
            // One without a name is known by its words, for its place may be another's now.
            let is_same = |question: &&Question<'_>| {
                let is_known = question.name.is_some()
                    || question.description == approval.description.as_deref()
                    || approval.status == ApprovalStatus::Rejected;
                question.gate == approval.gate && question.kind == approval.kind && is_known
            };
            let Some(question) = questions.iter().find(is_same) else {
                retire(approval);
                continue;
            };
            let decided = match approval.status {
                ApprovalStatus::Pending => false,
                // One for a single apply that was used is over.
                ApprovalStatus::Approved => uses || has_passed && approval.kind != ApprovalKind::Apply,
                ApprovalStatus::Rejected | ApprovalStatus::Expired => true,
            };
            approval.description = question.description.map(str::to_owned);
            if decided || approval.needed == question.needed {
                continue;
            }
            approval.needed = question.needed;
            let given = approval.votes.len() >= question.needed as usize;
            let status = if given { ApprovalStatus::Approved } else { ApprovalStatus::Pending };
            if std::mem::replace(&mut approval.status, status) != status {
                approval.expires_at = expiry(Some(desired), now);
            }
        }
        self.trim_approvals();
    }

    /// Another release, or none: everything asked for this one is history.
    pub(crate) fn withdraw_all(&mut self) {
        self.approvals.iter_mut().for_each(retire);
        self.trim_approvals();
    }

    /// An apply has used what was granted for it.
    pub(crate) fn use_up(&mut self) {
        for approval in &mut self.approvals {
            approval.over |= approval.kind == ApprovalKind::Apply && approval.status == ApprovalStatus::Approved;
        }
        self.trim_approvals();
    }

    /// A person wants another try: rejections no longer stand, so that people are asked anew.
    pub(crate) fn forget_rejections(&mut self) {
        for approval in &mut self.approvals {
            approval.over |= approval.status == ApprovalStatus::Rejected;
        }
    }

    /// Bounds the history: first what is over goes, then the oldest rejections; what is asked or granted stays. Only
    /// what counts, and the newest, keeps its text.
    fn trim_approvals(&mut self) {
        while self.approvals.len() > APPROVALS_KEPT {
            let over = self.approvals.iter().position(|approval| approval.over);
            let Some(at) = over.or_else(|| self.approvals.iter().position(|approval| approval.status == ApprovalStatus::Rejected)) else {
                break;
            };
            self.approvals.remove(at);
        }
        let newest = self.approvals.len().saturating_sub(1);
        for approval in self.approvals[..newest].iter_mut().filter(|approval| approval.over) {
            approval.explanation = None;
        }
    }
}

fn live(approval: &Approval) -> bool {
    !approval.over && matches!(approval.status, ApprovalStatus::Pending | ApprovalStatus::Approved)
}

fn withdraw(approval: &mut Approval) {
    approval.status = ApprovalStatus::Expired;
    approval.over = true;
}

/// To history: what was decided stays as it was, what is still asked for is withdrawn.
fn retire(approval: &mut Approval) {
    if approval.status == ApprovalStatus::Pending {
        withdraw(approval);
    }
    approval.over = true;
}

/// A line of the log about an approval; its data says which one, of which plan, and how it stands.
fn about(kind: &str, who: Option<String>, sentence: String, approval: &Approval) -> Action {
    let (id, digest) = (approval.id.to_string(), approval.plan_digest().map(|digest| digest.to_string()));
    let mut data = vec![("approval", id.as_str()), ("status", approval.status.as_str())];
    data.extend(digest.as_deref().map(|digest| ("planDigest", digest)));
    data.extend(approval.description.as_deref().map(|words| ("description", words)));
    log(kind, who, sentence, &data)
}

/// When what is asked for or given now is too old.
fn expiry(desired: Option<&Desired>, now: Timestamp) -> Option<Timestamp> {
    desired?.approval_timeout_ms.map(|ms| now.plus_ms(ms.max(1)))
}

/// What the config tells the people who are asked, on one line and not too long for a sentence.
pub(crate) fn words_of(approval: &Approval) -> Option<String> {
    let line = approval.description.as_ref()?.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WORDS_LIMIT_CHARS) {
        _ if line.is_empty() => None,
        Some((end, _)) => Some(format!("{}…", &line[..end])),
        None => Some(line),
    }
}

/// An approval in the middle of a sentence.
pub(crate) fn name_of(approval: &Approval) -> String {
    named(approval.kind, approval.name.as_deref())
}

fn named(kind: ApprovalKind, name: Option<&str>) -> String {
    match (kind, name) {
        (ApprovalKind::Manual, Some(name)) => format!("approval `{name}`"),
        (ApprovalKind::Manual, None) => "the release's approval".to_owned(),
        (ApprovalKind::Shared, name) => format!("shared approval `{}`", name.unwrap_or_default()),
        (ApprovalKind::Apply, Some(name)) => format!("approval `{name}` of this apply"),
        (ApprovalKind::Apply, None) => "the approval of this apply".to_owned(),
    }
}
