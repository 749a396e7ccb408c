//! Job tokens: `pvnj1.JOB.ATTEMPT.EXPIRES.MAC`, where JOB is the id's 32 digits, EXPIRES
//! milliseconds since 1970 or 0, and MAC an HMAC-SHA-256 over all before it. Made when a job is
//! handed to a place that has to upload, checked on every request of it; nothing is stored.
//!
//! What always holds: a token opens the routes of its own job and nothing else. That the job is
//! over is not in the token: whoever checks it asks [`super::Delivery`] next. The expiry is a
//! second fence, for specs of Pods that stay in a cluster's database, or in a copy of it, when the
//! scheduler's own is a restored one in which the job is not over.

use hmac::{Hmac, KeyInit, Mac};
use schema::id::JobId;
use schema::time::Timestamp;
use sha2::Sha256;

use crate::secrets::{Sealer, hex};

/// What every job token starts with, so that it is told from an API token, and found by scanners
/// for leaked secrets.
const PREFIX: &str = "pvnj1.";

/// Longest text that is looked at: a token has at most 6 + 32 + 10 + 20 + 64 characters and three
/// dots.
const LIMIT: usize = 160;

/// What a token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobToken {
    pub job: JobId,
    pub attempt: u32,
    /// From when on it is good for nothing; `None` = as long as the job is not over.
    pub expires_at: Option<Timestamp>,
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefusal {
    /// Not a token of a job, by its form: perhaps one of the API.
    NotOne,
    /// Not signed by this scheduler's key.
    Forged,
    /// It was good once.
    Expired,
}

/// Signs and checks.
#[derive(Clone)]
pub struct TokenSigner {
    key: [u8; 32],
}

impl std::fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

impl TokenSigner {
    /// Tokens signed with the key that belongs to this sealer.
    pub fn new(sealer: &Sealer) -> Self {
        Self { key: sealer.job_token_key() }
    }

    /// The same for one of several databases with this key: a restored one takes no tokens that the
    /// one before it gave out.
    #[must_use]
    pub fn of_lineage(self, lineage: &str) -> Self {
        if lineage.is_empty() {
            return self;
        }
        let mut mac = self.mac(lineage);
        mac.update(b" pvn lineage");
        Self { key: mac.finalize().into_bytes().into() }
    }

    /// The token's text. The same for the same token, so that a start that is done twice asks for
    /// the same thing.
    pub fn issue(&self, token: &JobToken) -> String {
        let job = hex(token.job.as_bytes());
        let said = format!(
            "{PREFIX}{job}.{}.{}",
            token.attempt,
            token.expires_at.map_or(0, Timestamp::as_millis)
        );
        let mac = hex(&self.mac(&said).finalize().into_bytes());
        format!("{said}.{mac}")
    }

    /// What a text says, when it is a token of ours that is still good at `now`.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, text: &str, now: Timestamp) -> Result<JobToken, TokenRefusal> {
        let Some(rest) = text.strip_prefix(PREFIX).filter(|_| text.len() <= LIMIT) else {
            return Err(TokenRefusal::NotOne);
        };
        let (said, mac) = text.rsplit_once('.').ok_or(TokenRefusal::Forged)?;
        let mac = unhex(mac).ok_or(TokenRefusal::Forged)?;
        // Compares in constant time.
        self.mac(said).verify_slice(&mac).map_err(|_| TokenRefusal::Forged)?;
        let token = parse(rest).ok_or(TokenRefusal::Forged)?;
        match token.expires_at {
            Some(expires) if now >= expires => Err(TokenRefusal::Expired),
            _ => Ok(token),
        }
    }

    fn mac(&self, said: &str) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        mac.update(said.as_bytes());
        mac
    }
}

fn parse(rest: &str) -> Option<JobToken> {
    let mut parts = rest.split('.');
    let job = format!("{}{}", JobId::PREFIX, parts.next()?).parse().ok()?;
    let attempt = parts.next()?.parse().ok()?;
    let expires: i64 = parts.next()?.parse().ok()?;
    Some(JobToken {
        job,
        attempt,
        expires_at: (expires != 0).then_some(Timestamp::from_millis(expires)),
    })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn tokens() -> TokenSigner {
        TokenSigner::new(&Sealer::with_key([7; 32]))
    }

    fn token() -> JobToken {
        JobToken { job: JobId::derive(&[b"x"]), attempt: 3, expires_at: None }
    }

    #[test]
    fn a_token_reads_back_what_it_was_made_from() {
        let fenced = JobToken { expires_at: Some(NOW.plus_ms(1)), ..token() };
        for token in [token(), fenced] {
            let text = tokens().issue(&token);
            assert_eq!(tokens().check(&text, NOW), Ok(token));
            assert_eq!(
                tokens().issue(&token),
                text,
                "a start that is done twice asks for the same thing"
            );
            assert!(text.len() <= LIMIT);
        }
    }

    #[test]
    fn a_restored_database_takes_no_token_of_the_one_that_it_was_made_from() {
        let text = tokens().issue(&token());
        let restored = tokens().of_lineage("a1");
        assert_eq!(restored.check(&text, NOW), Err(TokenRefusal::Forged));
        assert_eq!(
            tokens().of_lineage("").check(&text, NOW),
            Ok(token()),
            "one that never was restored has no lineage"
        );
        let own = restored.issue(&token());
        assert_eq!(restored.check(&own, NOW), Ok(token()));
        assert_eq!(tokens().of_lineage("b2").check(&own, NOW), Err(TokenRefusal::Forged));
    }

    #[test]
    fn bad_input_wrong_or_expired_token_opens_nothing() {
        let text = tokens().issue(&token());
        let other = TokenSigner::new(&Sealer::with_key([8; 32])).issue(&token());
        let attempt = text.replacen(".3.0.", ".4.0.", 1);
        let expired = tokens().issue(&JobToken { expires_at: Some(NOW), ..token() });
        let cases = [
            (other.as_str(), TokenRefusal::Forged),
            (&attempt, TokenRefusal::Forged),
            (&expired, TokenRefusal::Expired),
            (&text[..text.len() - 1], TokenRefusal::Forged),
            (&text[..PREFIX.len()], TokenRefusal::Forged),
            ("", TokenRefusal::NotOne),
            ("pvn_an_api_token", TokenRefusal::NotOne),
        ];
        for (text, expected) in cases {
            assert_eq!(tokens().check(text, NOW), Err(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_other_text_is_a_token(place in 0_usize..200, byte in 0x20_u8..0x7f, text in "\\PC{0,200}") {
            let good = tokens().issue(&token());
            let mut changed = good.clone().into_bytes();
            let place = place % changed.len();
            changed[place] = byte;
            let changed = String::from_utf8(changed).unwrap();
            prop_assert_eq!(tokens().check(&changed, NOW).is_ok(), changed == good);
            prop_assert!(tokens().check(&text, NOW).is_err());
            let prefixed = format!("{PREFIX}{text}");
            prop_assert!(tokens().check(&prefixed, NOW).is_err());
        }
    }
}
