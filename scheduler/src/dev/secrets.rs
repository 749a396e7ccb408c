//! Secrets that `dev` is given: nobody can set one before it serves, and it ends where one is
//! missing.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use pvnctl::client::Client;
use pvnctl::command::secrets::{self, VALUE_LIMIT_BYTES};
use pvnctl::console::Console;
use pvnctl::failure::Failure;

/// How a problem of a missing secret names its place.
const MISSING: &str = "secrets.";

/// Reads the files of `KEY=FILE` texts.
///
/// # Errors
/// A text of another form, a key given twice, a file that cannot be read, is empty or too large.
pub(super) fn read(texts: &[String]) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let mut values = BTreeMap::new();
    for text in texts {
        let Some((key, path)) =
            text.split_once('=').filter(|(key, path)| !key.is_empty() && !path.is_empty())
        else {
            // It may be the value itself that was typed there.
            return Err(Failure::with_next(
                "a --secret has no key and file",
                "write it as KEY=FILE; the value is what the file holds",
            ));
        };
        let failed = |why: &str| {
            Failure::user(format!("the value of --secret `{key}` cannot be had: {why}"))
        };
        let mut value = Vec::new();
        let file = pvnctl::files::open(Path::new(path))
            .map_err(|error| failed(&format!("its file cannot be opened: {error}")))?;
        let limit = VALUE_LIMIT_BYTES as u64 + 1;
        let read = file
            .take(limit)
            .read_to_end(&mut value)
            .map_err(|error| failed(&format!("its file cannot be read: {error}")))?;
        if read > VALUE_LIMIT_BYTES {
            return Err(failed(&format!("its file holds more than {VALUE_LIMIT_BYTES} bytes")));
        }
        secrets::take_line_end_off(&mut value);
        if value.is_empty() {
            return Err(failed("its file is empty"));
        }
        if values.insert(key.to_owned(), value).is_some() {
            return Err(Failure::user(format!("--secret gives `{key}` twice")));
        }
    }
    Ok(values)
}

/// Sets those that are not the latest already; returns the version of each.
pub(super) async fn set(
    values: &BTreeMap<String, Vec<u8>>,
    client: &Client,
    console: &mut Console,
) -> Result<BTreeMap<String, u64>, Failure> {
    let mut versions = BTreeMap::new();
    for (key, value) in values {
        let set = secrets::set(key, value, true, client, console).await?;
        versions.insert(set.key, set.version);
    }
    Ok(versions)
}

/// A refusal with a way out that there is in `dev`, which ends with it: then nobody answers `pvnctl
/// secrets set`.
pub(super) fn with_a_way_out(mut failure: Failure) -> Failure {
    if let Failure::Refused(problem) = &mut failure {
        for problem in &mut problem.problems {
            let is_unset =
                problem.help.as_ref().is_some_and(|help| help.contains("`pvnctl secrets set "));
            if let Some(key) = problem.path.strip_prefix(MISSING).filter(|_| is_unset) {
                problem.help = Some(format!("give its value with `--secret {key}=FILE`"));
            }
        }
    }
    failure
}
