//! Running out of memory: sees to it that the command goes before us, and finds out whether it was
//! the kernel that killed it. Called by `supervise`, once the command has lived for a moment: one
//! that is over sooner costs nothing of it.

use std::path::{Path, PathBuf};

use rustix::process::Pid;

/// How much likelier than us the command is to be chosen, in thousandths of the memory: far more
/// than we ever use.
const RAISE: i32 = 100;

/// The highest likelihood. Source: `OOM_SCORE_ADJ_MAX` of linux/oom.h.
const MOST: i32 = 1000;

/// What the kernel has counted.
#[derive(Default)]
pub(crate) struct OomCounter {
    /// Where it counts, and what it had counted when the command was young.
    before: Option<(PathBuf, u64)>,
}

impl OomCounter {
    /// What was counted until now, for whoever starts more than one command.
    pub(crate) fn now() -> Self {
        Self { before: events() }
    }

    /// The command lives: remember the count, and let it go first. Neither is always permitted, nor
    /// always there.
    pub(crate) fn begin(&mut self, root: Pid) {
        self.before = events();
        let own = std::fs::read_to_string("/proc/self/oom_score_adj")
            .ok()
            .and_then(|text| text.trim().parse::<i32>().ok());
        if let Some(own) = own {
            let score = (own + RAISE).min(MOST).to_string();
            let _ = std::fs::write(format!("/proc/{}/oom_score_adj", root.as_raw_nonzero()), score);
        }
    }

    /// Whether the kernel has killed somebody of our memory cgroup since.
    pub(crate) fn has_killed(&self) -> bool {
        match &self.before {
            Some((path, before)) => count(path).is_some_and(|now| now > *before),
            // Gone within a moment. In a container all that was ever counted is ours.
            None => rustix::process::getpid().is_init() && events().is_some_and(|(_, now)| now > 0),
        }
    }
}

/// The file in which the kernel counts for our memory cgroup, and the count.
fn events() -> Option<(PathBuf, u64)> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.events")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            ("/sys/fs/cgroup/memory", "memory.oom_control")
        } else {
            return None;
        };
        // In a container the path may be that of the host, and what is mounted is our own cgroup.
        [path.trim_start_matches('/'), ""].iter().find_map(|path| {
            let path = Path::new(root).join(path).join(file);
            count(&path).map(|count| (path, count))
        })
    })
}

/// `oom_kill` of either version's file.
fn count(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path)
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?
        .trim()
        .parse()
        .ok()
}
