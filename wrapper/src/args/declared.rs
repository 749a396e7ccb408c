//! What `--in` and `--out` declare: files that are put in place before the start, and files that
//! are handed over after the end. Read by `args` and `quick`. Fuzzed, so it knows nothing of the
//! rest of the wrapper.

use std::path::PathBuf;

use schema::spool;

/// `--in PATH=REF`.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredInput {
    pub(crate) path: PathBuf,
    pub(crate) reference: String,
}

impl DeclaredInput {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (path, reference) = text
            .rsplit_once('=')
            .ok_or_else(|| format!("`{text}` has no `=`; write `PATH=fetch:NAME`"))?;
        if path.is_empty() {
            return Err(format!("`{text}` names no path before `=`"));
        }
        if !spool::is_input_reference(reference) {
            return Err(format!(
                "`{reference}` is neither `fetch:NAME` nor a blob id (`sha256:` and 64 \
                 hexadecimal digits)"
            ));
        }
        Ok(Self { path: path.into(), reference: reference.to_owned() })
    }
}

/// `--out NAME=PATH`.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredOutput {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl DeclaredOutput {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, path) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` has no `=`; write `NAME=PATH`"))?;
        if !spool::is_output_name(name) {
            return Err(format!(
                "`{name}` cannot name an output: use letters, digits, `.`, `_` and `-`, not \
                 starting with a dot"
            ));
        }
        if path.is_empty() {
            return Err(format!("`{text}` names no path after `=`"));
        }
        Ok(Self { name: name.to_owned(), path: path.into() })
    }
}
