//! What a single document must keep to and a JSON Schema cannot say: fields that depend on each
//! other, names given twice, Job files. Each problem by JSON pointer.

mod jobs;

use std::collections::{BTreeMap, BTreeSet};

use schema::id::ChannelName;
use schema::schedule::{CronText, Duration, Timezone};

use crate::{
    Application, ApplyCommand, AwsEcsService, Body, ChannelGroup, Constant, CustomRuntime,
    CustomRuntimeValues, Exec, FetchCommand, GetInfoCommand, GoogleCloudRunService,
    KubernetesOverride, LocalFiles, ParameterDefinition, ParameterValue, PerReleaseChannel,
    Precondition, Program, RetryPolicy, Runtime, RuntimeKind, Service, StableChannels, Volume,
};

/// Shortest deadline that people or an apply may be given, milliseconds: what is shorter is a slip
/// of units, and would pass again and again.
const SHORTEST_DEADLINE_MS: i64 = 1_000;

/// A rule that is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleViolation {
    pub(super) pointer: String,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// Everything of one document that breaks a rule. What is missing is told of a whole document
/// alone: of another one, what was wrong by itself has been taken out.
pub(super) fn check(
    body: &Body,
    attachments: &BTreeMap<String, String>,
    is_whole: bool,
) -> Vec<RuleViolation> {
    let mut rules = Rules { broken: Vec::new(), attachments, is_whole };
    match body {
        Body::Runtime(runtime) => {
            rules.runtime(runtime, "/runtime");
            rules
                .broken
                .iter_mut()
                .for_each(|rule| rule.pointer = runtime.written(&rule.pointer).into_owned());
        }
        Body::Application(application) => rules.application(application, "/application"),
        Body::Service(service) => rules.service(service, "/service"),
    }
    rules.broken
}

struct Rules<'a> {
    broken: Vec<RuleViolation>,
    attachments: &'a BTreeMap<String, String>,
    is_whole: bool,
}

