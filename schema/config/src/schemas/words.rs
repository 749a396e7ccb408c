//! `docs/words.md`: the words that programs read in what the scheduler tells, for people, made from
//! the same types.

use std::fmt::Write;

use schema::cause::CauseCode;
use schema::log_kind::LogKind;
use schemars::JsonSchema;
use serde_json::Value;

use crate::json_schema::of;

const HEAD: &str = "# Words

<!-- Made from the types by `cargo run -p config --bin emit`; a test fails when it is not. -->

What programs can go by, beside the sentences for people. Statuses and reasons are in \
                    [convergence.md](convergence.md).
";

/// The page that says what to do about each cause.
const CAUSES: &str = "causes.md";

/// The text of the page.
pub(super) fn page() -> String {
    let mut text = HEAD.to_owned();
    let about = "The `code` of each cause that `pvnctl services explain` lists, the first one \
                 first: what is so, what holds the instance up, what comes next. Each leads to \
                 what to do about it.";
    section::<CauseCode>(&mut text, "Causes", about, Some(CAUSES));
    let about = "The `kind` of each entry of the log, as `GET /v1/events` streams it. `kind=job` \
                 takes all that begin with `job.`.";
    section::<LogKind>(&mut text, "Entries of the log", about, None);
    text
}

/// A table of words. `more` is a page that has a heading for each of them.
fn section<T: JsonSchema>(text: &mut String, title: &str, about: &str, more: Option<&str>) {
    let schema = of::<T>();
    let list = |key: &str| schema.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let _ = write!(text, "\n## {title}\n\n{about}\n\n| word | what it says |\n| --- | --- |\n");
    for (word, says) in list("enum").iter().zip(list("enumDescriptions")) {
        let word = word.as_str().unwrap_or_default();
        let shown = match more {
            Some(page) => format!("[`{word}`]({page}#{})", word.to_lowercase()),
            None => format!("`{word}`"),
        };
        let _ = writeln!(text, "| {shown} | {} |", says.as_str().unwrap_or_default());
    }
}
