//! A message as a mail: plain text, one subject, the same `Message-ID` however often it is sent.
//! Pure. What names and commands say can make no header and no second mail.

use std::time::{Duration, UNIX_EPOCH};

use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::{Address, error::Error};
use schema::api::{NotificationData, NotificationMessage};

use super::payload::said;

/// Most characters of a subject: what fits on two lines of a telephone, with the address first.
const SUBJECT_CHARS: usize = 150;

/// A mail, ready to be handed over.
pub(super) struct Letter {
    pub(super) from: Address,
    pub(super) to: Vec<Address>,
    /// Headers and text, as they go over the wire but for its dots.
    pub(super) bytes: Vec<u8>,
}

/// The mail of this message from and to these addresses.
///
/// # Errors
/// In words for people, when one of them is no address.
pub(super) fn letter(
    message: &NotificationMessage,
    from: &str,
    to: &[String],
) -> Result<Letter, String> {
    let parsed = |text: &str| {
        text.parse::<Address>().map_err(|error| format!("`{text}` is no mail address: {error}"))
    };
    let from = parsed(from)?;
    let to = to.iter().map(|address| parsed(address)).collect::<Result<Vec<_>, _>>()?;
    let bytes = written(message, &from, &to)
        .map_err(|error| format!("no mail can be made of the message: {error}"))?;
    Ok(Letter { from, to, bytes })
}

fn written(
    message: &NotificationMessage,
    from: &Address,
    to: &[Address],
) -> Result<Vec<u8>, Error> {
    let NotificationMessage { kind, timestamp, data } = message;
    let millis = u64::try_from(timestamp.as_millis()).unwrap_or_default();
    let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
    let mut builder = Message::builder()
        .from(Mailbox::new(Some("pvn".to_owned()), from.clone()))
        .subject(one_line(&format!("{} {}", kind.as_str(), data.text)))
        .date(UNIX_EPOCH + Duration::from_millis(millis))
        .message_id(Some(format!("<{}@{}>", data.id, from.domain())))
        // Nobody's holiday note answers it. Source: RFC 3834, section 5.
        .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
        .header(ContentType::TEXT_PLAIN);
    for address in to {
        builder = builder.to(Mailbox::new(None, address.clone()));
    }
    if let Some(thread) = thread(data, from) {
        builder = builder.in_reply_to(thread.clone()).references(thread);
    }
    Ok(builder.body(text(data))?.formatted())
}

/// What the mails about one service in one channel answer, so that they are shown together: the id
/// of a mail that nobody sent, which RFC 5322 allows for.
fn thread(data: &NotificationData, from: &Address) -> Option<String> {
    let (service, channel) = (data.service.as_ref()?, data.channel.as_ref()?);
    Some(format!("<{}.{service}.{channel}@{}>", data.application, from.domain()))
}

fn text(data: &NotificationData) -> String {
    let mut text = data.text.clone();
    text.push('\n');
    for line in said(data) {
        text.push_str(&line);
        text.push('\n');
    }
    if let Some(url) = &data.url {
        text.push_str("\nOpen in pvn: ");
        text.push_str(url);
        text.push('\n');
    }
    let is_text = |one: &char| !one.is_control() || matches!(one, '\n' | '\t');
    text.chars().filter(is_text).collect()
}

fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ").chars().take(SUBJECT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use schema::id::NotificationId;
    use schema::notification::NotificationKind;
    use schema::time::Timestamp;

    use super::*;

    fn mail(text: &str, why: &str) -> String {
        let data = NotificationData {
            service: Some("orders".parse().unwrap()),
            channel: Some("production".parse().unwrap()),
            text: text.to_owned(),
            why: why.to_owned(),
            url: Some("https://pvn.example.com/x".to_owned()),
            ..NotificationData::of(NotificationId::from_bytes([7; 16]), "shop".parse().unwrap())
        };
        let timestamp = Timestamp::from_millis(0);
        let message = NotificationMessage { kind: NotificationKind::Failed, timestamp, data };
        let to = ["ann@example.com".to_owned(), "bob@example.com".to_owned()];
        let letter = letter(&message, "pvn@example.com", &to).unwrap();
        String::from_utf8(letter.bytes).unwrap()
    }

    #[test]
    fn a_mail_says_first_what_it_is_about_and_who_it_is() {
        let mail = mail("shop/orders@production failed", "the apply ended with 1");
        let (headers, text) = mail.split_once("\r\n\r\n").unwrap();
        for header in [
            "From: pvn <pvn@example.com>",
            "To: ann@example.com, bob@example.com",
            "Subject: FAILED shop/orders@production failed",
            "Date: Thu, 01 Jan 1970 00:00:00 +0000",
            "Message-ID: <ntf-07070707070707070707070707070707@example.com>",
            "Auto-Submitted: auto-generated",
            "References: <shop.orders.production@example.com>",
            "Content-Type: text/plain; charset=utf-8",
        ] {
            assert!(headers.lines().any(|line| line == header), "{header}: {headers}");
        }
        assert!(text.contains("the apply ended with 1\r\n"), "{text}");
        assert!(text.contains("Open in pvn: https://pvn.example.com/x\r\n"), "{text}");
    }

    #[test]
    fn no_text_makes_a_header_or_an_end() {
        let evil = "x\r\nBcc: eve@example.com\r\n\r\nhi\u{0}\u{85}";
        let mail = mail(evil, &format!("{evil}\r\n.\r\nMAIL FROM:<e>"));
        let (headers, text) = mail.split_once("\r\n\r\n").unwrap();
        assert!(!headers.lines().any(|line| line.starts_with("Bcc")), "{headers}");
        assert!(headers.contains("Subject: FAILED x Bcc: eve@example.com hi"), "{headers}");
        assert!(!text.contains('\0'), "{text}");
    }

    #[test]
    fn other_letters_than_ascii_are_encoded_and_long_subjects_cut() {
        let mail = mail(&"ä".repeat(1_000), "ü");
        assert!(mail.is_ascii(), "{mail}");
        assert!(mail.lines().all(|line| line.len() <= 998), "{mail}");
        assert!(mail.split_once("\r\n\r\n").unwrap().0.len() < 2_000, "{mail}");
    }
}
