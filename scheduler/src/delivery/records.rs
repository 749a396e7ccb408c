//! What is noted in the log of uploads that changed nothing: late, different, forged ones. Bounded
//! here, so that a wrapper gone mad, or somebody with a job's id and no token, cannot fill the
//! database. Called by `http`.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use schema::id::{BlobId, JobId};

/// Most entries about one job in one life of the daemon: the first few tell what happens, the rest
/// only that it goes on.
pub const RECORDS_OF_A_JOB: usize = 8;

/// Jobs that are remembered; of the one forgotten for a newer one something may be noted again. 8
/// digests each: 256 KiB.
const JOBS_LIMIT: usize = 1024;

/// What was noted, by job.
#[derive(Debug, Default)]
pub struct UploadRecords {
    noted: Mutex<NotedUploads>,
}

#[derive(Debug, Default)]
struct NotedUploads {
    jobs: HashMap<JobId, Vec<BlobId>>,
    order: VecDeque<JobId>,
}

impl UploadRecords {
    /// Whether this is to be noted: it was not yet, and there is room. `what` is a digest of what
    /// happened; if it is to be, it counts as noted from now on.
    pub fn is_new(&self, job: JobId, what: BlobId) -> bool {
        let mut noted = self.noted.lock().expect("nobody panics with the lock");
        if !noted.jobs.contains_key(&job) {
            if noted.order.len() >= JOBS_LIMIT
                && let Some(oldest) = noted.order.pop_front()
            {
                noted.jobs.remove(&oldest);
            }
            noted.order.push_back(job);
        }
        let of_job = noted.jobs.entry(job).or_default();
        let is_new = of_job.len() < RECORDS_OF_A_JOB && !of_job.contains(&what);
        if is_new {
            of_job.push(what);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_noted_once_and_of_one_job_only_so_much() {
        let records = UploadRecords::default();
        let (one, other) = (JobId::derive(&[b"1"]), JobId::derive(&[b"2"]));
        assert!(records.is_new(one, BlobId::of(b"x")));
        assert!(!records.is_new(one, BlobId::of(b"x")));
        let noted = (0..1000_u32)
            .filter(|number| records.is_new(one, BlobId::of(&number.to_le_bytes())))
            .count();
        assert_eq!(noted, RECORDS_OF_A_JOB - 1);
        assert!(records.is_new(other, BlobId::of(b"x")));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let records = UploadRecords::default();
        for number in 0..3000_u32 {
            records.is_new(JobId::derive(&[&number.to_le_bytes()]), BlobId::of(b"x"));
        }
        let noted = records.noted.lock().unwrap();
        assert_eq!((noted.jobs.len(), noted.order.len()), (JOBS_LIMIT, JOBS_LIMIT));
    }
}
