//! The three commands of a custom runtime with the values put in: what to run, where, with which
//! environment. Called by `instance`.

use std::collections::BTreeMap;

use config::template::{Template, readable_secret};
use config::tool_document::ARGUMENT_LIMIT_BYTES;
use config::{CustomRuntime, Env, Exec, FetchMode, NO_NUL, NO_PROGRAM_HELP};
use schema::report::StructuredKind;
use schema::status::JobKind;
use schema::wire::{SECRET_KEYS_VARIABLE, SPOOL_VARIABLE};

use super::configs::Configs;
use super::problem::{DocumentField, Problems};
use super::template::{self, Rendered, TemplateScope};
use super::value::{Seal, SecretValue};
use super::{
    Command, Commands, EnvValue, EnvVar, Options, RunTarget as JobPlace, environment, job_file,
};

mod place;
mod task;
mod variables;

pub(super) use variables::EnvLayer;

/// What is needed to make commands.
pub(super) struct Maker<'a> {
    pub(super) configs: &'a Configs,
    pub(super) options: &'a Options,
    pub(super) seal: &'a dyn Seal,
    /// The names that the runtime's templates may use.
    pub(super) scope: &'a TemplateScope,
    /// Environment from outside the runtime, lowest precedence first.
    pub(super) layers: &'a [EnvLayer<'a>],
}

