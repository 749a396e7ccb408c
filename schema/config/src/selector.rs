//! Label selectors: `env=production (tier=startup +tier=teams) -region=eu`, for channel groups and
//! preconditions. Each is parsed once, when its document is read.
//!
//! ```text
//! union        = intersection { "+" intersection }
//! intersection = factor { factor }                 side by side: both must hold
//! factor       = [ "-" ] ( key "=" value | "(" union ")" )
//! ```
//! Juxtaposition binds tighter than `+`, as a product binds tighter than a sum. `-` takes away what
//! the factor matches, so a selector of `-` factors alone starts from everything.

use std::collections::BTreeMap;

use crate::written::kept_as_written;

/// Deepest nesting of parentheses; people write two or three.
const DEPTH_LIMIT: usize = 32;
/// Longest selector, in bytes.
const LENGTH_LIMIT_BYTES: usize = 4096;

/// A selector as it stands in a document. A malformed one selects nothing, and is kept with what is
/// wrong with it: its document can be read and used, so that all that is wrong with it is told in
/// one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    text: String,
    says: Result<Expression, SelectorError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Expression {
    Term { key: String, value: String },
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
}

/// Why a text is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "malformed selector: {message}; write terms as `key=value`, side by side for both, `+` for \
     either, `-` to take away, parentheses to group"
)]
pub struct SelectorError {
    /// Bytes from the start of the text to the first place that makes no sense.
    at: usize,
    /// What is wrong.
    message: String,
}

impl Selector {
    /// What is wrong with a malformed one.
    pub fn problem(&self) -> Option<&SelectorError> {
        self.says.as_ref().err()
    }

    /// Whether something with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.says.as_ref().is_ok_and(|says| says.matches(labels))
    }

    /// Every key that the selector asks for, in the order of the text.
    pub fn keys(&self) -> Vec<&str> {
        let mut keys = Vec::new();
        if let Ok(says) = &self.says {
            says.collect_keys(&mut keys);
        }
        keys
    }
}

impl From<String> for Selector {
    fn from(text: String) -> Self {
        Self { says: Expression::parse(&text), text }
    }
}

kept_as_written!(Selector);

impl Expression {
    fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > LENGTH_LIMIT_BYTES {
            return Err(SelectorError {
                at: 0,
                message: format!("a selector has at most {LENGTH_LIMIT_BYTES} bytes"),
            });
        }
        let mut parser = SelectorParser { text, at: 0 };
        let expression = parser.union(0)?;
        match parser.peek() {
            None => Ok(expression),
            Some(_) => Err(parser.error("`)` without its `(`")),
        }
    }

    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Term { key, value } => labels.get(key) == Some(value),
            Self::All(parts) => parts.iter().all(|part| part.matches(labels)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(labels)),
            Self::Not(part) => !part.matches(labels),
        }
    }

    fn collect_keys<'a>(&'a self, keys: &mut Vec<&'a str>) {
        match self {
            Self::Term { key, .. } => keys.push(key),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().for_each(|part| part.collect_keys(keys))
            }
            Self::Not(part) => part.collect_keys(keys),
        }
    }
}

struct SelectorParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> SelectorParser<'a> {
    fn error(&self, message: impl Into<String>) -> SelectorError {
        SelectorError { at: self.at, message: message.into() }
    }

    /// The next character that is not blank.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn union(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        let mut parts = vec![self.intersection(depth)?];
        while self.take('+') {
            parts.push(self.intersection(depth)?);
        }
        Ok(single_or(parts, Expression::Any))
    }

    fn intersection(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        let mut parts = vec![self.factor(depth)?];
        while !matches!(self.peek(), None | Some('+' | ')')) {
            parts.push(self.factor(depth)?);
        }
        Ok(single_or(parts, Expression::All))
    }

    fn factor(&mut self, depth: usize) -> Result<Expression, SelectorError> {
        if self.take('-') {
            return match self.peek() {
                Some('-') => Err(self.error("`-` twice")),
                _ => Ok(Expression::Not(Box::new(self.factor(depth)?))),
            };
        }
        if self.take('(') {
            if depth == DEPTH_LIMIT {
                return Err(self.error(format!("parentheses nest at most {DEPTH_LIMIT} deep")));
            }
            let inner = self.union(depth + 1)?;
            return if self.take(')') { Ok(inner) } else { Err(self.error("`(` without its `)`")) };
        }
        self.term()
    }

    fn term(&mut self) -> Result<Expression, SelectorError> {
        let found = self.peek();
        let key = self.word();
        if key.is_empty() {
            return Err(match found {
                None => self.error("a term is missing at the end"),
                Some(character) => self.error(format!("a term is missing before `{character}`")),
            });
        }
        // No blanks around `=`: side by side means something else.
        if !self.text[self.at..].starts_with('=') {
            return Err(self.error(format!("`{key}` has no `=value`")));
        }
        self.at += 1;
        let value = self.word();
        if value.is_empty() {
            return Err(self.error(format!("`{key}=` has no value")));
        }
        Ok(Expression::Term { key: key.to_owned(), value: value.to_owned() })
    }

    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|character: char| character.is_whitespace() || "()+=".contains(character))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }
}

