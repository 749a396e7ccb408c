//! People who have signed in with a browser. A session stands for the token that it began with: it
//! may do what that may, and ends with it, when its person says so, and after a time. Held in
//! memory, by the digest of the cookie's text: a restart of the daemon asks people to sign in
//! again, and nothing on the disk lets anybody in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use schema::time::Timestamp;
use tokio_util::sync::CancellationToken;

use super::Api;
use super::error::{Error, Result};
use crate::clock::{self, Clock};
use crate::secrets::hex;
use crate::store::TokenRow;

/// How long a session lasts, whatever happens: a working day with its evening.
pub(super) const SESSION_LASTS: Duration = Duration::from_hours(12);

/// How long a link that signs in is good, once: as long as somebody who started a daemon needs to
/// come back to their terminal.
const LINK_LASTS: Duration = Duration::from_hours(1);

/// Sessions at a time, of all tokens and of one: as many as pages may be open and follow, as a
/// token may be shared by a whole company. Each is some hundred bytes. The oldest makes room.
const SESSIONS: usize = 4096;
const SESSIONS_OF_ONE_TOKEN: usize = 1024;

/// Links at a time: each start of a daemon makes one.
const LINKS: usize = 16;

/// Somebody who has signed in.
#[derive(Debug, Clone)]
pub(super) struct BrowserSession {
    /// Name of the token that they signed in with.
    pub(super) token: String,
    /// When it ends by itself.
    expires_at: Timestamp,
    /// Cancelled when it ends before.
    ended: CancellationToken,
}

impl BrowserSession {
    /// Returns once it is over: streams end with it.
    pub(super) async fn over(self, clock: Clock) {
        tokio::select! {
            () = self.ended.cancelled() => {}
            () = clock.sleep_until(self.expires_at) => {}
        }
    }
}

#[derive(Debug, Default)]
struct OpenSessions {
    /// By the digest of what the browser holds.
    open: HashMap<String, BrowserSession>,
    /// Links that sign in once: the token's name, and until when.
    links: HashMap<String, (String, Timestamp)>,
}

/// All sessions; clones are the same.
#[derive(Debug, Clone, Default)]
pub struct BrowserSessions(Arc<Mutex<OpenSessions>>);

impl BrowserSessions {
    fn lock(&self) -> MutexGuard<'_, OpenSessions> {
        // Whole after a panic, too: each change is one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session of the token of this name: what the browser is to keep.
    pub(super) fn begin(&self, token: &str, now: Timestamp) -> String {
        let text = hex(&clock::random::<32>());
        let session = BrowserSession {
            token: token.to_owned(),
            expires_at: now.plus(SESSION_LASTS),
            ended: CancellationToken::new(),
        };
        let mut all = self.lock();
        all.open.retain(|_, session| {
            let is_good = now < session.expires_at;
            if !is_good {
                session.ended.cancel();
            }
            is_good
        });
        let own = |session: &BrowserSession| session.token == token;
        if all.open.values().filter(|session| own(session)).count() >= SESSIONS_OF_ONE_TOKEN {
            all.drop_oldest(own);
        }
        if all.open.len() >= SESSIONS {
            all.drop_oldest(|_| true);
        }
        all.open.insert(TokenRow::hash(&text), session);
        text
    }

    /// The session of what a browser holds.
    fn find(&self, text: &str, now: Timestamp) -> Option<BrowserSession> {
        let found = self.lock().open.get(&TokenRow::hash(text)).cloned();
        found.filter(|session| now < session.expires_at)
    }

    /// Ends the session, with its open streams.
    pub(super) fn end(&self, text: &str) {
        if let Some(session) = self.lock().open.remove(&TokenRow::hash(text)) {
            session.ended.cancel();
        }
    }

    /// The code of a link that signs in once as the token of this name.
    pub fn link(&self, token: &str, now: Timestamp) -> String {
        let code = hex(&clock::random::<32>());
        let mut all = self.lock();
        all.links.retain(|_, (_, until)| now < *until);
        if all.links.len() >= LINKS {
            let oldest = all.links.iter().min_by_key(|(_, (_, until))| *until);
            let oldest = oldest.map(|(code, _)| code.clone()).unwrap_or_default();
            all.links.remove(&oldest);
        }
        all.links.insert(TokenRow::hash(&code), (token.to_owned(), now.plus(LINK_LASTS)));
        code
    }

    /// The token's name that a link's code stands for; the code is used up.
    pub(super) fn use_link(&self, code: &str, now: Timestamp) -> Option<String> {
        let (token, until) = self.lock().links.remove(&TokenRow::hash(code))?;
        (now < until).then_some(token)
    }
}

impl OpenSessions {
    fn drop_oldest(&mut self, of: impl Fn(&BrowserSession) -> bool) {
        let oldest = self.open.iter().filter(|(_, session)| of(session));
        let oldest = oldest.min_by_key(|(_, session)| session.expires_at);
        if let Some(oldest) = oldest.map(|(digest, _)| digest.clone())
            && let Some(session) = self.open.remove(&oldest)
        {
            session.ended.cancel();
        }
    }
}

/// The name of the cookie. Browsers do not keep the cookies of two ports apart, and two daemons on
/// one machine must not sign each other's people out.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port { format!("pvn-session-{port}") } else { "pvn-session".to_owned() }
}

