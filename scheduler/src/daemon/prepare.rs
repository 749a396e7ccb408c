//! What must be in every database before a daemon serves it: the built-in runtime, and a token that
//! opens everything. Called by `daemon`.

use std::path::Path;

use schema::id::RuntimeId;
use schema::log_kind::LogKind;
use schema::status::Role;

use super::{StartError, TOKEN_FILE, io_error};
use crate::clock::Clock;
use crate::compile::BUILT_IN_RUNTIME;
use crate::driver;
use crate::private;
use crate::store::{Change, Commit, RuntimeRow, RuntimeSummary, Store, StoreError, TokenRow};

/// What must be in every database: the built-in runtime, and at the first start a token.
pub(super) async fn prepare(store: &Store, clock: &Clock, data: &Path) -> Result<(), StartError> {
    let mut commit = Commit::default();
    if !store.has_runtime(BUILT_IN_RUNTIME).await? {
        let name = BUILT_IN_RUNTIME.parse().expect("the built-in runtime has a legal name");
        let id = RuntimeId::derive(&[b"built-in", BUILT_IN_RUNTIME.as_bytes()]);
        let summary = RuntimeSummary {
            labels: crate::compile::Configs::default().runtime_labels(&name),
            ..RuntimeSummary::default()
        };
        let kind = "local".to_owned();
        commit.changes.push(Change::Runtime(Box::new(RuntimeRow {
            id,
            name,
            kind,
            summary,
            config_version: 0,
            created_at: clock.now(),
        })));
    }
    if store.valid_tokens(Role::Admin, clock.now()).await? == 0 {
        let is_first = !store.has_tokens().await?;
        let name = if is_first {
            "admin".to_owned()
        } else {
            format!("admin-{}", clock.now().as_millis())
        };
        commit.changes.push(Change::Token(admin_token(store, clock, data, &name).await?));
        if !is_first {
            let message = format!(
                "no admin token was valid any more, so that nobody could administer this \
                 scheduler: the token `{name}` was made, and is in {}",
                data.join(TOKEN_FILE).display()
            );
            tracing::warn!("{message}");
            let data = serde_json::json!({"name": name, "role": Role::Admin});
            commit.tell(
                &store.counters().await?,
                clock.now(),
                LogKind::TokenCreated,
                message,
                data,
            );
        }
    }
    if !commit.is_empty() {
        store.commit(&commit).await?;
    }
    Ok(())
}

/// An admin token that does not expire. Its file is written before its row, and read when it is
/// there already and no token that was: a crash between the two leaves no file whose token opens
/// nothing.
async fn admin_token(
    store: &Store,
    clock: &Clock,
    data: &Path,
    name: &str,
) -> Result<TokenRow, StartError> {
    let path = data.join(TOKEN_FILE);
    let (text, row) = driver::new_token(name, Role::Admin, clock.now());
    if let Ok(found) = std::fs::read_to_string(&path)
        && !found.trim().is_empty()
        && is_unknown(store, found.trim()).await?
    {
        return Ok(TokenRow { hash: TokenRow::hash(found.trim()), ..row });
    }
    private::replace(&path, format!("{text}\n").as_bytes())
        .map_err(io_error(format!("write the token `{name}` to {}", path.display())))?;
    Ok(row)
}

/// Whether there is no row of this token; one that cannot be read opens nothing, and is no row for
/// another.
async fn is_unknown(store: &Store, text: &str) -> Result<bool, StartError> {
    match store.token(text).await {
        Err(StoreError::Corrupt(_)) => Ok(false),
        found => Ok(found?.is_none()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Manual;
    use crate::secrets::Sealer;

    async fn opened(directory: &Path) -> Store {
        Store::open(&directory.join("pvn.db"), Sealer::with_key([7; 32])).await.unwrap()
    }

    /// Whether the token in the file opens the door at this moment.
    async fn opens(store: &Store, directory: &Path, clock: &Clock) -> bool {
        let text = std::fs::read_to_string(directory.join(TOKEN_FILE)).unwrap();
        store
            .token(text.trim())
            .await
            .unwrap()
            .is_some_and(|token| token.is_valid(clock.now()) && token.rights == Role::Admin.into())
    }

    async fn commit(store: &Store, change: Change) {
        store.commit(&Commit { changes: vec![change], ..Commit::default() }).await.unwrap();
    }

    #[tokio::test]
    async fn a_start_with_no_admin_token_that_is_valid_makes_one_and_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let time = Manual::starting_at(schema::time::Timestamp::from_millis(1_000));
        let clock = Clock::Manual(time.clone());
        let store = opened(directory.path()).await;
        prepare(&store, &clock, directory.path()).await.unwrap();
        assert!(opens(&store, directory.path(), &clock).await);
        let first = std::fs::read(directory.path().join(TOKEN_FILE)).unwrap();
        // One that expires is left alone.
        let (_, tmp) = driver::new_token("tmp", Role::Admin, clock.now());
        commit(
            &store,
            Change::Token(TokenRow { expires_at: Some(clock.now().plus_ms(10)), ..tmp }),
        )
        .await;
        commit(&store, Change::TokenRevoked { name: "admin".to_owned(), at: clock.now() }).await;
        prepare(&store, &clock, directory.path()).await.unwrap();
        assert_eq!(
            std::fs::read(directory.path().join(TOKEN_FILE)).unwrap(),
            first,
            "there is one that is valid"
        );
        time.set(clock.now().plus_ms(11));
        // One whose hash is damaged opens nothing.
        let (_, cut) = driver::new_token("cut", Role::Admin, clock.now());
        commit(&store, Change::Token(TokenRow { hash: cut.hash[..40].to_owned(), ..cut })).await;
        prepare(&store, &clock, directory.path()).await.unwrap();
        assert!(opens(&store, directory.path(), &clock).await);
        let log = store.events(&Default::default(), &Default::default()).await.unwrap().items;
        assert!(
            log.iter()
                .any(|entry| entry.kind == "token.created"
                    && entry.message.contains("no admin token")),
            "{log:?}"
        );
        // And once more, over a file that was written and whose row was not.
        let (text, _) = driver::new_token("x", Role::Admin, clock.now());
        std::fs::write(directory.path().join(TOKEN_FILE), &text).unwrap();
        let name = store
            .tokens(&Default::default())
            .await
            .unwrap()
            .items
            .into_iter()
            .find(|token| token.name.starts_with("admin-"))
            .unwrap()
            .name;
        commit(&store, Change::TokenRevoked { name, at: clock.now() }).await;
        time.set(clock.now().plus_ms(11));
        prepare(&store, &clock, directory.path()).await.unwrap();
        assert_eq!(std::fs::read_to_string(directory.path().join(TOKEN_FILE)).unwrap(), text);
        assert!(opens(&store, directory.path(), &clock).await);
    }
}
