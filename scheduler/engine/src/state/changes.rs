//! How the plan that people are asked about changed while they were asked. What differs at each
//! fetch without anything having changed (a time, a temporary name) asks for ever, and people see
//! only that their question is gone.

use serde::{Deserialize, Serialize};

/// Most characters of a line that is told.
const LINE_LIMIT_CHARS: usize = 120;

/// That other plans took the place of the one that was asked about, and how the last one differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanChanges {
    /// How often, one after the other, without an answer that came to something.
    pub(crate) times: u32,
    /// The first line that differs, from 1.
    pub(crate) line: usize,
    /// As it was.
    pub(crate) was: String,
    /// As it is; empty where the text is over.
    pub(crate) is: String,
}

impl PlanChanges {
    /// One more change, from one explanation to another; `None` where they are the same.
    pub(crate) fn after(before: Option<&Self>, was: &str, is: &str) -> Option<Box<Self>> {
        let (mut old, mut new) = (was.lines(), is.lines());
        let differs = (1..).map(|line| (line, old.next(), new.next()));
        let (line, was, is) = differs
            .take_while(|(_, old, new)| old.is_some() || new.is_some())
            .find(|(_, old, new)| old != new)?;
        let times = before.map_or(0, |before| before.times).saturating_add(1);
        Some(Box::new(Self { times, line, was: short(was), is: short(is) }))
    }
}

fn short(line: Option<&str>) -> String {
    let line = line.unwrap_or_default().trim();
    match line.char_indices().nth(LINE_LIMIT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_told_and_times_are_counted() {
        let check = |was: &str, is: &str, expected: Option<(usize, &str, &str)>| {
            let found = PlanChanges::after(None, was, is);
            let found = found.as_ref().map(|it| (it.line, it.was.as_str(), it.is.as_str()));
            assert_eq!(found, expected, "{was:?} {is:?}");
        };
        check("a\nb", "a\nb\n", None);
        check("a\n b\nc", "a\n d\nc", Some((2, "b", "d")));
        check("a", "a\nb", Some((2, "", "b")));
        check("a\nb", "a", Some((2, "b", "")));
        check("", "", None);
        let first = PlanChanges::after(None, "a", "b");
        let long = "ä".repeat(500);
        let second = PlanChanges::after(first.as_deref(), &long, "b").unwrap();
        assert_eq!((second.times, second.was.chars().count()), (2, LINE_LIMIT_CHARS + 1));
    }
}
