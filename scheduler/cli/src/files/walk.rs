//! From the paths that a person gives, and from the directories that configs name, to files. Names
//! with a leading dot are passed over, links to directories are not followed on the way down, and
//! the order is that of the names.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use config::Filter;
use config::diagnostic::Diagnostic;

use super::{LOCAL_FILES_LIMIT, plain};

/// Most config files in one go; more are a wrong path.
const CONFIG_FILES_LIMIT: usize = 10_000;

/// Most directories that are looked into for one path.
const DIRECTORIES_LIMIT: usize = 100_000;

/// The config files that `paths` name, each once, in order.
pub(super) fn config_files(paths: &[PathBuf], problems: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        let found = match path.file_name() {
            Some(name) if name == "..." => below(path.parent().unwrap_or(Path::new("")), true),
            _ => match path.metadata() {
                Ok(metadata) if metadata.is_dir() => below(path, false),
                Ok(_) => Ok(vec![path.clone()]),
                Err(error) => Err(plain(&error)),
            },
        };
        match found {
            Ok(found) if found.is_empty() => {
                let problem = Diagnostic::of_file(
                    &path.display().to_string(),
                    "no `*.pvn.yaml` or `*.pvn.yml` file here",
                );
                let is_recursive = path.file_name() == Some(OsStr::new("..."));
                let help =
                    format!("`{}` takes in the directories below", path.join("...").display());
                problems.push(if is_recursive { problem } else { problem.help(help) });
            }
            Ok(found) => {
                files.extend(found.into_iter().filter(|file| {
                    seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone()))
                }));
            }
            Err(why) => problems.push(Diagnostic::of_file(
                &path.display().to_string(),
                format!("cannot read it: {why}"),
            )),
        }
    }
    files
}

fn below(directory: &Path, is_recursive: bool) -> Result<Vec<PathBuf>, String> {
    let is_config = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".pvn.yaml") || name.ends_with(".pvn.yml")
    };
    let read = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let inside = walk(read, is_recursive, CONFIG_FILES_LIMIT, &is_config)?;
    Ok(inside.into_iter().map(|path| directory.join(path)).collect())
}

/// The files of a directory that a filter takes: paths inside it, with `/` between their parts, in
/// order.
pub(super) fn local_files(directory: &Path, filter: &Filter) -> Result<Vec<String>, String> {
    let filter = filter.compile()?;
    let name = |path: &Path| path.iter().map(OsStr::to_string_lossy).collect::<Vec<_>>().join("/");
    let found = walk(directory, true, LOCAL_FILES_LIMIT, &|path| filter.takes(&name(path)))?;
    Ok(found.iter().map(|path| name(path)).collect())
}

/// Whether a link does. One that leads nowhere is taken for one, so that whoever reads it tells
/// that, beside what the other files say.
fn leads_to_a_file(link: &Path) -> bool {
    link.metadata().map_or(true, |metadata| metadata.is_file())
}

/// Paths of the wanted files inside a directory, sorted.
fn walk(
    root: &Path,
    is_recursive: bool,
    limit: usize,
    wanted: &dyn Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, String> {
    let failed =
        |directory: &Path, error: &io::Error| format!("{}: {}", directory.display(), plain(error));
    let (mut found, mut pending, mut looked) = (Vec::new(), vec![PathBuf::new()], 0);
    while let Some(inside) = pending.pop() {
        looked += 1;
        if looked > DIRECTORIES_LIMIT {
            return Err(format!("more than {DIRECTORIES_LIMIT} directories are below it"));
        }
        let directory = root.join(&inside);
        let entries = directory.read_dir().map_err(|error| failed(&directory, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed(&directory, &error))?;
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = inside.join(&name);
            let kind = entry.file_type().map_err(|error| failed(&entry.path(), &error))?;
            if kind.is_dir() {
                if is_recursive {
                    pending.push(path);
                }
            } else if wanted(&path) && (kind.is_file() || leads_to_a_file(&entry.path())) {
                found.push(path);
                if found.len() > limit {
                    return Err(format!("more than {limit} files are in it"));
                }
            }
        }
    }
    found.sort();
    Ok(found)
}
