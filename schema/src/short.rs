//! Ids and digests as people read them: `job-44b5ba11`. The scheduler takes any beginning of an id
//! that names no other.

use crate::id::{JobId, ReleaseId};

/// Digits that are shown: of a million jobs one has a namesake in these once in four thousand
/// looks, and the scheduler then asks for more.
const DIGITS: usize = 8;

/// Digits of a whole id.
const WHOLE_DIGITS: usize = 32;

/// The id in short; a text that is none stays.
pub fn id(whole: &str) -> String {
    match whole.rsplit_once('-') {
        Some((kind, digits)) if is_whole(digits) => format!("{kind}-{}", &digits[..DIGITS]),
        _ => whole.to_owned(),
    }
}

/// A sentence with the ids of jobs and releases in it so. Others stay as they are: the scheduler
/// takes those whole.
pub fn ids_in(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, kind)) = [JobId::PREFIX, ReleaseId::PREFIX]
        .into_iter()
        .filter_map(|kind| Some((rest.find(kind)?, kind)))
        .min()
    {
        let (before, from) = rest.split_at(at + kind.len());
        short.push_str(before);
        let is_word =
            !before[..at].ends_with(|last: char| last.is_alphanumeric() || "-/".contains(last));
        let digits = from.bytes().take_while(u8::is_ascii_hexdigit).count();
        if is_word && digits == WHOLE_DIGITS && is_whole(&from[..digits]) {
            short.push_str(&from[..DIGITS]);
            rest = &from[WHOLE_DIGITS..];
        } else {
            rest = from;
        }
    }
    short + rest
}

fn is_whole(digits: &str) -> bool {
    digits.len() == WHOLE_DIGITS
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What stands before the digits of a digest, and how many of these are all and are shown.
const DIGEST: &str = "sha256:";
const WHOLE_DIGEST: usize = 64;
const DIGEST_SHOWN: usize = 12;

/// A sentence with the digests in it in short, for whoever tells one from another by its beginning.
pub fn digests_in(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(DIGEST) {
        let (before, from) = rest.split_at(at + DIGEST.len());
        short.push_str(before);
        let digits = from.bytes().take_while(u8::is_ascii_hexdigit).count();
        rest = match digits {
            WHOLE_DIGEST => {
                short.push_str(&from[..DIGEST_SHOWN]);
                short.push('…');
                &from[WHOLE_DIGEST..]
            }
            _ => from,
        };
    }
    short + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_and_nothing_else_is() {
        let digits = "44b5ba11".repeat(4);
        assert_eq!(id(&format!("job-{digits}")), "job-44b5ba11");
        for other in ["job-44b5", "web", "job-1", "", &format!("sha256:{digits}{digits}")] {
            assert_eq!(id(other), other);
        }
        let text = format!(
            "held by job-{digits} (`pvnctl jobs get job-{digits}`), rel-{digits}; apr-{digits}, \
             https://x/job-{digits}, job-{digits}0, myjob-{digits}, job-"
        );
        let short = ids_in(&text);
        assert_eq!(
            short,
            format!(
                "held by job-44b5ba11 (`pvnctl jobs get job-44b5ba11`), rel-44b5ba11; \
                 apr-{digits}, https://x/job-{digits}, job-{digits}0, myjob-{digits}, job-"
            )
        );
    }

    #[test]
    fn digests_are_short_where_they_are_whole() {
        let digits = "0123456789abcdef".repeat(4);
        let text = format!("for sha256:{digits}: and sha256:{digits}0, sha256:12, sha256:");
        let short = format!("for sha256:0123456789ab…: and sha256:{digits}0, sha256:12, sha256:");
        assert_eq!(digests_in(&text), short);
    }
}
