//! What commands need on this machine, looked at without running them: the wrapper, the directory
//! in which they start, their programs. Called by `runtimes check`.
//!
//! It answers as a job would be started: directory and PATH are found by the same functions.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use schema::api::Finding;
use schema::id::RuntimeName;
use schema::status::CheckKind;

use super::command::{environment, working_directory};
use super::{LocalInner, LocalRunner};
use crate::runner::{End, JobSpec, PlaceLook, wrapped};

/// Most directories and programs that are told as failures, of each: whoever mends the first sees
/// the pattern.
const TOLD_LIMIT: usize = 10;

/// Most names of programs that one line has.
const NAMES_SHOWN: usize = 5;

impl LocalRunner {
    /// Looks, on a blocking thread.
    pub(super) async fn look(&self, look: PlaceLook) -> Vec<Finding> {
        let inner = self.inner.clone();
        let runtime = look.runtime.clone();
        inner.clone().blocking.run(move || inner.look_around(&look)).await.into_findings(&runtime)
    }
}

/// What was seen, each once, in order.
#[derive(Debug)]
struct LocalLook {
    wrapper: Result<PathBuf, String>,
    directories: BTreeSet<PathBuf>,
    /// By the reason.
    no_directories: BTreeSet<String>,
    /// Those of them on a disk that is full.
    full: BTreeSet<PathBuf>,
    /// Those of them that the scheduler's user cannot write to. Not every command writes there.
    read_only: BTreeSet<PathBuf>,
    programs: BTreeSet<String>,
    /// By the reason, with what to do.
    no_programs: BTreeMap<String, String>,
}

impl LocalInner {
    fn look_around(&self, look: &PlaceLook) -> LocalLook {
        let wrapper = &self.settings.wrapper;
        let mut looked = LocalLook {
            wrapper: match executable(wrapper) {
                Ok(()) => Ok(wrapper.clone()),
                Err(error) => Err(format!("the wrapper {}: {error}", wrapper.display())),
            },
            directories: BTreeSet::new(),
            no_directories: BTreeSet::new(),
            full: BTreeSet::new(),
            read_only: BTreeSet::new(),
            programs: BTreeSet::new(),
            no_programs: BTreeMap::new(),
        };
        for spec in &look.jobs {
            self.look_at(spec, &mut looked);
        }
        looked
    }

    fn look_at(&self, spec: &JobSpec, looked: &mut LocalLook) {
        let directory = match working_directory(spec, &self.settings.started_in) {
            Ok(directory) => directory,
            Err(End::NotStarted { why, .. }) => {
                looked.no_directories.insert(why);
                return;
            }
            Err(_) => return,
        };
        looked.directories.insert(directory.clone());
        if is_full(&directory) {
            looked.full.insert(directory.clone());
        } else if accessat(CWD, &directory, Access::WRITE_OK, AtFlags::EACCESS).is_err() {
            looked.read_only.insert(directory.clone());
        }
        let Some(program) = spec.command.argv.first() else { return };
        // Whatever is at that path: the wrapper that runs it takes its place.
        if !wrapped::is_wrapper(program) {
            let given = &self.settings.environment;
            let all = environment(spec, Path::new("/"), &[], &self.settings.wrapper, given);
            let path = all.get(OsStr::new("PATH")).cloned().unwrap_or_default();
            match found(program, &directory, &path) {
                Ok(()) => drop(looked.programs.insert(program.clone())),
                Err((why, remedy)) => drop(looked.no_programs.insert(why, remedy)),
            }
        }
    }
}

/// Whether a program would be found and run; else why not, and what to do.
fn found(program: &str, directory: &Path, path: &OsString) -> Result<(), (String, String)> {
    let is_path = program.contains('/');
    let places: Vec<PathBuf> = if is_path {
        vec![directory.join(program)]
    } else {
        std::env::split_paths(path).map(|place| directory.join(place).join(program)).collect()
    };
    let mut refused = None;
    for place in &places {
        match executable(place) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refused = refused.or(Some((place, error))),
        }
    }
    Err(match refused {
        Some((place, error)) => (
            format!("`{program}` cannot be run: {}: {error}", place.display()),
            format!("make it a program that the scheduler's user may run: `chmod +x {program}`"),
        ),
        None if is_path => (
            format!("`{program}` is not there: {}", places[0].display()),
            "put it there, or name another program; a relative path begins where the command \
             starts"
                .to_owned(),
        ),
        None => (
            format!("`{program}` was not found on PATH ({})", path.display()),
            "install it on the scheduler's machine, or set PATH in `env` of the command or in the \
             scheduler's environment"
                .to_owned(),
        ),
    })
}

/// Whether no more can be written, or no more files made; asked and not tried, as a file there
/// could be drift to whoever looks at the directory.
fn is_full(directory: &Path) -> bool {
    rustix::fs::statvfs(directory).is_ok_and(|disk| {
        // A file system that reports no number has no limit.
        (disk.f_blocks > 0 && disk.f_bavail == 0) || (disk.f_files > 0 && disk.f_favail == 0)
    })
}

/// Whether the file is one that can be executed.
fn executable(file: &Path) -> io::Result<()> {
    if !std::fs::metadata(file)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    Ok(accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS)?)
}

impl LocalLook {
    fn into_findings(self, runtime: &RuntimeName) -> Vec<Finding> {
        let ok = |check, message: String| Finding::ok(runtime, check, message);
        let failed =
            |check, why: String, remedy: &str| Finding::failed(runtime, check, why, remedy);
        let mut findings = Vec::new();
        match self.wrapper {
            Ok(path) => {
                findings.push(ok(CheckKind::Wrapper, format!("{} is there", path.display())))
            }
            Err(why) => findings.push(failed(
                CheckKind::Wrapper,
                why,
                "put `pvn-wrapper` beside `pvn-scheduler`, executable, and restart that",
            )),
        }
        let directories: Vec<_> = self.directories.iter().map(|path| path.display()).collect();
        if let Some(first) = directories.first() {
            let more = more(directories.len() - 1, "others");
            let but = self.read_only.first().map_or_else(String::new, |directory| {
                format!("; the scheduler's user cannot write to {}", directory.display())
            });
            findings
                .push(ok(CheckKind::Directory, format!("commands start in {first}{more}{but}")));
        }
        findings.extend(self.full.iter().take(TOLD_LIMIT).map(|directory| {
            let why = format!("there is no room left in {}", directory.display());
            failed(CheckKind::Directory, why, "free some: commands that write a file there fail")
        }));
        let remedy = "make it, or name another: `workingDirectory` of the command or `path` of the \
                      service, below `root` of the runtime `local`";
        let told = self.no_directories.into_iter().take(TOLD_LIMIT);
        findings.extend(told.map(|why| failed(CheckKind::Directory, why, remedy)));
        if !self.programs.is_empty() {
            let shown = self.programs.iter().take(NAMES_SHOWN).map(|name| format!("`{name}`"));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = more(self.programs.len().saturating_sub(NAMES_SHOWN), "more");
            findings.push(ok(CheckKind::Command, format!("can be run: {shown}{more}")));
        }
        let told = self.no_programs.into_iter().take(TOLD_LIMIT);
        findings.extend(told.map(|(why, remedy)| failed(CheckKind::Command, why, &remedy)));
        findings
    }
}

fn more(count: usize, what: &str) -> String {
    if count == 0 { String::new() } else { format!(", and {count} {what}") }
}
