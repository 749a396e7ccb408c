//! What is really so: processes that run whatever the daemon does, and what they change.

use std::collections::BTreeMap;

use engine::action::StartJob;
use engine::event::{FetchResult, Outcome};
use schema::id::{BlobId, JobId};
use schema::output::RuntimeObject;
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::random::Random;

/// The true state of one instance's target.
#[derive(Debug, Default, Clone)]
pub(crate) struct Target {
    /// What is applied there; `None` = nothing, or something that pvn did not make.
    pub(crate) version: Option<String>,
    /// Counts changes behind pvn's back; 0 = none since the last apply.
    pub(crate) drift: u64,
}

/// A command that was started, or is about to.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) instance: usize,
    pub(crate) start: StartJob,
    pub(crate) structured: bool,
    /// What a structured fetch prints besides.
    pub(crate) decoration: Option<Result<Vec<RuntimeObject>, String>>,
    pub(crate) alive: bool,
    /// When it ends by itself; `None` = hangs.
    pub(crate) ends_at: Option<i64>,
    pub(crate) began_at: Timestamp,
    pub(crate) fate: Fate,
    /// The runner never says a word about it until things calm down.
    pub(crate) mute: bool,
    /// Heeds neither TERM nor KILL.
    pub(crate) immortal: bool,
    /// A person took the responsibility for whatever it still does.
    pub(crate) forgiven: bool,
    /// What the runner tells from now on.
    pub(crate) outcome: Option<Outcome>,
}

/// How a command turns out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Works,
    /// Ends with this code and does nothing.
    Fails(i32),
    /// Ends with this code although it did its work.
    DoesAndFails(i32),
    /// A fetch that tells the opposite, an apply that says 0 and does nothing.
    Lies,
    NotStarted {
        surroundings: bool,
    },
    /// What its fetch left for it is lost.
    InputLost,
    /// A gate shut for a moment while it had not begun, and its runner took it back.
    TakenBack,
    /// The runner loses sight of it; it is dead.
    Lost,
    /// Its wrapper is killed and it lives on, does its work and ends, and nobody knows.
    Orphaned,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) targets: Vec<Target>,
    pub(crate) processes: BTreeMap<JobId, Process>,
    pub(crate) changes: u64,
}

impl World {
    /// Something changes behind pvn's back.
    pub(crate) fn drift(&mut self, instance: usize, random: &mut Random) {
        self.changes += 1;
        let target = &mut self.targets[instance];
        target.drift = self.changes;
        if random.one_in(4) {
            target.version = None;
        }
    }

    /// Starts a command, unless it was started before; how it will turn out is decided here.
    pub(crate) fn start(&mut self, process: Process) {
        self.processes.entry(process.start.job).or_insert(process);
    }

    /// The fetches and applies of this instance that really run.
    pub(crate) fn running(&self, instance: usize) -> impl Iterator<Item = &Process> {
        self.processes.values().filter(move |process| {
            process.instance == instance
                && process.alive
                && process.start.kind != JobKind::GetInfo
                && !process.forgiven
        })
    }

    /// A command ends by itself.
    pub(crate) fn end(&mut self, job: JobId, now: Timestamp) {
        let Some(process) = self.processes.get_mut(&job).filter(|process| process.alive) else {
            return;
        };
        // Nothing more is heard of it; whether it is gone is another question.
        process.alive =
            process.fate == Fate::Lost && process.immortal || process.fate == Fate::Orphaned;
        process.ends_at = None;
        let target = &mut self.targets[process.instance];
        let worked = matches!(process.fate, Fate::Works | Fate::DoesAndFails(_))
            || process.fate == Fate::Lost && process.start.attempt % 2 == 0;
        if process.start.kind == JobKind::Apply && worked {
            *target = Target { version: Some(process.start.version.clone()), drift: 0 };
        }
        let (code, seen) = match (process.fate, process.start.kind) {
            (Fate::Fails(code) | Fate::DoesAndFails(code), _) => (code, FetchResult::default()),
            (fate, JobKind::Fetch) => fetch(
                &process.start,
                process.structured,
                target,
                fate == Fate::Lies,
                process.decoration.take(),
            ),
            _ => (0, FetchResult::default()),
        };
        process.outcome = Some(match process.fate {
            Fate::NotStarted { surroundings } => {
                Outcome::NotStarted { why: "could not".to_owned(), surroundings }
            }
            Fate::InputLost => Outcome::InputLost { why: "could not".to_owned() },
            // For whoever does not wait for it any more, or has stopped it.
            Fate::TakenBack => {
                Outcome::NotStarted { why: "it was paused".to_owned(), surroundings: true }
            }
            Fate::Lost => Outcome::Unknown { why: "lost".to_owned(), gone: !process.immortal },
            Fate::Orphaned => {
                Outcome::Unknown { why: "its wrapper was killed".to_owned(), gone: false }
            }
            _ => Outcome::Exited {
                code,
                started_at: process.began_at,
                ended_at: now,
                said: String::new(),
                seen: Box::new(seen),
                info: Some(Ok(Vec::new())),
            },
        });
    }

