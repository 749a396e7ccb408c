//! The headers of Standard Webhooks: an id that is the same however often a message is sent, when
//! it was sent, and who sent it. Source: the specification of Standard Webhooks, "Webhook
//! signature".

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The headers of a message that is sent at this second; signed if there is a key.
pub(super) fn headers(
    id: &str,
    seconds: i64,
    body: &str,
    key: Option<&[u8]>,
) -> Vec<(&'static str, String)> {
    let mut headers =
        vec![("webhook-id", id.to_owned()), ("webhook-timestamp", seconds.to_string())];
    if let Some(key) = key {
        headers.push(("webhook-signature", sign(id, seconds, body, key)));
    }
    headers
}

fn sign(id: &str, seconds: i64, body: &str, key: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_specification() {
        // Source: the specification's own example, "Signature scheme".
        let key = config::signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed =
            sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#, &key);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
