//! What stands inside the texts of documents: templates and selectors. Their form, and the names
//! that the document alone decides about. Called by `references` for each document, so that `pvnctl
//! configs validate` tells them without a server; names that depend on other documents (constants,
//! labels of a channel's runtime) are left to the compiler.

mod blocks;
mod job_strings;

use std::collections::BTreeSet;

use serde_json::Value;

use job_strings::job_strings;

use crate::diagnostic::Diagnostic;
use crate::effective::EJECTED_SECRET;
use crate::precondition::StableChannels;
use crate::selector::Selector;
use crate::template::{
    Template, TemplateError, TemplateName, TemplatePart, mixed_secret, readable_secret, undefined,
};
use crate::yaml;
use crate::{
    Application, Body, ChannelTemplate, CustomRuntimeValues, Document, EffectiveRuntime, EnvValue,
    Exec, ParameterDefinition, ParameterKind, ParameterValueKind, Runtime, RuntimeCommand,
    SecretValue, Service, TaskConfig, builtins,
};

/// What is said of a text with such a character: environment and arguments end at it. Source:
/// execve(2).
pub const NO_NUL: &str = "a NUL character, which no program can be given";

/// Every template and selector of the document that is malformed, and every name that cannot exist
/// where it stands.
pub(super) fn check(document: &Document) -> Vec<Diagnostic> {
    let mut texts = Texts { document, problems: Vec::new() };
    match document.body() {
        Body::Runtime(runtime) => texts.runtime(runtime),
        Body::Application(application) => texts.application(application),
        Body::Service(service) => texts.service(service),
    }
    texts.problems
}

/// The names that exist at a place.
#[derive(Default)]
struct NamesInScope {
    known: BTreeSet<String>,
    /// Names under these prefixes may or may not exist: other documents say so.
    open: Vec<&'static str>,
    /// Those of the known ones that are secrets.
    secrets: BTreeSet<String>,
    /// Whether anybody can read the texts, so that none of them can be a secret.
    are_texts_readable: bool,
}

impl NamesInScope {
    fn new(known: &[&str], open: &[&'static str], parameters: &[ParameterDefinition]) -> Self {
        let mut names = Self {
            known: known.iter().map(|name| (*name).to_owned()).collect(),
            open: open.to_vec(),
            secrets: BTreeSet::new(),
            are_texts_readable: false,
        };
        for parameter in parameters {
            names.known.insert(builtins::parameter(&parameter.name));
            match &parameter.kind {
                ParameterKind::DockerImage(_) => {
                    names.known.insert(builtins::image_tag(&parameter.name));
                }
                ParameterKind::Secret(_) => {
                    names.secrets.insert(builtins::parameter(&parameter.name));
                }
                ParameterKind::String(_)
                | ParameterKind::Int(_)
                | ParameterKind::Commit(_)
                | ParameterKind::Blob(_) => {}
            }
        }
        names
    }

    fn check(&self, text: &Template) -> Vec<TemplateError> {
        self.check_where(text, self.are_texts_readable)
    }

    /// The same at a place that says by itself whether anybody can read it.
    fn check_where(&self, text: &Template, is_readable: bool) -> Vec<TemplateError> {
        let parts = match text.parts() {
            Ok(parts) => parts,
            Err(errors) => return errors.to_vec(),
        };
        let is_missing = |name: &str| {
            !self.known.contains(name) && !self.open.iter().any(|prefix| name.starts_with(prefix))
        };
        let is_mixed = text.only_name().is_none();
        let wrong = parts.filter_map(|part| match part {
            TemplatePart::Name(name) if is_missing(name.name) => {
                Some(undefined(name, self.known.iter().map(String::as_str)))
            }
            TemplatePart::Name(name) if is_mixed && self.secrets.contains(name.name) => {
                Some(mixed_secret(name))
            }
            TemplatePart::Name(name) if is_readable && self.is_secret(text) => {
                Some(readable(name, text))
            }
            _ => None,
        });
        wrong.collect()
    }

    /// Whether a text is a secret and nothing else.
    fn is_secret(&self, text: &Template) -> bool {
        text.only_name().is_some_and(|name| self.secrets.contains(name))
    }
}

struct Texts<'a> {
    document: &'a Document,
    problems: Vec<Diagnostic>,
}

