//! Problems in config files, as rustc shows its own: the message, the place, the lines themselves, and what to do.

use anstyle::{AnsiColor, Style};
use schema::api::Diagnostic;

use crate::table::harmless;

/// The problems one after another, each ended by an empty line.
pub fn render(problems: &[Diagnostic], colour: bool) -> String {
    problems.iter().map(|problem| render_one(problem, colour)).collect()
}

fn render_one(problem: &Diagnostic, colour: bool) -> String {
    let styled = |style: AnsiColor| if colour { style.on_default().bold() } else { Style::new() };
    let [error, warning, place, help] = [AnsiColor::Red, AnsiColor::Yellow, AnsiColor::Blue, AnsiColor::Cyan].map(styled);
    // The reader of the files draws the lines; when it could not (the whole file is meant) the place alone is shown.
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
                (_, Some(rest)) => format!("{place}{}-->{place:#}{rest}\n", &line[..line.len() - rest.len() - 3]),
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