    /// Somebody asks it to stop; it ends at once here, being told of it takes its time.
    pub(crate) fn stop(&mut self, job: JobId) {
        let Some(process) = self
            .processes
            .get_mut(&job)
            .filter(|process| process.alive && process.outcome.is_none())
        else {
            return;
        };
        process.alive = process.immortal;
        process.outcome = Some(Outcome::Cancelled { gone: !process.immortal });
    }

    /// The last of an immortal: now it is gone.
    pub(crate) fn bury(&mut self, job: JobId) {
        if let Some(process) = self.processes.get_mut(&job).filter(|process| process.alive) {
            process.alive = false;
            if process.fate == Fate::Orphaned && process.start.kind == JobKind::Apply {
                self.targets[process.instance] =
                    Target { version: Some(process.start.version.clone()), drift: 0 };
            }
            process.outcome = Some(Outcome::Cancelled { gone: true });
        }
    }

    /// Forgets processes that are over and that no state names any more, so that a long run stays
    /// small.
    pub(crate) fn forget(&mut self, named: impl Fn(JobId) -> bool) {
        self.processes.retain(|job, process| process.alive || named(*job));
    }
}

/// Whether what tells this work says that it destroys nothing: half of them do.
pub(crate) fn destroys_nothing(fingerprint: Option<BlobId>) -> bool {
    fingerprint
        .is_some_and(|digest| digest.to_string().ends_with(|last| ('0'..='7').contains(&last)))
}

/// What a fetch tells of the target: fingerprint by what is so, plan bytes of its own.
fn fetch(
    start: &StartJob,
    structured: bool,
    target: &Target,
    lies: bool,
    decoration: Option<Result<Vec<RuntimeObject>, String>>,
) -> (i32, FetchResult) {
    let clean = (target.version.as_ref() == Some(&start.version) && target.drift == 0) != lies;
    if structured {
        let version = if clean {
            Some(start.version.clone())
        } else {
            target.version.clone().filter(|version| *version != start.version)
        };
        let versions: Vec<_> = version
            .into_iter()
            .map(|version| serde_json::json!({"version": version, "active": true}))
            .collect();
        let object = serde_json::json!({"name": "web", "objectType": "Process", "status": "SUCCEEDED", "versions": versions});
        let object: RuntimeObject = serde_json::from_value(object).unwrap();
        let output = BlobId::of(format!("{:?}", object.versions).as_bytes());
        let objects = match decoration {
            None => Ok(vec![object]),
            // More of what is so: the versions of the one that counts, everything else as it may
            // come.
            Some(Ok(others)) => Ok(others
                .into_iter()
                .map(|other| RuntimeObject {
                    versions: object.versions.clone(),
                    status: object.status,
                    ..other
                })
                .chain([object.clone()])
                .collect()),
            Some(Err(why)) => Err(why),
        };
        let seen = FetchResult {
            objects: Some(objects),
            output: Some(output),
            destroys_nothing: destroys_nothing(Some(output)),
            ..FetchResult::default()
        };
        return (0, seen);
    }
    if clean {
        let doubt = start.version.ends_with("1").then(|| "it printed a document".to_owned());
        return (0, FetchResult { doubt, ..FetchResult::default() });
    }
    let explanation = format!("{:?} {} to {}", target.version, target.drift, start.version);
    let digest = Some(BlobId::of(explanation.as_bytes()));
    let seen = FetchResult {
        plan: Some(BlobId::of(start.job.as_bytes())),
        explanation: digest,
        destroys_nothing: destroys_nothing(digest),
        explanation_text: Some(explanation),
        ..FetchResult::default()
    };
    (2, seen)
}