impl Texts<'_> {
    fn runtime(&mut self, runtime: &Runtime) {
        let Some(commands) = runtime.role().commands else { return };
        let parameters = &commands.custom().parameters;
        let mut names = NamesInScope::new(
            &builtins::OF_A_RELEASE,
            &[builtins::CONSTANTS, builtins::RUNTIME_LABELS_OF_PVN],
            parameters,
        );
        let labels = runtime.labels.iter().map(|label| builtins::runtime_label(&label.label));
        names.known.extend(labels);
        self.commands(&commands, &names);
    }

    fn commands(&mut self, commands: &EffectiveRuntime<'_>, names: &NamesInScope) {
        let custom = commands.custom();
        self.optional(&custom.apply_id, &commands.pointer("applyId"), names);
        for RuntimeCommand { name, exec, env, .. } in custom.commands() {
            let at = commands.pointer(name);
            self.env(env, &format!("{at}/env"), names);
            match exec {
                Exec::Task(task) => self.task(task, &format!("{at}/taskConfig/program"), names),
                Exec::Kubernetes(config) => {
                    let at = format!("{at}/kubernetesConfig");
                    if let Some(text) = &config.inlined {
                        self.job_file(None, text, &format!("{at}/inlined"), names);
                    }
                    let local = config.local.as_ref().filter(|local| !local.has_template());
                    for (file, text) in local.into_iter().flat_map(|local| {
                        let sub_path = local.sub_path.as_ref().map(Template::as_str);
                        self.document.attached(local, sub_path)
                    }) {
                        self.job_file(Some(file), text, &format!("{at}/local"), names);
                    }
                }
            }
        }
    }

    fn task(&mut self, task: &TaskConfig, at: &str, names: &NamesInScope) {
        let program = &task.program;
        self.env(&program.env, &format!("{at}/env"), names);
        self.optional(&program.image, &format!("{at}/image"), names);
        self.optional(&program.image_tag, &format!("{at}/imageTag"), names);
        for (field, list) in [("entrypoint", &program.entrypoint), ("cmd", &program.cmd)] {
            for (index, text) in list.iter().enumerate() {
                self.text(text, &format!("{at}/{field}/{index}"), names);
            }
        }
        self.optional(&program.working_directory, &format!("{at}/workingDirectory"), names);
    }

    /// The strings of a Job file, inlined or from a file of its own; what is no YAML the reader has
    /// told.
    fn job_file(&mut self, file: Option<&str>, text: &str, at: &str, names: &NamesInScope) {
        for range in yaml::documents(text) {
            if let Ok(Some(tree)) = yaml::parse(&text[range.clone()]) {
                for error in job_strings(&tree, text, range.start, names) {
                    let Some(file) = file else {
                        self.tell(at, error);
                        continue;
                    };
                    let line = yaml::line(text, error.at);
                    let problem = self
                        .document
                        .problem(at, format!("{} (`{file}`, line {line})", error.message));
                    self.problems.push(Diagnostic { help: error.help, ..problem });
                }
            }
        }
    }

    fn application(&mut self, application: &Application) {
        let names = NamesInScope::new(&builtins::OF_A_GROUP, &[builtins::RUNTIME_LABELS], &[]);
        // The parameters are those of each service.
        let of_release = NamesInScope::new(
            &builtins::OF_A_RELEASE,
            &[builtins::PARAMETERS, builtins::CONSTANTS, builtins::RUNTIME_LABELS],
            &[],
        );
        for (index, channel) in application.release_channels.iter().enumerate() {
            if let Some(policy) = &channel.policy {
                self.env(
                    &policy.default_env,
                    &format!("/application/releaseChannels/{index}/policy/defaultEnv"),
                    &of_release,
                );
            }
            for (number, precondition) in channel.preconditions.iter().enumerate() {
                if let Some((field, StableChannels::Selector(selector))) = precondition.channels() {
                    let at = format!(
                        "/application/releaseChannels/{index}/preconditions/{number}/{}/{field}",
                        precondition.field()
                    );
                    self.selector(selector, &at);
                }
            }
        }
        for (index, group) in application.release_channel_groups.iter().enumerate() {
            let at = format!("/application/releaseChannelGroups/{index}");
            self.selector(&group.runtime_selector, &format!("{at}/runtimeSelector"));
            let Some(template) = &group.template else { continue };
            if let Some(policy) = &template.policy {
                self.env(
                    &policy.default_env,
                    &format!("{at}/template/policy/defaultEnv"),
                    &of_release,
                );
            }
            self.group_template(template, &format!("{at}/template"), &names);
        }
    }

    fn group_template(&mut self, template: &ChannelTemplate, at: &str, names: &NamesInScope) {
        self.optional(&template.name, &format!("{at}/name"), names);
        for (index, entry) in template.runtimes.iter().enumerate() {
            let at = format!("{at}/runtimes/{index}");
            self.text(&entry.runtime, &format!("{at}/runtime"), names);
            self.optional(&entry.name, &format!("{at}/name"), names);
            self.optional(&entry.kind, &format!("{at}/type"), names);
        }
        for (index, constant) in template.constants.iter().enumerate() {
            let at = format!("{at}/constants/{index}/string/value");
            self.text(&constant.string.value, &at, names);
        }
        for (index, label) in template.labels.iter().enumerate() {
            self.text(&label.value, &format!("{at}/labels/{index}/value"), names);
        }
        // Our own types always are JSON.
        if let Ok(preconditions) = serde_json::to_value(&template.preconditions) {
            self.strings(&preconditions, &format!("{at}/preconditions"), names);
        }
    }

    fn service(&mut self, service: &Service) {
        let mut names = NamesInScope::new(
            &builtins::OF_A_RELEASE,
            &[builtins::CONSTANTS, builtins::RUNTIME_LABELS],
            &service.parameters,
        );
        self.values(&service.custom_runtime, "/service/customRuntime", &names);
        self.env(&service.env, "/service/env", &names);
        for (index, own) in service.per_release_channel.iter().enumerate() {
            let at = format!("/service/perReleaseChannel/{index}");
            self.values(&own.custom_runtime, &format!("{at}/customRuntime"), &names);
            self.env(&own.env, &format!("{at}/env"), &names);
        }
        // They are arguments of the tool.
        names.are_texts_readable = true;
        self.blocks(service, &names);
        let mut names = NamesInScope::new(&builtins::OF_A_VERSION, &[], &service.parameters);
        names
            .known
            .extend(service.constants.iter().map(|constant| builtins::constant(&constant.name)));
        self.optional(&service.bundle_name, "/service/bundleName", &names);
    }

    /// What a service says to its runtime.
    fn values(&mut self, values: &Option<CustomRuntimeValues>, at: &str, names: &NamesInScope) {
        let values = values.iter().flat_map(|values| &values.parameter_values);
        for (index, value) in values.enumerate() {
            let (text, field) = match &value.kind {
                ParameterValueKind::String(text) => (text, "string"),
                ParameterValueKind::DockerImageTag(text) => (text, "dockerImageTag"),
                ParameterValueKind::Secret(SecretValue::RawSecret(text)) => {
                    (text, "secret/rawSecret")
                }
                ParameterValueKind::Commit(text) => (text, "commit"),
                ParameterValueKind::Blob(blob) => (&blob.inlined, "blob/inlined"),
                ParameterValueKind::Int(_)
                | ParameterValueKind::Secret(SecretValue::SecretRef(_)) => continue,
            };
            self.text(text, &format!("{at}/parameterValues/{index}/{field}"), names);
        }
    }

    /// Values of variables; the names of secrets are no templates.
    fn env(&mut self, env: &crate::Env, at: &str, names: &NamesInScope) {
        for (key, value) in env {
            let (field, text) = match value {
                EnvValue::Value(text) => ("value", text),
                EnvValue::RawSecret(text) => ("rawSecret", text),
                EnvValue::Secret(_) | EnvValue::KubernetesSecret(_) => continue,
            };
            self.text(text, &format!("{at}/{key}/{field}"), names);
        }
    }

    fn selector(&mut self, selector: &Selector, at: &str) {
        if let Some(problem) = selector.problem() {
            self.problems.push(self.document.problem(at, problem.to_string()));
        }
    }

    /// All strings of a value, as templates. Types of our own bound its depth, and their keys need
    /// no escapes.
    fn strings(&mut self, value: &Value, at: &str, names: &NamesInScope) {
        match value {
            Value::String(text) => self.text(&text.as_str().into(), at, names),
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, item)| self.strings(item, &format!("{at}/{index}"), names));
            }
            Value::Object(members) => {
                members
                    .iter()
                    .for_each(|(key, member)| self.strings(member, &format!("{at}/{key}"), names));
            }
            _ => {}
        }
    }

    /// A text that need not be there.
    fn optional(&mut self, text: &Option<Template>, at: &str, names: &NamesInScope) {
        text.iter().for_each(|text| self.text(text, at, names));
    }

    fn text(&mut self, text: &Template, at: &str, names: &NamesInScope) {
        if text.as_str().contains('\0') {
            self.problems.push(
                self.document
                    .problem(at, NO_NUL)
                    .help("leave it out; pass other bytes than text as a file, or as base64"),
            );
        }
        if at.ends_with("/rawSecret") && text.as_str() == EJECTED_SECRET {
            let message = "this stands for a secret that `runtimes eject` has left out";
            let help = "write the secret in its place, or `secret: {key: KEY}`";
            self.problems.push(self.document.problem(at, message).help(help));
        }
        for error in names.check(text) {
            self.tell(at, if at.ends_with("/rawSecret") { error.in_secret() } else { error });
        }
        if at.starts_with("/runtime/") && !at.contains("/env/") && names.is_secret(text) {
            let (message, help) = readable_secret(text.as_str());
            self.problems.push(self.document.problem(at, message).help(help));
        }
    }

    fn tell(&mut self, at: &str, error: TemplateError) {
        let TemplateError { at: offset, tag, message, help } = error;
        let problem = self.document.problem_in(at, offset, &tag, message);
        self.problems.push(Diagnostic { help, ..problem });
    }
}

/// That a text, which anybody can read, is this secret.
fn readable(name: TemplateName<'_>, text: &Template) -> TemplateError {
    let (message, help) = readable_secret(text.as_str());
    TemplateError { at: name.at, tag: name.tag.to_owned(), message, help: Some(help.to_owned()) }
}
