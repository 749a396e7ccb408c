//! What must be known of a job on a cluster after a restart, one small file for each job in the
//! data directory. Blocks on the disk, but for the question whether there is anything at all;
//! called by the job's task.
//!
//! What always holds: **a Job runs nothing before its uid is recorded here**, synced to the disk. A
//! Job is made suspended, and is let go only afterwards. So a job without a uid never ran, whatever
//! became of the requests that were on their way; and a job with a uid is never made again, also
//! when its Job is gone.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schema::id::JobId;
use schema::report::Report;
use schema::status::JobKind;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::job::{self, Objects};
use crate::compile::ClusterPlace;
use crate::runner::{ClusterJob, JobSpec};

/// What is known of one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Where its Job is.
    pub(super) place: ClusterPlace,
    /// Name of the Job.
    pub(super) name: String,
    /// Name of the container that is the command.
    pub(super) container: String,
    /// Whether the Job must not be let go: its file says `suspend: true`, and whoever wants that
    /// resumes it.
    pub(super) held: bool,
    /// Whether the Job has more than one try by its own file.
    pub(super) tries_again: bool,
    /// Whether it is an apply; its requests go before those of others.
    pub(super) is_apply: bool,
    /// Selects the applies of its instance; empty where a version of before wrote this.
    #[serde(default)]
    pub(super) applies: String,
    /// Its own token, with which its log is kept.
    pub(super) token: Option<String>,
    /// By when its command must have started.
    pub(super) start_by: Timestamp,
    /// When its time is over, whether it started or not, by our clock.
    #[serde(default)]
    pub(super) end_by: Option<Timestamp>,
    /// How much time it has from its Job's making on, milliseconds; `None` also where a version of
    /// before wrote this.
    #[serde(default)]
    pub(super) timeout_ms: Option<i64>,
    /// Whether its command was seen to run.
    #[serde(default)]
    pub(super) started: bool,
    /// Uid of the first Pod that was seen of a Job with one try.
    #[serde(default)]
    pub(super) pod: Option<String>,
    /// The secrets that it was given, sealed ([`super::hidden::SecretFinder`]).
    #[serde(default)]
    pub(super) secrets: String,
    /// What its wrapper left in the log, once its Pod was ended for that: then only this file has
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<Box<Report>>,
    /// The Job's uid, once it was made.
    pub(super) uid: Option<String>,
}

impl Record {
    /// Of a job of which nothing is made yet, without its token and its secrets. Its command has to
    /// start `within` so long from `now`.
    pub(super) fn new(
        spec: &JobSpec,
        wanted: &ClusterJob,
        objects: &Objects,
        now: Timestamp,
        within: Duration,
    ) -> Self {
        Self {
            place: wanted.place.clone(),
            name: objects.name.clone(),
            container: spec.command.name.clone(),
            held: objects.held,
            tries_again: objects.tries_again,
            is_apply: spec.kind == JobKind::Apply,
            applies: job::applies_of(wanted),
            token: None,
            start_by: now.plus(within),
            end_by: spec.timeout_ms.map(|timeout| now.plus_ms(timeout)),
            timeout_ms: spec.timeout_ms,
            started: false,
            pod: None,
            secrets: String::new(),
            line: None,
            uid: None,
        }
    }
}

/// The files.
#[derive(Debug, Clone)]
pub(super) struct JobRecords {
    directory: PathBuf,
    /// The jobs that have a file, also one that cannot be read.
    jobs: Arc<Mutex<HashSet<JobId>>>,
}

impl JobRecords {
    /// Opens the directory, and makes it when it is missing.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let mut jobs = HashSet::new();
        for entry in fs::read_dir(directory)? {
            // What has another name is a file that was being written.
            jobs.extend(entry?.file_name().to_str().and_then(|name| name.parse::<JobId>().ok()));
        }
        Ok(Self { directory: directory.to_owned(), jobs: Arc::new(Mutex::new(jobs)) })
    }

    /// Writes what is known of a job. Synced when it has a uid.
    pub(super) fn put(&self, job: JobId, record: &Record) -> io::Result<()> {
        let path = self.path(job);
        let temporary = path.with_extension("new");
        // It holds the job's token.
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&serde_json::to_vec(record).map_err(io::Error::other)?)?;
        if record.uid.is_some() {
            file.sync_all()?;
        }
        fs::rename(&temporary, &path)?;
        self.jobs.lock().expect("nobody panics with the lock").insert(job);
        if record.uid.is_some() {
            File::open(&self.directory)?.sync_all()?;
        }
        Ok(())
    }

    /// What is known of a job.
    pub(super) fn get(&self, job: JobId) -> io::Result<Option<Record>> {
        match fs::read(self.path(job)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All jobs of which something is known.
    pub(super) fn jobs(&self) -> Vec<JobId> {
        self.jobs.lock().expect("nobody panics with the lock").iter().copied().collect()
    }

    /// Whether anything is known of a job. Asked for every job of every place, so the disk is left
    /// alone.
    pub(super) fn has(&self, job: JobId) -> bool {
        self.jobs.lock().expect("nobody panics with the lock").contains(&job)
    }

    /// Forgets a job.
    pub(super) fn remove(&self, job: JobId) -> io::Result<()> {
        match fs::remove_file(self.path(job)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.jobs.lock().expect("nobody panics with the lock").remove(&job);
        Ok(())
    }

    fn path(&self, job: JobId) -> PathBuf {
        self.directory.join(job.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_known_of_a_job_reads_back_and_is_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let records = JobRecords::open(&home.path().join("cluster")).unwrap();
        let job = JobId::derive(&[b"x"]);
        assert_eq!(records.get(job).unwrap(), None);
        let place = ClusterPlace {
            cluster: "k8s".parse().unwrap(),
            runtime: "web".parse().unwrap(),
            kubeconfig: None,
            context: None,
            wrapper_image: None,
            namespace: "n".to_owned(),
            own_namespace: true,
        };
        let mut record = Record {
            place,
            name: "web-fetch".to_owned(),
            container: "fetch".to_owned(),
            held: false,
            tries_again: false,
            is_apply: true,
            applies: String::new(),
            token: None,
            start_by: Timestamp::from_millis(7),
            end_by: Some(Timestamp::from_millis(8)),
            timeout_ms: Some(7),
            started: false,
            pod: None,
            secrets: String::new(),
            line: Some(Box::default()),
            uid: None,
        };
        records.put(job, &record).unwrap();
        let mode = fs::metadata(records.path(job)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it holds a token");
        record.uid = Some("u".to_owned());
        records.put(job, &record).unwrap();
        assert_eq!(records.get(job).unwrap(), Some(record));
        assert_eq!(records.jobs(), [job]);
        assert!(
            JobRecords::open(&home.path().join("cluster")).unwrap().has(job),
            "also after a restart"
        );
        records.remove(job).unwrap();
        records.remove(job).unwrap();
        assert_eq!(records.get(job).unwrap(), None);
        assert!(!records.has(job));
    }
}
