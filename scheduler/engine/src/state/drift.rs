//! Drift that was found, by its fingerprint: since when, how often, and whether somebody has said
//! to leave it as it is for a while. Found again it is the same; told and repaired as often as it
//! comes back, unless it is acknowledged.

use schema::id::BlobId;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::is_zero;

/// Most drifts of one release that are told apart; the oldest that nobody acknowledged goes first.
/// More than two in turns are rare, and each is in the state that every commit writes.
pub const DRIFTS_KEPT: usize = 8;

/// One that was found since the release arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftRecord {
    /// The same value for the same drift.
    pub fingerprint: BlobId,
    /// What it is, as a sentence without its end.
    pub what: String,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
    /// Looks that found it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<DriftAcknowledgement>,
}

/// Somebody knows of it: until then nothing is applied because of it, and nobody is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftAcknowledgement {
    /// Name of the token used.
    pub who: String,
    pub at: Timestamp,
    /// By the clock on the wall.
    pub until: Timestamp,
    /// In their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl DriftAcknowledgement {
    /// As the middle of a sentence: who, until when, and why.
    pub(crate) fn in_words(&self) -> String {
        let why = self.reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        format!("{} acknowledged until {}{why}", self.who, self.until)
    }
}

/// All that are told apart, the one that was seen last at the end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Drifts(Vec<DriftRecord>);

impl Drifts {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, fingerprint: BlobId) -> Option<&DriftRecord> {
        self.0.iter().find(|drift| drift.fingerprint == fingerprint)
    }

    /// It was seen then, perhaps once more.
    pub(crate) fn see(&mut self, fingerprint: BlobId, what: &str, at: Timestamp) {
        let known = self.0.iter().position(|drift| drift.fingerprint == fingerprint);
        let known = known.map(|index| self.0.remove(index));
        let mut drift = known.unwrap_or_else(|| DriftRecord {
            fingerprint,
            what: String::new(),
            first_seen: at,
            last_seen: at,
            count: 0,
            acknowledged: None,
        });
        drift.what = what.to_owned();
        drift.last_seen = at;
        drift.count = drift.count.saturating_add(1);
        if self.0.len() >= DRIFTS_KEPT {
            let least = |drift: &DriftRecord| drift.acknowledged.as_ref().map(|known| known.until);
            let goes = (0..self.0.len()).min_by_key(|index| least(&self.0[*index]));
            goes.into_iter().for_each(|index| drop(self.0.remove(index)));
        }
        self.0.push(drift);
    }

    /// Somebody acknowledges this one. Gives whether it is known.
    pub(crate) fn acknowledge(&mut self, fingerprint: BlobId, by: DriftAcknowledgement) -> bool {
        let drift = self.0.iter_mut().find(|drift| drift.fingerprint == fingerprint);
        drift.map(|drift| drift.acknowledged = Some(by)).is_some()
    }

    /// Nothing is acknowledged any more. Gives what was, as it was.
    pub(crate) fn forget_acknowledged(&mut self) -> Vec<DriftRecord> {
        self.end_acknowledged(|_| true)
    }

    /// What was acknowledged until then, or sooner, is not any more. Gives it as it was.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<DriftRecord> {
        self.end_acknowledged(|known| known.until <= now)
    }

    fn end_acknowledged(
        &mut self,
        ends: impl Fn(&DriftAcknowledgement) -> bool,
    ) -> Vec<DriftRecord> {
        let mut ended = Vec::new();
        for drift in &mut self.0 {
            if drift.acknowledged.as_ref().is_some_and(&ends) {
                ended.push(drift.clone());
                drift.acknowledged = None;
            }
        }
        ended
    }

    /// When the first acknowledgement ends by itself.
    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(|drift| drift.acknowledged.as_ref()).map(|by| by.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1_000)
    }

    fn of(number: usize) -> BlobId {
        BlobId::of(number.to_string().as_bytes())
    }

    fn until(second: i64) -> DriftAcknowledgement {
        DriftAcknowledgement { who: "ann".to_owned(), at: at(0), until: at(second), reason: None }
    }

    #[test]
    fn what_is_seen_again_is_the_same_with_another_last_time() {
        let mut all = Drifts::default();
        for second in [3, 5, 9] {
            all.see(of(1), &format!("seen at {second}"), at(second));
        }
        let drift = all.get(of(1)).unwrap();
        assert_eq!(
            (drift.first_seen, drift.last_seen, drift.count, drift.what.as_str()),
            (at(3), at(9), 3, "seen at 9")
        );
        assert_eq!(all.get(of(2)), None);
    }

    #[test]
    fn the_oldest_that_nobody_acknowledged_is_forgotten_first() {
        let mut all = Drifts::default();
        for number in 0..DRIFTS_KEPT {
            all.see(of(number), "", at(0));
        }
        assert!(all.acknowledge(of(0), until(90)));
        all.see(of(DRIFTS_KEPT), "", at(1));
        assert!(all.get(of(0)).is_some() && all.get(of(1)).is_none() && all.get(of(2)).is_some());
        for number in 2..=DRIFTS_KEPT {
            assert!(all.acknowledge(of(number), until(80)));
        }
        assert!(all.acknowledge(of(5), until(70)));
        all.see(of(99), "", at(2));
        assert!(all.get(of(5)).is_none(), "of those the one that ends first");
        assert_eq!(all.0.len(), DRIFTS_KEPT);
    }

    #[test]
    fn an_acknowledgement_is_for_one_drift_and_ends_at_its_instant() {
        let mut all = Drifts::default();
        (1..=2).for_each(|number| all.see(of(number), "", at(0)));
        assert!(!all.acknowledge(of(3), until(10)), "nobody has seen that");
        assert!(all.acknowledge(of(1), until(10)) && all.acknowledge(of(2), until(20)));
        assert_eq!(all.expires_at(), Some(at(10)));
        let names = |ended: Vec<DriftRecord>| -> Vec<BlobId> {
            assert!(ended.iter().all(|drift| drift.acknowledged.is_some()), "as it was");
            ended.iter().map(|drift| drift.fingerprint).collect()
        };
        assert_eq!(names(all.expire(at(9))), []);
        assert_eq!(names(all.expire(at(10))), [of(1)]);
        assert_eq!(all.expires_at(), Some(at(20)));
        assert_eq!(names(all.forget_acknowledged()), [of(2)]);
        assert_eq!((all.expires_at(), all.forget_acknowledged()), (None, Vec::new()));
    }
}
