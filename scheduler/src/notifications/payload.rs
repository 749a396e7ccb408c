//! A message as each kind of target takes it. Pure.

use schema::api::{NotificationData, NotificationMessage};
use schema::notification::NotificationKind;
use serde_json::json;

/// Most characters of a block's text. Source: Slack's reference of the block `section`.
const BLOCK_CHARS: usize = 3_000;

/// What a webhook is sent.
pub(super) fn webhook(message: &NotificationMessage) -> String {
    serde_json::to_string(message).expect("our own types have JSON forms")
}

/// What Slack is sent: `text` for what shows no blocks (a telephone's notice, Mattermost,
/// Rocket.Chat), the same in blocks for what does. What commands print is a block of plain text:
/// Slack has no way to write an asterisk or a backtick that is none of its markup.
pub(super) fn slack(message: &NotificationMessage) -> String {
    let NotificationMessage { kind, data, .. } = message;
    let heading = format!("{} *{}*", sign(*kind), plain(&data.text));
    let printed = cut(&uncalling(&said(data).join("\n")));
    let link = data.url.as_deref().map(|url| format!("<{url}|Open in pvn>"));
    let lines = [Some(heading.clone()), Some(plain(&printed)), link.clone()];
    let lines: Vec<String> = lines.into_iter().flatten().filter(|line| !line.is_empty()).collect();
    let section =
        |kind: &str, text: &str| json!({"type": "section", "text": {"type": kind, "text": text}});
    let mut blocks = vec![section("mrkdwn", &cut(&heading))];
    if !printed.is_empty() {
        blocks.push(section("plain_text", &printed));
    }
    blocks.extend(link.map(|link| section("mrkdwn", &link)));
    json!({"text": cut(&lines.join("\n")), "blocks": blocks}).to_string()
}

/// All that a message says below its first line.
pub(super) fn said(data: &NotificationData) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(Some(data.why.clone()).filter(|why| !why.is_empty()));
    // The sentence may have the plan in it.
    lines.extend(data.plan.clone().filter(|plan| !data.why.contains(plan.as_str())));
    lines.extend(data.lines.iter().map(|line| format!("• {line}")));
    let shown = data.lines.len() as u64;
    let all: u64 = data.counts.values().sum();
    if shown > 0 && all > shown {
        lines.push(format!("… and {} more", all - shown));
    }
    lines
}

/// What is seen before anything is read.
fn sign(kind: NotificationKind) -> &'static str {
    match kind {
        NotificationKind::Failed
        | NotificationKind::Stuck
        | NotificationKind::Broken
        | NotificationKind::AppliesStopped => "🔴",
        NotificationKind::ApprovalAsked => "🔵",
        NotificationKind::DriftFound | NotificationKind::Digest => "🟠",
        NotificationKind::DriftRepaired
        | NotificationKind::Recovered
        | NotificationKind::Converged => "🟢",
    }
}

/// Text in which nothing is an address or calls anybody (source: Slack's page on formatting,
/// "Escaping text").
fn plain(text: &str) -> String {
    uncalling(&text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}

/// Without a name that calls everybody in a channel.
fn uncalling(text: &str) -> String {
    let mut text = text.to_owned();
    for everybody in ["@here", "@channel", "@all", "@everyone"] {
        if text.contains(everybody) {
            text = text.replace(everybody, &everybody.replace('@', "@\u{200b}"));
        }
    }
    text
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(BLOCK_CHARS - 1) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use schema::id::NotificationId;
    use schema::time::Timestamp;

    use super::*;

    fn message(kind: NotificationKind, text: &str, why: &str) -> NotificationMessage {
        let data = NotificationData {
            service: Some("orders".parse().unwrap()),
            channel: Some("production".parse().unwrap()),
            version: Some("orders-7".to_owned()),
            text: text.to_owned(),
            why: why.to_owned(),
            url: Some("https://pvn.example.com/x".to_owned()),
            ..NotificationData::of(NotificationId::from_bytes([7; 16]), "shop".parse().unwrap())
        };
        NotificationMessage { kind, timestamp: Timestamp::from_millis(1_000), data }
    }

    #[test]
    fn a_webhook_is_sent_what_its_schema_says() {
        let sent =
            webhook(&message(NotificationKind::Failed, "shop/orders@production failed", "x"));
        let expected = json!({
            "type": "FAILED",
            "timestamp": "1970-01-01T00:00:01.000Z",
            "data": {
                "id": "ntf-07070707070707070707070707070707",
                "application": "shop", "service": "orders", "channel": "production",
                "version": "orders-7", "text": "shop/orders@production failed", "why": "x",
                "url": "https://pvn.example.com/x",
            },
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&sent).unwrap(), expected);
    }

    #[test]
    fn nothing_that_a_command_said_is_markup_or_calls_everybody() {
        let sent = slack(&message(
            NotificationKind::Failed,
            "shop/orders@here failed",
            "exit 1: <!channel> a & b <https://evil|x> *not bold* `x` @here",
        ));
        let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
        let heading = "🔴 *shop/orders@\u{200b}here failed*";
        let link = "<https://pvn.example.com/x|Open in pvn>";
        let printed = "exit 1: <!channel> a & b <https://evil|x> *not bold* `x` @\u{200b}here";
        let escaped = printed.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        assert_eq!(sent["text"], format!("{heading}\n{escaped}\n{link}"));
        let block = |kind: &str, text: &str| json!({"type": "section", "text": {"type": kind, "text": text}});
        let blocks =
            json!([block("mrkdwn", heading), block("plain_text", printed), block("mrkdwn", link)]);
        assert_eq!(sent["blocks"], blocks);
    }

    #[test]
    fn a_digest_counts_and_shows_some() {
        let mut digest = message(NotificationKind::Digest, "shop: 30 messages", "30 FAILED");
        digest.data.counts.insert(NotificationKind::Failed, 30);
        digest.data.lines = vec!["shop/a@b failed".to_owned()];
        let sent: serde_json::Value = serde_json::from_str(&slack(&digest)).unwrap();
        let text = sent["text"].as_str().unwrap();
        assert!(text.contains("30 FAILED\n• shop/a@b failed\n… and 29 more\n"), "{text}");
    }

    #[test]
    fn an_endless_text_fits_a_block() {
        let sent = slack(&message(NotificationKind::Failed, "x", &"<".repeat(2_000)));
        let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(sent["text"].as_str().unwrap().chars().count(), BLOCK_CHARS);
        // What keeps a name from calling everybody takes room, too.
        let sent = slack(&message(NotificationKind::Failed, "x", &"@here ".repeat(2_000)));
        let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
        let printed = sent["blocks"][1]["text"]["text"].as_str().unwrap();
        assert_eq!(printed.chars().count(), BLOCK_CHARS);
    }
}
