//! The key file beside the database that is sealed with it. Called by `daemon` and by what is done
//! by hand, before the database is opened. What always holds: no key is made where the database has
//! one, because with another key nothing of it opens, and what is sealed with that is lost when the
//! right one comes back.

use std::path::{Path, PathBuf};

use crate::secrets::{SealError, Sealer};
use crate::store::{self, Fit, KeyMark, Store, StoreError};

/// Why a key is not used with a database.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// There is none.
    #[error(
        "the key file {} is not there, and the database {} is sealed with its key: secrets and \
         configs open with no other one, so none was made. {PUT_BACK}",
        key.display(), database.display()
    )]
    Missing {
        /// Where it should be.
        key: PathBuf,
        /// What is sealed with it.
        database: PathBuf,
    },
    /// It is another one.
    #[error(
        "the database {0} is sealed with another key than the one in {1}: secrets and configs do \
         not open with it, so nothing was changed. {PUT_BACK}. Where this is the right key for \
         certain, the check value is damaged that says so (table `meta`, row `key_check`); have it \
         made anew with sqlite3 '{0}' \"INSERT OR REPLACE INTO meta (key, value) VALUES \
         ('key_check', '')\"",
        database.display(), key.display()
    )]
    Other {
        /// The file with the wrong one.
        key: PathBuf,
        /// What is sealed with another.
        database: PathBuf,
    },
    /// It is a later one.
    #[error(
        "the database {0} is sealed with two keys, and the one in {1} is the later: it opens \
         {opens} of {tried} secrets and configs, but not the oldest. A pvn of before made it when \
         it found none, so nothing was changed. Put the first key back there (the copy that was \
         kept apart, or a backup made with --with-key) and set anew what does not open with it. \
         Or, when the first is lost, go on with this one: sqlite3 '{0}' \"INSERT OR REPLACE INTO \
         meta (key, value) VALUES ('key_check', '')\"",
        database.display(), key.display()
    )]
    Later {
        /// The file with it.
        key: PathBuf,
        /// What is sealed with another one before.
        database: PathBuf,
        /// How many things it opens.
        opens: usize,
        /// Of how many.
        tried: usize,
    },
    /// The file cannot be used.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What both say.
const PUT_BACK: &str = "Find the right one (the copy that was kept apart, a backup made with \
                        --with-key, or the data directory that the database was used from before) \
                        and put it back there with mode 0600, or name it with --secret-key-file. \
                        When it is lost, what is sealed is lost: begin with a new data directory, \
                        and give it configs and secrets anew";

/// The key in this file, for this database. It is made where there is none and nothing is sealed.
///
/// # Errors
/// [`KeyError`] with what to do; then no file was made.
pub(crate) async fn open(key: &Path, database: &Path) -> Result<Sealer, KeyError> {
    let mark = store::peek_key(database).await?;
    match check(key, database, &mark)? {
        Some(sealer) => Ok(sealer),
        None => Ok(Sealer::open(key)?),
    }
}

/// Whether this is not the key of the database, before anything is done to either.
///
/// # Errors
/// [`KeyError`] with what to do.
pub(crate) async fn refused(key: &Path, database: &Path) -> Result<(), KeyError> {
    let mark = store::peek_key(database).await?;
    check(key, database, &mark).map(drop)
}

/// The key in this file, if it is this database's, of which `mark` tells; `None` when neither has
/// one.
///
/// # Errors
/// [`KeyError`] with what to do.
pub(crate) fn check(
    key: &Path,
    database: &Path,
    mark: &KeyMark,
) -> Result<Option<Sealer>, KeyError> {
    match Sealer::read(key)? {
        Some(sealer) => {
            if let Some(error) = unfit(&mark.fit(&sealer), key, database) {
                return Err(error);
            }
            Ok(Some(sealer))
        }
        None if mark.is_sealed() => {
            Err(KeyError::Missing { key: key.to_owned(), database: database.to_owned() })
        }
        None => Ok(None),
    }
}

/// Notes in a database that was opened with this key that it is its own: the one that it is sealed
/// with from now on.
///
/// # Errors
/// [`KeyError::Other`] when another daemon has given it one meanwhile.
pub(crate) async fn note(store: &Store, key: &Path, database: &Path) -> Result<(), KeyError> {
    let fit = store.note_key().await?;
    match &fit {
        Fit::Right { others } if !others.is_empty() => tracing::warn!(
            "{} of what is in {} is sealed with another key than the one in {}, which a pvn of \
             before made when it found none: give it anew ({})",
            others.len(),
            database.display(),
            key.display(),
            others.join(", ")
        ),
        _ => {}
    }
    unfit(&fit, key, database).map_or(Ok(()), Err)
}

