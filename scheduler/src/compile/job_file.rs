//! The Kubernetes Job files that a command may be given as: read, checked, values put into their
//! strings after the YAML is read, so that no value can change their structure. Called by
//! `commands`, and by `instance` for other documents that are read that way.
//!
//! On a cluster the whole Job counts. Off one only the container does: what it runs, with which
//! environment. What a command may depend on and this machine does not have is a problem; what only
//! sizes, places or names things is left out.

use config::tool_document::{ToolDocument, ToolDocumentFault};
use config::yaml::{self, NodeKind, Visited, YamlNode};
use config::{BlockSource, KubernetesConfig};
use schema::status::JobKind;
use serde_json::{Map, Value};

use super::configs::Configs;
use super::problem::{ConfigProblem, DocumentField, Problems};
use super::template::{self, Rendered, TemplateScope};
use super::{Command, EnvValue, EnvVar, RunTarget as JobPlace};

mod check;
mod tree;

pub use check::JOB_DEADLINE_LIMIT_S;

use tree::{at, items, only_job, scalar};

/// A Job file, read.
pub(super) struct JobFile {
    /// The config's field that holds or names it.
    place: DocumentField,
    /// Its path, when it is a file of its own; then problems name file and line in words.
    file: Option<String>,
    text: String,
    /// Where in the text the Job's document starts.
    start: usize,
    tree: YamlNode,
}

/// Reads the file; `place` is the `kubernetesConfig`.
pub(super) fn read(
    configs: &Configs,
    config: &KubernetesConfig,
    scope: &TemplateScope,
    place: &DocumentField,
    problems: &mut Problems,
) -> Option<JobFile> {
    if config.kind == config::KubernetesType::Kustomize {
        let problem = place.field("type").problem("not supported yet: `KUSTOMIZE`");
        problems.add(problem.help("write `type: KUBERNETES` and give the Job itself"));
        return None;
    }
    let source = match (&config.inlined, &config.local) {
        (Some(text), _) => BlockSource::Inlined(text),
        (None, Some(local)) => BlockSource::Local(local),
        (None, None) => return None,
    };
    let (place, files) = files(configs, source, scope, place, problems)?;
    only_job(files, place, problems)
}

/// A document of another kind that a config holds or names at `place`, with the values put into its
/// strings. `None` when it is wrong, or which file it is nobody knows yet.
pub(super) fn document(
    configs: &Configs,
    source: BlockSource<'_>,
    scope: &TemplateScope,
    place: &DocumentField,
    problems: &mut Problems,
) -> Option<Value> {
    let (place, files) = files(configs, source, scope, place, problems)?;
    let texts: Vec<_> = files.iter().map(|(file, text)| (file.as_deref(), *text)).collect();
    let (document, faults) = ToolDocument::read(&texts);
    let is_sound = faults.is_empty();
    for ToolDocumentFault { file, at, part, message, help } in faults {
        let message = match &file {
            Some((file, line)) => format!("{message} (`{file}`, line {line})"),
            None => message,
        };
        let needle = part.filter(|_| file.is_none());
        problems.add(ConfigProblem { offset: at, needle, help, ..place.problem(message) });
    }
    let ToolDocument { file, text, start, tree } = document?;
    let file = file.map(str::to_owned);
    let file = JobFile { place, file, text: text.to_owned(), start, tree };
    file.check_strings(scope, problems);
    is_sound.then(|| file.object(&file.tree, None, scope, problems))
}

/// A file's name, if it is one of its own, and its text.
type NamedText<'a> = (Option<String>, &'a str);

/// The texts that a config holds or names, and the field that says so.
fn files<'a>(
    configs: &'a Configs,
    source: BlockSource<'a>,
    scope: &TemplateScope,
    place: &DocumentField,
    problems: &mut Problems,
) -> Option<(DocumentField, Vec<NamedText<'a>>)> {
    let local = match source {
        BlockSource::Inlined(text) => return Some((place.field("inlined"), vec![(None, text)])),
        BlockSource::Local(local) => local,
    };
    let place = place.field("local");
    let sub_path = match &local.sub_path {
        Some(text) => match template::render(text, scope) {
            Ok(Rendered::Text(text)) => Some(text),
            // Which file it is will be known when there is a release.
            Ok(_) => return None,
            Err(errors) => {
                problems.add_template(&place.field("subPath"), errors);
                return None;
            }
        },
        None => None,
    };
    let document = place.document.as_ref().and_then(|key| configs.document(key))?;
    let files = document.attached(local, sub_path.as_deref());
    Some((place, files.into_iter().map(|(name, text)| (Some(name.to_owned()), text)).collect()))
}

