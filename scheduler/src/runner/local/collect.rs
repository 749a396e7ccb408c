//! What a job left in its spool directory -> the blob store and a report that names it. Blocks on
//! the disk. Safe to do twice: nothing is taken away before the directory is removed.

use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::id::BlobId;
use schema::report::{OutputFile, Report};
use schema::spool::Stream;

use super::directory::SpoolDirectory;
use crate::blobs::{Blobs, Keep};

/// Puts streams and files into the blob store. The report names them afterwards and carries nothing
/// inline.
pub(super) fn collect(
    mut report: Box<Report>,
    directory: &SpoolDirectory,
    blobs: &Blobs,
) -> io::Result<Box<Report>> {
    for stream in Stream::ALL {
        let (blob, inline) = match stream {
            Stream::Stdout => (&mut report.stdout_blob_id, &mut report.stdout_inline),
            Stream::Stderr => (&mut report.stderr_blob_id, &mut report.stderr_inline),
        };
        let kept = match inline.take().map(|text| STANDARD.decode(text)) {
            Some(Ok(bytes)) => Some(blobs.put(&bytes, Keep::Lazy)?),
            _ if needed(*blob, blobs)? => *blob,
            _ => kept_file(&directory.stream(stream), blobs)?,
        };
        // The digest is that of what is there; the wrapper's word is not taken for it.
        *blob = kept.or(*blob);
    }
    report.order_blob_id = kept_file(&directory.order(), blobs)?;
    let handed_over = directory.files()?;
    for (name, path) in handed_over {
        let blob = blobs.put_file(&path, Keep::Synced)?;
        match report.files.iter_mut().find(|file| file.name == name) {
            Some(file) => *file = OutputFile { name, content_blob_id: Some(blob), error: None },
            None => {
                report.files.push(OutputFile { name, content_blob_id: Some(blob), error: None })
            }
        }
    }
    let mut gone = Vec::new();
    for file in report.files.iter().filter(|file| file.content_blob_id.is_some()) {
        if !needed(file.content_blob_id, blobs)? {
            gone.push(file.name.clone());
        }
    }
    gone.iter().for_each(|name| {
        report.lose(name, "the wrapper handed it over and it is not there any more")
    });
    Ok(report)
}

/// The report of a job whose output cannot be stored: it carries nothing, and says so where the
/// command left files.
pub(super) fn without_output(mut report: Box<Report>, directory: &SpoolDirectory) -> Box<Report> {
    const WHY: &str = "it could not be stored";
    (report.stdout_inline, report.stderr_inline, report.order_blob_id) = (None, None, None);
    report.output_incomplete |= report.stdout_bytes > 0 || report.stderr_bytes > 0;
    let claimed: Vec<_> = report
        .files
        .iter()
        .filter(|file| file.content_blob_id.is_some())
        .map(|file| file.name.clone())
        .collect();
    match directory.files() {
        Ok(handed_over) => handed_over
            .into_iter()
            .map(|(name, _)| name)
            .chain(claimed)
            .for_each(|name| report.lose(&name, WHY)),
        Err(_) => report.files_lost = Some("what it left could not be read".to_owned()),
    }
    report
}

/// Whether the blob that a report names is there; it is kept from then on.
fn needed(blob: Option<BlobId>, blobs: &Blobs) -> io::Result<bool> {
    blob.map_or(Ok(false), |blob| blobs.need(blob))
}

/// What is left of the output of a job whose wrapper left no report; `None` when there is nothing.
pub(super) fn collect_without_report(
    directory: &SpoolDirectory,
    blobs: &Blobs,
) -> io::Result<Option<Box<Report>>> {
    let mut report = Report { output_incomplete: true, ..Report::default() };
    report.order_blob_id = kept_file(&directory.order(), blobs)?;
    for stream in Stream::ALL {
        let blob = kept_file(&directory.stream(stream), blobs)?;
        let bytes = blob.map(|blob| blobs.size(blob)).transpose()?.flatten().unwrap_or(0);
        match stream {
            Stream::Stdout => (report.stdout_blob_id, report.stdout_bytes) = (blob, bytes),
            Stream::Stderr => (report.stderr_blob_id, report.stderr_bytes) = (blob, bytes),
        }
    }
    let found = report.stdout_blob_id.is_some() || report.stderr_blob_id.is_some();
    Ok(found.then(|| Box::new(report)))
}

/// A file of the spool as a blob; `None` when there is none.
fn kept_file(path: &Path, blobs: &Blobs) -> io::Result<Option<BlobId>> {
    match blobs.put_file(path, Keep::Lazy) {
        Ok(blob) => Ok(Some(blob)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_cannot_be_stored_is_told_as_lost_where_the_command_left_files() {
        let place = tempfile::tempdir().unwrap();
        let directory = SpoolDirectory::at(place.path().to_owned());
        let report = |claimed: Option<BlobId>| {
            let files = claimed.map(|id| OutputFile {
                name: "plan".to_owned(),
                content_blob_id: Some(id),
                error: None,
            });
            Box::new(Report { files: files.into_iter().collect(), ..Report::default() })
        };
        assert_eq!(without_output(report(None), &directory).files_lost, None);
        let told = without_output(report(Some(BlobId::of(b"plan"))), &directory);
        assert_eq!(told.files_lost.as_deref(), Some("output `plan`: it could not be stored"));
        assert_eq!(told.files[0].content_blob_id, None);
        std::fs::create_dir(place.path().join(schema::spool::FILES)).unwrap();
        std::fs::write(
            place.path().join(schema::spool::FILES).join("plan-explanation"),
            "1 to add",
        )
        .unwrap();
        let told = without_output(report(None), &directory);
        assert_eq!(
            told.files_lost.as_deref(),
            Some("output `plan-explanation`: it could not be stored")
        );
    }
}
