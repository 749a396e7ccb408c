//! Asking people: which approvals a release or an apply needs, and what they are bound to. Called
//! by the step; [`State::askers`] is read by `converge.rs`. What people answer is in
//! `approve/answer.rs`, how that goes out of force in `approve/over.rs`.
//!
//! An approval of kind `apply` is bound to the fingerprint of the work. One of kind `manual` holds
//! for the release in this channel, from the first apply on whatever its plan is; until then it is
//! for the plan that was shown in words, if there is one. One of kind `shared` holds for the
//! release. All of them are for the commands of the moment: other commands are another question,
//! under another id, so that nobody says yes to what was not shown. One that is `over` (used,
//! withdrawn, replaced, expired) opens nothing ever again.

use schema::id::{ApprovalId, BlobId};
use schema::log_kind::LogKind;
use schema::status::{ApprovalKind, ApprovalStatus};
use schema::time::Timestamp;

use crate::action::Action;
use crate::action::log;
use crate::desired::{Desired, Gate, Question};
use crate::state::{ApplyAttempts, Approval, PlanChanges, State};

mod answer;
mod over;
mod together;

/// Most characters of a description within a sentence: a dozen lines of a terminal. The API has all
/// of it.
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
    /// `requireApprovalForDestroy`, which asks where the other does not.
    Destroy,
}

fn question(desired: &Desired, asker: Asker) -> Option<Question<'_>> {
    match asker {
        Asker::Gate(at) => desired.gates.get(at)?.asks(at),
        Asker::Apply => Some(Question::before_apply()),
        Asker::Destroy => Some(Question::before_destroy()),
    }
}

/// Who asks for each apply of a runtime, if anybody does.
fn before_apply(desired: &Desired) -> Option<Asker> {
    let asks = desired.require_approval_before_apply.then_some(Asker::Apply);
    asks.or_else(|| desired.require_approval_for_destroy.then_some(Asker::Destroy))
}

/// The id that a shared approval has in every instance of the release, for the commands that they
/// all have now.
fn shared_id(desired: &Desired, name: &str) -> ApprovalId {
    let commands = desired.shared_for.map(|commands| commands.to_string());
    let parts: [&[u8]; 3] = [b"shared", desired.release.as_bytes(), name.as_bytes()];
    let parts: Vec<&[u8]> =
        parts.into_iter().chain(commands.as_deref().map(str::as_bytes)).collect();
    ApprovalId::derive(&parts)
}

impl State {
    /// Who has to be asked before an apply, in order. After the release has arrived only what is
    /// asked for every apply, unless the commands are others than those with which it arrived.
    pub(crate) fn askers(&self) -> impl Iterator<Item = Asker> {
        let gates = self.desired().map_or(&[][..], |desired| &desired.gates);
        let arrived = self.has_arrived();
        let asks = move |gate: &Gate| {
            gate.approval().is_some_and(|kind| kind == ApprovalKind::Apply || !arrived)
        };
        let may_destroy = self.work().is_none_or(|work| work.may_destroy);
        let of_apply = self.desired().and_then(before_apply);
        let of_apply = of_apply.filter(|asker| *asker != Asker::Destroy || may_destroy);
        let gates = gates
            .iter()
            .enumerate()
            .filter(move |(_, gate)| asks(gate))
            .map(|(at, _)| Asker::Gate(at));
        gates.chain(of_apply)
    }

    /// The approval that answers this asker now, if one was asked for: for the work that is known,
    /// where it is bound.
    pub(crate) fn standing_approval(&self, asker: Asker) -> Option<usize> {
        let question = question(self.desired()?, asker)?;
        self.approvals.standing(&question, self.fingerprint())
    }

    /// A no to a question that is not asked any more, because the config has it no longer or
    /// somebody else brought the release about: it stands, as any other, until a retry or a new
    /// release.
    pub(crate) fn standing_no(&self) -> Option<usize> {
        let fingerprint = self.fingerprint();
        let desired = self.desired()?;
        let is_asked = |approval: &Approval| {
            let mut questions = self.askers().filter_map(|asker| question(desired, asker));
            questions.any(|question| approval.is_of(&question))
        };
        // One to a single apply is about what was shown once the release has arrived; before that,
        // as any other, about the release.
        let stands = |approval: &Approval| {
            approval.kind != ApprovalKind::Apply
                || !self.has_arrived()
                || approval.fingerprint == fingerprint
        };
        self.approvals.last_no(|approval| stands(approval) && !is_asked(approval))
    }

    /// Whether anybody is asked before an apply once a person has taken what was rejected for
    /// undecided.
    pub(crate) fn asks_anew(&self) -> bool {
        let fingerprint = self.fingerprint();
        let Some(desired) = self.desired() else { return false };
        let mut questions = self.askers().filter_map(|asker| question(desired, asker));
        questions.any(|question| {
            let answer = self.approvals.standing_but_for_no(&question, fingerprint);
            answer.is_none_or(|answer| answer.status != ApprovalStatus::Approved)
        })
    }

    /// Whether the release is past its gates.
    fn has_arrived(&self) -> bool {
        self.rollout.has_arrived() && !self.rollout.has_other_commands()
    }

    /// Whether what is said to approvals of this kind is past having an effect: the release has
    /// arrived.
    pub(crate) fn is_past(&self, kind: ApprovalKind) -> bool {
        kind != ApprovalKind::Apply && self.has_arrived()
    }

