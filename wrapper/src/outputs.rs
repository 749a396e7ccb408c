//! Collects the declared outputs (`--out NAME=PATH`) and checks the structured one (`--expect`).
//! Called by `main` after the end of the command.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use schema::id::BlobId;
use schema::mask::Secrets;
use schema::output::OUTPUT_LIMIT_BYTES;
use schema::report::{OutputError, OutputFile, Structured, StructuredKind};
use schema::spool::{self, EXPLANATION};

use crate::args::DeclaredOutput;
use crate::copying::{FILE_LIMIT_BYTES, Masked, in_memory};
use crate::deliver::spool::Spool;
use crate::freshness::Before;
use crate::job;
use crate::store;
use crate::writer::say;

/// Who gets the declared outputs.
#[derive(Clone, Copy)]
pub(crate) enum OutputReceiver<'a> {
    /// Nobody: they are told by their digests.
    Nobody,
    /// The spool directory of a local job.
    Job(&'a Path),
    /// A scheduler, over HTTP; with what keeps them until then, if there is a disk for it.
    Scheduler(Option<&'a Spool>),
}

/// What was collected.
#[derive(Default)]
pub(crate) struct Collected {
    /// Every declared output, with its content address or why there is none.
    pub(crate) files: Vec<OutputFile>,
    /// Why one that the command left could not be kept.
    pub(crate) lost: Option<String>,
    /// Where those are that are to be sent.
    pub(crate) to_send: Vec<(String, PathBuf)>,
}

/// Collects every declared output.
pub(crate) fn collect(
    outputs: &[DeclaredOutput],
    before: &Before,
    secrets: Option<&Secrets>,
    to: OutputReceiver<'_>,
) -> Collected {
    let mut collected = Collected::default();
    for (which, DeclaredOutput { name, path }) in outputs.iter().enumerate() {
        let found = open(path).and_then(|file| {
            if file.metadata().is_ok_and(|metadata| before.is_older(which, &metadata)) {
                return Err(format!(
                    "{} lay there before, and this run did not write it, as each does that ends \
                     with one of --success-exit-codes",
                    path.display()
                ));
            }
            // The explanation is for people; a plan is for the command alone, byte for byte.
            let shown = secrets.filter(|_| name == EXPLANATION);
            let kept = keep(name, &file, shown, path, to)
                .map_err(|error| format!("cannot hand over {}: {error}", path.display()));
            if let Err(why) = &kept {
                collected.lost.get_or_insert_with(|| format!("output `{name}`: {why}"));
            }
            kept
        });
        let (content_blob_id, error) = match found {
            Ok(KeptOutput { blob, send }) => {
                collected.to_send.extend(send.map(|path| (name.clone(), path)));
                (Some(blob), None)
            }
            Err(why) => (None, Some(why)),
        };
        collected.files.push(OutputFile { name: name.clone(), content_blob_id, error });
    }
    collected
}

/// Masks the explanation that a wrapper within the command handed over for the job in `directory`:
/// that one knows only the secrets that the command was given. `ours` is masked already. One that
/// cannot be masked is not shown.
#[inline(never)]
pub(crate) fn mask_handed_over(directory: &Path, ours: &[OutputFile], secrets: &Secrets) {
    let path = directory.join(spool::FILES).join(EXPLANATION);
    if ours.iter().any(|file| file.name == EXPLANATION && file.content_blob_id.is_some())
        || !path.exists()
    {
        return;
    }
    let masked = open(&path).and_then(|file| {
        keep(EXPLANATION, &file, Some(secrets), &path, OutputReceiver::Job(directory))
            .map_err(|error| error.to_string())
    });
    if let Err(why) = masked {
        // Nobody else is there to remove it.
        let _ = std::fs::remove_file(&path);
        say(&format!(
            "output `{EXPLANATION}` of a wrapper within the command cannot be masked, and is left \
             out: {why}"
        ));
    }
}

/// A declared output that is kept for whoever gets it.
struct KeptOutput {
    blob: BlobId,
    /// What is to be sent, if anything is.
    send: Option<PathBuf>,
}

/// Keeps a declared output, masked when it is to be `shown`.
fn keep(
    name: &str,
    file: &File,
    shown: Option<&Secrets>,
    path: &Path,
    to: OutputReceiver<'_>,
) -> io::Result<KeptOutput> {
    // From the beginning, each time.
    let reader = || -> io::Result<Box<dyn Read>> {
        let mut from = file;
        from.rewind()?;
        Ok(match shown {
            Some(secrets) => Box::new(Masked::new(from, secrets)),
            None => Box::new(from),
        })
    };
    match to {
        OutputReceiver::Nobody => {
            Ok(KeptOutput { blob: BlobId::of_reader(reader()?)?, send: None })
        }
        OutputReceiver::Job(job) => {
            Ok(KeptOutput { blob: job::hand_over(job, name, reader()?)?, send: None })
        }
        OutputReceiver::Scheduler(spool) => {
            match spool.map(|spool| spool.keep(name, reader()?)) {
                Some(Ok((path, blob))) => return Ok(KeptOutput { blob, send: Some(path) }),
                Some(Err(error)) => {
                    say(&format!("output `{name}` could not be kept for a later delivery: {error}"))
                }
                None => {}
            }
            // What cannot be kept is sent from where it is, if it may be.
            let (path, blob) = if shown.is_some() {
                in_memory(reader()?)?
            } else {
                (path.to_owned(), BlobId::of_reader(reader()?)?)
            };
            Ok(KeptOutput { blob, send: Some(path) })
        }
    }
}

fn faulty(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no file {}", path.display()),
        _ => format!("cannot read {}: {error}", path.display()),
    }
}

