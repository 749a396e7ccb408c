//! Data as it is printed: laid out for people, as JSON, or as YAML. Called by `console` and by
//! commands that have more to show than a table.

use anstyle::Style;
use serde::Serialize;

use crate::failure::Failure;
use crate::table::Table;
use crate::typed::Typed;

/// What people's output is laid out for.
pub struct Paper {
    /// Columns, when it is a terminal; otherwise lines are as long as they are.
    pub width: Option<u16>,
    /// Whether it takes colour.
    pub colour: bool,
    /// How the commands on it are typed.
    pub typed: Typed,
}

impl Paper {
    /// A table laid out on it, with its last line ended.
    pub fn table(&self, table: &Table) -> String {
        table.typed_as(&self.typed).render(self.width, self.colour)
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
