//! Rules of a service, and of what it says for each channel.

use super::Rules;
use crate::service::RuntimeBlocks;
use crate::{
    AwsEcsService, Constant, CustomRuntimeValues, GoogleCloudRunService, KubernetesOverride,
    ParameterValue, PerReleaseChannel, Service,
};

impl Rules<'_> {
    pub(super) fn service(&mut self, service: &Service, at: &str) {
        self.parameters(&service.parameters, at);
        self.said(&service.constants, service.blocks(), at, false);
        self.together(service, at);
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
            self.said(&own.constants, own.blocks(), &at, true);
        }
    }

    /// What is said for all channels, or for one.
    fn said(
        &mut self,
        constants: &[Constant],
        blocks: RuntimeBlocks<'_>,
        at: &str,
        is_of_channel: bool,
    ) {
        self.constants(constants, at);
        if let Some(values) = blocks.custom_runtime {
            self.values(values, &format!("{at}/customRuntime"), is_of_channel);
        }
        for (field, local) in blocks.local_files() {
            self.local(local, &format!("{at}/{field}"));
        }
    }

    /// What a channel's block and the service's make together must be whole: the service's alone
    /// where no channel has one.
    fn together(&mut self, service: &Service, at: &str) {
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
            ecs(service.aws_ecs.as_deref()),
            &of_channels(&|own| ecs(own.aws_ecs.as_deref())),
            at,
            "awsEcs",
            task,
        );
        let channels = of_channels(&|own| run(own.google_cloud_run.as_deref()));
        self.whole(run(service.google_cloud_run.as_deref()), &channels, at, "googleCloudRun", spec);
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
