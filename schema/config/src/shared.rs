//! Declared files (`--in PATH=…`, `--out …=PATH`) that several service instances would share,
//! because their commands run on this machine in one directory: the plan of one would be the
//! other's. Told as warnings by `configs apply`, `validate` and `dev`; the wrapper sees to it that
//! such commands at least do not read or write the file at the same time.

use std::collections::BTreeMap;

use schema::id::RuntimeName;

use crate::contended::contended_services;
use crate::diagnostic::Diagnostic;
use crate::estate::{Estate, RuntimeOfDocument, instance, listed, of_groups};
use crate::template::Template;
use crate::{CustomRuntime, Document, EffectiveRuntime, Exec, JobHost, RuntimeCommand, TaskConfig};

/// The variable with the directory that is an instance's own. Source: docs/commands.md.
const OWN: &str = "PVN_INSTANCE_DIR";

/// A file that a command declares.
struct Declared<'a> {
    document: &'a Document,
    /// Of the argument that names it.
    pointer: String,
    /// What its path is relative to: the runtime's root and the working directory, as written.
    directory: (&'a str, &'a str),
    /// As written.
    path: String,
}

/// Who declares a file.
#[derive(Default)]
struct Users<'a> {
    instances: Vec<String>,
    /// Where each runtime does first.
    places: BTreeMap<&'a RuntimeName, &'a Declared<'a>>,
}

impl Users<'_> {
    /// At each place that declares the file, if it is not one instance's alone.
    fn warnings(self, path: &str) -> Vec<Diagnostic> {
        if self.instances.len() < 2 {
            return Vec::new();
        }
        let message = format!(
            "`{path}` is one file for {}: their commands run in one directory",
            listed(&self.instances)
        );
        let help = format!(
            "name a file of the instance's own directory, in a shell: `\"${OWN}/{}\"` after \
             `entrypoint: [sh, -c]`",
            path.rsplit('/').next().unwrap_or(path)
        );
        let places = self.places.into_values();
        let warn = |file: &Declared<'_>| {
            file.document.problem(&file.pointer, message.as_str()).help(help.as_str())
        };
        places.map(warn).collect()
    }
}

/// One warning for each thing that several instances share and each would have for its own: files
/// that their commands declare, and services of a cloud. `everything_local`: as `dev` runs them.
pub fn shared_by_instances<'a>(
    documents: impl IntoIterator<Item = &'a Document>,
    everything_local: bool,
) -> Vec<Diagnostic> {
    let estate = Estate::of(documents);
    let mut found = shared_paths(&estate, everything_local);
    found.extend(contended_services(&estate));
    found
}

/// One warning for each file that commands of more than one instance declare, at the command that
/// does; and for each path that names the instance's own directory where no shell puts its name in.
/// `everything_local`: as `dev` runs them.
pub(super) fn shared_paths(estate: &Estate<'_>, everything_local: bool) -> Vec<Diagnostic> {
    let runtimes = &estate.runtimes;
    let mut warnings = Vec::new();
    let mut declared: BTreeMap<&RuntimeName, Vec<Declared<'_>>> = BTreeMap::new();
    for (name, RuntimeOfDocument { document, role, .. }) in runtimes {
        let Some(commands) = &role.commands else { continue };
        let Some(root) = local_root(commands.custom(), runtimes, everything_local) else {
            continue;
        };
        let found = declared_by(document, commands, root, &mut warnings);
        if !found.is_empty() {
            declared.insert(name, found);
        }
    }
    if declared.is_empty() {
        return warnings;
    }
    let mut users: BTreeMap<(&str, &str, &str), Users<'_>> = BTreeMap::new();
    for (_, service) in &estate.services {
        let Some(application) = estate.applications.get(&service.application) else { continue };
        let own = estate.of_channels(service, application);
        let own = own.into_iter().map(|(channel, runtime)| (channel.name.to_string(), runtime));
        for (channel, runtime) in own.chain(of_groups(application, runtimes)) {
            let Some((runtime, files)) = declared.get_key_value(runtime) else { continue };
            let instance = instance(service, channel);
            for file in files {
                let users =
                    users.entry((file.directory.0, file.directory.1, &file.path)).or_default();
                // An instance's files come one after the other.
                if users.instances.last() != Some(&instance) {
                    users.instances.push(instance.clone());
                }
                users.places.entry(*runtime).or_insert(file);
            }
        }
    }
    for ((_, _, path), users) in users {
        warnings.extend(users.warnings(path));
    }
    warnings
}

