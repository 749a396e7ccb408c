//! What was seen of the world, however that was learned: at the end of a fetch, or by a watch. How
//! it was learned is a field of the observation and no other way through the engine: `observe.rs`
//! takes all of them in.

use schema::id::{BlobId, JobId};
use schema::output::RuntimeObject;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What was seen, or why nothing was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// How it was learned.
    pub source: ObservationSource,
    /// When it was so, by the clock of whoever looked.
    pub at: Timestamp,
    /// What was seen.
    pub result: Result<WorldReport, ObservationError>,
}

/// How an observation was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObservationSource {
    /// By the fetch with this id. Its end is what tells it ([`crate::event::Event::JobEnded`]).
    Job(JobId),
    /// By the watch of this generation ([`crate::State::watch_generation`]), which looked after
    /// that had begun. One generation tells in order.
    Watch(u64),
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorldReport {
    /// How the world is.
    pub world: ObservedWorld,
    /// What an approval of the work is bound to: the same value for the same work. `None` =
    /// nothing tells work from other work.
    pub fingerprint: Option<BlobId>,
    /// The file that an apply is to be handed.
    pub plan: Option<BlobId>,
    /// What the work would do, for people.
    pub explanation: Option<String>,
    /// Whether the work may destroy something: nobody has said that it does not.
    pub may_destroy: bool,
    /// Whether what tells the work is not kept whole, so that no other observation has the same
    /// fingerprint.
    pub is_cut: bool,
    /// Why a person should doubt it, as a sentence without its end.
    pub doubt: Option<String>,
}

/// How the world is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObservedWorld {
    /// As desired, says who has compared.
    AsDesired,
    /// Not so, says who has compared: what is to be done, as the middle of a sentence.
    Work(String),
    /// These objects are there, to be held against the desired version.
    Objects(Vec<RuntimeObject>),
}

/// Why nothing was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservationError {
    /// Why, as the end of the sentence "fetch …" or "the watch …".
    pub why: String,
    /// Who is to blame.
    pub blame: Blame,
}

/// Who is to blame that nothing was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Blame {
    /// Whoever looked, or what tells it how to.
    Command,
    /// What it needs for that.
    Surroundings,
    /// Somebody who stopped it.
    Person,
}
