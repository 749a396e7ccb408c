//! API tokens. Only their SHA-256 is stored: a token is 256 random bits, so nothing slower is
//! needed to keep it safe.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use schema::access::{TokenRights, TokenScope};
use schema::api::Token;
use schema::status::Role;
use schema::time::Timestamp;
use sha2::{Digest, Sha256};

use super::row::{get, instant, instant_or_null, listed, named, word};
use super::{Connection, PageRequest, Result, Row, Store, StoreError};
use crate::secrets::hex;

/// A token, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Its name, which the audit shows. Unique for ever.
    pub name: String,
    /// What it may, and where.
    pub rights: TokenRights,
    /// [`TokenRow::hash`] of its text.
    pub hash: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops being valid by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl TokenRow {
    /// What is stored of a token's text.
    pub fn hash(token: &str) -> String {
        hex(&Sha256::digest(token.as_bytes()))
    }

    /// Whether it opens the door at this moment.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires| now < expires)
    }

    /// As the API shows it.
    pub fn shown(self) -> Token {
        let Self { name, rights, hash: _, created_at, expires_at, revoked_at } = self;
        let TokenRights { roles, scope: TokenScope { applications, channels } } = rights;
        Token {
            name,
            role: roles.only(),
            created_at,
            expires_at,
            revoked_at,
            roles: roles.to_vec(),
            applications: applications.into_iter().collect(),
            channels: channels.into_iter().collect(),
        }
    }
}

/// Names as a column holds them; NULL is no limit.
fn names<T: Display>(names: &BTreeSet<T>) -> Option<String> {
    let names: Vec<String> = names.iter().map(T::to_string).collect();
    (!names.is_empty()).then(|| names.join(","))
}

/// The names of a column. One that holds none is damaged: it must not be taken for no limit.
fn limit<T: FromStr<Err: Display> + Ord>(row: &Row, column: &str) -> Result<BTreeSet<T>> {
    Ok(listed(row, column)?.unwrap_or_default().into_iter().collect())
}

fn read(row: &Row) -> Result<TokenRow> {
    named("tokens", &["name"], row, read_columns(row))
}

fn read_columns(row: &Row) -> Result<TokenRow> {
    Ok(TokenRow {
        name: word(row, "name")?,
        rights: TokenRights {
            roles: word(row, "role")?,
            scope: TokenScope {
                applications: limit(row, "applications")?,
                channels: limit(row, "channels")?,
            },
        },
        hash: word(row, "hash")?,
        created_at: instant(row, "created_at")?,
        expires_at: instant_or_null(row, "expires_at")?,
        revoked_at: instant_or_null(row, "revoked_at")?,
    })
}

impl Store {
    /// The token with this text, valid or not.
    pub async fn token(&self, text: &str) -> Result<Option<TokenRow>> {
        let row = sqlx::query("SELECT * FROM tokens WHERE hash = $1")
            .bind(TokenRow::hash(text))
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The token of this name.
    pub async fn token_named(&self, name: &str) -> Result<Option<TokenRow>> {
        let row = sqlx::query("SELECT * FROM tokens WHERE name = $1")
            .bind(name)
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// How many tokens of this role alone, without a limit, open the door at this moment: one whose
    /// hash is damaged does not.
    pub async fn valid_tokens(&self, role: Role, now: Timestamp) -> Result<u64> {
        let found: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM tokens
             WHERE role = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2) \
             AND LENGTH(hash) = 64 AND applications IS NULL AND channels IS NULL",
        )
        .bind(role.as_str())
        .bind(now.as_millis())
        .fetch_one(&self.read)
        .await?;
        Ok(found.unsigned_abs())
    }

    /// How many tokens of this role alone, without a limit, beside that of this name open the door
    /// until somebody revokes them.
    pub async fn lasting_tokens_beside(&self, role: Role, name: &str) -> Result<u64> {
        let found: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM tokens
                 WHERE role = $1 AND name <> $2 AND revoked_at IS NULL AND expires_at IS NULL AND \
             LENGTH(hash) = 64 AND applications IS NULL AND channels IS NULL",
        )
        .bind(role.as_str())
        .bind(name)
        .fetch_one(&self.read)
        .await?;
        Ok(found.unsigned_abs())
    }

    /// Whether there is a token at all, valid or not.
    pub async fn has_tokens(&self) -> Result<bool> {
        let found: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM tokens").fetch_one(&self.read).await?;
        Ok(found > 0)
    }

    /// Tokens by name, revoked and expired ones included.
    pub async fn tokens(&self, page: &PageRequest) -> Result<schema::api::Page<Token>> {
        let total: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM tokens").fetch_one(&self.lists).await?;
        let rows = sqlx::query("SELECT * FROM tokens WHERE name > $1 ORDER BY name LIMIT $2")
            .bind(page.cursor.as_deref().unwrap_or(""))
            .bind(page.rows())
            .fetch_all(&self.lists)
            .await?;
        let shown = |row: &Row| read(row).map(TokenRow::shown);
        page.page(rows, total, |row| get(row, "name"), shown)
    }
}

pub(super) async fn insert(connection: &mut Connection, token: &TokenRow) -> Result<()> {
    let other: Option<String> = sqlx::query_scalar(
        "SELECT name FROM tokens WHERE LOWER(name) = LOWER($1) AND name <> $1 LIMIT 1",
    )
    .bind(&token.name)
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(other) = other {
        return Err(StoreError::Conflict(format!(
            "a token named `{other}` exists, or existed: names differ by more than upper and \
             lower case, so that one person is not taken for two; choose another than `{}`",
            token.name
        )));
    }
    let done = sqlx::query(
        "INSERT INTO tokens (id, name, role, hash, created_at, expires_at, revoked_at, \
         applications, channels) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO \
         NOTHING",
    )
    .bind(&token.hash[..32])
    .bind(&token.name)
    .bind(token.rights.roles.to_string())
    .bind(&token.hash)
    .bind(token.created_at.as_millis())
    .bind(token.expires_at.map(Timestamp::as_millis))
    .bind(token.revoked_at.map(Timestamp::as_millis))
    .bind(names(&token.rights.scope.applications))
    .bind(names(&token.rights.scope.channels))
    .execute(connection)
    .await?;
    if done.rows_affected() == 0 {
        return Err(StoreError::Conflict(format!(
            "a token named `{}` exists, or existed: names are never used again; choose another",
            token.name
        )));
    }
    Ok(())
}

pub(super) async fn revoke(connection: &mut Connection, name: &str, at: Timestamp) -> Result<()> {
    sqlx::query("UPDATE tokens SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL")
        .bind(name)
        .bind(at.as_millis())
        .execute(connection)
        .await?;
    Ok(())
}