const POD: &str = "/spec/template/spec";

/// Names the container that people mean when they name none. Source: kubectl.
const DEFAULT_CONTAINER: &str =
    "/spec/template/metadata/annotations/kubectl.kubernetes.io~1default-container";

impl JobFile {
    /// The command of its container, with the values put in; on a cluster the whole Job. All of the
    /// file's strings are checked. `names_secrets`: the config says which variables are secret,
    /// whoever sets them.
    pub(super) fn command(
        &self,
        kind: JobKind,
        scope: &TemplateScope,
        on: Option<&JobPlace>,
        names_secrets: bool,
        problems: &mut Problems,
    ) -> Option<Command> {
        let before = problems.count();
        self.check_strings(scope, problems);
        let containers = items(&self.tree, &format!("{POD}/containers"));
        let cluster = match on {
            Some(JobPlace::Cluster(place)) => Some(place),
            _ => None,
        };
        let container = match (containers, cluster) {
            ([container], _) => container,
            ([_, ..], Some(_)) => self.main_container(containers, problems)?,
            _ => {
                self.tell(
                    &self.tree,
                    format!("the Job has {} containers; one is run", containers.len()),
                    None,
                    problems,
                );
                return None;
            }
        };
        match (on, cluster) {
            (Some(JobPlace::Local { .. }), _) => self.check_local(container, problems),
            (_, Some(place)) => {
                self.check_cluster(place, container, problems);
                if !names_secrets {
                    self.check_secrets(container, problems);
                }
            }
            _ => {}
        }
        let mut argv = Vec::new();
        for list in ["/command", "/args"] {
            for item in items(container, list) {
                argv.push(self.text(item, scope, problems));
            }
        }
        let mut env = Vec::new();
        for variable in items(container, "/env") {
            let (Some(key), Some(value)) = (scalar(variable, "/name"), at(variable, "/value"))
            else {
                continue;
            };
            let value = self.env_value(value, scope, problems);
            // On a cluster the rest stays in the Job: texts may refer to each other there, as in
            // `$(OTHER)`.
            if cluster.is_none() || !matches!(value, EnvValue::Plain(_)) {
                env.push(EnvVar { key: key.to_owned(), value });
            }
        }
        let working_directory =
            at(container, "/workingDir").map(|node| self.text(node, scope, problems));
        let job =
            cluster.map(|_| Box::new(self.object(&self.tree, Some(container), scope, problems)));
        (problems.count() == before).then(|| Command {
            name: scalar(container, "/name").map_or_else(|| kind.to_string(), str::to_owned),
            argv,
            env,
            working_directory,
            expect: None,
            leave_running: false,
            stop_grace_ms: None,
            job,
        })
    }

