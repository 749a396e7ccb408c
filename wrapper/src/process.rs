//! Our descendants, as /proc tells. Called by `supervise` when something was left behind or
//! everything is to be killed; an ordinary run never looks.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use rustix::process::Pid;

/// A process that descends from us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Descendant {
    pub(crate) pid: Pid,
    /// Whether it is a child of ours: the command, or one that was re-parented to us as the
    /// subreaper.
    pub(crate) ours: bool,
}

/// The living descendants that /proc shows, parents before their children. None when it is not
/// there, or another namespace's: its numbers are those of others here.
pub(crate) fn descendants() -> Vec<Descendant> {
    let own = rustix::process::getpid();
    if std::fs::read_link("/proc/self")
        .is_ok_and(|target| *target.as_os_str() != *own.as_raw_nonzero().to_string())
    {
        return Vec::new();
    }
    let mut children: BTreeMap<i32, Vec<Pid>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) =
            entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![own];
    while let Some(parent) = parents.pop() {
        for pid in children.remove(&parent.as_raw_nonzero().get()).into_iter().flatten() {
            found.push(Descendant { pid, ours: parent == own });
            parents.push(pid);
        }
    }
    // Where /proc hides other users' processes (`hidepid`) it still tells whose parent we are: of a
    // setuid program, say.
    found.extend(hidden_children().into_iter().map(|pid| Descendant { pid, ours: true }));
    found
}

/// Children of ours of which /proc shows nothing else. Source: proc_pid_children(5).
fn hidden_children() -> Vec<Pid> {
    let mut hidden = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids =
            children.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        hidden.extend(
            pids.filter(|pid| !Path::new(&format!("/proc/{}", pid.as_raw_nonzero())).exists()),
        );
    }
    hidden
}

/// The parent of a process that is not yet dead: the fourth field of its `stat`, after the name in
/// parentheses.
pub(crate) fn parent_of(pid: Pid) -> Option<i32> {
    let text = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.next()?.parse().ok() }
}

/// In place of a command line that /proc does not show.
pub(crate) const NOT_SHOWN: &str = "[not shown by /proc]";

/// Most bytes of a command line that are told: a report names what was left, and must not grow with
/// what that was given.
const ARGV_LIMIT_BYTES: u64 = 4096;

/// The beginning of the command line of a process; its name in brackets when it has none.
pub(crate) fn argv(pid: Pid) -> Vec<String> {
    let read = |file: &str| {
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(format!("/proc/{}/{file}", pid.as_raw_nonzero()));
        // One that is gone meanwhile has none.
        let _ = opened.and_then(|file| file.take(ARGV_LIMIT_BYTES).read_to_end(&mut bytes));
        bytes
    };
    let line = read("cmdline");
    if line.is_empty() {
        let name = read("comm");
        return vec![if name.is_empty() {
            NOT_SHOWN.to_owned()
        } else {
            format!("[{}]", String::from_utf8_lossy(&name).trim_end())
        }];
    }
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    line.split(|byte| *byte == 0)
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .collect()
}
