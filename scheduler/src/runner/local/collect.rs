//! What a job left in its spool directory -> the blob store and a report that names it. Blocks on the disk. Safe to do twice:
//! nothing is taken away before the directory is removed.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::id::BlobId;
use schema::report::{OutputFile, Report};
use schema::spool::Stream;

use super::directory::Directory;
use crate::blobs::{Blobs, Keep};

/// Puts streams and files into the blob store. The report names them afterwards and carries nothing inline.
pub(super) fn collect(mut report: Box<Report>, directory: &Directory, blobs: &Blobs) -> io::Result<Box<Report>> {
    for stream in Stream::ALL {
        let (blob, inline) = match stream {
            Stream::Stdout => (&mut report.stdout_blob_id, &mut report.stdout_inline),
            Stream::Stderr => (&mut report.stderr_blob_id, &mut report.stderr_inline),
        };
        let kept = match inline.take().map(|text| STANDARD.decode(text)) {
            Some(Ok(bytes)) => Some(blobs.put(&bytes, Keep::Lazy)?),
            _ if needed(*blob, blobs)? => *blob,
            _ => stream_file(directory, stream, blobs)?,
        };
        // The digest is that of what is there; the wrapper's word is not taken for it.
        *blob = kept.or(*blob);
    }
    let handed_over = directory.files()?;
    for (name, path) in handed_over {
        let blob = blobs.put_file(&path, Keep::Synced)?;
        match report.files.iter_mut().find(|file| file.name == name) {
            Some(file) => *file = OutputFile { name, content_blob_id: Some(blob), error: None },
            None => report.files.push(OutputFile { name, content_blob_id: Some(blob), error: None }),
        }
    }
    for file in &mut report.files {
        if file.content_blob_id.is_some() && !needed(file.content_blob_id, blobs)? {
            file.content_blob_id = None;
            file.error = Some("the wrapper handed it over and it is not there any more".to_owned());
        }
    }
    Ok(report)
}

/// Whether the blob that a report names is there; it is kept from then on.
fn needed(blob: Option<BlobId>, blobs: &Blobs) -> io::Result<bool> {
    blob.map_or(Ok(false), |blob| blobs.need(blob))
}

/// What is left of the output of a job whose wrapper left no report; `None` when there is nothing.
pub(super) fn collect_without_report(directory: &Directory, blobs: &Blobs) -> io::Result<Option<Box<Report>>> {
    let mut report = Report { output_incomplete: true, ..Report::default() };
    for stream in Stream::ALL {
        let blob = stream_file(directory, stream, blobs)?;
        let bytes = blob.map(|blob| blobs.size(blob)).transpose()?.flatten().unwrap_or(0);
        match stream {
            Stream::Stdout => (report.stdout_blob_id, report.stdout_bytes) = (blob, bytes),
            Stream::Stderr => (report.stderr_blob_id, report.stderr_bytes) = (blob, bytes),
        }
    }
    let found = report.stdout_blob_id.is_some() || report.stderr_blob_id.is_some();
    Ok(found.then(|| Box::new(report)))
}

fn stream_file(directory: &Directory, stream: Stream, blobs: &Blobs) -> io::Result<Option<BlobId>> {
    match blobs.put_file(&directory.stream(stream), Keep::Lazy) {
        Ok(blob) => Ok(Some(blob)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
