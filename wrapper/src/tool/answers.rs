//! Answers of a cloud that several fetches share, where one call can answer for many: the local
//! jobs of one scheduler that ask the same question with the same credentials. Called by the tools
//! of clouds.
//!
//! ```text
//! $PVN_CACHE_DIR/answers/DIGEST/   one question: tool, place, variables, files with credentials
//!     lock                         held (flock) while somebody asks
//!     NAME.answer                  what was answered of NAME, and when that was asked
//!     NAME.wanted                  when a job last wanted it, its time of change
//!     NAME.alone                   that an answer for many says nothing of it
//! ```
//!
//! What always holds:
//! - **An answer was asked for after the instant that the job names** (`PVN_FRESH_AFTER`). A job
//!   that names none asks for itself, and what it is told is there for others.
//! - **Nothing is shared across credentials**: whatever the tool could find them in is in the
//!   digest; where a file only names what gives them, nothing is shared at all.
//! - **No wait is without an end**, and no fetch fails for what was to save it a call: whatever is
//!   wrong here, it asks for itself.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use schema::id::BlobId;
use schema::time::Timestamp;
use schema::wire::{CACHE_VARIABLE, FRESH_AFTER_VARIABLE};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Fault;
use crate::exit;
use crate::spawn::{Environment, variable};
use crate::writer::say;

mod prune;

/// How long a name counts as one that jobs want: longer than they are usually polled for.
const WANTED_FOR: Duration = Duration::from_secs(60 * 60);

/// How long an answer lasts about what changes with an apply of ours only.
const LASTS: Duration = Duration::from_secs(60 * 60);

/// How long somebody else who asks is waited for. An answer takes a second or two, and several
/// times that where many clients start at once: whoever then asks for itself makes it worse.
const LOCK_PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked whether he has ended.
const LOCK_LOOK: Duration = Duration::from_millis(25);

/// Variables that say nothing about who asks what: a shell's own, which differ from job to job.
const PASSING: &[&str] = &["_", "OLDPWD", "PWD", "SHLVL"];

/// What is stored of a name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredAnswer {
    /// Before the call: what is told is at least as new.
    asked_at: Timestamp,
    answer: Value,
}

/// The answers to one question.
pub(super) struct SharedAnswers {
    directory: PathBuf,
    fresh_after: Option<Timestamp>,
}

