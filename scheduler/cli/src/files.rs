//! Config files from the disk: what PATH... names, and the local files that they refer to, read
//! into the bodies that the server takes. The server never opens a path of ours. Called by the
//! `configs` commands and by `dev`.
//!
//! Everything that is wrong is found before anything is sent: files that cannot be read, and all
//! that the reader of the documents says.

mod walk;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use config::diagnostic::Diagnostic;
use config::{Document, FILE_LIMIT_BYTES};
use schema::api::{self, ConfigFile};

/// Most bytes of all files together: what the server takes in one request (64 MiB), less room for
/// the JSON around them.
pub const TOTAL_LIMIT_BYTES: usize = 60 << 20;

/// Most files that one `local` block may bring, so that a wrong path does not read a whole disk.
pub const LOCAL_FILES_LIMIT: usize = 1000;

/// Config files that were read and checked.
#[derive(Debug)]
pub struct Files {
    /// As the server takes them.
    pub files: Vec<ConfigFile>,
    /// The documents in them, in order.
    pub documents: Vec<Document>,
}

/// Reads config files: files by their path, `*.pvn.yaml` and `*.pvn.yml` of directories, `DIR/...`
/// for all directories below. Each document is checked by itself.
///
/// # Errors
/// Every problem of every file, with its place.
pub fn read(paths: &[PathBuf]) -> Result<Files, Vec<api::Diagnostic>> {
    let (files, mut problems) = gather(paths);
    match config::read(&files) {
        Ok(documents) if problems.is_empty() && documents.is_empty() => {
            problems.extend(files.first().map(nothing_in))
        }
        Ok(documents) if problems.is_empty() => return Ok(Files { files, documents }),
        Ok(_) => {}
        Err(found) => {
            // A file that cannot be read is told once, with the reason.
            let is_told = |problem: &Diagnostic| {
                problems.iter().any(|told| {
                    told.span.is_some()
                        && told.span == problem.span
                        && told.source == problem.source
                })
            };
            let found: Vec<_> = found.into_iter().filter(|problem| !is_told(problem)).collect();
            problems.extend(found);
        }
    }
    Err(problems.iter().map(Diagnostic::to_api).collect())
}

/// What is allowed and probably not meant, as far as the given files show it.
pub fn warnings(files: &Files) -> Vec<api::Diagnostic> {
    let shared = config::shared_by_instances(&files.documents, false);
    let (unmasked, ineffective) =
        (config::unmasked_secrets(&files.documents), config::ineffective(&files.documents));
    shared.iter().chain(&unmasked).chain(&ineffective).map(Diagnostic::to_api_warning).collect()
}

/// [`read`], and what the documents say about each other, as far as they are among the given files.
/// Needs no server.
///
/// # Errors
/// Every problem of every file, with its place.
pub fn validate(paths: &[PathBuf]) -> Result<Files, Vec<api::Diagnostic>> {
    let files = read(paths)?;
    let problems = config::check_references(&files.documents);
    if problems.is_empty() {
        Ok(files)
    } else {
        Err(problems.iter().map(Diagnostic::to_api).collect())
    }
}

/// Files without a single document: a cut file or a wrong path far more often than a wish to change
/// nothing.
fn nothing_in(first: &ConfigFile) -> Diagnostic {
    let problem = Diagnostic::of_file(
        &first.path,
        "there is no config document here, only comments or nothing at all",
    );
    problem.help("a document is a `runtime`, an `application` or a `service`")
}

/// The files, and what cannot be read.
fn gather(paths: &[PathBuf]) -> (Vec<ConfigFile>, Vec<Diagnostic>) {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    let mut total = 0;
    for path in walk::config_files(paths, &mut problems) {
        let shown = path.display().to_string();
        match read_text(&path) {
            Ok(text) => {
                let attachments = attachments(&path, &text, &mut problems);
                total += text.len() + attachments.values().map(String::len).sum::<usize>();
                files.push(ConfigFile { path: shown, text, attachments });
            }
            Err(FileFault::TooLarge(bytes)) => problems.push(config::too_large(&shown, bytes)),
            Err(FileFault::NotUtf8(valid_up_to)) => {
                problems.push(config::not_utf8(&shown, valid_up_to))
            }
            Err(FileFault::Failed(error)) => problems.push(Diagnostic::of_file(
                &shown,
                format!("cannot read the file: {}", plain(&error)),
            )),
        }
        if total > TOTAL_LIMIT_BYTES {
            let message = format!(
                "the files are too large together; the limit is {TOTAL_LIMIT_BYTES} bytes (60 MiB)"
            );
            problems.push(
                Diagnostic::of_file(&path.display().to_string(), message)
                    .help("apply them in parts"),
            );
            break;
        }
    }
    (files, problems)
}

