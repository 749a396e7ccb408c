//! Where a target is, as the config in force says, with its secrets opened: read for each message,
//! so that a new address or key counts from the next one on.

use config::{Body, EmailProvider, NotificationProvider, SentValue};
use schema::id::{ApplicationName, TargetName};
use schema::mask::Secrets;

use super::SendFailure;
use super::smtp::MailRoute;
use crate::store::{DocumentKind, Store, StoredDocumentKey};

/// Letters of a word that may be a token all the same.
const LONGER_THAN_WORDS: usize = 16;

/// A target that can be sent to.
pub(super) struct ResolvedTarget {
    pub(super) provider: ResolvedProvider,
    /// Its address and its key, to be hidden in what is said of it.
    pub(super) secrets: Option<Secrets>,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum ResolvedProvider {
    Slack { url: String },
    Webhook { url: String, key: Option<Vec<u8>> },
    Email(MailRoute),
}

impl std::fmt::Debug for ResolvedProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Slack { .. } => "Slack",
            Self::Webhook { .. } => "Webhook",
            Self::Email(_) => "Email",
        })
    }
}

/// The target of this name.
///
/// # Errors
/// When the config has none, or what it names cannot be had.
pub(super) async fn resolve(
    store: &Store,
    application: &ApplicationName,
    target: &TargetName,
) -> Result<ResolvedTarget, SendFailure> {
    let key = StoredDocumentKey {
        kind: DocumentKind::Application,
        application: String::new(),
        name: application.to_string(),
    };
    let gone = || {
        SendFailure::Gone(format!(
            "the config of application `{application}` names no target `{target}` any more"
        ))
    };
    let document = store.document(&key).await.map_err(unread)?.ok_or_else(gone)?;
    let document = config::read_source(document.source).map_err(|_| {
        SendFailure::later(format!("the config of application `{application}` cannot be read"))
    })?;
    let found = match document.as_ref().map(|document| document.body()) {
        Some(Body::Application(application)) => {
            application.notifications.iter().find(|known| known.name == *target)
        }
        _ => None,
    };
    let mut opened = Vec::new();
    let provider = match &found.ok_or_else(gone)?.provider {
        NotificationProvider::Slack(slack) => {
            ResolvedProvider::Slack { url: address(store, &slack.url, &mut opened).await? }
        }
        NotificationProvider::Webhook(webhook) => {
            let url = address(store, &webhook.url, &mut opened).await?;
            let key = match &webhook.signing_key {
                Some(key) => Some(signing_key(store, key, &mut opened).await?),
                None => None,
            };
            ResolvedProvider::Webhook { url, key }
        }
        NotificationProvider::Email(email) => {
            ResolvedProvider::Email(route(store, email, &mut opened).await?)
        }
    };
    let values: Vec<&[u8]> = opened.iter().map(String::as_bytes).collect();
    Ok(ResolvedTarget { provider, secrets: Secrets::of(&values) })
}

fn unread(error: crate::store::StoreError) -> SendFailure {
    SendFailure::later(format!("the config cannot be read: {error}"))
}

async fn address(
    store: &Store,
    url: &SentValue,
    opened: &mut Vec<String>,
) -> Result<String, SendFailure> {
    let text = value(store, url, "url").await?;
    config::web_address(&text)
        .map_err(|why| SendFailure::later(format!("`url` is no address of a webhook: {why}")))?;
    opened.push(text.clone());
    opened.extend(telling_parts(&text).map(str::to_owned));
    Ok(text)
}

/// What a receiver knows its senders by, which it may say when it says no: what is behind the host,
/// and each part of that but ordinary words.
fn telling_parts(address: &str) -> impl Iterator<Item = &str> {
    let path = address.splitn(4, '/').nth(3);
    let is_word = |part: &str| {
        part.len() < LONGER_THAN_WORDS && part.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let parts = path.into_iter().flat_map(|path| path.split(['/', '?', '&', '=', '#', ':', '@']));
    path.into_iter().chain(parts.filter(move |part| !is_word(part)))
}

async fn route(
    store: &Store,
    email: &EmailProvider,
    opened: &mut Vec<String>,
) -> Result<MailRoute, SendFailure> {
    let EmailProvider { to, from, server } = email;
    let login = match (&server.user, &server.password) {
        (Some(user), Some(password)) => {
            let name = value(store, user, "user").await?;
            // A name that stands in the config for everybody to read is worth more than asterisks.
            if !matches!(user, SentValue::Value(_)) {
                opened.push(name.clone());
            }
            let password = value(store, password, "password").await?;
            opened.push(password.clone());
            Some((name, password))
        }
        _ => None,
    };
    Ok(MailRoute {
        host: server.host.clone(),
        port: server.port(),
        tls: server.tls(),
        login,
        from: from.clone(),
        to: to.clone(),
    })
}

async fn signing_key(
    store: &Store,
    key: &SentValue,
    opened: &mut Vec<String>,
) -> Result<Vec<u8>, SendFailure> {
    let text = value(store, key, "signingKey").await?;
    let key = config::signing_key(&text)
        .map_err(|why| SendFailure::later(format!("`signingKey` is no signing key: {why}")))?;
    // A receiver may repeat it as it is written, without its sign, and as the bytes that it means.
    opened.extend(text.strip_prefix("whsec_").map(str::to_owned));
    opened.extend(String::from_utf8(key.clone()).ok());
    opened.push(text);
    Ok(key)
}

async fn value(store: &Store, value: &SentValue, field: &str) -> Result<String, SendFailure> {
    let reference = match value {
        SentValue::Value(text) | SentValue::RawSecret(text) => return Ok(text.clone()),
        SentValue::Secret(reference) => reference,
    };
    let key = &reference.key;
    let version = reference.version.map_or(0, u64::from);
    let found = store.secret(key, version).await.map_err(|error| {
        SendFailure::later(format!("secret `{key}` of `{field}` cannot be opened: {error}"))
    })?;
    let Some((_, bytes)) = found else {
        let which = if version == 0 { String::new() } else { format!(" version {version}") };
        return Err(SendFailure::later(format!(
            "secret `{key}`{which} of `{field}` does not exist; set it with `pvnctl secrets set \
             {key}`"
        )));
    };
    let text = String::from_utf8(bytes)
        .map_err(|_| SendFailure::later(format!("secret `{key}` of `{field}` is no text")))?;
    // A file that the secret was set from ends its line.
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_receiver_knows_its_senders_by_is_told_from_words() {
        let parts = |address| telling_parts(address).collect::<Vec<_>>();
        assert_eq!(
            parts("https://hooks.example.com/services/T0AB/XyZtop?key=abc1&on=it"),
            ["services/T0AB/XyZtop?key=abc1&on=it", "T0AB", "XyZtop", "abc1"]
        );
        assert_eq!(
            parts("https://example.com/hook/correcthorsebattery"),
            ["hook/correcthorsebattery", "correcthorsebattery"]
        );
        assert_eq!(parts("https://example.com"), [""; 0]);
    }
}