/// The root of the runtime's commands, as written, when they run on this machine.
fn local_root<'a>(
    custom: &CustomRuntime,
    runtimes: &BTreeMap<&RuntimeName, RuntimeOfDocument<'a>>,
    everything_local: bool,
) -> Option<&'a str> {
    match runtimes.get(&custom.proxy_runtime.runtime).and_then(|runtime| runtime.role.host) {
        Some(JobHost::Local(local)) => Some(local.root.as_deref().unwrap_or_default()),
        Some(JobHost::Fake(_)) => None,
        Some(JobHost::Kubernetes(_)) | None
            if everything_local || custom.proxy_runtime.runtime.as_str() == "local" =>
        {
            Some("")
        }
        Some(JobHost::Kubernetes(_)) | None => None,
    }
}

fn declared_by<'a>(
    document: &'a Document,
    commands: &'a EffectiveRuntime<'_>,
    root: &'a str,
    warnings: &mut Vec<Diagnostic>,
) -> Vec<Declared<'a>> {
    let mut found = Vec::new();
    for RuntimeCommand { name, exec, .. } in commands.custom().commands() {
        let Exec::Task(task) = exec else { continue };
        let directory = task.program.working_directory.as_ref().map_or("", Template::as_str);
        let directory = (root, directory);
        for (argument, path, by_shell) in paths(task) {
            let pointer = commands.pointer(&format!("{name}/taskConfig/program/{argument}"));
            if path.contains('$') && !by_shell {
                if path.contains(OWN) {
                    let message = format!(
                        "`{path}` is taken as it is written: no shell puts the directory's name in"
                    );
                    let help = "let a shell run it: `entrypoint: [sh, -c]`, and the whole command \
                                as one text in `cmd`";
                    warnings.push(document.problem(&pointer, message).help(help));
                }
                continue;
            }
            // What a template or a variable comes to may well be another one for each.
            if ![directory.0, directory.1, &path]
                .iter()
                .any(|text| text.contains("{{") || text.contains('$'))
            {
                found.push(Declared { document, pointer, directory, path });
            }
        }
    }
    found
}

/// The files that a task's wrapper declares: the argument's place in the program, the path, and
/// whether a shell reads it.
fn paths(task: &TaskConfig) -> Vec<(String, String, bool)> {
    let program = &task.program;
    let places = (0..program.entrypoint.len()).map(|index| format!("entrypoint/{index}"));
    let places: Vec<String> =
        places.chain((0..program.cmd.len()).map(|index| format!("cmd/{index}"))).collect();
    let arguments: Vec<&str> =
        program.entrypoint.iter().chain(&program.cmd).map(Template::as_str).collect();
    let mut found: Vec<_> = of_wrapper(&arguments)
        .into_iter()
        .filter_map(|(index, path)| Some((places.get(index)?.clone(), path, false)))
        .collect();
    for (place, text) in places.iter().zip(&arguments) {
        if text.contains(char::is_whitespace) {
            let words = words(text);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            found.extend(
                of_wrapper(&words).into_iter().map(|(_, path)| (place.clone(), path, true)),
            );
        }
    }
    found
}

/// The paths of the first `pvn-wrapper exec` among these words, each with the number of its word.
fn of_wrapper(words: &[&str]) -> Vec<(usize, String)> {
    let is_wrapper = |pair: &[&str]| match pair {
        [program, "exec"] => program.rsplit('/').next() == Some("pvn-wrapper"),
        _ => false,
    };
    let Some(start) = words.windows(2).position(is_wrapper) else { return Vec::new() };
    let mut found = Vec::new();
    let mut index = start + 2;
    while let Some(word) = words.get(index).filter(|word| **word != "--") {
        let (flag, value, at) = match word.split_once('=') {
            Some((flag @ ("--in" | "--out"), value)) => (flag, Some(value), index),
            _ => (*word, words.get(index + 1).copied(), index + 1),
        };
        let path = match (flag, value.and_then(|value| value.split_once('='))) {
            // `--in PATH=REF`, and a reference has no `=`.
            ("--in", Some(_)) => {
                value.and_then(|value| value.rsplit_once('=')).map(|(path, _)| path)
            }
            ("--out", Some((_, path))) => Some(path),
            _ => None,
        };
        match path {
            Some(path) => {
                found.push((at, path.strip_prefix("./").unwrap_or(path).to_owned()));
                index = at + 1;
            }
            None => index += 1,
        }
    }
    found
}

/// The words of a shell's text, quotes taken away; enough to find flags, not a shell.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')') => words.push(String::new()),
            (_, character) => words.last_mut().expect("there is always one").push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
