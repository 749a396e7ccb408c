//! Secrets.

use config::{Body, SECRET_KEY_RULE, is_secret_key};
use schema::id::{ApplicationName, TargetName};
use schema::log_kind::LogKind;
use serde_json::json;

use super::super::calls::Plan;
use super::super::{Caller, Refusal};
use super::snapshot::read;
use super::{Planner, entry};
use crate::store::{Change, DocumentKind, SecretUser};

/// Longest secret, bytes: Linux refuses an environment variable of 128 KiB or more, its name
/// included.
const SECRET_LIMIT_BYTES: usize = 96 << 10;

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
        if let Some((application, target)) = self.target_with(&key).await? {
            return Err(Refusal::Conflict(format!(
                "secret `{key}` is in use by the notification target `{target}` of application \
                 `{application}`, which could be told nothing any more; take it out of the \
                 application's config and apply that first"
            )));
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

    /// A target of notifications that a secret is needed to reach.
    async fn target_with(
        &self,
        key: &str,
    ) -> Result<Option<(ApplicationName, TargetName)>, Refusal> {
        for stored in self.store.documents(DocumentKind::Application, "", None).await? {
            let document = read(&stored)?;
            let Body::Application(application) = document.body() else { continue };
            let mut targets = application.notifications.iter();
            if let Some(target) = targets.find(|one| one.secrets().any(|named| named.key == key)) {
                return Ok(Some((application.name.clone(), target.name.clone())));
            }
        }
        Ok(None)
    }
}