fn single_or(mut parts: Vec<Expression>, many: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.len() {
        1 => parts.remove(0),
        _ => many(parts),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Labels as `env=production tier=startup`.
    fn labels(text: &str) -> BTreeMap<String, String> {
        text.split(' ')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    /// Which of six runtimes are selected, by their `@name`.
    fn check(selector: &str, expected: &str) {
        let runtimes = [
            "@name=a env=production tier=startup region=eu",
            "@name=b env=production tier=teams region=us",
            "@name=c env=production tier=free region=eu",
            "@name=d env=staging tier=startup region=us",
            "@name=e env=staging tier=teams region=eu",
            "@name=f",
        ];
        let parsed = Selector::from(selector.to_owned());
        assert_eq!(parsed.problem(), None, "{selector}");
        let selected: Vec<_> = runtimes
            .iter()
            .map(|text| labels(text))
            .filter(|labels| parsed.matches(labels))
            .map(|labels| labels["@name"].clone())
            .collect();
        assert_eq!(selected.concat(), expected, "{selector}");
    }

    fn check_error(selector: &str, at: usize, message: &str) {
        let error = Expression::parse(selector).unwrap_err();
        assert_eq!((error.at, error.message.as_str()), (at, message), "{selector}");
    }

    #[test]
    fn side_by_side_is_intersection() {
        check("env=production", "abc");
        check("env=production tier=startup", "a");
        check("  env=production   tier=startup ", "a");
        check("env=production env=staging", "");
    }

    #[test]
    fn plus_is_union() {
        check("tier=startup +tier=teams", "abde");
        check("tier=startup+tier=teams", "abde");
        check("tier=startup + tier=teams", "abde");
    }

    #[test]
    fn parentheses_group() {
        check("env=production (tier=startup +tier=teams)", "ab");
        check("(tier=startup +tier=teams) env=staging", "de");
        check("((env=staging))", "de");
        check("(env=staging)(tier=teams)", "e");
    }

    #[test]
    fn side_by_side_binds_tighter_than_plus() {
        check("env=staging tier=teams +@name=f", "ef");
        check("@name=f + env=staging tier=teams", "ef");
    }

    #[test]
    fn minus_is_difference() {
        check("env=production -tier=free", "ab");
        check("env=production - tier=free", "ab");
        check("env=production -(tier=free +region=us)", "a");
        check("-env=production", "def");
        check("-tier=free env=production", "ab");
        check("env=staging +env=production -tier=free", "abde");
    }

    #[test]
    fn automatic_labels_are_labels() {
        check("@name=a +@name=f", "af");
        assert_eq!(
            Selector::from("@group=x (a-b=c -d=e)".to_owned()).keys(),
            ["@group", "a-b", "d"]
        );
    }

    #[test]
    fn malformed_selectors_say_where() {
        check_error("", 0, "a term is missing at the end");
        check_error("   ", 3, "a term is missing at the end");
        check_error("env", 3, "`env` has no `=value`");
        check_error("env = production", 3, "`env` has no `=value`");
        check_error("env=", 4, "`env=` has no value");
        check_error("=x", 0, "a term is missing before `=`");
        check_error("a=b=c", 3, "a term is missing before `=`");
        check_error("(a=b", 4, "`(` without its `)`");
        check_error("a=b)", 3, "`)` without its `(`");
        check_error("()", 1, "a term is missing before `)`");
        check_error("a=b +", 5, "a term is missing at the end");
        check_error("+a=b", 0, "a term is missing before `+`");
        check_error("--a=b", 1, "`-` twice");
        check_error(&"(".repeat(33), 33, "parentheses nest at most 32 deep");
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "([a-c=()+ -]|\\PC){0,30}") {
            let _ = Selector::from(text);
        }
    }
}
