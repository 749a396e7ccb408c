//! Hands a message to a mail server by SMTP; with `letter` the one place that names `lettre`.
//! Whatever the server does, it ends soon and takes little: a deadline for all of it, and a bound
//! on what is read (`stream`). A password goes over TLS alone, or to this machine.

use std::error::Error as _;
use std::time::Duration;

use config::SmtpTls;
use lettre::Address;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, AsyncTokioStream, Certificate, TlsParameters,
};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use schema::mask::{self, Secrets};
use schema::shown::seen;

use super::SendFailure;
use super::letter::Letter;
use stream::BoundedStream;

mod stream;

/// How long all of a message may take. Twice what a webhook has: mail servers let whoever they do
/// not know wait before they greet (Postfix's postscreen 6 s), and scan before they take.
pub(super) const TAKEN_WITHIN: Duration = Duration::from_secs(30);

/// How long the parting word may take: the message is taken by then.
const PARTING_WITHIN: Duration = Duration::from_millis(500);

/// Characters of an answer that people are shown.
const SAID_LIMIT_CHARS: usize = 200;

/// Where a message goes, and by which server.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct MailRoute {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: SmtpTls,
    /// User and password.
    pub(super) login: Option<(String, String)>,
    pub(super) from: String,
    pub(super) to: Vec<String>,
}

/// What hands over.
#[derive(Debug)]
pub(super) struct Mailer {
    within: Duration,
    /// Authorities that are trusted beside those of the system: of tests.
    authorities: Vec<Certificate>,
}

impl Mailer {
    pub(super) fn new(within: Duration) -> Self {
        Self { within, authorities: Vec::new() }
    }

    /// The same that trusts one more authority, in PEM.
    pub(super) fn trusting(&self, authority: &[u8]) -> Self {
        let authority = Certificate::from_pem(authority).expect("a test makes it");
        Self { within: self.within, authorities: vec![authority] }
    }

    /// Sends it; well when the server took it for one recipient at least.
    pub(super) async fn send(
        &self,
        route: &MailRoute,
        letter: &Letter,
        secrets: Option<&Secrets>,
    ) -> Result<(), SendFailure> {
        let handed = tokio::time::timeout(self.within, self.deliver(route, letter)).await;
        let handed = handed.unwrap_or_else(|_| {
            Err(SendFailure::later(format!("it did not take it within {:?}", self.within)))
        });
        match handed {
            Ok(mut connection) => {
                let _gone_anyway = tokio::time::timeout(PARTING_WITHIN, connection.quit()).await;
                Ok(())
            }
            Err(failure) => Err(failure.map(|why| mask::hide(secrets, &why).into_owned())),
        }
    }

    async fn deliver(
        &self,
        route: &MailRoute,
        letter: &Letter,
    ) -> Result<AsyncSmtpConnection, SendFailure> {
        let mut connection = self.connect(route, letter).await?;
        if let Some((user, password)) = &route.login {
            let login = Credentials::new(user.clone(), password.clone());
            connection.auth(DEFAULT_MECHANISMS, &login).await.map_err(|error| {
                SendFailure::later(format!("it does not let `user` in: {}", said(&error)))
            })?;
        }
        let from = Mail::new(Some(letter.from.clone()), Vec::new());
        connection.command(from).await.map_err(|error| refusal("`from`", &error))?;
        let refused = recipients(&mut connection, &letter.to).await?;
        connection.command(Data).await.map_err(|error| refusal("the message", &error))?;
        connection.message(&letter.bytes).await.map_err(|error| refusal("the message", &error))?;
        for (address, why) in refused {
            tracing::warn!(%address, why, "a recipient of notifications is refused");
        }
        Ok(connection)
    }

    async fn connect(
        &self,
        route: &MailRoute,
        letter: &Letter,
    ) -> Result<AsyncSmtpConnection, SendFailure> {
        let away =
            |error: Error| SendFailure::later(format!("it cannot be reached: {}", said(&error)));
        let name = ClientId::Domain(letter.from.domain().to_owned());
        let plain = BoundedStream::connect(&route.host, route.port)
            .await
            .map_err(|error| SendFailure::later(format!("it cannot be reached: {error}")))?;
        let stream: Box<dyn AsyncTokioStream> = match route.tls {
            SmtpTls::Implicit => {
                Box::new(plain.encrypted(self.tls(&route.host)?).await.map_err(away)?)
            }
            SmtpTls::Starttls | SmtpTls::None => Box::new(plain),
        };
        let mut connection =
            AsyncSmtpConnection::connect_with_transport(stream, &name).await.map_err(away)?;
        if route.tls == SmtpTls::Starttls {
            // Without it everything would go in the clear: whoever is between takes the offer away.
            if !connection.can_starttls() {
                return Err(SendFailure::later(
                    "it does not offer STARTTLS, and nothing is sent in the clear; `tls: \
                     IMPLICIT` is the other way, most often at port 465",
                ));
            }
            connection.starttls(self.tls(&route.host)?, &name).await.map_err(away)?;
        }
        Ok(connection)
    }

    /// TLS with the name of this server, by the authorities that the system trusts.
    fn tls(&self, host: &str) -> Result<TlsParameters, SendFailure> {
        let own = self.authorities.iter().cloned();
        let builder = own.fold(TlsParameters::builder(host.to_owned()), |builder, authority| {
            builder.add_root_certificate(authority)
        });
        builder
            .build_rustls()
            .map_err(|error| SendFailure::later(format!("TLS cannot be set up: {}", said(&error))))
    }
}

/// Names the recipients. Those that are refused, with what the server says: they keep nobody else
/// from being told. An error if nobody is left.
async fn recipients<'a>(
    connection: &mut AsyncSmtpConnection,
    to: &'a [Address],
) -> Result<Vec<(&'a Address, String)>, SendFailure> {
    let mut refused = Vec::new();
    let mut is_final = true;
    for address in to {
        match connection.command(Rcpt::new(address.clone(), Vec::new())).await {
            Ok(_) => {}
            Err(error) if error.status().is_some() => {
                is_final &= error.is_permanent();
                refused.push((address, said(&error)));
            }
            Err(error) => return Err(refusal("the recipients", &error)),
        }
    }
    if refused.len() < to.len() {
        return Ok(refused);
    }
    let first = refused.first().map(|(_, why)| why.as_str()).unwrap_or_default();
    let why = format!("it takes nothing for any address of `to`: {first}");
    Err(if is_final { SendFailure::Refused(why) } else { SendFailure::later(why) })
}

/// What a no means: 5xx is said of the message and its addresses, anything else of the server.
fn refusal(what: &str, error: &Error) -> SendFailure {
    let why = format!("it does not take {what}: {}", said(error));
    if error.is_permanent() { SendFailure::Refused(why) } else { SendFailure::later(why) }
}

/// What it says, on one line, for people.
fn said(error: &Error) -> String {
    let code = error.status().map(|code| format!("{code} ")).unwrap_or_default();
    let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let text = seen(&format!("{code}{cause}"));
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(SAID_LIMIT_CHARS).collect()
}
