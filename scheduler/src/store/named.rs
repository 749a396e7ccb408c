//! What the states of instances name, whatever part of them does: every id that stands in their
//! text. Retention removes nothing of it, so that an engine that keeps one more id needs no change
//! here.

use std::collections::{BTreeSet, HashSet};

use schema::id::{BlobId, JobId, ReleaseId};

/// Ids that somebody needs.
#[derive(Debug, Default)]
pub struct Named {
    pub jobs: BTreeSet<JobId>,
    pub releases: BTreeSet<ReleaseId>,
    /// Blobs, and digests of other things.
    pub blobs: HashSet<BlobId>,
}

/// Digits of a job's or release's id.
const ID_DIGITS: usize = 32;

const DIGEST_DIGITS: usize = 64;

impl Named {
    /// Takes in every id in a text.
    pub fn take(&mut self, text: &str) {
        self.jobs.extend(found::<JobId>(text, JobId::PREFIX, ID_DIGITS));
        self.releases.extend(found::<ReleaseId>(text, ReleaseId::PREFIX, ID_DIGITS));
        self.blobs.extend(found::<BlobId>(text, "sha256:", DIGEST_DIGITS));
    }
}

fn found<'a, T: std::str::FromStr + 'a>(
    text: &'a str,
    prefix: &'a str,
    digits: usize,
) -> impl Iterator<Item = T> + 'a {
    text.match_indices(prefix)
        .filter_map(move |(at, _)| text.get(at..at + prefix.len() + digits)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_in_a_text_is_found_wherever_it_stands() {
        let (job, release, blob) =
            (JobId::derive(&[b"a"]), ReleaseId::derive(&[b"b"]), BlobId::of(b"c"));
        let mut named = Named::default();
        named.take(&format!(
            "{{\"x\":\"{job}\",\"y\":[\"{release}\",\"says {blob}!\"],\"z\":\"{job}\"}} job- \
             sha256:12 rel"
        ));
        assert_eq!(named.jobs, BTreeSet::from([job]));
        assert_eq!(named.releases, BTreeSet::from([release]));
        assert_eq!(named.blobs, HashSet::from([blob]));
        named.take("job-é234567890123456789012345678901");
        assert_eq!(named.jobs.len(), 1, "no id, and no panic");
    }
}