impl Rules<'_> {
    fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.broken.push(RuleViolation {
            pointer: pointer.into(),
            message: message.into(),
            help: None,
        });
    }

    fn help(&mut self, help: impl Into<String>) {
        if let Some(last) = self.broken.last_mut() {
            last.help = Some(help.into());
        }
    }

    /// No two of these names are the same.
    fn unique<'n>(
        &mut self,
        names: impl IntoIterator<Item = &'n str>,
        what: &str,
        pointer: impl Fn(usize) -> String,
    ) {
        let mut first = BTreeMap::new();
        for (index, name) in names.into_iter().enumerate() {
            if first.insert(name.to_owned(), index).is_some() {
                self.add(pointer(index), format!("{what} `{name}` is given twice"));
            }
        }
    }

    fn runtime(&mut self, runtime: &Runtime, at: &str) {
        self.unique(runtime.labels.iter().map(|label| label.label.as_str()), "label", |index| {
            format!("{at}/labels/{index}/label")
        });
        let role = runtime.role();
        let at = format!("{at}/{}", role.kind);
        if let Some(commands) = &role.commands {
            self.custom(commands.custom(), &at);
        }
        if let RuntimeKind::TerraformRunner(runner) | RuntimeKind::PulumiRunner(runner) =
            &runtime.kind
        {
            self.retry(runner.fetch_retry_policy.as_ref(), &format!("{at}/fetchRetryPolicy"));
            self.retry(runner.apply_retry_policy.as_ref(), &format!("{at}/applyRetryPolicy"));
            self.volumes(&runner.volumes, &at);
        }
    }

    fn custom(&mut self, custom: &CustomRuntime, at: &str) {
        if let Some(fetch) = &custom.fetch {
            self.fetch(fetch, &format!("{at}/fetch"));
        }
        self.apply(&custom.apply, &format!("{at}/apply"));
        let why = "nobody can answer in so short a time, and people would be asked again and again";
        self.at_least_a_second(custom.approval_timeout, "approvalTimeout", why, at);
        if let Some(get_info) = &custom.get_info {
            self.get_info(get_info, &format!("{at}/getInfo"));
        }
        self.parameters(&custom.parameters, at);
    }

    /// A duration that is not meant to be shorter, with the reason.
    fn at_least_a_second(&mut self, duration: Option<Duration>, field: &str, why: &str, at: &str) {
        if let Some(short) = duration.filter(|duration| duration.as_ms() < SHORTEST_DEADLINE_MS) {
            self.add(format!("{at}/{field}"), format!("`{field}` {short} is too short: {why}"));
            self.help("give at least `1s`; without it there is no limit");
        }
    }

    fn fetch(&mut self, fetch: &FetchCommand, at: &str) {
        self.command(&fetch.exec, at);
        self.retry(fetch.retry_policy.as_ref(), &format!("{at}/retryPolicy"));
        self.schedule(fetch.poll_schedule.as_ref(), fetch.timezone, at);
    }

    fn get_info(&mut self, get_info: &GetInfoCommand, at: &str) {
        self.command(&get_info.exec, at);
        self.retry(get_info.retry_policy.as_ref(), &format!("{at}/retryPolicy"));
        self.schedule(get_info.poll_schedule.as_ref(), get_info.timezone, at);
    }

    fn schedule(&mut self, schedule: Option<&CronText>, timezone: Option<Timezone>, at: &str) {
        if timezone.is_some() && schedule.is_none() {
            self.add(
                format!("{at}/timezone"),
                "`timezone` is that of `pollSchedule`, which is missing",
            );
        }
    }

    fn apply(&mut self, apply: &ApplyCommand, at: &str) {
        self.command(&apply.exec, at);
        self.retry(apply.retry_policy.as_ref(), &format!("{at}/retryPolicy"));
        let codes: Vec<String> = apply.retryable_exit_codes.iter().map(i32::to_string).collect();
        self.unique(codes.iter().map(String::as_str), "exit code", |index| {
            format!("{at}/retryableExitCodes/{index}")
        });
    }

    fn retry(&mut self, policy: Option<&RetryPolicy>, at: &str) {
        if let Some(RetryPolicy { base_interval: Some(base), max_interval: Some(max), .. }) = policy
            && max < base
        {
            self.add(
                format!("{at}/maxInterval"),
                format!("`maxInterval` {max} is less than `baseInterval` {base}"),
            );
        }
    }

    fn command(&mut self, exec: &Exec, at: &str) {
        match exec {
            Exec::Task(task) => {
                self.program(&task.program, &format!("{at}/taskConfig/program"));
                self.volumes(&task.volumes, &format!("{at}/taskConfig"));
            }
            Exec::Kubernetes(kubernetes) => {
                let at = format!("{at}/kubernetesConfig");
                self.local(kubernetes.local.as_ref(), &at);
                self.job(kubernetes, &at);
            }
        }
    }

    fn program(&mut self, program: &Program, at: &str) {
        if program.image.is_some() && program.image_tag.is_some() {
            self.add(
                format!("{at}/imageTag"),
                "at most one of `image`, `imageTag`; both are given",
            );
            self.help(
                "`image` is the whole reference; with `imageTag` the rest is in \
                 `imageRegistryInfo`",
            );
        } else if program.image_tag.is_some() && program.image_registry_info.is_none() {
            self.add(
                format!("{at}/imageTag"),
                "`imageTag` needs `imageRegistryInfo`: nothing says of which image it is the tag",
            );
        }
    }

    fn volumes(&mut self, volumes: &[Volume], at: &str) {
        self.unique(volumes.iter().map(|volume| volume.name.as_str()), "volume", |index| {
            format!("{at}/volumes/{index}/name")
        });
        let paths = volumes.iter().map(|volume| volume.mount.mount_path.as_str());
        self.unique(paths, "mount path", |index| format!("{at}/volumes/{index}/mount/mountPath"));
    }

    fn local(&mut self, local: Option<&LocalFiles>, at: &str) {
        let Some(local) = local else { return };
        let at = format!("{at}/local");
        if local.path.is_none() && local.paths.is_empty() {
            self.add(format!("{at}/paths"), "`paths` is empty; name at least one file");
        }
        if local.sub_path.is_some() && local.path.is_none() {
            self.add(format!("{at}/subPath"), "`subPath` is a part of `path`, which is missing");
        }
        for (name, patterns) in [
            ("includePatterns", &local.include_patterns),
            ("excludePatterns", &local.exclude_patterns),
        ] {
            for (index, pattern) in patterns.iter().enumerate() {
                let filter =
                    crate::local::Filter { include: vec![pattern.clone()], exclude: Vec::new() };
                if let Err(why) = filter.compile() {
                    self.add(format!("{at}/{name}/{index}"), why);
                }
            }
        }
        for reference in crate::local::references(local, &at) {
            let own = LocalFiles {
                path: Some(reference.path.clone()),
                paths: Vec::new(),
                ..local.clone()
            };
            if crate::local::attached(self.attachments, &own, None).is_empty() {
                self.add(
                    reference.pointer,
                    format!(
                        "`{}` was not sent along with the config file",
                        schema::check::cut(&reference.path)
                    ),
                );
                self.help("`pvnctl` sends it; it reads local files relative to the config file");
            }
        }
    }

    fn parameters(&mut self, parameters: &[ParameterDefinition], at: &str) {
        let names = parameters.iter().map(|parameter| parameter.name.as_str());
        self.unique(names, "parameter", |index| format!("{at}/parameters/{index}/name"));
    }

    fn constants(&mut self, constants: &[Constant], at: &str) {
        self.unique(constants.iter().map(|constant| constant.name.as_str()), "constant", |index| {
            format!("{at}/constants/{index}/name")
        });
    }

    fn application(&mut self, application: &Application, at: &str) {
        if self.is_whole
            && application.release_channels.is_empty()
            && application.release_channel_groups.is_empty()
        {
            self.add(at, format!("application `{}` has no release channels", application.name));
            self.help("add `releaseChannels: [{name: …, runtimes: [{runtime: …}]}]`");
        }
        let names = application.release_channels.iter().map(|channel| channel.name.as_str());
        self.unique(names, "release channel", |index| format!("{at}/releaseChannels/{index}/name"));
        for (index, channel) in application.release_channels.iter().enumerate() {
            let at = format!("{at}/releaseChannels/{index}");
            if self.is_whole && channel.runtimes.is_empty() {
                self.add(&at, "the channel has no runtime");
                self.help("name one under `runtimes`, as in `runtimes: [{runtime: my-runtime}]`");
            }
            let connections = channel.runtimes.iter().map(|entry| {
                entry.name.as_ref().map_or(entry.runtime.as_str(), |name| name.as_str())
            });
            self.unique(connections, "runtime connection", |index| {
                format!("{at}/runtimes/{index}")
            });
            self.channel(&channel.constants, &channel.preconditions, &at, false);
        }
        let names = application.release_channel_groups.iter().map(|group| group.name.as_str());
        self.unique(names, "release channel group", |index| {
            format!("{at}/releaseChannelGroups/{index}/name")
        });
        for (index, ChannelGroup { template, .. }) in
            application.release_channel_groups.iter().enumerate()
        {
            if let Some(template) = template {
                let at = format!("{at}/releaseChannelGroups/{index}/template");
                self.channel(&template.constants, &template.preconditions, &at, true);
            }
        }
    }

    fn channel(
        &mut self,
        constants: &[Constant],
        preconditions: &[Precondition],
        at: &str,
        is_template: bool,
    ) {
        self.constants(constants, at);
        // By its name a decision is known: one yes would count for both.
        let mut approvals = BTreeSet::new();
        for (index, precondition) in preconditions.iter().enumerate() {
            let (kind, name) = match precondition {
                Precondition::ManualApproval(approval) => {
                    ("manualApproval", approval.name.as_ref())
                }
                Precondition::SharedManualApproval(approval) => {
                    ("sharedManualApproval", Some(&approval.name))
                }
                Precondition::ReleaseChannelStable(_) => continue,
            };
            if let Some(name) = name.filter(|name| !approvals.insert((kind, *name))) {
                self.add(
                    format!("{at}/preconditions/{index}/{kind}/name"),
                    format!("`{kind}` `{name}` is given twice, so one yes would count for both"),
                );
            }
        }
        for (index, precondition) in preconditions.iter().enumerate() {
            let Precondition::ReleaseChannelStable(stable) = precondition else { continue };
            let at = format!("{at}/preconditions/{index}/releaseChannelStable");
            let StableChannels::ReleaseChannel(channel) = &stable.channels else { continue };
            if !(is_template && channel.contains("{{"))
                && let Err(error) = channel.parse::<ChannelName>()
            {
                self.add(format!("{at}/releaseChannel"), error.to_string());
            }
            if stable.allow_empty {
                self.add(
                    format!("{at}/allowEmpty"),
                    "`allowEmpty` is about `selector`, which is missing",
                );
            }
        }
    }

    fn service(&mut self, service: &Service, at: &str) {
        self.parameters(&service.parameters, at);
        self.constants(&service.constants, at);
        if let Some(values) = &service.custom_runtime {
            self.values(values, &format!("{at}/customRuntime"), false);
        }
        self.local(
            service.kubernetes_config.as_ref().and_then(|config| config.local.as_ref()),
            &format!("{at}/kubernetesConfig"),
        );
        self.specs(service.aws_ecs.as_ref(), at);
        self.local(
            service.google_cloud_run.as_ref().and_then(|run| run.local.as_ref()),
            &format!("{at}/googleCloudRun"),
        );
        self.blocks(service, at);
        let why = "every release would be stuck before it could converge";
        self.at_least_a_second(service.progress_deadline, "progressDeadline", why, at);
        let rolls_back = service.auto_rollback.as_ref().is_some_and(|rollback| !rollback.disabled);
        if self.is_whole && rolls_back && service.progress_deadline.is_none() {
            self.add(
                format!("{at}/autoRollback"),
                "`autoRollback` needs a `progressDeadline`: nothing says when a release is stuck",
            );
            self.help("add for example `progressDeadline: 1800s`");
        }
        let channels = service.per_release_channel.iter().map(|own| own.release_channel.as_str());
        self.unique(channels, "release channel", |index| {
            format!("{at}/perReleaseChannel/{index}/releaseChannel")
        });
        for (index, own) in service.per_release_channel.iter().enumerate() {
            let at = format!("{at}/perReleaseChannel/{index}");
            self.constants(&own.constants, &at);
            if let Some(values) = &own.custom_runtime {
                self.values(values, &format!("{at}/customRuntime"), true);
            }
            self.local(
                own.kubernetes_config.as_ref().and_then(|config| config.local.as_ref()),
                &format!("{at}/kubernetesConfig"),
            );
            self.specs(own.aws_ecs.as_ref(), &at);
            self.local(
                own.google_cloud_run.as_ref().and_then(|run| run.local.as_ref()),
                &format!("{at}/googleCloudRun"),
            );
        }
    }

    fn specs(&mut self, ecs: Option<&AwsEcsService>, at: &str) {
        let Some(ecs) = ecs else { return };
        for (field, spec) in [
            ("taskDefinition", &ecs.task_definition),
            ("serviceDefinition", &ecs.service_definition),
        ] {
            self.local(
                spec.as_ref().and_then(|spec| spec.local.as_ref()),
                &format!("{at}/awsEcs/{field}"),
            );
        }
    }

    /// What a channel's block and the service's make together must be whole: the service's alone
    /// where no channel has one.
    fn blocks(&mut self, service: &Service, at: &str) {
        let ecs = |block: Option<&AwsEcsService>| block.map(|ecs| ecs.task_definition.is_some());
        let run = |block: Option<&GoogleCloudRunService>| {
            block.map(|run| run.inlined.is_some() || run.local.is_some())
        };
        let kubernetes = |own: &KubernetesOverride| own.inlined.is_some() || own.local.is_some();
        let (task, spec) = (
            "`taskDefinition` is required and missing",
            "exactly one of `inlined`, `local`; none is given",
        );
        let own = &service.per_release_channel;
        let of_channels = |is_whole: &dyn Fn(&PerReleaseChannel) -> Option<bool>| {
            own.iter().map(is_whole).collect::<Vec<_>>()
        };
        self.whole(
            ecs(service.aws_ecs.as_ref()),
            &of_channels(&|own| ecs(own.aws_ecs.as_ref())),
            at,
            "awsEcs",
            task,
        );
        let channels = of_channels(&|own| run(own.google_cloud_run.as_ref()));
        self.whole(run(service.google_cloud_run.as_ref()), &channels, at, "googleCloudRun", spec);
        // The service's own, where there is one, is whole by itself.
        let base = service.kubernetes_config.as_ref().map(|_| true);
        self.whole(
            base,
            &of_channels(&|own| own.kubernetes_config.as_ref().map(kubernetes)),
            at,
            "kubernetesConfig",
            spec,
        );
        let typed =
            of_channels(&|own| own.kubernetes_config.as_ref().map(|own| own.kind.is_some()));
        self.whole(base, &typed, at, "kubernetesConfig", "`type` is required and missing");
    }

    /// Which blocks there are, and whether each has by itself what is needed.
    fn whole(
        &mut self,
        service: Option<bool>,
        channels: &[Option<bool>],
        at: &str,
        block: &str,
        missing: &str,
    ) {
        if service == Some(false) && channels.iter().all(|channel| *channel != Some(true)) {
            return self.add(format!("{at}/{block}"), missing);
        }
        for (index, channel) in channels.iter().enumerate() {
            if *channel == Some(false) && service != Some(true) {
                self.add(
                    format!("{at}/perReleaseChannel/{index}/{block}"),
                    format!("{missing}, and the service does not say it either"),
                );
            }
        }
    }

    fn values(&mut self, values: &CustomRuntimeValues, at: &str, is_of_channel: bool) {
        let names = values.parameter_values.iter().map(|ParameterValue { name, .. }| name.as_str());
        self.unique(names, "parameter", |index| format!("{at}/parameterValues/{index}/name"));
        if values.clear_on_per_release_channel_merge && !is_of_channel {
            self.add(
                format!("{at}/clearOnPerReleaseChannelMerge"),
                "`clearOnPerReleaseChannelMerge` is for entries of `perReleaseChannel`",
            );
        }
    }
}
