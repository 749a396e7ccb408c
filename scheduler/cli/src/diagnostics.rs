//! Problems in config files, as rustc shows its own: the message, the place, the lines themselves,
//! and what to do. In the same form, what of a list cannot be read.

use anstyle::{AnsiColor, Style};
use schema::api::{Diagnostic, LeftOut};

use crate::table::harmless;

/// Most rows that cannot be read that are shown of one list: a whole table may be damaged, and one
/// row shows how.
const UNREADABLE_SHOWN: usize = 20;

/// The problems one after another, each ended by an empty line.
pub fn render(problems: &[Diagnostic], colour: bool) -> String {
    problems.iter().map(|problem| render_one(problem, colour)).collect()
}

/// What is missing in a list, because these rows of the database cannot be read, and the way out;
/// nothing where nothing is.
pub fn unreadable(rows: &[String], colour: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let styled = |style: AnsiColor| if colour { style.on_default().bold() } else { Style::new() };
    let [warning, help] = [AnsiColor::Yellow, AnsiColor::Cyan].map(styled);
    let (rows_are, is_are) = if rows.len() == 1 { ("row", "is") } else { ("rows", "are") };
    let mut text = format!(
        "{warning}warning{warning:#}: {} {rows_are} of the database cannot be read and {is_are} \
         not in this list\n",
        rows.len()
    );
    for row in rows.iter().take(UNREADABLE_SHOWN) {
        text += &format!("  {}\n", harmless(row).replace('\n', " "));
    }
    if let more @ 1.. = rows.len().saturating_sub(UNREADABLE_SHOWN) {
        text += &format!("  and {more} more\n");
    }
    text + &format!(
        "  {help}help{help:#}: stop pvn-scheduler, copy its database, put such a row right or \
         delete it with `sqlite3`, and start pvn-scheduler again; an instance that stands still \
         for one says in `pvnctl explain SERVICE` what to do\n"
    )
}

/// What of a change was not done, because a row of the database cannot be read, and the way out;
/// nothing where all was.
pub fn left_out(services: &[LeftOut]) -> Vec<String> {
    let mut lines: Vec<String> = services
        .iter()
        .map(|one| {
            format!(
                "{}/{} is left out: {}",
                one.application,
                one.service,
                harmless(&one.why).replace('\n', " ")
            )
        })
        .collect();
    if !lines.is_empty() {
        lines.push(
            "all else goes on; for these stop pvn-scheduler, put the row right with `sqlite3`, \
             start it again, and release them with `pvnctl push SERVICE`"
                .to_owned(),
        );
    }
    lines
}

fn render_one(problem: &Diagnostic, colour: bool) -> String {
    let styled = |style: AnsiColor| if colour { style.on_default().bold() } else { Style::new() };
    let [error, warning, place, help] =
        [AnsiColor::Red, AnsiColor::Yellow, AnsiColor::Blue, AnsiColor::Cyan].map(styled);
    // The reader of the files draws the lines; when it could not (the whole file is meant) the
    // place alone is shown.
    let snippet = harmless(problem.snippet.trim_end());
    if !snippet.is_empty() {
        let mut lines = snippet.lines();
        let mut text = String::new();
        for line in lines.by_ref() {
            let title = [("error", error), ("warning", warning)]
                .into_iter()
                .find_map(|(word, style)| Some((word, style, line.strip_prefix(word)?)));
            text += &match (title, line.trim_start().strip_prefix("-->")) {
                (Some((word, style, rest)), _) => format!("{style}{word}{style:#}{rest}\n"),
                (_, Some(rest)) => {
                    format!("{place}{}-->{place:#}{rest}\n", &line[..line.len() - rest.len() - 3])
                }
                _ => format!("{line}\n"),
            };
        }
        return text + "\n";
    }
    let mut text = format!("{error}error{error:#}: {}\n", harmless(&problem.message));
    text += &match problem.line {
        _ if problem.file.is_empty() => String::new(),
        0 => format!(" {place}-->{place:#} {}\n", problem.file),
        line => format!(" {place}-->{place:#} {}:{line}:{}\n", problem.file, problem.column),
    };
    if !problem.path.is_empty() {
        text += &format!("  at {}\n", problem.path);
    }
    if let Some(advice) = &problem.help {
        text += &format!("  {help}help{help:#}: {}\n", harmless(advice));
    }
    text + "\n"
}
