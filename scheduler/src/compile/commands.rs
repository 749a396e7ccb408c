//! The three commands of a custom runtime with the values put in: what to run, where, with which
//! environment. Called by `instance`.

use std::collections::BTreeMap;

use config::template::readable_secret;
use config::{
    CustomRuntime, Env, Exec, FetchMode, JobHost, NO_NUL, NO_PROGRAM_HELP, NotHere, ProxyRuntime,
    TaskConfig, not_here,
};
use schema::report::StructuredKind;
use schema::status::JobKind;
use schema::wire::{SECRET_KEYS_VARIABLE, SPOOL_VARIABLE};

use super::cluster::{self, ClusterPlace, TaskTexts};
use super::configs::Configs;
use super::problem::DocumentKey;
use super::problem::{DocumentField, Problems};
use super::template::{self, Rendered, TemplateScope};
use super::value::{Seal, SecretValue};
use super::{
    Command, Commands, EnvValue, EnvVar, Options, RunTarget as JobPlace, WRAPPER_CONTAINER,
    environment, job_file, nearest, parameters,
};

/// Longest argument, and longest variable as `KEY=value`, that Linux passes to a program, in bytes:
/// 32 pages less the NUL at its end. Source: `MAX_ARG_STRLEN` in execve(2).
const ARGUMENT_LIMIT_BYTES: usize = (128 << 10) - 1;

