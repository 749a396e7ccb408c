//! The document that a service gives to a tool (a task definition, a service of Cloud Run): the one
//! place that says what such a text must be. Asked by `pvnctl configs validate`, which has no
//! server, through `texts`, and by the scheduler's `compile`, which then puts the values in.

use crate::yaml::{self, NodeKind, Visited, YamlNode};

/// Longest argument, and longest variable as `KEY=value`, that Linux passes to a program, in bytes:
/// 32 pages less the NUL at its end. Source: `MAX_ARG_STRLEN` in execve(2).
pub const ARGUMENT_LIMIT_BYTES: usize = (128 << 10) - 1;

/// A document, read.
#[derive(Debug)]
pub struct ToolDocument<'a> {
    /// Its path, where it is a file of its own.
    pub file: Option<&'a str>,
    /// The text in which it stands.
    pub text: &'a str,
    /// Where it starts in that, in bytes.
    pub start: usize,
    /// What it says.
    pub tree: YamlNode,
}

/// What is wrong with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDocumentFault {
    /// The file, where it is one of its own, and the line there, from 1.
    pub file: Option<(String, usize)>,
    /// Where in the text, in bytes.
    pub at: usize,
    /// What stands there, where it is about a part of it.
    pub part: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl<'a> ToolDocument<'a> {
    /// Reads the one document of these texts, each with its path where it is a file of its own; and
    /// all that is wrong. `None` where nothing can be made of it.
    pub fn read(texts: &[(Option<&'a str>, &'a str)]) -> (Option<Self>, Vec<ToolDocumentFault>) {
        let mut found = Vec::new();
        for &(file, text) in texts {
            for range in yaml::documents(text) {
                match yaml::parse(&text[range.clone()]) {
                    Ok(Some(tree)) if !tree.is_null() => {
                        found.push(Self { file, text, start: range.start, tree });
                    }
                    Ok(_) => {}
                    Err(error) => {
                        let message = format!("malformed YAML: {error}");
                        let at = range.start + error.span.start;
                        let fault = fault(file, text, at, None, message);
                        return (None, vec![ToolDocumentFault { help: error.help, ..fault }]);
                    }
                }
            }
        }
        let what = match found.as_slice() {
            [] => "nothing".to_owned(),
            [only] => match &only.tree.kind {
                NodeKind::Mapping(_) => {
                    let faults = only.faults();
                    return (found.pop(), faults);
                }
                NodeKind::List(_) => "a list".to_owned(),
                NodeKind::Scalar { .. } => "a text without fields".to_owned(),
            },
            all => format!("{} documents", all.len()),
        };
        let message = format!("exactly one document with fields is expected here, found {what}");
        let (file, text) = texts.first().copied().unwrap_or((None, ""));
        (None, vec![fault(file, text, 0, None, message)])
    }

    /// Keys that are given twice (of two values the tool would get the last, and the first would be
    /// what somebody reads), and that it is longer than a program can be given, whatever its
    /// values.
    fn faults(&self) -> Vec<ToolDocumentFault> {
        let mut faults = Vec::new();
        self.tree.visit(&mut Vec::new(), &mut |_, visited| {
            if let Visited::Mapping(entries) = visited {
                let mut keys = std::collections::BTreeSet::new();
                for entry in entries {
                    if !keys.insert(entry.key.as_str()) {
                        let at = self.start + entry.key_span.start;
                        let message = format!("`{}` is given twice", entry.key);
                        let key = self.text.get(at..self.start + entry.key_span.end);
                        faults.push(fault(self.file, self.text, at, key, message));
                    }
                }
            }
            true
        });
        if !self.text.contains("{{") {
            let bytes = self.tree.to_json().to_string().len();
            if let Some((message, help)) = too_long(bytes) {
                let fault = fault(self.file, self.text, self.start, None, message);
                faults.push(ToolDocumentFault { help: Some(help.to_owned()), ..fault });
            }
        }
        faults
    }
}

fn fault(
    file: Option<&str>,
    text: &str,
    at: usize,
    part: Option<&str>,
    message: String,
) -> ToolDocumentFault {
    let file = file.map(|file| (file.to_owned(), yaml::line(text, at)));
    ToolDocumentFault { file, at, part: part.map(str::to_owned), message, help: None }
}

/// What is wrong with a value of so many bytes, as it is given to a tool, if it is too long; and
/// what to do.
pub fn too_long(bytes: usize) -> Option<(String, &'static str)> {
    (bytes > ARGUMENT_LIMIT_BYTES).then(|| {
        (
            format!(
                "this is {bytes} bytes long as it is given to the tool, and a program takes at \
                 most {ARGUMENT_LIMIT_BYTES} in one argument"
            ),
            "take out what the tool does not need; what is large belongs into the image, or to \
             where the service reads it itself",
        )
    })
}