    /// Of several containers the one that is the command: that which kubectl would take, else the
    /// first.
    fn main_container<'a>(
        &self,
        containers: &'a [YamlNode],
        problems: &mut Problems,
    ) -> Option<&'a YamlNode> {
        let Some(name) = scalar(&self.tree, DEFAULT_CONTAINER) else { return containers.first() };
        let found = containers.iter().find(|container| scalar(container, "/name") == Some(name));
        if found.is_none() {
            self.tell(
                &self.tree,
                format!(
                    "there is no container `{name}`, which \
                     `kubectl.kubernetes.io/default-container` names"
                ),
                None,
                problems,
            );
        }
        found
    }

    /// A part of the file as JSON, with the values put into its strings. Of the main container's
    /// variables the secret ones are left out: nothing secret stands in a Job.
    fn object(
        &self,
        node: &YamlNode,
        main: Option<&YamlNode>,
        scope: &TemplateScope,
        problems: &mut Problems,
    ) -> Value {
        match &node.kind {
            NodeKind::Scalar { text, .. } if text.contains("{{") => {
                self.text(node, scope, problems).into()
            }
            NodeKind::Scalar { .. } => node.to_json(),
            // No deeper than `yaml::DEPTH_LIMIT`.
            NodeKind::List(items) => {
                items.iter().map(|item| self.object(item, main, scope, problems)).collect()
            }
            NodeKind::Mapping(entries) => {
                let is_main = main.is_some_and(|main| std::ptr::eq(main, node));
                let mut object = Map::new();
                for entry in entries {
                    let value = match &entry.value.kind {
                        NodeKind::List(variables) if is_main && entry.key == "env" => {
                            let open = variables
                                .iter()
                                .filter(|variable| !self.is_secret(variable, scope));
                            open.map(|variable| self.object(variable, main, scope, problems))
                                .collect()
                        }
                        _ => self.object(&entry.value, main, scope, problems),
                    };
                    object.insert(entry.key.clone(), value);
                }
                object.into()
            }
        }
    }

    /// Every string of the file, so that a wrong name in a field that is not used here is told all
    /// the same.
    fn check_strings(&self, scope: &TemplateScope, problems: &mut Problems) {
        self.tree.visit(&mut Vec::new(), &mut |_, visited| {
            if let Visited::Scalar(text, node) = visited
                && let Err(errors) = template::render(&text.into(), scope)
            {
                self.tell_template(node, errors, problems);
            }
            true
        });
    }

    fn text(&self, node: &YamlNode, scope: &TemplateScope, problems: &mut Problems) -> String {
        let NodeKind::Scalar { text, .. } = &node.kind else {
            self.tell(node, "expected a text".to_owned(), None, problems);
            return String::new();
        };
        match template::render(&text.as_str().into(), scope) {
            Ok(Rendered::Text(text)) => text,
            // What is wrong `check_strings` has told.
            Ok(Rendered::Unknown) | Err(_) => String::new(),
            Ok(Rendered::Secret(_)) => {
                let message = format!(
                    "`{}` is a secret, and anybody can read this text while the command runs",
                    text.trim()
                );
                self.tell(
                    node,
                    message,
                    Some("give it to the command in `env`, and let the command read it there"),
                    problems,
                );
                String::new()
            }
        }
    }

    fn env_value(
        &self,
        node: &YamlNode,
        scope: &TemplateScope,
        problems: &mut Problems,
    ) -> EnvValue {
        match &node.kind {
            NodeKind::Scalar { text, .. }
                if let Ok(Rendered::Secret(secret)) =
                    template::render(&text.as_str().into(), scope) =>
            {
                secret.into()
            }
            _ => EnvValue::Plain(self.text(node, scope, problems)),
        }
    }

    /// Whether an entry of `env` has a secret for its value.
    fn is_secret(&self, variable: &YamlNode, scope: &TemplateScope) -> bool {
        scalar(variable, "/value")
            .map(|text| template::render(&text.into(), scope))
            .is_some_and(|rendered| matches!(rendered, Ok(Rendered::Secret(_))))
    }

    fn tell_template(
        &self,
        node: &YamlNode,
        errors: Vec<template::TemplateError>,
        problems: &mut Problems,
    ) {
        for error in errors {
            let start = self.start + node.span.start;
            let offset =
                self.text.get(start..).and_then(|rest| rest.find(&error.tag)).unwrap_or_default();
            self.tell_at(start + offset, error.message, Some(error.tag), error.help, problems);
        }
    }

    fn tell(&self, node: &YamlNode, message: String, help: Option<&str>, problems: &mut Problems) {
        let needle = self
            .text
            .get(self.start + node.span.start..self.start + node.span.end)
            .and_then(|text| text.lines().next());
        self.tell_at(
            self.start + node.span.start,
            message,
            needle.map(str::to_owned),
            help.map(str::to_owned),
            problems,
        );
    }

    fn tell_at(
        &self,
        offset: usize,
        message: String,
        needle: Option<String>,
        help: Option<String>,
        problems: &mut Problems,
    ) {
        let line = yaml::line(&self.text, offset);
        let message = match &self.file {
            Some(file) => format!("{message} (`{file}`, line {line})"),
            None => message,
        };
        let needle = needle.filter(|needle| self.file.is_none() && !needle.is_empty());
        problems.add(ConfigProblem { offset, needle, help, ..self.place.problem(message) });
    }
}