enum FileFault {
    TooLarge(u64),
    NotUtf8(usize),
    Failed(io::Error),
}

/// Opens a file that somebody named.
///
/// # Errors
/// Also where it is a pipe that nobody may ever write into: opening that would wait for ever. What
/// a shell has opened for us (`<(…)`, `/dev/stdin`) has a writer.
pub fn open(path: &Path) -> io::Result<File> {
    if !path.starts_with("/dev") && !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is a pipe or a device and no regular file"));
    }
    File::open(path)
}

fn read_text(path: &Path) -> Result<String, FileFault> {
    let file = open(path).map_err(FileFault::Failed)?;
    let known = file.metadata().map_err(FileFault::Failed)?.len();
    let mut bytes = Vec::new();
    // A file may grow, and a pipe has no length, so what counts is what is read.
    let limit = FILE_LIMIT_BYTES as u64 + 1;
    let read = file.take(limit).read_to_end(&mut bytes).map_err(FileFault::Failed)?;
    if read > FILE_LIMIT_BYTES {
        return Err(FileFault::TooLarge(known.max(limit)));
    }
    String::from_utf8(bytes).map_err(|error| FileFault::NotUtf8(error.utf8_error().valid_up_to()))
}

/// The local files that a config file refers to, by the path written in it.
fn attachments(
    path: &Path,
    text: &str,
    problems: &mut Vec<Diagnostic>,
) -> BTreeMap<String, String> {
    let base = path.parent().unwrap_or(Path::new(""));
    let mut attachments = BTreeMap::new();
    for (reference, asked) in config::references(&path.display().to_string(), text) {
        let target = base.join(&reference.path);
        let cannot = |what: &str, why: String| Diagnostic {
            message: format!("cannot read `{what}`: {why}"),
            ..asked.clone()
        };
        let found = match target.metadata() {
            Ok(metadata) if metadata.is_dir() => walk::local_files(&target, &reference.filter),
            Ok(metadata) if metadata.is_file() => Ok(vec![String::new()]),
            Ok(_) => Err("it is neither a file nor a directory".to_owned()),
            Err(error) => Err(plain(&error)),
        };
        let names = match found {
            Ok(names) => names,
            Err(why) => {
                let help = format!(
                    "looked for `{}`; local paths are relative to the config file",
                    target.display()
                );
                problems.push(cannot(&reference.path, why).help(help));
                continue;
            }
        };
        if names.is_empty() {
            let help = "without `includePatterns` only `.yaml`, `.yml` and `.json` files are taken";
            problems.push(
                cannot(&reference.path, "no file in this directory is taken".to_owned()).help(help),
            );
        }
        for inside in names {
            let (name, file) = if inside.is_empty() {
                (reference.path.clone(), target.clone())
            } else {
                (format!("{}/{inside}", reference.path.trim_end_matches('/')), target.join(&inside))
            };
            match read_text(&file) {
                Ok(text) => {
                    attachments.insert(name, text);
                }
                Err(FileFault::TooLarge(bytes)) => {
                    problems.push(cannot(
                        &name,
                        format!(
                            "{bytes} bytes are too many; the limit is {FILE_LIMIT_BYTES} (8 MiB) \
                             a file"
                        ),
                    ));
                }
                Err(FileFault::NotUtf8(at)) => {
                    problems.push(cannot(&name, format!("not UTF-8 at byte {at}")))
                }
                Err(FileFault::Failed(error)) => problems.push(cannot(&name, plain(&error))),
            }
        }
    }
    attachments
}

/// An error of the system without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
