//! Tokens: made with what they may and where, and ended.

use std::collections::BTreeSet;

use schema::access::{Capability, RoleSet, TokenRights, TokenScope};
use schema::api::{NewToken, TokenRequest};
use schema::id::{ApplicationName, ChannelName};
use schema::log_kind::LogKind;
use schema::status::Role;
use schema::time::Timestamp;
use serde_json::json;

use super::super::calls::Plan;
use super::super::{Caller, Refusal};
use super::{Planner, entry};
use crate::clock;
use crate::secrets::hex;
use crate::store::{Change, TokenRow};

/// Longest name of a token, bytes.
const TOKEN_NAME_LIMIT_BYTES: usize = 63;

/// Most names that one token is limited to, of each kind: more is a list that nobody reads.
const LIMIT_NAMES: usize = 100;

/// What a token's text starts with, so that scanners for leaked secrets find it.
const TOKEN_PREFIX: &str = "pvn_";

/// A fresh token: the text to hand out, and the row to store.
pub(in crate::driver) fn token(
    name: &str,
    rights: TokenRights,
    now: Timestamp,
    valid_for_seconds: Option<u64>,
) -> (String, TokenRow) {
    let text = format!("{TOKEN_PREFIX}{}", hex(&clock::random::<32>()));
    let expires_at = valid_for_seconds.map(|seconds| {
        now.plus_ms(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
    });
    let row = TokenRow {
        name: name.to_owned(),
        rights,
        hash: TokenRow::hash(&text),
        created_at: now,
        expires_at,
        revoked_at: None,
    };
    (text, row)
}

impl Planner {
    pub(super) async fn create_token(
        &self,
        request: TokenRequest,
        caller: &Caller,
    ) -> Result<NewToken, Refusal> {
        check_name(&request.name)?;
        if request.valid_for_seconds == Some(0) {
            return Err(Refusal::Invalid(format!(
                "token `{}` would never be valid; give a time above zero, or none",
                request.name
            )));
        }
        let rights = self.rights(&request).await?;
        let name = &request.name;
        let limits = match rights.scope.is_everything() {
            true => String::new(),
            false => format!(", which may change only {}", rights.scope.in_words()),
        };
        let message = format!(
            "{} makes the token `{name}` with {}{limits}",
            caller.who,
            rights.roles.in_words()
        );
        let (token, row) = token(name, rights, self.now(), request.valid_for_seconds);
        let shown = row.clone().shown();
        let mut data = json!({"name": name, "roles": shown.roles});
        if let Some(role) = shown.role {
            data["role"] = role.as_str().into();
        }
        if !row.rights.scope.is_everything() {
            data["applications"] = json!(shown.applications);
            data["channels"] = json!(shown.channels);
        }
        let entry = entry(LogKind::TokenCreated, caller, message, data);
        self.commit(Plan {
            changes: vec![Change::Token(row)],
            entries: vec![entry],
            ..Plan::default()
        })
        .await?;
        Ok(NewToken {
            name: shown.name,
            role: shown.role,
            token,
            expires_at: shown.expires_at,
            roles: shown.roles,
            applications: shown.applications,
            channels: shown.channels,
        })
    }

    /// What is asked for.
    async fn rights(&self, request: &TokenRequest) -> Result<TokenRights, Refusal> {
        let roles = RoleSet::new(request.roles.iter().copied().chain(request.role));
        let roles = roles.ok_or_else(|| {
            Refusal::Invalid(format!(
                "`role` is missing: what token `{}` may do, as in `viewer`; docs/access.md has \
                 the roles",
                request.name
            ))
        })?;
        let scope = self.scope(request).await?;
        if roles.may(Capability::Administer) && !scope.is_everything() {
            return Err(Refusal::Invalid(format!(
                "token `{}` cannot be an admin's and limited: whoever changes configs and makes \
                 tokens may change everything; name other roles (`deployer`, `operator`), or leave \
                 the limits out",
                request.name
            )));
        }
        Ok(TokenRights { roles, scope })
    }

    /// To what it is to be limited, by names: also one that an application of the same name gets
    /// later.
    async fn scope(&self, request: &TokenRequest) -> Result<TokenScope, Refusal> {
        let applications = limits("applications", request.applications.as_deref())?;
        let channels = limits("channels", request.channels.as_deref())?;
        let mut scope = TokenScope::default();
        let mut known = BTreeSet::new();
        for text in applications {
            let Some(row) = self.store.find_application(text).await? else {
                return Err(Refusal::NotFound(format!(
                    "application `{text}` does not exist, so that no token was made; `pvnctl \
                     applications list` shows those that do"
                )));
            };
            known.extend(self.live_channels(&row).await?.into_keys());
            scope.applications.insert(row.name);
        }
        for text in channels {
            let channel: ChannelName =
                text.parse().map_err(|error| Refusal::Invalid(format!("{error}")))?;
            if !scope.applications.is_empty() && !known.contains(&channel) {
                return Err(no_such_channel(&channel, &scope.applications, &known));
            }
            scope.channels.insert(channel);
        }
        Ok(scope)
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
            && token.rights.may(Capability::Administer)
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

fn check_name(name: &str) -> Result<(), Refusal> {
    let legal =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@');
    if !name.is_empty() && name.len() <= TOKEN_NAME_LIMIT_BYTES && name.as_bytes().iter().all(legal)
    {
        return Ok(());
    }
    Err(Refusal::Invalid(format!(
        "`{name}` is not a token's name: 1 to {TOKEN_NAME_LIMIT_BYTES} letters, digits, `.`, `_`, \
         `@` and `-`"
    )))
}

/// The names of one limit. An empty list would mean nothing where it was meant, and all where it is
/// taken for no limit.
fn limits<'a>(field: &str, names: Option<&'a [String]>) -> Result<&'a [String], Refusal> {
    match names {
        None => Ok(&[]),
        Some([]) => Err(Refusal::Invalid(format!(
            "`{field}` is empty; name one at least, or leave it out to mean all"
        ))),
        Some(names) if names.len() > LIMIT_NAMES => Err(Refusal::Invalid(format!(
            "`{field}` has {} names and at most {LIMIT_NAMES} are taken; leave it out to mean all",
            names.len()
        ))),
        Some(names) => Ok(names),
    }
}

fn no_such_channel(
    channel: &ChannelName,
    applications: &BTreeSet<ApplicationName>,
    known: &BTreeSet<ChannelName>,
) -> Refusal {
    let names = |all: Vec<&str>| all.join(", ");
    Refusal::NotFound(format!(
        "no release channel `{channel}` is in {}, so that no token was made; there {}",
        names(applications.iter().map(ApplicationName::as_str).collect()),
        match known.is_empty() {
            true => "is none".to_owned(),
            false => format!("are {}", names(known.iter().map(ChannelName::as_str).collect())),
        }
    ))
}
