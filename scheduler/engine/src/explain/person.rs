//! What an explanation says where a person has to say something: an approval, and what ends that
//! somebody said no.

use schema::api::decision_flags;
use schema::cause::CauseCode;
use schema::status::{ApprovalKind, Decision};

use super::CauseChain;
use crate::approve::{name_of, words_of};
use crate::desired::Observe;
use crate::state::{Approval, State};

impl CauseChain<'_> {
    pub(super) fn approval(&mut self, approval: &Approval) {
        let digest =
            approval.plan_digest().map_or_else(String::new, |digest| format!(", for {digest}"));
        let yes: Vec<&str> = approval.yes().map(|vote| vote.who.as_str()).collect();
        if let Some(no) = approval.votes.iter().find(|vote| vote.decision == Decision::Reject) {
            let why = no.reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            let text =
                format!("{} rejected {} {}{digest}{why}", no.who, name_of(approval), approval.id);
            self.say(CauseCode::ApprovalRejected, text, Some(no.at), None);
            let found = if approval.kind == ApprovalKind::Apply {
                "something else"
            } else {
                "nothing left to do"
            };
            let retry = match self.state.asks_anew() {
                true => "`pvnctl services retry`, which asks anew",
                false => "`pvnctl services retry`, which applies it without asking anybody",
            };
            let ways = ways_out(self.state, retry, found);
            self.say(CauseCode::WaitsForPerson, format!("ends with {ways}"), None, None);
            return;
        }
        let by = if yes.is_empty() { String::new() } else { format!(" ({})", yes.join(", ")) };
        let counted = format!("{} of {} people said yes{by}", yes.len(), approval.needed);
        let words = words_of(approval)
            .map_or_else(String::new, |words| format!(", with the words \"{words}\""));
        let (target, flags) = (
            self.around.target,
            decision_flags(
                approval.id,
                approval.plan_digest().map(|digest| digest.to_string()).as_deref(),
            ),
        );
        let text = format!(
            "{} is asked{digest}{words}: {counted}; ends with `pvnctl services approve {target} \
             {flags}`, or `pvnctl services reject {target} {flags}`",
            name_of(approval)
        );
        self.say(
            CauseCode::ApprovalPending,
            text,
            Some(approval.requested_at),
            approval.expires_at,
        );
    }
}

/// What ends that a person's word keeps an apply back: this command, a new release, or somebody who
/// looks and finds this.
pub(super) fn ways_out(state: &State, command: &str, found: &str) -> String {
    match state.desired().map(|desired| &desired.observe) {
        Some(Observe::Poll(_)) => {
            format!("{command}, a new release, or a fetch that finds {found}")
        }
        Some(Observe::Watch(_)) => {
            format!("{command}, a new release, or a watch that finds {found}")
        }
        Some(Observe::Never) | None => format!("{command} or a new release"),
    }
}
