//! Pieces of HTML, made once for everything that repeats. What comes from people, commands and
//! configs is escaped here or by the templates, and nowhere taken for markup.

use std::borrow::Borrow;
use std::fmt;

use schema::output::{ExternalLink, LinkKind, ObjectStatus, ObjectVersion};
use schema::short::{digests_in, ids_in};
use schema::shown::seen;
use schema::status::{ApprovalStatus, CheckStatus, JobStatus, Status};

mod gates;
mod plans;
mod times;

pub(crate) use gates::gate;
pub(crate) use plans::plan_counts;
pub(crate) use times::{
    age, ago, between, instant, job_moved, lasts, phases, took, under_way, until,
};

/// HTML that is whole and safe to put into a page as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Markup(String);

#[cfg(test)]
impl Markup {
    fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Markup {}

/// Adds a text so that a browser shows exactly it, in an element or within a quoted attribute.
pub(crate) fn push_escaped(html: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
}

/// How something stands, in one of six colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatusColour {
    Good,
    Busy,
    Waiting,
    Bad,
    Paused,
    Gone,
}

impl StatusColour {
    const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Waiting => "waiting",
            Self::Bad => "bad",
            Self::Paused => "paused",
            Self::Gone => "gone",
        }
    }

    /// The shape beside the colour, for whoever sees no colours.
    const fn shape(self) -> &'static str {
        match self {
            Self::Good => r#"<circle cx="8" cy="8" r="6.5"/><path d="M5 8.2 7.2 10.4 11 6"/>"#,
            Self::Busy => r#"<path d="M8 1.5a6.5 6.5 0 1 1-6.1 4.3"/>"#,
            Self::Waiting => r#"<path d="M8 1 15 8 8 15 1 8Z"/><path d="M8 5v3.5M8 10.5v.5"/>"#,
            Self::Bad => {
                r#"<path d="M5 1h6l4 4v6l-4 4H5l-4-4V5Z"/><path d="M5.5 5.5l5 5M10.5 5.5l-5 5"/>"#
            }
            Self::Paused => {
                r#"<rect x="1.5" y="1.5" width="13" height="13"/><path d="M6 5v6M10 5v6"/>"#
            }
            Self::Gone => r#"<path d="M2 8h12" stroke-dasharray="2.5 2"/>"#,
        }
    }
}

const fn of_status(status: Status) -> StatusColour {
    match status {
        Status::Converged => StatusColour::Good,
        Status::Converging => StatusColour::Busy,
        Status::WaitingPreconditions | Status::WaitingManualApproval => StatusColour::Waiting,
        Status::Failed | Status::Broken => StatusColour::Bad,
        Status::Paused => StatusColour::Paused,
        Status::Replaced | Status::Deleted => StatusColour::Gone,
    }
}

const fn of_job(status: JobStatus) -> StatusColour {
    match status {
        JobStatus::Succeeded => StatusColour::Good,
        JobStatus::Starting | JobStatus::Running => StatusColour::Busy,
        JobStatus::Pending => StatusColour::Waiting,
        JobStatus::Failed | JobStatus::Unknown => StatusColour::Bad,
        JobStatus::Cancelled => StatusColour::Paused,
    }
}

