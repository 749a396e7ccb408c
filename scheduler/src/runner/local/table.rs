//! The processes of this machine at one moment, as `/proc` shows them to us. Read by `left`.
//! Blocks. Source: proc_pid_stat(5).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Ticks of the times in `/proc/PID/stat` a second. Source: `USER_HZ`, 100 on every architecture
/// since Linux 2.6.
const TICKS_PER_SECOND: u64 = 100;

/// Longest part of a command line that is shown, in characters.
const SHOWN: usize = 60;

/// A process, told apart from a later one with the same number by when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// Ticks since the machine was started.
    pub(super) began: u64,
}

/// What the kernel says of a process. Nothing of it can be changed by the process but as the
/// kernel's rules have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) process: Process,
    pub(super) name: String,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// It has ended, and its parent has not taken note yet.
    pub(super) ended: bool,
}

impl Row {
    /// The row of one process; `None` when there is none of this number.
    pub(super) fn of(pid: i32) -> Option<Self> {
        parse(&String::from_utf8_lossy(&std::fs::read(file(pid, "stat")).ok()?))
    }

    /// The job that its environment names, if that can be read: a process can shed it, and that of
    /// another user is not shown.
    pub(super) fn job(&self) -> Option<String> {
        let environment = std::fs::read(file(self.process.pid, "environ")).ok()?;
        let job = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(b"PVN_JOB_ID="))?;
        Some(String::from_utf8_lossy(job).into_owned())
    }

    /// The control groups that it is in.
    pub(super) fn groups(&self) -> Option<Vec<u8>> {
        std::fs::read(file(self.process.pid, "cgroup")).ok()
    }
}

impl Process {
    /// The one that has this number now, unless it has ended.
    pub(super) fn of(pid: i32) -> Option<Self> {
        Row::of(pid).filter(|row| !row.ended).map(|row| row.process)
    }

    /// Whether it has not ended.
    pub(super) fn lives(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// For people: its number and what it runs.
    pub(super) fn words(self) -> String {
        let line = std::fs::read(file(self.pid, "cmdline")).unwrap_or_default();
        let line: String = String::from_utf8_lossy(&line)
            .replace('\0', " ")
            .trim_end()
            .chars()
            .take(SHOWN)
            .collect();
        if line.is_empty() {
            format!("process {}", self.pid)
        } else {
            format!("process {} (`{line}`)", self.pid)
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct ProcessTable {
    pub(super) rows: BTreeMap<i32, Row>,
}

impl ProcessTable {
    /// As it is now.
    pub(super) fn read() -> std::io::Result<Self> {
        let mut rows = BTreeMap::new();
        for entry in std::fs::read_dir("/proc")? {
            let name = entry?.file_name();
            // What ends while we look is not there any more.
            if let Some(row) = name.to_str().and_then(|name| name.parse().ok()).and_then(Row::of) {
                rows.insert(row.process.pid, row);
            }
        }
        Ok(Self { rows })
    }

    /// Those, and all that descend from them.
    pub(super) fn with_descendants(&self, from: BTreeSet<i32>) -> BTreeSet<i32> {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for row in self.rows.values() {
            children.entry(row.parent).or_default().push(row.process.pid);
        }
        let mut found = BTreeSet::new();
        let mut next: Vec<i32> = from.into_iter().collect();
        while let Some(pid) = next.pop() {
            if found.insert(pid) {
                next.extend(children.get(&pid).into_iter().flatten());
            }
        }
        found
    }

    /// A process' parent, that one's parent, and so on.
    pub(super) fn ancestors(&self, pid: i32) -> BTreeSet<i32> {
        let mut found = BTreeSet::new();
        let mut at = pid;
        while let Some(row) = self.rows.get(&at).filter(|row| row.parent > 0) {
            if !found.insert(row.parent) {
                break;
            }
            at = row.parent;
        }
        found
    }
}

/// Ticks since the machine was started, this many milliseconds ago.
pub(super) fn ticks_ago(ms: i64) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now_ms = now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000);
    u64::try_from(now_ms.saturating_sub(ms)).unwrap_or(0) * TICKS_PER_SECOND / 1000
}

fn file(pid: i32, name: &str) -> PathBuf {
    format!("/proc/{pid}/{name}").into()
}

/// The name stands in parentheses and may hold any byte, also a closing one.
fn parse(stat: &str) -> Option<Row> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let fields: Vec<&str> = stat.get(close + 1..)?.split_whitespace().collect();
    // The first of them is the third of the page's list.
    let number = |at: usize| fields.get(at - 3)?.parse::<i64>().ok();
    Some(Row {
        process: Process {
            pid: stat.get(..open)?.trim().parse().ok()?,
            began: number(22)?.try_into().ok()?,
        },
        name: stat.get(open + 1..close)?.to_owned(),
        parent: number(4)?.try_into().ok()?,
        session: number(6)?.try_into().ok()?,
        ended: matches!(*fields.first()?, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_process_calls_itself() {
        let line = "42 (a) 7 (b) Z 1 42 40 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let row = parse(line).unwrap();
        assert_eq!(
            (row.process, row.name.as_str()),
            (Process { pid: 42, began: 12345 }, "a) 7 (b")
        );
        assert_eq!((row.parent, row.session, row.ended), (1, 40, true));
        for bad in [
            "",
            "42",
            "42 (a",
            "42 (a) S",
            "42 (a) S 1 2 3",
            "x (a) S 1 42 40 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345",
        ] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn we_are_in_the_table_below_our_parent() {
        let table = ProcessTable::read().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let row = &table.rows[&own];
        assert!(row.process.lives() && !row.ended);
        assert!(row.process.began <= ticks_ago(0) + 1);
        assert!(table.ancestors(own).contains(&row.parent));
        assert!(table.with_descendants([row.parent].into()).contains(&own));
    }
}