impl Maker<'_> {
    /// The commands of a runtime whose `custom` block is at `place`.
    pub(super) fn commands(
        &self,
        custom: &CustomRuntime,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<Commands> {
        let job_place = self.job_place(custom, place, problems);
        let on = job_place.as_ref();
        let fetch = custom.fetch.as_ref().map(|fetch| {
            let expect =
                (fetch.fetch_mode == FetchMode::StructuredOutput).then_some(StructuredKind::Fetch);
            self.command(
                JobKind::Fetch,
                &fetch.exec,
                &fetch.env,
                expect,
                on,
                &place.field("fetch"),
                problems,
            )
        });
        let apply = self.command(
            JobKind::Apply,
            &custom.apply.exec,
            &custom.apply.env,
            None,
            on,
            &place.field("apply"),
            problems,
        );
        let get_info = custom.get_info.as_ref().map(|info| {
            let expect = Some(StructuredKind::GetInfo);
            self.command(
                JobKind::GetInfo,
                &info.exec,
                &info.env,
                expect,
                on,
                &place.field("getInfo"),
                problems,
            )
        });
        // A command that is there and wrong is `Some(None)`.
        let fetch = fetch.map_or(Some(None), |command| command.map(Some))?;
        let get_info = get_info.map_or(Some(None), |command| command.map(Some))?;
        Some(Commands { place: job_place?, fetch, apply: apply?, get_info })
    }

    #[expect(clippy::too_many_arguments, reason = "the three commands have no type in common")]
    fn command(
        &self,
        kind: JobKind,
        exec: &Exec,
        env: &Env,
        expect: Option<StructuredKind>,
        on: Option<&JobPlace>,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<Command> {
        let before = problems.count();
        let mut variables = BTreeMap::new();
        for layer in self.layers {
            self.add_env(&mut variables, layer.env, on, &layer.place, layer.scope, problems);
        }
        self.add_env(&mut variables, env, on, &place.field("env"), self.scope, problems);
        let mut command = match exec {
            Exec::Task(task) => {
                let place = place.field("taskConfig");
                self.add_env(
                    &mut variables,
                    &task.program.env,
                    on,
                    &place.field("program").field("env"),
                    self.scope,
                    problems,
                );
                self.task(kind, task, on, &place, problems)
            }
            Exec::Kubernetes(config) => {
                let place = place.field("kubernetesConfig");
                let job = job_file::read(self.configs, config, self.scope, &place, problems)?;
                let names_secrets = variables.contains_key(SECRET_KEYS_VARIABLE);
                let mut command = job.command(kind, self.scope, on, names_secrets, problems)?;
                for variable in std::mem::take(&mut command.env) {
                    variables.insert(variable.key, variable.value);
                }
                command
            }
        };
        self.check_wrappers_own(&variables, on, place, problems);
        // Theirs to say: which values are secret, and on a cluster, whose volumes they know, where
        // the wrapper's spool is.
        let is_joined = |key: &str| key == SECRET_KEYS_VARIABLE || key == SPOOL_VARIABLE;
        variables.retain(|key, _| is_joined(key) || !environment::is_ours(key));
        command.env = variables.into_iter().map(|(key, value)| EnvVar { key, value }).collect();
        command.expect = expect;
        check_program(&mut command, exec, on, place, problems);
        check_passable(&command, place, problems);
        (problems.count() == before).then_some(command)
    }
}

/// That it is known what to run.
fn check_program(
    command: &mut Command,
    exec: &Exec,
    on: Option<&JobPlace>,
    place: &DocumentField,
    problems: &mut Problems,
) {
    match on {
        // Of a task that is told with all else that cannot be had here.
        Some(JobPlace::Local { .. }) if command.argv.is_empty() => {
            if matches!(exec, Exec::Kubernetes(_)) {
                let place = place.field("kubernetesConfig");
                let problem = place.problem(
                    "there is neither `command` nor `args`: on this machine no image says \
                     what to run",
                );
                problems.add(problem.help(NO_PROGRAM_HELP));
            }
        }
        Some(JobPlace::Cluster(cluster))
            if cluster.wrapper_image.is_some() && !says_what_to_run(command) =>
        {
            let (place, what) = match exec {
                Exec::Task(_) => (place.field("taskConfig").field("program"), "`entrypoint`"),
                Exec::Kubernetes(_) => (place.field("kubernetesConfig"), "`command`"),
            };
            let problem = place.problem(format!(
                "there is no {what}, and the wrapper cannot see what the image would run"
            ));
            problems.add(problem.help(format!(
                "write the program as {what}, or take `wrapper.inject` from runtime `{}`",
                cluster.cluster
            )));
        }
        // Nothing is run there, or its Job says what; the name stands for the command.
        _ if command.argv.is_empty() => command.argv.push(command.name.clone()),
        _ => {}
    }
}

/// Whether a Job says itself what its main container runs, whatever the image says.
fn says_what_to_run(command: &Command) -> bool {
    let containers = command
        .job
        .as_ref()
        .and_then(|job| job.pointer("/spec/template/spec/containers")?.as_array());
    containers.is_some_and(|containers| {
        containers
            .iter()
            .any(|container| container["name"] == command.name.as_str() && has_command(container))
    })
}

fn has_command(container: &serde_json::Value) -> bool {
    container["command"].as_array().is_some_and(|command| !command.is_empty())
}

/// What no program can be given.
fn check_passable(command: &Command, place: &DocumentField, problems: &mut Problems) {
    let mut check =
        |what: String, text: &str, bytes: usize| {
            if text.contains('\0') {
                problems.add(place.problem(format!(
                    "{what} holds a NUL character, which no program can be given"
                )));
            }
            if bytes > ARGUMENT_LIMIT_BYTES {
                let problem = place.problem(format!(
                    "{what} is {bytes} bytes long with its values; a program takes at most \
                     {ARGUMENT_LIMIT_BYTES}"
                ));
                problems.add(problem.help("pass large values as a file"));
            }
        };
    for (index, argument) in command.argv.iter().enumerate() {
        check(format!("argument {index}"), argument, argument.len());
    }
    for variable in &command.env {
        if let EnvValue::Plain(text) = &variable.value {
            check(
                format!("variable `{}`", variable.key),
                text,
                variable.key.len() + 1 + text.len(),
            );
        }
    }
}

/// A secret that is written in a config, sealed; what is wrong with it goes into `problems`, since
/// nobody sees it any more later.
pub(super) fn sealed(
    text: &str,
    seal: &dyn Seal,
    place: &DocumentField,
    problems: &mut Problems,
) -> String {
    if text.contains('\0') {
        problems
            .add(place.problem(NO_NUL).help("leave it out; keep other bytes than text as base64"));
    }
    seal.seal(text)
}

/// A text that must not hold a secret; what is wrong goes into `problems`.
pub(super) fn render_text(
    text: &Template,
    scope: &TemplateScope,
    place: &DocumentField,
    problems: &mut Problems,
) -> String {
    match template::render(text, scope) {
        Ok(Rendered::Text(text)) => text,
        Ok(Rendered::Unknown) => String::new(),
        Ok(Rendered::Secret(_)) => {
            let (message, help) = readable_secret(text.as_str());
            problems.add(place.problem(message).help(help));
            String::new()
        }
        Err(errors) => {
            problems.add_template(place, errors);
            String::new()
        }
    }
}

impl From<SecretValue> for EnvValue {
    fn from(secret: SecretValue) -> Self {
        match secret {
            SecretValue::Stored { key, version } => Self::Secret { key, version },
            SecretValue::Sealed(sealed) => Self::Sealed(sealed),
        }
    }
}
