//! What a job's wrapper sends of a file: whole, or piece by piece.

use axum::extract::{Request, State};
use schema::spool::is_output_name;
use schema::wire::{StoredFile, UPLOAD_LIMIT_BYTES};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{LENGTH, NextOffset, Sent, number, refuse_form};
use crate::delivery::{FileTaken, Upload};
use crate::http::Api;
use crate::http::error::{Error, OFFSET, Result};
use crate::http::extract::PathParams;
use crate::http::upload::{AuthorizedJob, CancelMarked, Pieces, Raw};

#[derive(Deserialize, JsonSchema)]
pub(super) struct FileAt {
    /// The declared name: letters, digits, `.`, `_`, `-`.
    name: String,
    /// Its id.
    #[serde(rename = "job")]
    _job: String,
}

pub(super) async fn file(
    State(api): State<Api>,
    job: AuthorizedJob,
    PathParams(at): PathParams<FileAt>,
    Raw(request): Raw,
) -> CancelMarked<Sent> {
    let result = take_file(&api, &job, &at.name, request).await;
    job.mark(&api, result)
}

async fn take_file(api: &Api, job: &AuthorizedJob, name: &str, request: Request) -> Result<Sent> {
    if !is_output_name(name) {
        return Err(Error::not_found(format!(
            "`{name}` cannot name a file: it may have letters, digits, `.`, `_` and `-`"
        )));
    }
    let (parts, body) = request.into_parts();
    let what = format!("the file `{name}`");
    let upload = job.open(api, &what).await?;
    refuse_form(&parts.headers)?;
    let (offset, total) = (number(&parts.headers, &OFFSET)?, number(&parts.headers, &LENGTH)?);
    let mut pieces = Pieces::of(&parts.headers, body, UPLOAD_LIMIT_BYTES).await?;
    let taken = match (offset, total) {
        (None, None) => whole(&upload, name, &mut pieces).await?,
        (Some(offset), Some(total)) => in_pieces(&upload, name, offset, total, &mut pieces).await?,
        _ => {
            pieces.throw_away().await;
            return Err(Error::bad_request(
                "a piece of a file has both Upload-Offset and Upload-Length; a whole file has \
                 neither",
            ));
        }
    };
    pieces.throw_away().await;
    match taken {
        FileTaken::Complete(blob_id) => Ok(Sent::Complete(StoredFile { blob_id })),
        FileTaken::Next(next) => Ok(Sent::Next(NextOffset(next))),
        FileTaken::Gap(next) => Err(Error::gap(next)),
        FileTaken::TooMuch(why) => Err(Error::too_large(why)),
        FileTaken::Over => Err(job.over(api, &what).await?),
    }
}

pub(super) async fn whole(upload: &Upload, name: &str, pieces: &mut Pieces) -> Result<FileTaken> {
    let mut incoming = upload.incoming();
    while let Some(piece) = pieces.next().await? {
        incoming.append(piece).await?;
    }
    Ok(upload.take_file(name.to_owned(), incoming).await?)
}

async fn in_pieces(
    upload: &Upload,
    name: &str,
    mut offset: u64,
    total: u64,
    pieces: &mut Pieces,
) -> Result<FileTaken> {
    let mut taken = None;
    loop {
        let piece = pieces.next().await?;
        let Some(piece) = piece.or_else(|| taken.is_none().then(Vec::new)) else { break };
        let length = piece.len() as u64;
        match upload.append_file(name.to_owned(), offset, total, piece).await? {
            FileTaken::Next(next) => taken = Some(FileTaken::Next(next)),
            other => return Ok(other),
        }
        offset += length;
    }
    Ok(taken.unwrap_or(FileTaken::Next(offset)))
}
