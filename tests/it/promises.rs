//! `docs/promises.md` is the table of promises and worlds: each promise in each world is held by
//! tests that exist, or says why that world cannot touch it.

use std::collections::BTreeSet;
use std::process::Command;

use tests::programs::repository;

const PAGE: &str = "docs/promises.md";

/// How a cell begins that has no test: a reason follows.
const NO_TEST: &str = "none: ";

/// A line of a table: its cells, without the borders.
fn cells(line: &str) -> Option<Vec<&str>> {
    Some(line.trim().strip_prefix('|')?.strip_suffix('|')?.split(" | ").map(str::trim).collect())
}

/// What stands below a heading of the second level, up to the next one.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!("\n## {heading}"))
        .unwrap_or_else(|| panic!("{PAGE} has no section {heading}"));
    rest.split_once("\n## ").map_or(rest, |(own, _)| own)
}

/// The rows of the first table in a text, without its head.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().filter_map(cells).skip(2).collect()
}

/// The names in a cell that stand in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Every function of a file of tests, in all crates.
fn tests_there_are() -> BTreeSet<String> {
    let output = Command::new("git")
        .args(["grep", "-hoE", "fn [a-z0-9_]+\\(", "--", "*.rs"])
        .current_dir(repository())
        .output();
    let output = output.expect("git can be started");
    assert!(output.status.success(), "not a git checkout");
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    names
        .lines()
        .filter_map(|line| line.strip_prefix("fn ")?.strip_suffix('('))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_promise_is_held_in_every_world() {
    let page = std::fs::read_to_string(repository().join(PAGE)).unwrap();
    let worlds: Vec<_> = rows(section(&page, "Worlds")).into_iter().map(|row| row[0]).collect();
    assert!(worlds.len() >= 16, "{worlds:?}");
    let there_are = tests_there_are();
    let mut problems = Vec::new();
    for promise in 1..=9 {
        let rows = rows(section(&page, &format!("P{promise}")));
        let told: Vec<_> = rows.iter().map(|row| row[0]).collect();
        assert_eq!(told, worlds, "the worlds of P{promise}");
        for row in &rows {
            let [world, held, ..] = row.as_slice() else { panic!("P{promise}: {row:?}") };
            let tests = quoted(held);
            if tests.is_empty()
                && held.strip_prefix(NO_TEST).is_none_or(|reason| reason.len() <= 10)
            {
                problems.push(format!(
                    "P{promise}, {world}: neither a test nor `{NO_TEST}` and a reason"
                ));
            }
            let missing = tests.iter().filter(|test| !there_are.contains(**test));
            problems.extend(
                missing.map(|test| format!("P{promise}, {world}: there is no test {test}")),
            );
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_readme_promises_what_the_table_holds() {
    let [page, readme] =
        [PAGE, "README.md"].map(|path| std::fs::read_to_string(repository().join(path)).unwrap());
    for promise in 1..=9 {
        let said = readme.lines().find_map(|line| {
            line.strip_prefix(&format!("| **P{promise}** | "))?.strip_suffix(" |")
        });
        let said = said.unwrap_or_else(|| panic!("README.md does not have P{promise}"));
        let heading = section(&page, &format!("P{promise}")).lines().next().unwrap_or_default();
        assert_eq!(heading.trim_start_matches([':', ' ']), said, "P{promise}");
    }
}
