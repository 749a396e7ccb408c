//! What the list of approvals keeps to, whoever asks.

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn asked(number: u8, kind: ApprovalKind) -> Approval {
    Approval {
        id: ApprovalId::derive(&[&[number]]),
        kind,
        gate: format!("manual:{number}"),
        name: None,
        description: None,
        asked_for: None,
        status: ApprovalStatus::Pending,
        fingerprint: None,
        explanation: Some("one to add".to_owned()),
        changes: None,
        other_commands: false,
        needed: 2,
        votes: Vec::new(),
        requested_at: NOW,
        expires_at: None,
        over: false,
    }
}

fn vote(who: &str, decision: Decision) -> Vote {
    Vote { who: who.to_owned(), at: NOW, decision, reason: None }
}

fn all_of(kind: ApprovalKind, count: u8) -> Approvals {
    let mut approvals = Approvals::default();
    (0..count).for_each(|number| approvals.ask(asked(number, kind)));
    approvals
}

#[test]
fn one_vote_a_person_counts_and_the_last_one_does() {
    let mut it = all_of(ApprovalKind::Manual, 1);
    let id = it[0].id;
    let later = Some(NOW.plus_ms(1));
    let yes = |who| vote(who, Decision::Approve);
    assert!(it.decide(id, yes("ann"), false, later).is_some());
    assert!(it.decide(id, yes("ann"), false, later).is_none(), "said already");
    assert_eq!((it[0].status, it[0].expires_at), (ApprovalStatus::Pending, None));
    assert!(it.decide(id, yes("bob"), false, later).is_some());
    assert_eq!((it[0].status, it[0].expires_at), (ApprovalStatus::Approved, later));
    let no = vote("ann", Decision::Reject);
    assert!(it.decide(id, no.clone(), true, later).is_none(), "the release is past it");
    assert!(it.decide(id, no, false, later).is_some_and(Approval::is_no));
    assert!(it.decide(id, yes("cat"), false, later).is_none(), "a no ends it");
    assert_eq!((it[0].votes.len(), it[0].expires_at), (2, None));
}

#[test]
fn a_yes_that_counts_no_more_shuts_what_it_had_opened_unless_that_is_settled() {
    let mut it = all_of(ApprovalKind::Manual, 1);
    let id = it[0].id;
    for who in ["ann", "bob"] {
        it.decide(id, vote(who, Decision::Approve), false, None).unwrap();
    }
    let settled = it.settled(true, &[]);
    assert_eq!(settled, [id]);
    assert!(it.disown("ann", &settled, None).is_empty());
    assert!(it.settled(false, &[id]).is_empty(), "it is not for a single apply");
    assert_eq!(it.disown("ann", &[], None).len(), 1);
    assert_eq!((it.pending().count(), it[0].votes.len()), (1, 1));
    it.check(0).unwrap();
}

#[test]
fn the_history_is_bounded_by_what_counts_no_more_and_then_by_the_oldest_no() {
    let kept = APPROVALS_KEPT as u8;
    let mut it = all_of(ApprovalKind::Manual, kept);
    let (first, no, used) = (it[0].id, it[3].id, it[5].id);
    it.decide(no, vote("ann", Decision::Reject), false, None).unwrap();
    it.0[5].retire();
    it.ask(asked(100, ApprovalKind::Manual));
    assert!(it.all().iter().all(|approval| approval.id != used), "what is over goes first");
    it.ask(asked(101, ApprovalKind::Manual));
    assert!(it.in_force(no).is_none(), "then a no");
    it.ask(asked(102, ApprovalKind::Manual));
    assert_eq!(it.all().len(), APPROVALS_KEPT + 1, "what is asked stays");
    assert!(it.in_force(first).is_some());
    assert_eq!(it.check(0), Err(BrokenInvariant::TooManyApprovals));
    it.check(1).unwrap();
    it.withdraw_all();
    assert_eq!(it.all().len(), APPROVALS_KEPT);
    let with_text = it.all().iter().filter(|approval| approval.explanation.is_some()).count();
    assert_eq!(with_text, 1, "the newest alone keeps its text");
}

#[test]
fn other_work_withdraws_what_was_bound_to_the_old_one() {
    let work = Work {
        reason: schema::status::Reason::RuntimeObjectApplyNeeded,
        what: "work".to_owned(),
        job: None,
        fingerprint: Some(BlobId::of(b"other")),
        plan: None,
        explanation: Some("two to add".to_owned()),
        may_destroy: true,
        stale_plan: false,
        is_cut: false,
    };
    let mut it = Approvals::default();
    it.ask(asked(0, ApprovalKind::Apply));
    it.ask(asked(1, ApprovalKind::Manual));
    it.ask(asked(2, ApprovalKind::Shared));
    let said = it[1].id;
    it.decide(said, vote("ann", Decision::Approve), false, None).unwrap();
    let told: Vec<ApprovalId> =
        it.clone().rebind(&work, true).iter().map(|approval| approval.id).collect();
    assert_eq!(told, [said], "nobody had said anything to the one of the apply");
    assert!(it.rebind(&work, false).is_empty());
    let shown = |at: usize| (it[at].over, it[at].explanation.as_deref());
    assert_eq!(shown(0), (true, Some("one to add")));
    assert_eq!(shown(1), (false, Some("two to add")));
    assert_eq!(shown(2), (false, Some("two to add")));
}

#[test]
fn it_is_stored_as_the_bare_list() {
    let it = all_of(ApprovalKind::Manual, 2);
    let stored = serde_json::to_value(&it).unwrap();
    assert_eq!(stored, serde_json::to_value(it.all()).unwrap());
    assert_eq!(serde_json::from_value::<Approvals>(stored).unwrap(), it);
}
