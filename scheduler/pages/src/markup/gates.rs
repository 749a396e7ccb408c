//! What a channel waits for, as it is drawn before it: a shape for the kind, and the words.

use schema::api::GateAhead;
use schema::shown::seen;
use schema::status::GateKind;

use super::times::Instantly;
use super::{Markup, StatusColour, push_escaped, until};

const fn colour(kind: GateKind) -> StatusColour {
    match kind {
        GateKind::Rejected => StatusColour::Bad,
        GateKind::Pause | GateKind::Observe => StatusColour::Paused,
        GateKind::Channels | GateKind::Approval | GateKind::Window | GateKind::Place => {
            StatusColour::Waiting
        }
    }
}

/// The shape beside the words.
const fn shape(kind: GateKind) -> &'static str {
    match kind {
        // One channel after the other.
        GateKind::Channels => {
            r#"<circle cx="4" cy="8" r="3"/><circle cx="12" cy="8" r="3"/><path d="M7 8h2"/>"#
        }
        // A person.
        GateKind::Approval => {
            r#"<circle cx="8" cy="5" r="3"/><path d="M2.5 15a5.5 5.5 0 0 1 11 0"/>"#
        }
        GateKind::Rejected | GateKind::Pause => colour(kind).shape(),
        // A clock.
        GateKind::Window => r#"<circle cx="8" cy="8" r="6.5"/><path d="M8 4v4l3 2"/>"#,
        // An eye.
        GateKind::Observe => {
            r#"<path d="M1 8s2.5-4.5 7-4.5S15 8 15 8s-2.5 4.5-7 4.5S1 8 1 8z"/><circle cx="8" cy="8" r="2"/>"#
        }
        // A line of those who wait.
        GateKind::Place => r#"<path d="M2 4h12M2 8h12M2 12h7"/>"#,
    }
}

/// One gate.
pub(crate) fn gate(gate: &GateAhead, now: impl Instantly) -> Markup {
    let (kind, tone) = (gate.kind, colour(gate.kind).word());
    let mut html = format!(r#"<span class="st t-{tone}" data-gate="{kind}">"#);
    html.push_str(r#"<svg viewBox="0 0 16 16" aria-hidden="true">"#);
    html.push_str(shape(kind));
    html.push_str("</svg><span>");
    push_escaped(&mut html, &seen(&gate.words));
    if let Some(at) = gate.opens_at {
        html.push_str(&format!(" {}", until(at, now)));
    }
    html.push_str("</span></span> ");
    Markup(html)
}

#[cfg(test)]
mod tests {
    use schema::time::Timestamp;

    use super::*;

    #[test]
    fn a_gate_has_its_shape_its_words_and_when_it_opens() {
        let now = Timestamp::from_millis(0);
        let shown = |kind, words: &str, opens_at| {
            gate(&GateAhead { kind, words: words.to_owned(), opens_at }, now).to_string()
        };
        let mut shapes = std::collections::BTreeSet::new();
        for kind in GateKind::ALL {
            let html = shown(*kind, "<b>: 1 of 2", None);
            assert!(html.contains("&lt;b&gt;: 1 of 2</span>") && !html.contains("<time"), "{html}");
            assert!(html.contains(&format!("data-gate=\"{kind}\"")), "{html}");
            shapes.insert(shape(*kind));
        }
        assert_eq!(shapes.len(), GateKind::ALL.len(), "each has a shape of its own");
        let opens = shown(GateKind::Window, "window opens", Some(now.plus_ms(20_000)));
        assert!(opens.contains("window opens <time"), "{opens}");
        assert!(opens.contains(">in 20s</time>"), "{opens}");
    }
}