/// What the browser holds of its session.
pub(super) fn held(headers: &HeaderMap) -> Option<String> {
    let name = cookie_name(headers);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|one| one.split_once('='));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// The header that has the browser keep this, or with an empty text forget it. No script sees it,
/// no page of others sends it, and over TLS nothing but TLS carries it.
pub(super) fn set_cookie(headers: &HeaderMap, text: &str, is_tls: bool) -> String {
    let age = if text.is_empty() { 0 } else { SESSION_LASTS.as_secs() };
    let secure = if is_tls { "; Secure" } else { "" };
    format!(
        "{}={text}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}",
        cookie_name(headers)
    )
}

/// Refuses what another page had a browser send. The cookie alone is not enough: pages of another
/// port of this machine are of the same site.
pub(super) fn is_own(method: &Method, headers: &HeaderMap) -> Result<()> {
    if method.is_safe() {
        return Ok(());
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let own_origin = text("origin").and_then(|origin| origin.split_once("://"));
    let is_own = match (text("sec-fetch-site"), own_origin) {
        (Some(site), _) => site == "same-origin",
        (None, Some((_, origin))) => text("host") == Some(origin),
        (None, None) => false,
    };
    if is_own {
        return Ok(());
    }
    Err(Error::forbidden(
        "another page had your browser send this, so nothing was done; open the page of this \
         scheduler and do it there",
    ))
}

/// The session of a request.
pub(super) fn session(parts: &Parts, api: &Api) -> Result<BrowserSession> {
    is_own(&parts.method, &parts.headers)?;
    found(&parts.headers, api)
        .ok_or_else(|| Error::unauthorized("you are not signed in, or not any more"))
}

/// The session that these headers tell of, whoever had the browser send them.
pub(super) fn found(headers: &HeaderMap, api: &Api) -> Option<BrowserSession> {
    held(headers).and_then(|text| api.sessions.find(&text, api.clock.now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    #[test]
    fn a_session_is_found_until_it_ends() {
        let sessions = BrowserSessions::default();
        let text = sessions.begin("ann", NOW);
        let found = sessions.find(&text, NOW).unwrap();
        assert_eq!(found.token, "ann");
        assert!(sessions.find(&text, NOW.plus(SESSION_LASTS)).is_none());
        assert!(sessions.find("", NOW).is_none() && sessions.find(&text[1..], NOW).is_none());
        sessions.end(&text);
        assert!(sessions.find(&text, NOW).is_none() && found.ended.is_cancelled());
    }

    #[test]
    fn a_link_signs_in_once_and_not_for_ever() {
        let sessions = BrowserSessions::default();
        let code = sessions.link("admin", NOW);
        assert_eq!(sessions.use_link(&code, NOW).as_deref(), Some("admin"));
        assert_eq!(sessions.use_link(&code, NOW), None);
        let code = sessions.link("admin", NOW);
        assert_eq!(sessions.use_link(&code, NOW.plus(LINK_LASTS)), None);
        for _ in 0..10 * LINKS {
            sessions.link("admin", NOW);
        }
        assert_eq!(sessions.lock().links.len(), LINKS);
    }

    #[test]
    fn whoever_signs_in_again_and_again_ends_only_own_sessions() {
        let sessions = BrowserSessions::default();
        let other = sessions.begin("ben", NOW);
        let first = sessions.begin("ann", NOW);
        for after in 1..=SESSIONS_OF_ONE_TOKEN {
            sessions.begin("ann", NOW.plus_ms(i64::try_from(after).unwrap()));
        }
        assert!(sessions.find(&first, NOW).is_none() && sessions.find(&other, NOW).is_some());
        assert_eq!(sessions.lock().open.len(), SESSIONS_OF_ONE_TOKEN + 1);
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect::<HeaderMap>()
    }

    #[test]
    fn a_cookie_is_of_one_port_and_found_among_others() {
        let own = headers(&[
            ("host", "[::1]:7780"),
            ("cookie", "a=b; pvn-session-7780=x; pvn-session=y"),
        ]);
        assert_eq!(held(&own).as_deref(), Some("x"));
        assert_eq!(
            held(&headers(&[("host", "pvn.example"), ("cookie", "pvn-session=y")])).as_deref(),
            Some("y")
        );
        assert_eq!(held(&headers(&[("host", "a:1"), ("cookie", "pvn-session-7780=x")])), None);
        let set = set_cookie(&own, "x", true);
        for part in ["pvn-session-7780=x;", "HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
            assert!(set.contains(part), "{set}");
        }
        assert!(
            set_cookie(&own, "", false).contains("Max-Age=0")
                && !set_cookie(&own, "", false).contains("Secure")
        );
    }

    #[test]
    fn what_another_page_sends_is_refused() {
        for (sent, expected) in [
            (&[("sec-fetch-site", "same-origin"), ("host", "a:1")][..], true),
            (&[("origin", "http://a:1"), ("host", "a:1")], true),
            (&[("sec-fetch-site", "same-site"), ("origin", "http://a:1"), ("host", "a:1")], false),
            (&[("sec-fetch-site", "cross-site"), ("host", "a:1")], false),
            (&[("origin", "http://a:2"), ("host", "a:1")], false),
            (&[("origin", "null"), ("host", "a:1")], false),
            (&[("host", "a:1")], false),
        ] {
            assert_eq!(is_own(&Method::POST, &headers(sent)).is_ok(), expected, "{sent:?}");
            assert!(is_own(&Method::GET, &headers(sent)).is_ok());
        }
    }
}
