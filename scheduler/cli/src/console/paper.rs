//! Data as it is printed: laid out for people, as JSON, or as YAML. Called by `console` and by
//! commands that have more to show than a table.

use anstyle::Style;
use serde::Serialize;

use crate::failure::Failure;
use crate::table::{Table, Tone, one_line, wrap};
use crate::typed::Typed;

/// What people's output is laid out for.
pub struct Paper {
    /// Columns, when it is a terminal; otherwise lines are as long as they are.
    pub width: Option<u16>,
    /// Whether it takes colour.
    pub colour: bool,
    /// Whether everything is wanted, however long its lines become.
    pub wide: bool,
    /// How the commands on it are typed.
    pub typed: Typed,
}

impl Paper {
    /// A table laid out on it, with its last line ended.
    pub fn table(&self, table: &Table) -> String {
        let table = table.typed_as(&self.typed);
        if self.wide {
            table.render_wide(self.colour)
        } else {
            table.render(self.width, self.colour)
        }
    }

    /// A text in the colour of its meaning.
    pub fn toned(&self, text: &str, tone: Tone) -> String {
        let style = if self.colour { tone.style() } else { Style::new() };
        format!("{style}{text}{style:#}")
    }

    /// A line that says that something is wrong, fitted to the width.
    pub fn alarm(&self, text: &str) -> String {
        let width = self.width.map_or(usize::MAX, usize::from);
        let lines = wrap(&one_line(text), width, false);
        lines.iter().map(|line| self.toned(line, Tone::Bad) + "\n").collect()
    }

    /// A sentence, in lines that fit the width.
    pub fn prose(&self, text: &str) -> String {
        let width = self.width.map_or(usize::MAX, usize::from);
        wrap(text, width, true).join("\n") + "\n"
    }

    pub fn heading(&self, text: &str) -> String {
        let style = if self.colour { Style::new().bold() } else { Style::new() };
        format!("{style}{text}{style:#}\n")
    }
}

/// Pretty JSON and a line end.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::user(format!("cannot print this as JSON: {error}")))?;
    Ok(text + "\n")
}

pub(crate) fn yaml<T: Serialize>(value: &T) -> Result<String, Failure> {
    let broken = |error: &dyn std::fmt::Display| {
        Failure::user(format!("cannot print this as YAML: {error}"))
    };
    // By way of JSON, so that both formats show the same fields.
    let value = serde_json::to_value(value).map_err(|error| broken(&error))?;
    serde_saphyr::to_string(&value).map_err(|error| broken(&error))
}
