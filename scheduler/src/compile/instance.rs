//! One service in one channel: connection chosen, parameters filled, commands rendered, policies
//! complete. The same code checks names when configs are applied (no values yet) and compiles when
//! a release is made. Called by `check` and by `super::compile`.

use std::collections::BTreeMap;
use std::time::Duration;

use config::{
    CustomRuntime, EffectiveRuntime, JobHost, ParameterValue, PerReleaseChannel, Runtime,
    RuntimeRole, Service, builtins,
};
use engine::desired::{ApplyPolicy, Desired, InfoPolicy, Observe, PollPolicy};
use schema::id::BlobId;

use super::channels::{self, Channel};
use super::commands::{EnvLayer, Maker, render_text};
use super::configs::Configs;
use super::parameters::{self, Bound, RuntimeValues};
use super::problem::{DocumentField, DocumentKey, Problems};
use super::template::{TemplateScope, Value};
use super::value::Seal;
use super::{Command, Commands, CompiledInstance, Options, Release, RunTarget as JobPlace, policy};

mod block;
mod connection;

/// One service in one channel.
pub(super) struct ServiceInChannel<'a> {
    pub(super) configs: &'a Configs,
    pub(super) options: &'a Options,
    pub(super) seal: &'a dyn Seal,
    pub(super) service: &'a Service,
    pub(super) channel: &'a Channel,
    /// `None`: only check, there are no values yet.
    pub(super) release: Option<&'a Release<'a>>,
}

impl<'a> ServiceInChannel<'a> {
    /// The compiled instance; `None` when there is no release yet, or when something is wrong.
    pub(super) fn compile(&self, problems: &mut Problems) -> Option<CompiledInstance> {
        let runtime = self.pick_runtime(problems)?;
        let base = self.base_scope(runtime);
        let mut service_scope = base.clone();
        self.add_release_parameters(&mut service_scope, problems);
        let RuntimeRole { kind, commands, host, .. } = runtime.role();
        match (commands, host) {
            (Some(commands), _) => {
                self.compile_commands(runtime, (&commands, kind), base, &service_scope, problems)
            }
            (None, Some(JobHost::Fake(fake))) => {
                let place = JobPlace::Fake { crashing_programs: fake.crashing_programs.clone() };
                self.finish(runtime, None, fake_commands(self.service.name.as_str(), place), None)
            }
            (None, Some(JobHost::Local(_) | JobHost::Kubernetes(_)) | None) => {
                self.tell_no_commands(runtime, problems);
                None
            }
        }
    }