fn unfit(fit: &Fit, key: &Path, database: &Path) -> Option<KeyError> {
    let (key, database) = (key.to_owned(), database.to_owned());
    match *fit {
        Fit::Right { .. } => None,
        Fit::Later { opens, tried } => Some(KeyError::Later { key, database, opens, tried }),
        Fit::Wrong => Some(KeyError::Other { key, database }),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use schema::status::Role;
    use schema::time::Timestamp;

    use super::*;
    use crate::secrets::KEY_FILE;
    use crate::store::{Change, Commit, TokenRow};

    struct Rig {
        directory: tempfile::TempDir,
        sealed: Cell<i64>,
    }

    impl Rig {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().unwrap(), sealed: Cell::new(0) }
        }

        fn key(&self) -> PathBuf {
            self.directory.path().join(KEY_FILE)
        }

        fn database(&self) -> PathBuf {
            self.directory.path().join("pvn.db")
        }

        async fn open(&self) -> Result<Store, KeyError> {
            let sealer = open(&self.key(), &self.database()).await?;
            let store = Store::open(&self.database(), sealer).await?;
            note(&store, &self.key(), &self.database()).await?;
            Ok(store)
        }

        /// Seals a secret with whatever key is there, as a pvn did that asked for no check.
        async fn seals(&self, key: &str) {
            let store =
                Store::open(&self.database(), Sealer::open(&self.key()).unwrap()).await.unwrap();
            self.sealed.set(self.sealed.get() + 1);
            let at = Timestamp::from_millis(self.sealed.get());
            let change = Change::Secret {
                key: key.to_owned(),
                version: 1,
                value: b"hush".to_vec(),
                at,
                by: "eve".to_owned(),
            };
            store.commit(&Commit { changes: vec![change], ..Commit::default() }).await.unwrap();
            store.close().await;
        }
    }

    #[tokio::test]
    async fn a_new_database_gets_a_key_and_from_then_on_opens_with_no_other_one() {
        let rig = Rig::new();
        rig.open().await.unwrap().close().await;
        let saved = rig.directory.path().join("saved");
        std::fs::rename(rig.key(), &saved).unwrap();
        let refused = rig.open().await.unwrap_err();
        assert!(matches!(&refused, KeyError::Missing { .. }) && !rig.key().exists(), "{refused}");
        Sealer::open(&rig.key()).unwrap();
        let refused = rig.open().await.unwrap_err();
        assert!(matches!(&refused, KeyError::Other { .. }), "{refused}");
        std::fs::rename(&saved, rig.key()).unwrap();
        rig.open().await.unwrap();
    }

    #[tokio::test]
    async fn a_database_without_a_check_value_is_told_by_what_is_sealed_in_it() {
        let rig = Rig::new();
        rig.seals("one").await;
        rig.seals("two").await;
        let saved = rig.directory.path().join("saved");
        std::fs::rename(rig.key(), &saved).unwrap();
        assert!(matches!(rig.open().await, Err(KeyError::Missing { .. })));
        // A start of before, which made a key.
        rig.seals("three").await;
        rig.seals("four").await;
        rig.seals("five").await;
        let refused = rig.open().await.unwrap_err();
        assert!(
            matches!(refused, KeyError::Later { opens: 3, tried: 5, .. }),
            "the oldest are sealed with the first: {refused}"
        );
        let later = rig.directory.path().join("later");
        std::fs::rename(rig.key(), &later).unwrap();
        std::fs::rename(&saved, rig.key()).unwrap();
        let store = rig.open().await.unwrap();
        assert_eq!(store.secret("one", 0).await.unwrap().unwrap().1, b"hush");
        store.close().await;
        std::fs::rename(&later, rig.key()).unwrap();
        assert!(matches!(rig.open().await, Err(KeyError::Other { .. })));
    }

    #[tokio::test]
    async fn the_later_of_two_keys_is_taken_when_somebody_empties_the_check_value() {
        let rig = Rig::new();
        rig.seals("one").await;
        std::fs::remove_file(rig.key()).unwrap();
        rig.seals("two").await;
        let told = rig.open().await.unwrap_err().to_string();
        let (_, statement) = told.split_once(" \"").unwrap();
        store::by_hand(&rig.database(), statement.trim_end_matches('"')).await;
        rig.open().await.unwrap().close().await;
        std::fs::remove_file(rig.key()).unwrap();
        Sealer::open(&rig.key()).unwrap();
        assert!(matches!(rig.open().await, Err(KeyError::Other { .. })), "noted once");
    }

    #[tokio::test]
    async fn a_database_in_which_nothing_is_sealed_takes_any_key_once() {
        let rig = Rig::new();
        let store = Store::open(&rig.database(), Sealer::with_key([7; 32])).await.unwrap();
        let token = TokenRow {
            name: "admin".to_owned(),
            rights: Role::Admin.into(),
            hash: TokenRow::hash("x"),
            created_at: Timestamp::from_millis(1),
            expires_at: None,
            revoked_at: None,
        };
        store
            .commit(&Commit { changes: vec![Change::Token(token)], ..Commit::default() })
            .await
            .unwrap();
        store.close().await;
        rig.open().await.unwrap().close().await;
        std::fs::remove_file(rig.key()).unwrap();
        assert!(matches!(rig.open().await, Err(KeyError::Missing { .. })));
    }
}
