//! What was as desired and is not any more: the same drift is one, however often it is found, and
//! while somebody acknowledges it nothing is applied because of it and nobody is told. Called by
//! the step and by `observe.rs`.

use schema::id::BlobId;
use schema::log_kind::LogKind;
use schema::time::Timestamp;

use crate::action::{Action, log};
use crate::limits::ACKNOWLEDGED_AT_MOST;
use crate::state::{DriftAcknowledgement, DriftRecord, State, Work};

impl State {
    /// The drift that there is, as far as anything tells it from other drift; of a release that has
    /// arrived.
    pub fn drift(&self) -> Option<&DriftRecord> {
        let work = self.work().filter(|_| self.has_drifted())?;
        self.drifts.get(work.known_by()?)
    }

    /// Whether what was as desired is not any more, told from other drift or not.
    pub fn has_drifted(&self) -> bool {
        self.work().is_some() && self.rollout.has_arrived() && !self.deleted
    }

    /// Who says that the drift that there is stays as it is, and until when.
    pub(crate) fn acknowledged(&self, now: Timestamp) -> Option<&DriftAcknowledgement> {
        self.drift()?.acknowledged.as_ref().filter(|known| known.until > now)
    }

    /// Work was found that is not taken in yet. What of it is drift is noted, and told where it is
    /// news: `seen_by` is who found it, as the log names it.
    pub(crate) fn see_drift(
        &mut self,
        work: &Work,
        seen_by: (&str, &str),
        at: Timestamp,
        out: &mut Vec<Action>,
    ) {
        if !self.rollout.has_arrived() {
            return;
        }
        // Of what is acknowledged nobody was told, so what takes its place is news.
        let was_told = self.work().is_some() && self.acknowledged(at).is_none();
        let before = work.known_by().and_then(|known_by| self.drifts.get(known_by)).cloned();
        if let Some(known_by) = work.known_by() {
            self.drifts.see(known_by, &work.what, at);
        }
        let is_acknowledged = before
            .as_ref()
            .and_then(|drift| drift.acknowledged.as_ref())
            .is_some_and(|known| known.until > at);
        if was_told || is_acknowledged {
            return;
        }
        out.push(told(work, before.as_ref(), seen_by));
    }

    /// A person leaves a drift as it is until then. What is not there any more, or is to be left
    /// for no time, changes nothing.
    pub(crate) fn acknowledge(
        &mut self,
        fingerprint: BlobId,
        by: DriftAcknowledgement,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let until = by.until.min(now.plus(ACKNOWLEDGED_AT_MOST));
        let by = DriftAcknowledgement { until, ..by };
        let is_there = self.drift().is_some_and(|drift| drift.fingerprint == fingerprint);
        if until <= now || !is_there || !self.drifts.acknowledge(fingerprint, by.clone()) {
            return;
        }
        // Whoever is asked about it has nothing to answer.
        self.approvals.withdraw_for_nothing_to_do(true);
        let what = self.work().map_or("", |work| &work.what);
        let message = format!("{}: {what}", by.in_words());
        let (known_by, until) = (fingerprint.to_string(), until.to_string());
        let data = [("fingerprint", known_by.as_str()), ("until", until.as_str())];
        out.push(log(LogKind::DriftAcknowledged, Some(by.who), message, &data));
    }

    /// A person wants drift repaired again, whatever was acknowledged.
    pub(crate) fn end_acknowledged(&mut self, who: String, out: &mut Vec<Action>) {
        for drift in self.drifts.forget_acknowledged() {
            out.push(is_over(&drift, Some(who.clone())));
        }
    }

    /// What was acknowledged until now is not any more.
    pub(crate) fn expire_acknowledged(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        for drift in self.drifts.expire(now) {
            out.push(is_over(&drift, None));
        }
    }
}

/// That it was found, the first time or once more.
fn told(work: &Work, before: Option<&DriftRecord>, (who, id): (&str, &str)) -> Action {
    let what = &work.what;
    let (message, first, count) = match before {
        None => (format!("drift: {what}"), None, 1),
        Some(before) => {
            let (count, first) = (before.count, before.first_seen);
            let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
            let again = format!("drift once more, found {times} since {first}: {what}");
            (again, Some(first.to_string()), count.saturating_add(1))
        }
    };
    let (count, known_by) =
        (count.to_string(), work.known_by().map(|known_by| known_by.to_string()));
    let mut data = vec![(who, id), ("reason", work.reason.as_str()), ("count", &count)];
    data.extend(known_by.as_deref().map(|known_by| ("fingerprint", known_by)));
    data.extend(first.as_deref().map(|first| ("firstSeen", first)));
    log(LogKind::DriftFound, None, message, &data)
}

/// That it is not acknowledged any more. `who`: where a person ends it.
fn is_over(drift: &DriftRecord, who: Option<String>) -> Action {
    let by = drift.acknowledged.as_ref().map_or("someone", |known| &known.who);
    let how = match &who {
        Some(who) => format!("{who} ends that {by} acknowledged drift"),
        None => format!("drift is not acknowledged by {by} any more, as its time is over"),
    };
    let data = [("fingerprint", &drift.fingerprint.to_string() as &str)];
    let message = format!("{how}: {}", drift.what);
    log(LogKind::DriftAcknowledgementEnded, who, message, &data)
}