/// A word of a closed set as people read it: `WAITING_MANUAL_APPROVAL`, `Waiting manual approval`.
pub(crate) fn plain(word: &str) -> String {
    let mut text = word.to_ascii_lowercase().replace('_', " ");
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

fn badge(tone: StatusColour, word: &str) -> Markup {
    // The exact word is what documentation and `pvnctl` have.
    Markup(format!(
        r#"<span class="st t-{}" title="{word}"><svg viewBox="0 0 16 16" aria-hidden="true">{}</svg>{}</span>"#,
        tone.word(),
        tone.shape(),
        plain(word)
    ))
}

/// How a service instance, a release, stands.
pub(crate) fn status(status: impl Borrow<Status>) -> Markup {
    let status = *status.borrow();
    badge(of_status(status), status.as_str())
}

/// The class of an edge in the colour of a status.
pub(crate) fn edge(status: impl Borrow<Status>) -> String {
    format!("e-{}", of_status(*status.borrow()).word())
}

/// How a job stands.
pub(crate) fn job_status(status: impl Borrow<JobStatus>) -> Markup {
    let status = *status.borrow();
    badge(of_job(status), status.as_str())
}

/// How an approval stands.
pub(crate) fn approval_status(status: impl Borrow<ApprovalStatus>) -> Markup {
    let status = *status.borrow();
    let tone = match status {
        ApprovalStatus::Pending => StatusColour::Waiting,
        ApprovalStatus::Approved => StatusColour::Good,
        ApprovalStatus::Rejected => StatusColour::Bad,
        ApprovalStatus::Expired => StatusColour::Gone,
    };
    badge(tone, status.as_str())
}

/// What a check found.
pub(crate) fn check_status(status: impl Borrow<CheckStatus>) -> Markup {
    let status = *status.borrow();
    let tone = match status {
        CheckStatus::Ok => StatusColour::Good,
        CheckStatus::Failed => StatusColour::Bad,
        CheckStatus::Skipped => StatusColour::Gone,
    };
    badge(tone, status.as_str())
}

/// How a runtime object fares.
pub(crate) fn object_status(status: impl Borrow<ObjectStatus>) -> Markup {
    match *status.borrow() {
        ObjectStatus::Pending => badge(StatusColour::Busy, "PENDING"),
        ObjectStatus::Succeeded => badge(StatusColour::Good, "SUCCEEDED"),
        ObjectStatus::Failed => badge(StatusColour::Bad, "FAILED"),
    }
}

/// Something that is so although the status does not say it: `Drift`.
pub(crate) fn mark(word: &str) -> Markup {
    badge(StatusColour::Waiting, word)
}

/// A sentence of ours: what stands in backticks is a command or a name, for copying; elsewhere ids
/// and digests are short. Characters that would make it read otherwise than it is are left out.
pub(crate) fn said(text: &str) -> Markup {
    let mut html = String::with_capacity(text.len());
    for (at, part) in seen(text).split('`').enumerate() {
        if at % 2 == 0 {
            push_escaped(&mut html, &digests_in(&ids_in(part)));
            continue;
        }
        // A command with ids and digests is for copying, and takes one line.
        let is_long = part.len() > LONG_CODE_BYTES;
        html.push_str(if is_long { r#"<code class="long">"# } else { "<code>" });
        push_escaped(&mut html, part);
        html.push_str("</code>");
    }
    Markup(html)
}

/// Length from which on a command is shown in one line, cut off where the page ends.
const LONG_CODE_BYTES: usize = 80;

/// The beginning of a digest, enough to tell it from others.
pub(crate) fn short(digest: &str) -> String {
    let hex = digest.rsplit(':').next().unwrap_or(digest);
    hex.get(..12).unwrap_or(hex).to_owned()
}

/// A link out of pvn, as a command printed it: to a web page alone, since any other address could
/// be script.
pub(crate) fn outward(link: &ExternalLink) -> Markup {
    let mut html = String::new();
    let is_web = link.url.starts_with("https://") || link.url.starts_with("http://");
    let kind = match link.kind {
        LinkKind::Unknown => "",
        LinkKind::Detail => "Details: ",
        LinkKind::Log => "Logs: ",
        LinkKind::App => "App: ",
    };
    if is_web {
        html.push_str("<a rel=\"noopener noreferrer\" target=\"_blank\" href=\"");
        push_escaped(&mut html, &link.url);
        html.push_str("\">");
    }
    push_escaped(&mut html, kind);
    push_escaped(&mut html, &seen(&link.name));
    html.push_str(if is_web { " ↗</a> " } else { " " });
    if !is_web {
        html.push_str("<code>");
        push_escaped(&mut html, &seen(&link.url));
        html.push_str("</code> ");
    }
    Markup(html)
}

/// A text of a command, as a terminal without colours would show it.
pub(crate) fn shown(text: &str) -> Markup {
    let mut html = String::with_capacity(text.len());
    push_escaped(&mut html, &seen(text));
    Markup(html)
}

/// A plan: its lines in the colour of what they do, by the marks that Terraform, OpenTofu and diffs
/// put first. Nothing is decided by it.
pub(crate) fn plan(text: &str) -> Markup {
    let mut html = String::with_capacity(text.len() * 2);
    for line in seen(text).lines() {
        let class = match line.trim_start() {
            text if text.starts_with("-/+") || text.starts_with("+/-") => "del",
            text if text.starts_with('+') => "add",
            text if text.starts_with('-') => "del",
            text if text.starts_with('~') => "chg",
            text if text.starts_with("Plan:") || text.starts_with('#') => "ab",
            _ => "",
        };
        if class.is_empty() {
            push_escaped(&mut html, line);
        } else {
            html.push_str(&format!(r#"<span class="{class}">"#));
            push_escaped(&mut html, line);
            html.push_str("</span>");
        }
        html.push('\n');
    }
    Markup(html)
}

/// How many replicas serve, of how many that are wanted: a bar with the numbers beside it.
pub(crate) fn replicas(version: &ObjectVersion) -> Markup {
    let (have, ready) = (version.replicas.unwrap_or(0).max(0), version.available_replicas);
    let Some(wanted) = version.target_replicas.or(version.replicas) else {
        return Markup::default();
    };
    let wanted = wanted.max(0);
    let serving = ready.unwrap_or(have).max(0);
    let most = wanted.max(have).max(1);
    let percent = |part: i64| i128::from(part.min(most)) * 100 / i128::from(most);
    Markup(format!(
        r#"<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="back" width="100" height="8"/><rect class="part" width="{}" height="8"/><rect class="full" width="{}" height="8"/></svg> {serving} of {wanted}"#,
        percent(have),
        percent(serving)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_text_holds_it_stays_text() {
        let evil = "<script>alert('x')</script> & \"q\" \u{202e}\u{1b}[31m";
        let expected = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;q&quot; ";
        for html in [said(evil), shown(evil)] {
            assert_eq!(html.as_str(), expected);
        }
        assert_eq!(plan(evil).as_str(), format!("{expected}\n"));
    }

    #[test]
    fn a_link_of_a_command_leads_to_a_web_page_or_nowhere() {
        let link = |url: &str| {
            let (kind, url, name) = (LinkKind::Log, url.to_owned(), "<b>".to_owned());
            outward(&ExternalLink { kind, url, name }).to_string()
        };
        let web = link("https://x/?a=\"b");
        assert!(web.contains("href=\"https://x/?a=&quot;b\"") && web.contains("Logs: &lt;b&gt;"));
        for url in ["javascript:alert(1)", " https://x", "data:text/html,x", "//x"] {
            assert!(!link(url).contains("href"), "{url}");
        }
    }

    #[test]
    fn what_stands_in_backticks_is_code_and_every_element_is_closed() {
        assert_eq!(said("a `b<` c").as_str(), "a <code>b&lt;</code> c");
        assert_eq!(said("a `b").as_str(), "a <code>b</code>");
        assert_eq!(said("``").as_str(), "<code></code>");
    }

    #[test]
    fn a_plan_is_coloured_by_the_marks_of_its_lines() {
        let html = plan("  + add\n- del\n~ chg\n-/+ both\nPlan: 1 to add\n same");
        assert_eq!(
            html.as_str(),
            "<span class=\"add\">  + add</span>\n<span class=\"del\">- del</span>\n\
             <span class=\"chg\">~ chg</span>\n<span class=\"del\">-/+ both</span>\n\
             <span class=\"ab\">Plan: 1 to add</span>\n same\n"
        );
    }

    #[test]
    fn every_status_has_its_word_beside_its_shape() {
        for word in Status::ALL {
            let html = status(*word);
            assert!(html.as_str().contains(&format!("title=\"{word}\"")), "{html}");
            assert!(
                html.as_str().contains("<svg") && html.as_str().contains(&plain(word.as_str()))
            );
        }
    }

    #[test]
    fn a_bar_of_replicas_stays_within_its_frame_whatever_a_command_prints() {
        let check = |numbers: [Option<i64>; 3], expected: &[&str]| {
            let version = ObjectVersion {
                version: String::new(),
                active: true,
                drifted: false,
                replicas: numbers[0],
                available_replicas: numbers[1],
                target_replicas: numbers[2],
            };
            let html = replicas(&version).to_string();
            assert!(expected.iter().all(|part| html.contains(part)), "{numbers:?}: {html}");
        };
        check(
            [Some(3), Some(2), Some(4)],
            &["\"part\" width=\"75\"", "\"full\" width=\"50\"", "2 of 4"],
        );
        check([Some(i64::MAX), Some(i64::MAX), Some(-1)], &["\"full\" width=\"100\""]);
        check([Some(i64::MIN), None, None], &["\"full\" width=\"0\"", "0 of 0"]);
        check([None, None, None], &[]);
    }
}
