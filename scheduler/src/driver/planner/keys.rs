//! Secrets and tokens.

use config::{SECRET_KEY_RULE, is_secret_key};
use schema::api::{NewToken, TokenRequest};
use schema::log_kind::LogKind;
use schema::status::Role;
use serde_json::json;

use super::super::calls::Plan;
use super::super::{Caller, Refusal};
use super::{Planner, entry};
use crate::clock;
use crate::secrets::hex;
use crate::store::{Change, SecretUser, TokenRow};

/// Longest secret, bytes: Linux refuses an environment variable of 128 KiB or more, its name
/// included.
const SECRET_LIMIT_BYTES: usize = 96 << 10;

/// Longest name of a token, bytes.
const TOKEN_NAME_LIMIT_BYTES: usize = 63;

/// What a token's text starts with, so that scanners for leaked secrets find it.
const TOKEN_PREFIX: &str = "pvn_";

/// A fresh token: the text to hand out, and the row to store.
pub(in crate::driver) fn token(
    name: &str,
    role: Role,
    now: schema::time::Timestamp,
    valid_for_seconds: Option<u64>,
) -> (String, TokenRow) {
    let text = format!("{TOKEN_PREFIX}{}", hex(&clock::random::<32>()));
    let expires_at = valid_for_seconds.map(|seconds| {
        now.plus_ms(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
    });
    let row = TokenRow {
        name: name.to_owned(),
        role,
        hash: TokenRow::hash(&text),
        created_at: now,
        expires_at,
        revoked_at: None,
    };
    (text, row)
}

impl Planner {
    pub(super) async fn set_secret(
        &self,
        key: String,
        value: Vec<u8>,
        if_changed: bool,
        caller: &Caller,
    ) -> Result<u64, Refusal> {
        if !is_secret_key(&key) {
            return Err(Refusal::Invalid(format!(
                "`{key}` is not a secret's key: {SECRET_KEY_RULE}"
            )));
        }
        if value.len() > SECRET_LIMIT_BYTES {
            return Err(Refusal::Invalid(format!(
                "secret `{key}` has {} bytes; an environment variable can hold at most \
                 {SECRET_LIMIT_BYTES}",
                value.len()
            )));
        }
        if value.contains(&0) || std::str::from_utf8(&value).is_err() {
            return Err(Refusal::Invalid(format!(
                "secret `{key}` must be UTF-8 text without NUL, because jobs get it in the \
                 environment; store other bytes as base64"
            )));
        }
        if if_changed
            && let Some((version, latest)) = self.store.secret(&key, 0).await?
            && latest == value
        {
            return Ok(version);
        }
        let version = self.store.next_secret_version(&key).await?;
        let at = self.now();
        let entry = entry(
            LogKind::SecretSet,
            caller,
            format!("{} sets secret `{key}` version {version}", caller.who),
            json!({"key": key}),
        );
        let change = Change::Secret { key, version, value, at, by: caller.who.clone() };
        self.commit(Plan { changes: vec![change], entries: vec![entry], ..Plan::default() })
            .await?;
        Ok(version)
    }

    pub(super) async fn delete_secret(&self, key: String, caller: &Caller) -> Result<(), Refusal> {
        if self.store.secret_version(&key).await? == 0 {
            return Err(Refusal::NotFound(format!(
                "secret `{key}` does not exist; `pvnctl secrets list` shows those that do"
            )));
        }
        if let Some(SecretUser { application, service, is_pursued }) =
            self.store.secret_user(&key).await?
        {
            return Err(Refusal::Conflict(if is_pursued {
                format!(
                    "secret `{key}` is in use by service `{application}/{service}`; take it out \
                     of what names it and apply that: the runtime's config takes effect at once, \
                     the service's own with `pvnctl services push {service} --app {application}`"
                )
            } else {
                format!(
                    "secret `{key}` may be live at service `{application}/{service}`: what was \
                     applied there last was given it, and what is deleted can no longer be \
                     masked; delete it once an apply without it has succeeded there or fetch has \
                     found nothing to do (`pvnctl services explain {service} --app {application}` \
                     says what that waits for)"
                )
            }));
        }
        let entry = entry(
            LogKind::SecretDeleted,
            caller,
            format!("{} deletes secret `{key}`", caller.who),
            json!({"key": key}),
        );
        self.commit(Plan {
            changes: vec![Change::SecretDeleted(key)],
            entries: vec![entry],
            ..Plan::default()
        })
        .await
    }

    pub(super) async fn create_token(
        &self,
        request: TokenRequest,
        caller: &Caller,
    ) -> Result<NewToken, Refusal> {
        let TokenRequest { name, role, valid_for_seconds } = request;
        let legal =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@');
        if name.is_empty()
            || name.len() > TOKEN_NAME_LIMIT_BYTES
            || !name.as_bytes().iter().all(legal)
        {
            return Err(Refusal::Invalid(format!(
                "`{name}` is not a token's name: 1 to {TOKEN_NAME_LIMIT_BYTES} letters, digits, \
                 `.`, `_`, `@` and `-`"
            )));
        }
        if valid_for_seconds == Some(0) {
            return Err(Refusal::Invalid(format!(
                "token `{name}` would never be valid; give a time above zero, or none"
            )));
        }
        let (token, row) = token(&name, role, self.now(), valid_for_seconds);
        let expires_at = row.expires_at;
        let message = format!("{} makes the token `{name}` with role {role}", caller.who);
        let entry =
            entry(LogKind::TokenCreated, caller, message, json!({"name": name, "role": role}));
        self.commit(Plan {
            changes: vec![Change::Token(row)],
            entries: vec![entry],
            ..Plan::default()
        })
        .await?;
        Ok(NewToken { name, role, token, expires_at })
    }

    pub(super) async fn revoke_token(&self, name: String, caller: &Caller) -> Result<(), Refusal> {
        let now = self.now();
        let Some(token) = self.store.token_named(&name).await? else {
            return Err(Refusal::NotFound(format!(
                "token `{name}` does not exist; `pvnctl auth token list` shows those that do"
            )));
        };
        // One that has expired opens nothing any more, but what its owner said yes to still counts.
        if token.revoked_at.is_some() {
            return Err(Refusal::Conflict(format!("token `{name}` was revoked already")));
        }
        // One that expires is of no help: soon it is none.
        if token.is_valid(now)
            && token.role == Role::Admin
            && self.store.lasting_tokens_beside(Role::Admin, &name).await? == 0
        {
            if token.expires_at.is_none() {
                return Err(Refusal::Conflict(format!(
                    "`{name}` is the last admin token that does not expire; make another one \
                     first, with `pvnctl auth token create NAME --role admin` and without \
                     --valid-for, or nobody can administer this scheduler once the others have \
                     expired"
                )));
            }
            if self.store.valid_tokens(Role::Admin, now).await? <= 1 {
                return Err(Refusal::Conflict(format!(
                    "`{name}` is the last admin token; make another one first, or nobody can \
                     administer this scheduler"
                )));
            }
        }
        let entry = entry(
            LogKind::TokenRevoked,
            caller,
            format!("{} revokes the token `{name}`", caller.who),
            json!({"name": name}),
        );
        self.commit(Plan {
            changes: vec![Change::TokenRevoked { name, at: now }],
            entries: vec![entry],
            ..Plan::default()
        })
        .await
    }
}