impl SharedAnswers {
    /// Those to `question`, which is all but a name, with the credentials that these files hold;
    /// one that is not there counts, too. `elsewhere`: words of a file that lead to credentials in
    /// places that nobody here looks at. `None` where nobody could share them.
    pub(super) fn to(
        question: &[&str],
        credentials: &[PathBuf],
        elsewhere: &[&str],
        environment: &Environment,
    ) -> Option<Self> {
        let cache = variable(environment, CACHE_VARIABLE)?;
        let files: Vec<_> = credentials
            .iter()
            .map(|path| (path.as_path(), std::fs::read(path).unwrap_or_default()))
            .collect();
        let leads_on = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            elsewhere.iter().any(|word| text.contains(word))
        };
        if files.iter().any(|(_, text)| leads_on(text)) {
            return None;
        }
        let scope = scope(question, &files, environment);
        let fresh_after = variable(environment, FRESH_AFTER_VARIABLE);
        Some(Self {
            directory: Path::new(cache).join("answers").join(scope),
            fresh_after: fresh_after.and_then(|instant| instant.to_str()?.parse().ok()),
        })
    }

    /// What is told of `name`: what is known, if that is new enough, else what `ask` is told. `ask`
    /// is given the name and up to `others` more that will be wanted next, and gives what it was
    /// told of each; nothing of the first is `None`.
    pub(super) fn of(
        &self,
        name: &str,
        others: usize,
        mut ask: impl FnMut(&[String]) -> Result<Vec<(String, Value)>, Fault>,
    ) -> Result<Option<Value>, Fault> {
        if !is_plain(name) {
            let told = ask(&[name.to_owned()])?;
            return Ok(told.into_iter().find(|(of, _)| of == name).map(|(_, answer)| answer));
        }
        if let Some(known) = self.known(name) {
            self.want(name);
            return Ok(Some(known));
        }
        let turn = self.fresh_after.and_then(|_| self.turn());
        if turn.is_some()
            && let Some(known) = self.known(name)
        {
            self.want(name);
            return Ok(Some(known));
        }
        let mut names = vec![name.to_owned()];
        if turn.is_some() && !self.is_recent(name, "alone") {
            names.extend(self.wanted_next(name, others));
        }
        self.want(name);
        let asked_at = now();
        let told = match ask(&names) {
            // One of the others may be to blame.
            Err(fault) if names.len() > 1 && fault.code != exit::TRY_AGAIN => {
                self.mark(name, "alone");
                ask(&names[..1])?
            }
            told => told?,
        };
        let mut own = None;
        for (of, answer) in told {
            self.store(&of, asked_at, &answer);
            if of == name {
                own = Some(answer);
            }
        }
        if own.is_none() && names.len() > 1 {
            self.mark(name, "alone");
        }
        Ok(own)
    }

    /// What is told of something that changes with an apply of ours only, after which a fetch asks
    /// anew.
    pub(super) fn lasting(
        &self,
        name: &str,
        ask: impl FnOnce() -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        let name = BlobId::of(name.as_bytes()).hex();
        let asked_at = now();
        let lasts = self.fresh_after.and_then(|_| self.stored(&name, asked_at.minus(LASTS)));
        if let Some(stored) = lasts {
            return Ok(stored.answer);
        }
        let answer = ask()?;
        self.store(&name, asked_at, &answer);
        Ok(answer)
    }

    /// Keeps what was told of a name outside of [`Self::of`].
    pub(super) fn keep(&self, name: &str, asked_at: Timestamp, answer: &Value) {
        if is_plain(name) {
            self.store(name, asked_at, answer);
        }
    }

    /// What is known of a name and new enough for this job.
    fn known(&self, name: &str) -> Option<Value> {
        let stored = self.stored(name, self.fresh_after?)?;
        let age = now().since(stored.asked_at).as_secs();
        say(&format!("`{name}` is told as a job of this scheduler saw it {age} s ago"));
        Some(stored.answer)
    }

    fn stored(&self, name: &str, after: Timestamp) -> Option<StoredAnswer> {
        let text = std::fs::read(self.file(name, "answer")).ok()?;
        let stored: StoredAnswer = serde_json::from_slice(&text).ok()?;
        // One of the future is of a clock that was set back since.
        (stored.asked_at > after && stored.asked_at <= now()).then_some(stored)
    }

    /// A file that cannot be written is one answer less.
    fn store(&self, name: &str, asked_at: Timestamp, answer: &Value) {
        let stored = StoredAnswer { asked_at, answer: answer.clone() };
        let bytes = serde_json::to_vec(&stored).expect("a tree of JSON can be written");
        let own = self.file(name, &format!("{}.tmp", std::process::id()));
        let written = self.create(&own).and_then(|mut file| {
            file.write_all(&bytes)?;
            // The kernel's own is some milliseconds late, and compared with that of a mark.
            file.set_modified(clock())
        });
        if written.and_then(|()| std::fs::rename(&own, self.file(name, "answer"))).is_err() {
            let _ = std::fs::remove_file(&own);
        }
    }

    /// Notes that a job wants to know of a name. Not before it has waited for its turn: whoever
    /// asks meanwhile takes those along whose mark is oldest, and so this one.
    fn want(&self, name: &str) {
        self.mark(name, "wanted");
    }

    fn mark(&self, name: &str, with: &str) {
        let marked = self.create(&self.file(name, with));
        // One that cannot be marked is not asked for by others.
        let _ = marked.and_then(|file| file.set_modified(clock()));
    }

    /// Other names that jobs want, those first that will be wanted first: what was wanted longest
    /// ago, and what nothing is known of since.
    fn wanted_next(&self, own: &str, most: usize) -> Vec<String> {
        let mut wanted: BTreeMap<String, SystemTime> = BTreeMap::new();
        let mut answered: BTreeMap<String, SystemTime> = BTreeMap::new();
        for (name, kind, changed) in prune::young(&self.directory) {
            match kind.as_str() {
                "wanted" if is_within(changed, WANTED_FOR) => drop(wanted.insert(name, changed)),
                "answer" => drop(answered.insert(name, changed)),
                _ => {}
            }
        }
        wanted.remove(own);
        let is_told = |name, wanted| answered.get(name).is_some_and(|answered| answered > wanted);
        let mut names: Vec<_> = wanted
            .iter()
            .map(|(name, changed)| (is_told(name, changed), *changed, name.clone()))
            .collect();
        names.sort();
        names.into_iter().map(|(_, _, name)| name).take(most).collect()
    }

    fn is_recent(&self, name: &str, kind: &str) -> bool {
        let changed = std::fs::metadata(self.file(name, kind)).and_then(|found| found.modified());
        changed.is_ok_and(|changed| is_within(changed, WANTED_FOR))
    }

    /// Waits until nobody else asks. `None` = that takes too long, or cannot be told.
    #[expect(clippy::disallowed_methods, reason = "nobody tells when a lock is free")]
    fn turn(&self) -> Option<File> {
        let until = Instant::now() + LOCK_PATIENCE;
        let lock = self.create(&self.directory.join("lock")).ok()?;
        loop {
            match lock.try_lock() {
                Ok(()) => return Some(lock),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => {
                    sleep(LOCK_LOOK)
                }
                Err(_) => return None,
            }
        }
    }

    fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.directory.join(format!("{name}.{kind}"))
    }

    /// Opens a file of ours, made if it is not there, as is its directory.
    fn create(&self, path: &Path) -> io::Result<File> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                prune::other_questions(&self.directory);
                DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
                options.open(path)
            }
            other => other,
        }
    }
}