    /// What became of earlier answers to the question that this approval asks again, for people who
    /// have answered before; `None` when there were none.
    pub(crate) fn asked_before(&self, approval: &Approval) -> Option<String> {
        let of_release = approval.asked_for.as_ref().map(|(release, _)| *release);
        let same = self.approvals.all().iter().filter(|old| {
            let was_of = old.asked_for.as_ref().map(|(release, _)| *release);
            old.over
                && old.status == ApprovalStatus::Expired
                && old.gate == approval.gate
                && was_of == of_release
        });
        let others: Vec<&Approval> = same
            .filter(|old| old.other_commands || old.fingerprint != approval.fingerprint)
            .collect();
        let yes = others.iter().rev().find_map(|old| Some((old, old.yes().last()?)));
        let lapsed = yes.map(|(old, vote)| {
            let what = if old.other_commands {
                "other commands than the config has now".to_owned()
            } else {
                format!("other work than {} finds now", self.who_looks())
            };
            format!("the yes of {} at {} was for {what}", vote.who, vote.at)
        });
        let differs = (others.iter().filter(|old| !old.other_commands).count() >= ASKED_AGAIN
            && approval.explanation.is_none())
        .then(|| {
            let why = match self.work().is_some_and(|work| work.is_cut) {
                true => {
                    "what is kept of fetch's output is not whole, so each fetch asks anew: let it \
                     print less, or leave a `plan-explanation`"
                }
                false => {
                    "what fetch prints differs each time, so each fetch asks anew: let it leave a \
                     `plan-explanation` without times in it"
                }
            };
            why.to_owned()
        });
        let changed = approval.changes.as_deref().filter(|it| it.times as usize >= ASKED_AGAIN);
        let changed = changed.map(|PlanChanges { times, line, was, is }| {
            format!(
                "{times} times another plan has taken the place of the one that was asked about, \
                 the last in line {line}: `{was}` is now `{is}`; if nothing real changes, leave \
                 out of `plan-explanation` what differs each time, such as times and temporary \
                 names"
            )
        });
        let told: Vec<String> = lapsed.into_iter().chain(differs).chain(changed).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// What this asker asks for, in the middle of a sentence.
    pub(crate) fn asked_by(&self, asker: Asker) -> Option<String> {
        question(self.desired()?, asker).map(|question| named(question.kind, question.name))
    }

    /// The name that the config gives to what this asker asks.
    pub(crate) fn asked_as(&self, asker: Asker) -> Option<&str> {
        question(self.desired()?, asker)?.name
    }

    /// The first approval that is given now and is too old at `at`.
    pub(crate) fn lapses_before(&self, at: Timestamp) -> Option<&Approval> {
        let given = self
            .askers()
            .filter_map(|asker| self.standing_approval(asker))
            .map(|at| &self.approvals[at]);
        given
            .filter(|approval| approval.expires_at.is_some_and(|expires_at| expires_at <= at))
            .min_by_key(|approval| approval.expires_at)
    }

    fn fingerprint(&self) -> Option<BlobId> {
        self.work().and_then(|work| work.fingerprint)
    }

    /// Whether an apply approval for exactly the known work is asked or granted: then its plan must
    /// not change.
    pub(crate) fn plan_is_bound(&self) -> bool {
        let fingerprint = self.fingerprint();
        self.approvals.live().any(|approval| {
            approval.kind == ApprovalKind::Apply && approval.fingerprint == fingerprint
        })
    }

    /// Whether approvals of kind `manual` are for the plan that was shown in words: no command of
    /// an apply of the release has begun. One that could not be started has not.
    fn binds_manual(&self) -> bool {
        !self.rollout.attempts().is_some_and(ApplyAttempts::has_begun)
    }

    /// Asks people.
    pub(crate) fn ask(&mut self, asker: Asker, now: Timestamp, out: &mut Vec<Action>) {
        let made = self.desired().and_then(|desired| {
            let approval = self.make(desired, &question(desired, asker)?, now);
            let what = name_of(&approval);
            let words = words_of(&approval).map_or_else(String::new, |words| format!(": {words}"));
            let sentence = format!("{what} is asked for {}{words}", desired.version);
            Some((approval, sentence))
        });
        if let Some((approval, sentence)) = made {
            out.push(about(LogKind::ApprovalAsked, None, sentence, &approval));
            self.add(approval);
        }
    }

    fn add(&mut self, approval: Approval) {
        self.asked = self.asked.saturating_add(1);
        self.approvals.ask(approval);
    }

    fn make(&self, desired: &Desired, question: &Question<'_>, now: Timestamp) -> Approval {
        let id = match question.kind {
            ApprovalKind::Shared => shared_id(desired, question.name.unwrap_or_default()),
            ApprovalKind::Manual | ApprovalKind::Apply => ApprovalId::derive(&[
                self.instance.as_bytes(),
                desired.release.as_bytes(),
                question.gate.as_bytes(),
                &self.asked.saturating_add(1).to_le_bytes(),
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
            changes: self.approvals.changes(&question.gate, desired.release),
            other_commands: false,
            needed: question.needed,
            votes: Vec::new(),
            requested_at: now,
            expires_at: expiry(Some(desired), now),
            over: false,
        }
    }
}

/// A line of the log about an approval; its data says which one, of which plan, and how it stands.
fn about(kind: LogKind, who: Option<String>, sentence: String, approval: &Approval) -> Action {
    let (id, digest) =
        (approval.id.to_string(), approval.plan_digest().map(|digest| digest.to_string()));
    let mut data = vec![("approval", id.as_str()), ("status", approval.status.as_str())];
    data.extend(digest.as_deref().map(|digest| ("planDigest", digest)));
    data.extend(approval.description.as_deref().map(|words| ("description", words)));
    log(kind, who, sentence, &data)
}

/// When what is asked for or given now is too old.
fn expiry(desired: Option<&Desired>, now: Timestamp) -> Option<Timestamp> {
    desired?.approval_timeout.map(|timeout| now.plus(timeout))
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
