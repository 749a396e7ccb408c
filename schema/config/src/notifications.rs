//! Who is told without asking: the targets of an application's notifications. The words are those
//! of Argo CD and Flux: a target is a Slack webhook, a webhook of somebody's own, or people's
//! mail.

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
    /// Whom to tell, and of what: exactly one of `slack`, `webhook`, `email`.
    #[schemars(extend("x-exactlyOne" = ["slack", "webhook", "email"]))]
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
        /// Mail to people.
        email: EmailProvider => Email,
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
    /// `email`.
    Email(EmailProvider),
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

message! {
    /// Mail, sent by SMTP.
    EmailProvider {
        /// Who gets it: addresses as `ann@example.com`, 20 at most.
        to: Vec<String>,
        /// The address that it comes from. The server has to let `user` send as this one.
        from: String,
        /// The server that takes it: your relay, or your provider's.
        server: SmtpServer,
    }
}

message! {
    /// A mail server, and how it is spoken to.
    SmtpServer {
        /// Its name or IP address; by a name is also checked who it is.
        host: String,
        /// Default: 587, with `tls: IMPLICIT` 465, with `tls: NONE` 25.
        port: Option<u16>,
        /// How the connection is encrypted. Default: `STARTTLS`, at port 465 `IMPLICIT`.
        tls: Option<SmtpTls>,
        /// Whom it lets in. Default: nobody says who they are.
        user: Option<SentValue>,
        /// The user's password, at many providers one made for a program.
        password: Option<SentValue>,
    }
}

/// How a connection to a mail server is encrypted.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum SmtpTls {
    /// By STARTTLS; nothing is sent where the server does not offer it.
    Starttls,
    /// From the first byte on, as it is at port 465.
    Implicit,
    /// Not at all: for a relay on the same machine or in a network that you trust.
    None,
}

impl SmtpServer {
    /// How the connection is encrypted.
    pub fn tls(&self) -> SmtpTls {
        let usual = if self.port == Some(465) { SmtpTls::Implicit } else { SmtpTls::Starttls };
        self.tls.unwrap_or(usual)
    }

    /// The port that it listens at.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.tls() {
            SmtpTls::Starttls => 587,
            SmtpTls::Implicit => 465,
            SmtpTls::None => 25,
        })
    }

    /// Whether it is on this machine, as far as its name says.
    pub fn is_local(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
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

    /// The values that nobody else should know, each by the field that it is in, below the field of
    /// the provider: whoever has one can write into the channel, in our name, or as `user`.
    pub(crate) fn confidential(&self) -> Vec<(&'static str, &SentValue)> {
        let found = match &self.provider {
            NotificationProvider::Slack(slack) => ("url", Some(&slack.url)),
            NotificationProvider::Webhook(webhook) => ("signingKey", webhook.signing_key.as_ref()),
            NotificationProvider::Email(email) => {
                ("server/password", email.server.password.as_ref())
            }
        };
        found.1.map(|value| (found.0, value)).into_iter().collect()
    }

    /// The secrets of the scheduler that it names.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        let values = match &self.provider {
            NotificationProvider::Slack(slack) => [Some(&slack.url), None],
            NotificationProvider::Webhook(webhook) => {
                [Some(&webhook.url), webhook.signing_key.as_ref()]
            }
            NotificationProvider::Email(email) => {
                [email.server.user.as_ref(), email.server.password.as_ref()]
            }
        };
        values.into_iter().flatten().filter_map(|value| match value {
            SentValue::Secret(reference) => Some(reference),
            SentValue::Value(_) | SentValue::RawSecret(_) => None,
        })
    }

    /// The word of its provider.
    pub fn kind(&self) -> &'static str {
        match &self.provider {
            NotificationProvider::Slack(_) => "slack",
            NotificationProvider::Webhook(_) => "webhook",
            NotificationProvider::Email(_) => "email",
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

/// Whether this is a mail address that a message can be sent to: no name before it, no quotes.
///
/// # Errors
/// In words for people.
pub(crate) fn mail_address(text: &str) -> Result<(), &'static str> {
    let (user, host) = text.rsplit_once('@').ok_or("it has no `@`")?;
    let is_user = |one: char| one.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(one);
    if text.contains("{{") {
        return Err("templates are not filled in here");
    }
    // Source: RFC 5321, section 4.5.3.1.
    if text.len() > 254 || user.len() > 64 {
        return Err("it is longer than addresses can be");
    }
    if !user.chars().all(is_user) || user.split('.').any(str::is_empty) {
        return Err("what stands before `@` is no name of a mailbox");
    }
    mail_host(host).map_err(|_| "what follows `@` is no name of a host")
}

/// Whether a mail server can be reached by this name.
///
/// # Errors
/// In words for people.
pub(crate) fn mail_host(text: &str) -> Result<(), &'static str> {
    if text.parse::<std::net::IpAddr>().is_ok() {
        return Ok(());
    }
    let is_label = |label: &str| {
        let is_name = |one: char| one.is_ascii_alphanumeric() || one == '-' || one == '_';
        (1..=63).contains(&label.len()) && label.chars().all(is_name)
    };
    if text.len() > 253 || !text.split('.').all(is_label) {
        return Err("it is neither the name of a host nor an IP address");
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
