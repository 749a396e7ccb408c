//! `pvn-wrapper validate fetch|get-info FILE`: checks a document as the scheduler would. Called by
//! `main`.

use std::io::{self, Read};
use std::path::Path;

use schema::output::OUTPUT_LIMIT_BYTES;
use schema::report::StructuredKind;

use crate::exit;
use crate::writer::say;

/// Checks the file, says on standard error what is wrong with it, and returns what to end with.
pub(crate) fn validate(kind: StructuredKind, file: &Path) -> u8 {
    let shown = if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    };
    let bytes = match read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            say(&format!("cannot read {shown}: {error}"));
            return exit::OURS;
        }
    };
    match schema::check::check(&bytes, kind) {
        Ok(_) => 0,
        Err(errors) => {
            for error in errors {
                let pointer = if error.pointer.is_empty() {
                    String::new()
                } else {
                    format!("{}: ", error.pointer)
                };
                say(&format!("{shown}: {pointer}{}", error.message));
            }
            exit::BAD_OUTPUT
        }
    }
}

/// One byte more than is allowed, so that what is too long is seen to be.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = OUTPUT_LIMIT_BYTES as u64 + 1;
    if file == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