/// Now, by this machine's clock.
pub(super) fn now() -> Timestamp {
    let since = clock().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(0).plus(since)
}

#[expect(clippy::disallowed_methods, reason = "jobs of one machine compare what they note")]
fn clock() -> SystemTime {
    SystemTime::now()
}

/// Whether a time of change is not older than that. One of the future is not.
fn is_within(changed: SystemTime, span: Duration) -> bool {
    changed.elapsed().is_ok_and(|age| age < span)
}

/// Whether a name can be the name of a file as it stands, and nothing else than a name.
fn is_plain(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=200).contains(&name.len()) && name.bytes().all(allowed)
}

/// The digest of who asks what.
fn scope(question: &[&str], files: &[(&Path, Vec<u8>)], environment: &Environment) -> String {
    let mut all = Vec::new();
    let mut add = |part: &[u8]| {
        all.extend_from_slice(&part.len().to_le_bytes());
        all.extend_from_slice(part);
    };
    question.iter().for_each(|part| add(part.as_bytes()));
    let mut variables: Vec<_> = environment.iter().filter(|(key, _)| !is_passing(key)).collect();
    variables.sort();
    for (key, value) in variables {
        add(key.as_bytes());
        add(value.as_bytes());
    }
    for (path, text) in files {
        add(path.as_os_str().as_bytes());
        // What cannot be read now may be readable later, and is another scope then.
        add(text);
    }
    BlobId::of(&all).hex()
}

/// Whether a variable differs between jobs that ask the same: pvn's own, and those of a shell.
fn is_passing(key: &OsStr) -> bool {
    key.as_bytes().starts_with(b"PVN_") || PASSING.iter().any(|passing| key == *passing)
}

#[cfg(test)]
mod tests;
