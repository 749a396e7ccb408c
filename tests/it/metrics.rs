//! `docs/monitoring.md` has every metric that a real scheduler gives, and no other; its alerts are
//! about these, and each says what to do.

use std::collections::BTreeMap;

use reqwest::Method;
use tests::scheduler::Scheduler;

use crate::house::text;

const PAGE: &str = "docs/monitoring.md";

/// Type and label of each metric.
type Metrics = BTreeMap<String, (String, String)>;

/// The names that begin with `pvn_`, as they stand in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| !(c.is_ascii_lowercase() || c == '_');
    text.split(ends).filter(|word| word.len() > 4 && word.starts_with("pvn_"))
}

/// What `/metrics` says.
fn given(exposition: &str) -> Metrics {
    let mut given = Metrics::new();
    for line in exposition.lines() {
        if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' '))
        {
            given.insert(name.to_owned(), (kind.to_owned(), String::new()));
        } else if let Some((name, rest)) = line.split_once('{') {
            let (label, _) = rest.split_once('=').expect("a label has a value");
            let (_, of) = given.get_mut(name).expect("the type of a metric comes first");
            label.clone_into(of);
        }
    }
    given
}

/// What the table of the page says.
fn told(page: &str) -> Metrics {
    let rows = page.lines().filter(|line| line.starts_with("| `pvn_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, name, kind, label, meaning, ..] = cells.as_slice() else { panic!("{row}") };
        assert!(meaning.len() > 20, "{row}: what does it mean?");
        ((*name).to_owned(), ((*kind).to_owned(), (*label).to_owned()))
    })
    .collect()
}

#[test]
fn every_metric_stands_in_the_docs_with_its_meaning() {
    let scheduler = Scheduler::start();
    scheduler.apply(
        "runtime: {name: nowhere, fake: {}}\n---\nservice: {name: web, application: app}\n---\n\
         application: {name: app, releaseChannels: [{name: eu, runtimes: [{runtime: nowhere}]}]}\n",
    );
    scheduler.ok(&["services", "push", "web", "--app", "app", "--wait"]);
    let request = scheduler.http(Method::GET, "/metrics").bearer_auth(scheduler.token());
    let answer = request.send().expect("an answer").text().expect("metrics are text");
    let (given, page) = (given(&answer), text(PAGE));
    assert!(given.contains_key("pvn_instances"), "{answer}");
    assert_eq!(told(&page), given, "{PAGE} and /metrics");
    assert!(answer.contains("\npvn_ready 1\n"), "{answer}");
}

#[test]
fn every_alert_is_about_metrics_that_there_are_and_says_what_to_do() {
    let page = text(PAGE);
    let known = told(&page);
    let of_rules = page.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let strangers: Vec<_> =
        of_rules.flat_map(names).filter(|name| !known.contains_key(*name)).collect();
    assert!(strangers.is_empty(), "there are no such metrics: {strangers:?}");
    let after = |begins: &'static str| {
        page.lines().filter_map(move |line| line.trim().strip_prefix(begins)).collect::<Vec<_>>()
    };
    let (alerts, sections) = (after("- alert: "), after("### "));
    assert!(alerts.len() > 8, "{alerts:?}");
    assert_eq!(alerts, sections, "each alert has a section of its name, in their order");
    assert_eq!(after("expr: ").len(), alerts.len(), "each alert has one rule");
}