    fn compile_commands(
        &self,
        runtime: &Runtime,
        (commands, kind): (&EffectiveRuntime<'_>, &str),
        mut scope: TemplateScope,
        service_scope: &TemplateScope,
        problems: &mut Problems,
    ) -> Option<CompiledInstance> {
        let custom = commands.custom();
        self.add_runtime_parameters(&mut scope, runtime, commands, service_scope, problems);
        let place = DocumentField::of(DocumentKey::Runtime(runtime.name.clone())).field(kind);
        let layers = self.env_layers(service_scope);
        let maker = Maker {
            configs: self.configs,
            options: self.options,
            seal: self.seal,
            scope: &scope,
            layers: &layers,
        };
        let commands = maker.commands(custom, &place, problems);
        let apply_id = custom
            .apply_id
            .as_ref()
            .map(|text| render_text(text, &scope, &place.field("applyId"), problems));
        self.finish(runtime, Some(custom), commands?, apply_id)
    }

    fn finish(
        &self,
        runtime: &Runtime,
        custom: Option<&CustomRuntime>,
        commands: Commands,
        apply_id: Option<String>,
    ) -> Option<CompiledInstance> {
        let release = self.release?;
        let fetch = custom.and_then(|custom| custom.fetch.as_ref()).map(policy::fetch);
        let apply =
            custom.map_or_else(policy::apply_of_fake, |custom| policy::apply(&custom.apply));
        let get_info = custom.and_then(|custom| custom.get_info.as_ref()).map(policy::get_info);
        // What their Pods let them have, only the rendered commands say.
        let observe = match fetch {
            Some(fetch) => Observe::Poll(PollPolicy {
                stop_grace: commands.fetch.as_ref().and_then(Command::stop_grace),
                ..fetch
            }),
            None => Observe::Never,
        };
        let apply = ApplyPolicy { stop_grace: commands.apply.stop_grace(), ..apply };
        let get_info = get_info.map(|info| InfoPolicy {
            stop_grace: commands.get_info.as_ref().and_then(Command::stop_grace),
            ..info
        });
        let compiled = BlobId::of(&serde_json::to_vec(&commands).expect("commands are plain data"));
        let desired = Desired {
            release: release.id,
            version: release.version.to_owned(),
            released_at: release.released_at,
            runtime: runtime.name.clone(),
            max_concurrency: custom.and_then(|custom| custom.apply.max_concurrency),
            compiled,
            target: Some(commands.place.target()),
            observe,
            apply,
            get_info,
            gates: self.channel.gates.clone(),
            require_approval_before_apply: custom
                .is_some_and(|custom| custom.require_approval_before_apply),
            require_approval_for_destroy: custom
                .is_some_and(|custom| custom.require_approval_for_destroy),
            approval_timeout: custom.and_then(|custom| custom.approval_timeout).map(Duration::from),
            grace: policy::grace(custom),
            apply_id,
            progress_deadline: self.service.progress_deadline.map(Duration::from),
            auto_rollback: self
                .service
                .auto_rollback
                .as_ref()
                .is_some_and(|rollback| !rollback.disabled),
            // What a channel had before, and what became of the others, the driver knows.
            stable_before: false,
            is_rollback: false,
            shared_for: None,
        };
        Some(CompiledInstance {
            channel: self.channel.name.clone(),
            runtime: runtime.name.clone(),
            place: commands.place.clone(),
            desired,
            commands,
        })
    }

    fn place(&self) -> DocumentField {
        DocumentField::of(DocumentKey::Service(
            self.service.application.clone(),
            self.service.name.clone(),
        ))
    }

    /// What the service says for this channel alone.
    fn own(&self) -> Option<(&'a PerReleaseChannel, DocumentField)> {
        let entries = self.service.per_release_channel.iter().enumerate();
        let (index, own) =
            entries.rev().find(|(_, own)| own.release_channel == self.channel.name)?;
        Some((own, self.place().field("perReleaseChannel").item(index)))
    }

    /// Constants and builtins: what both the service's and the runtime's templates see.
    fn base_scope(&self, runtime: &Runtime) -> TemplateScope {
        let mut scope = TemplateScope::default();
        for (name, text) in &self.channel.constants {
            scope.insert_text(builtins::constant(name), text.as_str());
        }
        let own = self.own();
        let constants =
            self.service.constants.iter().chain(own.iter().flat_map(|(own, _)| &own.constants));
        for constant in constants {
            scope.insert_text(builtins::constant(&constant.name), constant.string.value.as_str());
        }
        scope.insert_text(builtins::APPLICATION_NAME, self.service.application.as_str());
        scope.insert_text(builtins::SERVICE_NAME, self.service.name.as_str());
        scope.insert_text(builtins::RELEASE_CHANNEL_NAME, self.channel.name.as_str());
        if let Some(group) = &self.channel.group {
            scope.insert_text(builtins::GROUP, group.as_str());
        }
        scope.insert(
            builtins::SERVICE_VERSION,
            match self.release {
                Some(release) => Value::Text(release.version.to_owned()),
                None => Value::Unknown,
            },
        );
        channels::add_runtime_builtins(
            &mut scope,
            &runtime.name,
            &self.configs.runtime_labels(&runtime.name),
        );
        scope
    }

    fn add_release_parameters(&self, scope: &mut TemplateScope, problems: &mut Problems) {
        match self.release {
            None => parameters::insert_unknown(scope, &self.service.parameters),
            Some(release) => self.add_values(scope, release, problems),
        }
    }

    fn add_values(
        &self,
        scope: &mut TemplateScope,
        release: &Release<'_>,
        problems: &mut Problems,
    ) {
        for definition in &self.service.parameters {
            let name = &definition.name;
            let place = DocumentField::of_release(format!("params.{name}"));
            let given = release
                .values
                .get(Some(&self.channel.name), name)
                .map(|given| parameters::from_release(definition, given, self.seal));
            let value = match given {
                None => None,
                Some(Ok(value)) => Some(value),
                Some(Err(why)) => {
                    let problem = place.problem(format!("parameter `{name}`: {why}"));
                    problems.add(
                        problem.help(format!("give it a new value, as in `--param {name}=…`")),
                    );
                    Some(Bound::Unknown)
                }
            };
            if let Err(lack) = parameters::insert(scope, definition, value) {
                let channel = &self.channel.name;
                let help = format!(
                    "give it with `--param {name}=…`; `services push` takes one for this channel \
                     alone, `--param-for-channel {channel}:{name}=…`"
                );
                problems.add(parameters::missing(definition, lack, &place, &help));
                // Only the one problem: what uses the parameter is fine.
                let _ = parameters::insert(scope, definition, Some(Bound::Unknown));
            }
        }
    }

    /// The runtime's parameters, filled with what the service gives for this channel.
    fn add_runtime_parameters(
        &self,
        scope: &mut TemplateScope,
        runtime: &Runtime,
        commands: &EffectiveRuntime<'_>,
        service_scope: &TemplateScope,
        problems: &mut Problems,
    ) {
        let custom = commands.custom();
        let given = RuntimeValues {
            runtime: runtime.name.as_str(),
            definitions: &custom.parameters,
            scope: service_scope,
            seal: self.seal,
        };
        let mut bound: BTreeMap<String, Bound> = given.bind(&self.parameter_values(), problems);
        self.bind_block(&mut bound, runtime, commands, service_scope, problems);
        for definition in &custom.parameters {
            if let Err(lack) = parameters::insert(scope, definition, bound.remove(&definition.name))
            {
                let place = self.place().field(commands.block().unwrap_or("customRuntime"));
                let help = commands.asks(runtime.name.as_str());
                problems.add(parameters::missing(definition, lack, &place, &help));
                // Only the one problem: what uses the parameter is fine.
                let _ = parameters::insert(scope, definition, Some(Bound::Unknown));
            }
        }
    }

    /// The values that the service gives its runtime here: those of the channel joined with the
    /// others by name.
    fn parameter_values(&self) -> Vec<(&'a ParameterValue, DocumentField)> {
        let list = |values: &'a [ParameterValue], place: DocumentField| {
            let place = place.field("customRuntime").field("parameterValues");
            values.iter().enumerate().map(move |(index, value)| (value, place.item(index)))
        };
        let mut values: Vec<_> = self
            .service
            .custom_runtime
            .iter()
            .flat_map(|own| list(&own.parameter_values, self.place()))
            .collect();
        if let Some((own, place)) = self.own()
            && let Some(custom) = &own.custom_runtime
        {
            let clears = custom.clear_on_per_release_channel_merge;
            values.retain(|(value, _)| {
                !clears && !custom.parameter_values.iter().any(|own| own.name == value.name)
            });
            values.extend(list(&custom.parameter_values, place));
        }
        values
    }

    /// Environment from outside the runtime, lowest precedence first.
    fn env_layers<'b>(&'b self, scope: &'b TemplateScope) -> Vec<EnvLayer<'b>> {
        let (default_env, default_place) = &self.channel.default_env;
        let mut layers = vec![
            EnvLayer { env: default_env, place: default_place.clone(), scope },
            EnvLayer { env: &self.service.env, place: self.place().field("env"), scope },
        ];
        if let Some((own, place)) = self.own() {
            layers.push(EnvLayer { env: &own.env, place: place.field("env"), scope });
        }
        layers
    }
}

/// A service on a `fake` runtime: an apply that succeeds, or fails when the service is among the
/// crashing programs.
fn fake_commands(name: &str, place: JobPlace) -> Commands {
    let apply = Command::new(name, &[name]);
    Commands { place, fetch: None, apply, get_info: None }
}
