//! Who is told without asking: the targets of an application's notifications. The words are those
//! of Argo CD and Flux: a target is a Slack webhook, or a webhook of somebody's own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schema::id::TargetName;
use schema::notification::NotificationEvent;

use crate::env::SecretRef;
use crate::message::{message, message_with_one, one_of};

/// What the text of a signing key starts with. Source: Standard Webhooks, "Secrets".
const KEY_PREFIX: &str = "whsec_";

/// Bytes of a signing key, least and most. Source: Standard Webhooks, "Secrets".
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

message_with_one! {
    /// Whom to tell, and of what: exactly one of `slack`, `webhook`.
    #[schemars(extend("x-exactlyOne" = ["slack", "webhook"]))]
    NotificationTarget {
        /// Its name, unique in the application.
        name: TargetName,
    }
    /// How it is reached.
    provider: NotificationProvider {
        /// An incoming webhook of Slack, or of what takes the same: Mattermost, Rocket.Chat.
        slack: SlackProvider => Slack,
        /// A server that is sent JSON, signed if there is a key.
        webhook: WebhookProvider => Webhook,
    }
    {
        /// What it is told. Default: all but `CONVERGED`.
        events: Option<Vec<NotificationEvent>>,
    }
}

/// How a [`NotificationTarget`] is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum NotificationProvider {
    /// `slack`.
    Slack(SlackProvider),
    /// `webhook`.
    Webhook(WebhookProvider),
}

message! {
    /// An incoming webhook of Slack.
    SlackProvider {
        /// Its address. Whoever knows it can write into the channel, so it is best a secret.
        url: SentValue,
    }
}

message! {
    /// A server that is sent JSON by POST.
    WebhookProvider {
        /// Its address, `http://` or `https://`.
        url: SentValue,
        /// The key that signs what is sent (HMAC-SHA256, as Standard Webhooks has it): `whsec_` and
        /// 24 to 64 bytes in base64. Default: nothing is signed.
        signing_key: Option<SentValue>,
    }
}

one_of! {
    /// A value that the scheduler itself uses: exactly one of its fields.
    #[schemars(extend("x-exactlyOne" = ["value", "rawSecret", "secret"]))]
    SentValue {
        /// The value as it stands.
        value: String => Value,
        /// A secret value written here; masked wherever it would be shown.
        raw_secret: String => RawSecret,
        /// A secret kept by the scheduler (`pvnctl secrets set`).
        secret: SecretRef => Secret,
    }
}

impl SentValue {
    /// The field that it is written in, and its text; `None` for one that the scheduler keeps.
    pub fn written(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Value(text) => Some(("value", text)),
            Self::RawSecret(text) => Some(("rawSecret", text)),
            Self::Secret(_) => None,
        }
    }
}

impl NotificationTarget {
    /// Whether it is told of this.
    pub fn wants(&self, event: NotificationEvent) -> bool {
        self.events.as_deref().unwrap_or(NotificationEvent::DEFAULT).contains(&event)
    }

    /// The word of its provider.
    pub fn kind(&self) -> &'static str {
        match &self.provider {
            NotificationProvider::Slack(_) => "slack",
            NotificationProvider::Webhook(_) => "webhook",
        }
    }
}

/// Whether notifications can be sent to this address.
///
/// # Errors
/// In words that do not repeat it: it may be a secret.
pub fn web_address(text: &str) -> Result<(), &'static str> {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return Err("it does not start with https:// or http://");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if text.contains("{{") {
        return Err("templates are not filled in here");
    }
    if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
        return Err("it has blanks in it");
    }
    if authority.contains('@') {
        return Err("it has a user or a password in it; a webhook is signed with `signingKey`");
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err("it names no host");
    }
    Ok(())
}

/// The bytes of a signing key.
///
/// # Errors
/// In words that do not repeat it.
pub fn signing_key(text: &str) -> Result<Vec<u8>, &'static str> {
    let encoded = text.trim().strip_prefix(KEY_PREFIX).ok_or("it does not start with `whsec_`")?;
    let key = STANDARD.decode(encoded).map_err(|_| "what follows `whsec_` is no base64")?;
    if KEY_BYTES.contains(&key.len()) {
        Ok(key)
    } else {
        Err("it holds less than 24 bytes or more than 64")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_that_can_be_sent_to() {
        for good in
            ["https://hooks.slack.com/services/T/B/x", "http://[::1]:8080", "http://a?b=c@d"]
        {
            assert_eq!(web_address(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "hooks.slack.com/x",
            "ftp://a",
            "https://",
            "https:///x",
            "https://:1/",
            "http://a b",
        ] {
            assert!(web_address(bad).is_err(), "{bad}");
        }
        assert!(web_address("https://ann:pw@host/").unwrap_err().contains("password"));
        assert!(web_address("https://{{.Params.x}}/").unwrap_err().contains("templates"));
    }

    #[test]
    fn a_key_is_what_standard_webhooks_says() {
        // Source: the example of the specification.
        let key = signing_key("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
        assert_eq!((key.len(), key[0], key[23]), (24, 0x0b, 0x03));
        for (bad, why) in [
            ("C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "`whsec_`"),
            ("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7o", "no base64"),
            ("whsec_C2FV", "less than 24"),
            ("whsec_*2FVsBQIhrscChlQIMV+b5sSYspob7oD", "no base64"),
        ] {
            assert!(signing_key(bad).unwrap_err().contains(why), "{bad}");
        }
    }
}