/// A regular file of a size that is taken.
fn open(path: &Path) -> Result<File, String> {
    let shown = path.display();
    let faulty = |error: std::io::Error| faulty(path, &error);
    // Opening a FIFO would wait for its writer.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(faulty)?;
    let metadata = file.metadata().map_err(faulty)?;
    if !metadata.is_file() {
        return Err(format!("{shown} is no regular file"));
    }
    if metadata.len() > FILE_LIMIT_BYTES {
        return Err(format!(
            "{shown} has {} bytes; the limit is {FILE_LIMIT_BYTES}",
            metadata.len()
        ));
    }
    Ok(file)
}

/// The document on standard output, checked.
pub(crate) fn structured(
    kind: StructuredKind,
    stdout: &store::KeptStream,
    secrets: Option<&Secrets>,
) -> Structured {
    let whole = |message: String| Structured {
        kind,
        value: None,
        errors: vec![OutputError { pointer: String::new(), message }],
    };
    if stdout.head.is_some() {
        return whole(format!(
            "standard output has {} bytes, of which only a part was kept",
            stdout.total
        ));
    }
    match stdout.read(OUTPUT_LIMIT_BYTES as u64) {
        Ok(Some(bytes)) => match schema::check::check_hiding(&bytes, kind, secrets) {
            Ok(value) => Structured { kind, value: Some(value), errors: Vec::new() },
            Err(errors) => Structured { kind, value: None, errors },
        },
        Ok(None) => whole(format!(
            "standard output has {} bytes; a document may have {OUTPUT_LIMIT_BYTES}",
            stdout.total
        )),
        Err(error) => whole(format!("standard output cannot be read back: {error}")),
    }
}

/// In a sentence what is wrong with what the command left, if anything is.
pub(crate) fn complaint(files: &[OutputFile], structured: Option<&Structured>) -> Option<String> {
    let missing = files
        .iter()
        .filter_map(|file| Some(format!("output `{}`: {}", file.name, file.error.as_ref()?)));
    let wrong = structured.iter().flat_map(|structured| &structured.errors).map(|error| {
        let pointer =
            if error.pointer.is_empty() { String::new() } else { format!("{}: ", error.pointer) };
        format!("structured output: {pointer}{}", error.message)
    });
    let all: Vec<String> = missing.chain(wrong).collect();
    if all.is_empty() { None } else { Some(all.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_left_and_nobody_can_keep_is_lost_and_what_it_did_not_leave_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tf.txt");
        let outputs = [DeclaredOutput { name: "plan-explanation".to_owned(), path: path.clone() }];
        let before = Before::look(&outputs, &crate::locks::Locks::default());
        let nowhere = directory.path().join("not/there");
        assert!(collect(&outputs, &before, None, OutputReceiver::Job(&nowhere)).lost.is_none());
        std::fs::write(&path, "1 to add").unwrap();
        let lost = collect(&outputs, &before, None, OutputReceiver::Job(&nowhere)).lost.unwrap();
        assert!(lost.starts_with("output `plan-explanation`: cannot hand over "), "{lost}");
        assert!(
            collect(&outputs, &before, None, OutputReceiver::Job(directory.path())).lost.is_none()
        );
    }
}
