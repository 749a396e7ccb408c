//! The pages that no type emits say all that there is, and their links lead somewhere.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schema::cause::CauseCode;
use schema::notification::{NotificationEvent, NotificationStatus};
use schema::status::{JobStatus, Reason, Status};
use serde_json::Value;
use tests::programs::repository;

use crate::house::{text, tracked};

fn check(page: &str, words: impl IntoIterator<Item = String>) {
    let said = text(page);
    let missing: Vec<_> =
        words.into_iter().filter(|word| !said.contains(&format!("`{word}`"))).collect();
    assert!(missing.is_empty(), "not in {page}: {missing:?}");
}

#[test]
fn every_status_and_reason_is_explained() {
    let statuses = Status::ALL.iter().map(Status::to_string);
    let reasons = Reason::ALL.iter().map(Reason::to_string);
    check(
        "docs/convergence.md",
        statuses.chain(reasons).chain(JobStatus::ALL.iter().map(JobStatus::to_string)),
    );
}

#[test]
fn every_notification_is_explained() {
    let events = NotificationEvent::ALL.iter().map(NotificationEvent::to_string);
    let statuses = NotificationStatus::ALL.iter().map(NotificationStatus::to_string);
    check("docs/notifications.md", events.chain(statuses));
}

#[test]
fn every_rule_has_a_test_of_its_number() {
    let rules = text("docs/convergence.md")
        .lines()
        .filter(|line| line.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok()))
        .count();
    assert!(rules >= 18, "{rules} rules");
    let tests: String = tracked(".rs")
        .iter()
        .filter(|path| path.starts_with("scheduler/engine/tests/it"))
        .map(text)
        .collect();
    let untested: Vec<_> =
        (1..=rules).filter(|rule| !tests.contains(&format!("fn rule_{rule:02}_"))).collect();
    assert!(untested.is_empty(), "rules without a test: {untested:?}");
}

/// The headings of a page, as they stand there.
fn headings(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter_map(move |line| {
        is_code ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        (!is_code && title.len() < line.len()).then(|| title.strip_prefix(' ')).flatten()
    })
}

/// What a link to a heading ends with: as GitHub and most renderers make it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn every_cause_has_an_anchor_of_its_code_where_the_docs_say_what_to_do() {
    let page = text("docs/causes.md");
    let told: Vec<_> = headings(&page)
        .filter_map(|title| title.strip_prefix('`')?.strip_suffix('`'))
        .map(str::to_owned)
        .collect();
    let (mut sorted, mut codes) =
        (told.clone(), CauseCode::ALL.iter().map(CauseCode::to_string).collect::<Vec<_>>());
    sorted.sort();
    codes.sort();
    assert_eq!(sorted, codes, "one heading for each code");
    for code in told {
        assert_eq!(anchor(&format!("`{code}`")), code.to_lowercase());
        let (_, rest) = page.split_once(&format!("\n### `{code}`\n")).expect("it is a heading");
        let said = rest.split("\n#").next().unwrap_or_default().trim();
        assert!(said.len() > 30, "{code}: what is to be done?");
    }
}

#[test]
fn the_sizes_are_those_of_the_benchmarks() {
    let measured = text("docs/scheduler-benchmark.md") + &text("docs/kubernetes-benchmark.md");
    let page = text("docs/operating.md");
    let (_, sizes) = page.split_once("\n## Sizes\n").expect("the page has them");
    let sizes = sizes.split("\n## ").next().unwrap_or_default();
    let cells = sizes.lines().filter_map(|row| row.strip_prefix("| ")?.strip_suffix(" |"));
    let numbers: Vec<&str> = cells
        .filter_map(|row| row.split_once(" | "))
        .flat_map(|(_, value)| value.split([' ', ',']))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    assert!(numbers.len() > 8, "{numbers:?}");
    let unknown: Vec<_> =
        numbers.into_iter().filter(|number| !measured.contains(*number)).collect();
    assert!(unknown.is_empty(), "no benchmark has {unknown:?}");
}

/// The pages that people read.
fn pages() -> impl Iterator<Item = PathBuf> {
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "images/README.md"]
        .map(|page| repository().join(page));
    let docs = std::fs::read_dir(repository().join("docs")).expect("the docs can be listed");
    let docs = docs.map(|file| file.expect("an entry can be read").path());
    pages.into_iter().chain(docs).filter(|page| page.extension().is_some_and(|of| of == "md"))
}

#[test]
fn every_command_of_pvnctl_that_the_docs_name_is_one() {
    let reference = text("docs/pvnctl-commands.md");
    let known: BTreeSet<&str> = headings(&reference).collect();
    assert!(known.contains("pvnctl services push"), "{known:?}");
    let is_group =
        |command: &str| known.iter().any(|known| known.starts_with(&format!("{command} ")));
    let mut strangers = BTreeSet::new();
    // That one is read word for word, short names too, by a test of pvnctl.
    for page in pages().filter(|page| !page.ends_with("everyday.md")) {
        for named in text(&page).split("`pvnctl ").skip(1) {
            let mut words = named.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
            let [first, second] = [(); 2].map(|()| words.next().unwrap_or_default());
            let command = format!("pvnctl {first}");
            let whole = format!("{command} {second}");
            let is_known = match second {
                _ if first.is_empty() || first.starts_with('-') => true,
                "" => known.contains(&*command),
                // Nouns are taken in the singular too.
                _ if is_group(&command) => {
                    known.contains(&*whole) || known.contains(&*format!("{whole}s"))
                }
                _ => known.contains(&*command),
            };
            if !is_known {
                strangers.insert(format!("{}: {whole}", page.display()));
            }
        }
    }
    assert!(strangers.is_empty(), "no such command: {strangers:#?}");
}

#[test]
fn every_link_of_the_docs_leads_somewhere() {
    for page in pages() {
        let said = text(&page);
        for link in
            said.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
        {
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            if link.contains("://") {
                continue;
            }
            let to = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            assert!(to.exists(), "{}: {link}", page.display());
            let is_there =
                part.is_empty() || headings(&text(&to)).any(|heading| anchor(heading) == part);
            assert!(is_there, "{}: {link} leads to no heading", page.display());
        }
    }
}

#[test]
fn the_recording_shows_status_push_and_approve() {
    let cast = text("docs/recording/status-push-approve.cast");
    let mut lines = cast.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    let header = lines.next().expect("it has a header");
    assert_eq!((&header["version"], &header["width"]), (&2.into(), &80.into()));
    let (mut shown, mut before) = (String::new(), 0.0);
    for piece in lines {
        let (at, said) = (piece[0].as_f64().expect("a time"), piece[2].as_str().expect("a text"));
        assert!(at >= before && piece[1] == "o", "{piece}");
        before = at;
        shown += said;
    }
    let mut rest = shown.as_str();
    for next in [
        "pvnctl status",
        "2 CONVERGED",
        "pvnctl push limits --param rate=250",
        "released limits-2 as rel-",
        "waiting for you",
        "pvnctl approve limits@production",
        "+requests_per_second = 250",
        "Approve this?",
        "approved proxy/limits limits-2",
        "2 CONVERGED",
    ] {
        rest = rest.split_once(next).unwrap_or_else(|| panic!("no `{next}` in {rest}")).1;
    }
    assert!(!shown.contains("error") && !shown.contains("/tmp"), "{shown}");
    assert!(text("docs/tutorial.md").contains("recording/status-push-approve.cast"));
}
