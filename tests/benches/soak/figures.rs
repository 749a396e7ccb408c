//! What is measured while faults happen: memory, files and disk of the daemon, and whether they
//! stay flat.

use std::path::Path;
use std::time::Duration;

use tests::cpu;
use tests::scheduler::Scheduler;

use crate::estate::Estate;
use crate::faults::Faults;

/// Most that resident memory may be above what it was when everything was warm, MiB: twice what a
/// restart of the daemon brings, which comes often here.
const MEMORY_MIB: f64 = 48.0;

/// Most that one job may leave on the disk, history included, KiB: its row with its indexes,
/// entries of the log, its report, and the blobs of its output, of which one that is poisoned has
/// up to some hundred KiB.
const DISK_KIB_A_JOB: f64 = 64.0;

/// What the log of the database and its like may come and go by, KiB.
const DISK_SLACK_KIB: f64 = 64.0 * 1024.0;

/// Directories of jobs that may be left beside each other: those in flight, those that are being
/// stored, and spares.
const SPOOL_ENTRIES: usize = 200;

/// Open files of the daemon beyond those of misbehaving clients.
const OPEN_FILES: usize = 700;

#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    memory_mib: f64,
    disk_kib: f64,
    jobs: f64,
    spool: usize,
    files: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Figures {
    warm: Option<Sample>,
    last: Sample,
    most: Sample,
    samples: usize,
}

impl Figures {
    pub(crate) fn sample(&mut self, scheduler: &Scheduler, is_warm: bool) {
        let newest = scheduler
            .get("/v1/jobs?limit=1")
            .and_then(|(_, body)| serde_json::from_str::<serde_json::Value>(&body).ok());
        let jobs = newest.and_then(|page| page["total"].as_f64()).unwrap_or(self.last.jobs);
        let sample = Sample {
            memory_mib: cpu::resident_mib(scheduler.pid()),
            disk_kib: kib_below(&scheduler.data()),
            jobs,
            spool: std::fs::read_dir(scheduler.data().join("spool")).map_or(0, Iterator::count),
            files: std::fs::read_dir(format!("/proc/{}/fd", scheduler.pid()))
                .map_or(0, Iterator::count),
        };
        self.samples += 1;
        self.last = sample;
        if !is_warm {
            return;
        }
        self.warm.get_or_insert(sample);
        self.most.memory_mib = self.most.memory_mib.max(sample.memory_mib);
        self.most.spool = self.most.spool.max(sample.spool);
        self.most.files = self.most.files.max(sample.files);
    }

    pub(crate) fn print(
        &self,
        faults: &Faults<'_>,
        estate: &Estate,
        settled_after: Option<Duration>,
    ) {
        let warm = self.warm.unwrap_or_default();
        let row = |what: &str, value: String| println!("{what:<48}{value:>14}");
        for (fault, count) in &faults.counts {
            row(&format!("{fault:?}"), count.to_string());
        }
        row("jobs", self.last.jobs.to_string());
        row("applies of examples", estate.applies().to_string());
        row("applies beside another", estate.overlaps().lines().count().to_string());
        row(
            "memory when warm, most, last: MiB",
            format!(
                "{:.0}, {:.0}, {:.0}",
                warm.memory_mib, self.most.memory_mib, self.last.memory_mib
            ),
        );
        row(
            "disk when warm, last: MiB",
            format!("{:.1}, {:.1}", warm.disk_kib / 1024.0, self.last.disk_kib / 1024.0),
        );
        row("disk a job since then: KiB", format!("{:.1}", self.disk_a_job()));
        row(
            "directories in the spool, most, last",
            format!("{}, {}", self.most.spool, self.last.spool),
        );
        row("open files, most, last", format!("{}, {}", self.most.files, self.last.files));
        let settled = settled_after
            .map_or("never".to_owned(), |after| format!("{:.1} s", after.as_secs_f64()));
        row("from the last fault to all CONVERGED", settled);
    }

    fn disk_a_job(&self) -> f64 {
        let warm = self.warm.unwrap_or_default();
        (self.last.disk_kib - warm.disk_kib) / (self.last.jobs - warm.jobs).max(1.0)
    }

    /// Memory and disk are flat.
    pub(crate) fn check(&self) {
        let warm = self.warm.unwrap_or_default();
        let most = warm.memory_mib + MEMORY_MIB;
        assert!(
            self.most.memory_mib <= most,
            "memory grew from {:.0} to {:.0} MiB",
            warm.memory_mib,
            self.most.memory_mib
        );
        let grown = self.last.disk_kib - warm.disk_kib;
        let may = DISK_SLACK_KIB + DISK_KIB_A_JOB * (self.last.jobs - warm.jobs).max(0.0);
        assert!(grown <= may, "the data directory grew by {grown:.0} KiB and may by {may:.0}");
        assert!(self.most.spool <= SPOOL_ENTRIES, "{} directories in the spool", self.most.spool);
        assert!(self.most.files <= OPEN_FILES, "{} open files", self.most.files);
    }
}

/// Room that the files below a directory take, without the one that fills the disk.
fn kib_below(directory: &Path) -> f64 {
    use std::os::unix::fs::MetadataExt;
    let mut blocks = 0;
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        // What is gone meanwhile takes no room.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.path().symlink_metadata() else { continue };
            if metadata.is_dir() {
                open.push(entry.path());
            } else {
                blocks += metadata.blocks();
            }
        }
    }
    // Source: stat(2), blocks of 512 bytes.
    blocks as f64 / 2.0
}
