//! How many files this process may have open at a time, and how many of them are left for
//! connections. Called by `daemon` once, at its start, and by `settings`, which prints what comes
//! of it.
//!
//! The soft limit, 1024 nearly everywhere, is there for programs that use `select`; one that does
//! not raises it by itself, as far as the hard limit lets it. Source: getrlimit(2), and "File
//! Descriptor Limits" of systemd.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the daemon itself has open, apart from jobs and connections: the database with its readers,
/// blobs and files of uploads that are read and written at the moment, clusters, the log.
const OWN: u64 = 320;

/// For each local job: its process, and its files at its start and its end.
const OF_A_JOB: u64 = 4;

/// What is to be open at a time.
#[derive(Debug, Clone, Copy)]
pub struct HandleNeeds {
    pub connections: usize,
    /// Local jobs.
    pub jobs: u32,
}

impl HandleNeeds {
    /// Files that all of it takes.
    fn files(self) -> u64 {
        (self.connections as u64).saturating_add(self.besides())
    }

    fn besides(self) -> u64 {
        OF_A_JOB.saturating_mul(self.jobs.into()).saturating_add(OWN)
    }

    /// How many connections there can be, where `most` files may be open: a quarter of them where
    /// that is too little for everything.
    pub fn connections(self, most: u64) -> usize {
        let left = most.saturating_sub(self.besides()).max(most / 4);
        usize::try_from(left).map_or(self.connections, |left| left.min(self.connections))
    }

    /// Has the system let us open as many files; how many connections there can be then.
    pub fn raise(self) -> usize {
        let limit = getrlimit(Resource::Nofile);
        let needed = self.files().min(limit.maximum.unwrap_or(u64::MAX));
        if limit.current.is_none_or(|current| current >= needed) {
            return self.connections(limit.current.unwrap_or(u64::MAX));
        }
        let raised = Rlimit { current: Some(needed), ..limit };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => self.connections(needed),
            Err(error) => {
                tracing::warn!(%error, "the limit of open files cannot be raised");
                self.connections(limit.current.unwrap_or(u64::MAX))
            }
        }
    }
}

/// Most files that this process can have open: its hard limit.
pub fn most() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_follow_from_what_may_be_open() {
        let wanted = HandleNeeds { connections: 3072, jobs: 48 };
        for (most, expected) in
            [(u64::MAX, 3072), (524_288, 3072), (3584, 3072), (3583, 3071), (1024, 512), (256, 64)]
        {
            assert_eq!(wanted.connections(most), expected, "{most}");
        }
        assert_eq!(HandleNeeds { connections: 16, ..wanted }.connections(u64::MAX), 16);
    }
}
