//! What of shared answers is of no use any more goes. Called by `answers`.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::is_within;

/// How long what nobody writes to stays: as long as any of it may be used, and again.
const KEPT_FOR: Duration = Duration::from_secs(2 * 60 * 60);

/// Most questions whose answers are kept. Credentials that a job gets anew each time make another
/// one of each.
const QUESTIONS: usize = 64;

/// What lies in the directory of a question: name, kind, time of change. What is old goes.
pub(super) fn young(directory: &Path) -> Vec<(String, String, SystemTime)> {
    let found = entries(directory).into_iter().filter_map(|(path, metadata)| {
        let (name, kind) = path.file_name()?.to_str()?.split_once('.')?;
        let changed = metadata.modified().ok()?;
        if !is_within(changed, KEPT_FOR) {
            // Whoever uses it just now has it open, or asks for himself.
            let _ = std::fs::remove_file(&path);
            return None;
        }
        Some((name.to_owned(), kind.to_owned(), changed))
    });
    found.collect()
}

/// Makes room for another question beside those that are there.
pub(super) fn other_questions(new: &Path) {
    let Some(all) = new.parent() else { return };
    let changed = |(path, metadata): (PathBuf, Metadata)| Some((metadata.modified().ok()?, path));
    let mut questions: Vec<_> = entries(all).into_iter().filter_map(changed).collect();
    questions.sort();
    let over = (questions.len() + 1).saturating_sub(QUESTIONS);
    for (at, (changed, path)) in questions.into_iter().enumerate() {
        if at < over || !is_within(changed, KEPT_FOR) {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

fn entries(directory: &Path) -> Vec<(PathBuf, Metadata)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let found = entries.flatten().filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)));
    found.collect()
}
