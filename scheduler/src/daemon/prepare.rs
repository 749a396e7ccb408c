//! What must be in every database before a daemon serves it: the built-in runtime, and a token that opens everything. Called by
//! `daemon`.

use std::path::Path;

use schema::id::RuntimeId;
use schema::status::Role;

use super::{StartError, TOKEN_FILE, io_error};
use crate::clock::Clock;
use crate::compile::BUILT_IN_RUNTIME;
use crate::driver;
use crate::secrets;
use crate::store::{Change, Commit, RuntimeRow, RuntimeSummary, Store, TokenRow};

/// What must be in every database: the built-in runtime, and at the first start a token.
pub(super) async fn prepare(store: &Store, clock: &Clock, data: &Path) -> Result<(), StartError> {
    let mut commit = Commit::default();
    if !store.has_runtime(BUILT_IN_RUNTIME).await? {
        let name = BUILT_IN_RUNTIME.parse().expect("the built-in runtime has a legal name");
        let id = RuntimeId::derive(&[b"built-in", BUILT_IN_RUNTIME.as_bytes()]);
        let summary = RuntimeSummary { labels: crate::compile::Configs::default().runtime_labels(&name), ..RuntimeSummary::default() };
        let kind = "local".to_owned();
        commit.changes.push(Change::Runtime(Box::new(RuntimeRow { id, name, kind, summary, config_version: 0, created_at: clock.now() })));
    }
    if !store.has_tokens().await? {
        commit.changes.push(Change::Token(first_token(clock, data)?));
    }
    if !commit.is_empty() {
        store.commit(&commit).await?;
    }
    Ok(())
}

/// The first admin token. Its file is written before its row, and read when it is there already: a crash between the two
/// leaves no file whose token opens nothing.
fn first_token(clock: &Clock, data: &Path) -> Result<TokenRow, StartError> {
    let path = data.join(TOKEN_FILE);
    let (text, row) = driver::new_token("admin", Role::Admin, clock.now());
    match std::fs::read_to_string(&path) {
        Ok(found) if !found.trim().is_empty() => Ok(TokenRow { hash: TokenRow::hash(found.trim()), ..row }),
        _ => {
            secrets::write_private(&path, &text).map_err(io_error(format!("write the first token to {}", path.display())))?;
            Ok(row)
        }
    }
}