/// Environment that is the same for all three commands: where it is, and the names that its
/// templates may use.
pub(super) struct EnvLayer<'a> {
    pub(super) env: &'a Env,
    pub(super) place: DocumentField,
    pub(super) scope: &'a TemplateScope,
}

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

    fn job_place(
        &self,
        custom: &CustomRuntime,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<JobPlace> {
        let proxy = &custom.proxy_runtime;
        let place = place.field("proxyRuntime");
        let job_place = self.proxy_place(proxy, &place.field("runtime"), problems)?;
        if proxy.container_orchestration.is_some()
            && !self.options.everything_local
            && matches!(job_place, JobPlace::Local { .. })
        {
            let problem = place
                .field("containerOrchestration")
                .problem("`containerOrchestration` has no effect on a `local` runtime");
            problems.add(problem.help("take it out, or name a Kubernetes runtime"));
        }
        Some(job_place)
    }

    fn proxy_place(
        &self,
        proxy: &ProxyRuntime,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<JobPlace> {
        let name = &proxy.runtime;
        let here = JobPlace::Local { root: None, clean_env: false };
        let Some(runtime) = self.configs.runtime(name) else {
            if self.options.everything_local {
                return Some(here);
            }
            let names = self.configs.runtime_names();
            problems.add(place.problem(format!("unknown runtime `{name}`")).help(nearest::help(
                name.as_str(),
                "runtimes",
                names,
            )));
            return None;
        };
        let role = runtime.role();
        match role.host {
            Some(JobHost::Local(local)) => Some(JobPlace::Local {
                root: local.root.clone(),
                clean_env: local.env == Some(config::LocalEnv::Clean),
            }),
            Some(JobHost::Fake(fake)) => {
                Some(JobPlace::Fake { crashing_programs: fake.crashing_programs.clone() })
            }
            Some(JobHost::Kubernetes(_)) if self.options.everything_local => Some(here),
            Some(JobHost::Kubernetes(kubernetes)) => match &place.document {
                Some(DocumentKey::Runtime(runtime)) => {
                    Some(JobPlace::Cluster(Box::new(ClusterPlace::new(proxy, kubernetes, runtime))))
                }
                _ => None,
            },
            None => {
                let problem = place.problem(format!(
                    "runtime `{name}` is of kind `{}`, which cannot run the jobs of another",
                    role.kind
                ));
                problems
                    .add(problem.help("name `local`, a `fake` runtime or a Kubernetes runtime"));
                None
            }
        }
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
                if cluster.wrapper_image.is_some() && !says_what_to_run(&command) =>
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
        check_passable(&command, place, problems);
        (problems.count() == before).then_some(command)
    }

    /// What a config says of the wrapper's own variables, and cannot.
    fn check_wrappers_own(
        &self,
        variables: &BTreeMap<String, EnvValue>,
        on: Option<&JobPlace>,
        place: &DocumentField,
        problems: &mut Problems,
    ) {
        if variables
            .get(SECRET_KEYS_VARIABLE)
            .is_some_and(|value| !matches!(value, EnvValue::Plain(_)))
        {
            let problem = place.problem(format!(
                "`{SECRET_KEYS_VARIABLE}` is a secret; it holds the names of the variables that \
                 are"
            ));
            problems.add(problem.help("write the names as its `value`, with commas between"));
        }
        if variables.contains_key(SPOOL_VARIABLE)
            && matches!(on, Some(JobPlace::Local { .. }))
            && !self.options.everything_local
        {
            let problem = place.problem(format!(
                "`{SPOOL_VARIABLE}` cannot be set on this machine: the scheduler collects what is \
                 there"
            ));
            problems.add(problem.help("take it out, or run the command on a cluster"));
        }
    }

    fn task(
        &self,
        kind: JobKind,
        task: &TaskConfig,
        on: Option<&JobPlace>,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Command {
        if matches!(on, Some(JobPlace::Local { .. })) {
            for NotHere { field, message, help } in not_here(task, self.options.everything_local) {
                let place = field.iter().fold(place.clone(), |place, field| place.field(field));
                problems.add(place.problem(message).help(help));
            }
        }
        if task.retry_config.is_some() {
            let problem =
                place.field("retryConfig").problem("not supported yet: `retryConfig` of a task");
            problems.add(problem.help("use `retryPolicy` of the command"));
        }
        let program = &task.program;
        let inner = place.field("program");
        // Of a local task the image is not used, and its names are checked all the same.
        let image =
            program.image.as_ref().map(|image| self.text(image, &inner.field("image"), problems));
        let tag = program
            .image_tag
            .as_ref()
            .map(|tag| self.text(tag, &inner.field("imageTag"), problems));
        let image = image.or_else(|| {
            tag.map(|tag| parameters::image_reference(program.image_registry_info.as_ref(), &tag))
        });
        let mut list = |list: &[String], field: &str| -> Vec<String> {
            let place = inner.field(field);
            list.iter()
                .enumerate()
                .map(|(index, argument)| self.text(argument, &place.item(index), problems))
                .collect()
        };
        let (entrypoint, cmd) =
            (list(&program.entrypoint, "entrypoint"), list(&program.cmd, "cmd"));
        let argv = [entrypoint.as_slice(), &cmd].concat();
        let directory = program.working_directory.as_ref();
        let working_directory =
            directory.map(|text| self.text(text, &inner.field("workingDirectory"), problems));
        let on_cluster = matches!(on, Some(JobPlace::Cluster(_)));
        // The name of a container is a label, which `getInfo` is not.
        let default =
            || if on_cluster { kind.to_string().to_lowercase() } else { kind.to_string() };
        let name = program.name.clone().unwrap_or_else(default);
        if on_cluster && name == WRAPPER_CONTAINER {
            problems.add(
                inner
                    .field("name")
                    .problem(cluster::name_is_taken())
                    .help("call it something else"),
            );
        }
        let texts = TaskTexts {
            name: name.clone(),
            image,
            entrypoint,
            cmd,
            working_directory: working_directory.clone(),
        };
        let job = if on_cluster {
            cluster::task_job(task, texts, place, problems).map(Box::new)
        } else {
            None
        };
        Command {
            name,
            argv,
            env: Vec::new(),
            working_directory,
            expect: None,
            leave_running: task.leave_running,
            job,
        }
    }

    fn add_env(
        &self,
        variables: &mut BTreeMap<String, EnvValue>,
        env: &Env,
        on: Option<&JobPlace>,
        place: &DocumentField,
        scope: &TemplateScope,
        problems: &mut Problems,
    ) {
        for (key, value) in env {
            let place = place.field(key);
            let value = match value {
                config::EnvValue::Value(text) => match template::render(text, scope) {
                    Ok(Rendered::Text(text)) => Some(EnvValue::Plain(text)),
                    Ok(Rendered::Unknown) => Some(EnvValue::Plain(String::new())),
                    Ok(Rendered::Secret(secret)) => Some(secret.into()),
                    Err(errors) => {
                        problems.add_template(&place.field("value"), errors);
                        None
                    }
                },
                config::EnvValue::RawSecret(text) => match template::render(text, scope) {
                    Ok(Rendered::Text(text)) => Some(EnvValue::Sealed(sealed(
                        &text,
                        self.seal,
                        &place.field("rawSecret"),
                        problems,
                    ))),
                    Ok(Rendered::Unknown) => Some(EnvValue::Sealed(String::new())),
                    Ok(Rendered::Secret(secret)) => Some(secret.into()),
                    Err(errors) => {
                        problems.add_template(&place.field("rawSecret"), errors);
                        None
                    }
                },
                config::EnvValue::Secret(secret) => Some(EnvValue::Secret {
                    key: secret.key.clone(),
                    version: secret.version.map_or(0, u64::from),
                }),
                // Nothing runs there, so nothing is missing.
                config::EnvValue::KubernetesSecret(_)
                    if matches!(on, Some(JobPlace::Fake { .. })) =>
                {
                    None
                }
                config::EnvValue::KubernetesSecret(secret)
                    if matches!(on, Some(JobPlace::Cluster(_))) =>
                {
                    Some(EnvValue::KubernetesSecret {
                        name: secret.secret_name.clone(),
                        key: secret.key.clone(),
                    })
                }
                config::EnvValue::KubernetesSecret(_) => {
                    let problem = place
                        .field("kubernetesSecret")
                        .problem("not supported yet: a secret of the cluster on this machine");
                    problems.add(problem.help(
                        "keep it with `pvnctl secrets set KEY` and name it as `secret: {key: KEY}`",
                    ));
                    None
                }
            };
            if let Some(value) = value {
                variables.insert(key.clone(), value);
            }
        }
    }

    fn text(&self, text: &str, place: &DocumentField, problems: &mut Problems) -> String {
        render_text(text, self.scope, place, problems)
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
    text: &str,
    scope: &TemplateScope,
    place: &DocumentField,
    problems: &mut Problems,
) -> String {
    match template::render(text, scope) {
        Ok(Rendered::Text(text)) => text,
        Ok(Rendered::Unknown) => String::new(),
        Ok(Rendered::Secret(_)) => {
            let (message, help) = readable_secret(text);
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
