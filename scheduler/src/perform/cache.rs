//! Compiled commands that were used lately, so that a fetch every few seconds does not read them
//! every few seconds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use schema::id::BlobId;

use crate::compile::Commands;

/// Entries of a generation. Two are kept: at some KiB each that is a few MiB, and holds what a busy
/// daemon uses in minutes.
const GENERATION: usize = 512;

/// Two generations: what is used moves into the young one; when that is full the old one is
/// dropped.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<BlobId, Arc<Commands>>,
    old: HashMap<BlobId, Arc<Commands>>,
}

impl Cache {
    pub(super) fn get(&self, digest: BlobId) -> Option<Arc<Commands>> {
        let mut generations = self.0.lock().expect("nobody panics while holding the cache");
        if let Some(found) = generations.young.get(&digest) {
            return Some(found.clone());
        }
        let found = generations.old.remove(&digest)?;
        generations.insert(digest, found.clone());
        Some(found)
    }

    pub(super) fn put(&self, digest: BlobId, commands: Arc<Commands>) {
        self.0.lock().expect("nobody panics while holding the cache").insert(digest, commands);
    }
}

impl Generations {
    fn insert(&mut self, digest: BlobId, commands: Arc<Commands>) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, commands);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Command, RunTarget};

    fn commands(name: &str) -> Arc<Commands> {
        let apply = Command::new(name, &[name]);
        Arc::new(Commands {
            place: RunTarget::Fake { crashing_programs: Vec::new() },
            fetch: None,
            apply,
            get_info: None,
        })
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let cache = Cache::default();
        let id = |number: usize| BlobId::of(&number.to_le_bytes());
        for number in 0..GENERATION * 4 {
            cache.put(id(number), commands("x"));
            assert!(cache.get(id(0)).is_some(), "used all the time, at {number}");
        }
        assert!(cache.get(id(1)).is_none());
        let generations = cache.0.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION);
    }
}
