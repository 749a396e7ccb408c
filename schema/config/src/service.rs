//! The document `service`: what is released, and what differs from channel to channel.

use schema::id::{ApplicationName, ChannelName, ConnectionName, ServiceName};
use schema::schedule::Duration;

use crate::env::Env;
use crate::kubernetes::{KubernetesConfig, KubernetesOverride, LocalFiles};
use crate::message::message;
use crate::params::{Constant, ParameterDefinition, ParameterValue};
use crate::runners::{
    AwsEcsService, GoogleCloudRunService, PulumiService, SpecFile, TerraformService,
};
use crate::template::Template;

message! {
    /// A service: what is released.
    #[schemars(extend(
        "x-aliases" = {"runtimeExtension": "customRuntime"},
        "x-atMostOne" = [
            "customRuntime", "kubernetesConfig", "terraform", "pulumi", "awsEcs", "googleCloudRun"
        ]
    ))]
    Service {
        /// Its name, unique in the application.
        name: ServiceName,
        /// The application that it belongs to.
        application: ApplicationName,
        /// Which of a channel's runtimes serves it. Needed only where more than one does.
        runtime_connection: Option<ConnectionName>,
        /// What it says to its custom runtime.
        custom_runtime: Option<CustomRuntimeValues>,
        // Boxed, as each service has one of these at most: they would be two thirds of its size,
        // and thousands of services are there twice while a set of files is put.
        /// Kubernetes documents, for a Kubernetes runtime.
        kubernetes_config: Option<Box<KubernetesConfig>>,
        /// For a `terraformRunner`.
        terraform: Option<Box<TerraformService>>,
        /// For a `pulumiRunner`.
        pulumi: Option<Box<PulumiService>>,
        /// For an `awsEcs` runtime.
        aws_ecs: Option<Box<AwsEcsService>>,
        /// For a `googleCloudRun` runtime.
        google_cloud_run: Option<Box<GoogleCloudRunService>>,
        /// What a release takes.
        #[serde(default)]
        parameters: Vec<ParameterDefinition>,
        /// Constants for templates.
        #[serde(default)]
        constants: Vec<Constant>,
        /// Environment of its jobs.
        #[serde(default, skip_serializing_if = "Env::is_empty")]
        #[schemars(extend("propertyNames" = {"pattern": r"^[a-zA-Z_][a-zA-Z0-9_]*$"}))]
        env: Env,
        /// What differs from channel to channel.
        #[serde(default)]
        per_release_channel: Vec<PerReleaseChannel>,
        /// Name of each version, a template: 1 to 128 bytes without blanks, quotes, `$` and
        /// backslashes, and not beginning with `-`, `.` or `/`. Default: the service's name and a
        /// number.
        #[schemars(length(min = 1))]
        bundle_name: Option<Template>,
        /// How long a release may take to converge before it counts as stuck. Default: without end.
        progress_deadline: Option<Duration>,
        /// Go back to the last converged version when a release is stuck. Needs `progressDeadline`.
        /// Default: off.
        auto_rollback: Option<AutoRollback>,
    }
}

message! {
    /// What a service says to its custom runtime.
    CustomRuntimeValues {
        /// Values for the runtime's parameters. Texts are templates.
        #[serde(default)]
        parameter_values: Vec<ParameterValue>,
        /// In `perReleaseChannel`: these values replace those of the service instead of being
        /// joined with them. Default: false.
        #[serde(default)]
        clear_on_per_release_channel_merge: bool,
    }
}

message! {
    /// What is different in one channel. Each field of a block wins over that of the service's;
    /// only both together must be whole.
    #[schemars(extend(
        "x-aliases" = {"runtimeExtension": "customRuntime"},
        "x-atMostOne" = [
            "customRuntime", "kubernetesConfig", "terraform", "pulumi", "awsEcs", "googleCloudRun"
        ]
    ))]
    PerReleaseChannel {
        /// The channel.
        release_channel: ChannelName,
        /// Which of the channel's runtimes serves the service.
        runtime_connection: Option<ConnectionName>,
        /// What it says to its custom runtime.
        custom_runtime: Option<CustomRuntimeValues>,
        /// Kubernetes documents, for a Kubernetes runtime.
        kubernetes_config: Option<KubernetesOverride>,
        /// For a `terraformRunner`.
        terraform: Option<Box<TerraformService>>,
        /// For a `pulumiRunner`.
        pulumi: Option<Box<PulumiService>>,
        /// For an `awsEcs` runtime.
        aws_ecs: Option<Box<AwsEcsService>>,
        /// For a `googleCloudRun` runtime.
        google_cloud_run: Option<Box<GoogleCloudRunService>>,
        /// Environment of its jobs; wins over that of the service.
        #[serde(default, skip_serializing_if = "Env::is_empty")]
        #[schemars(extend("propertyNames" = {"pattern": r"^[a-zA-Z_][a-zA-Z0-9_]*$"}))]
        env: Env,
        /// Constants for templates; win over those of the service.
        #[serde(default)]
        constants: Vec<Constant>,
    }
}

message! {
    /// Going back by itself.
    AutoRollback {
        /// Switch it off. Default: false.
        #[serde(default)]
        disabled: bool,
    }
}

/// The blocks for a runtime of some kind, of a service or of what is different in one channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuntimeBlocks<'a> {
    pub(super) custom_runtime: Option<&'a CustomRuntimeValues>,
    kubernetes_files: Option<&'a LocalFiles>,
    aws_ecs: Option<&'a AwsEcsService>,
    google_cloud_run: Option<&'a GoogleCloudRunService>,
}

impl Service {
    pub(super) fn blocks(&self) -> RuntimeBlocks<'_> {
        RuntimeBlocks {
            custom_runtime: self.custom_runtime.as_ref(),
            kubernetes_files: self.kubernetes_config.as_ref().and_then(|own| own.local.as_ref()),
            aws_ecs: self.aws_ecs.as_deref(),
            google_cloud_run: self.google_cloud_run.as_deref(),
        }
    }
}

impl PerReleaseChannel {
    pub(super) fn blocks(&self) -> RuntimeBlocks<'_> {
        RuntimeBlocks {
            custom_runtime: self.custom_runtime.as_ref(),
            kubernetes_files: self.kubernetes_config.as_ref().and_then(|own| own.local.as_ref()),
            aws_ecs: self.aws_ecs.as_deref(),
            google_cloud_run: self.google_cloud_run.as_deref(),
        }
    }
}

impl<'a> RuntimeBlocks<'a> {
    /// The `local` of each, by the field that it stands in.
    pub(super) fn local_files(self) -> [(&'static str, Option<&'a LocalFiles>); 4] {
        let of = |spec: &'a Option<SpecFile>| match spec {
            Some(SpecFile::Local(local)) => Some(local),
            Some(SpecFile::Inlined(_)) | None => None,
        };
        let (task, service) = self
            .aws_ecs
            .map_or((None, None), |ecs| (of(&ecs.task_definition), of(&ecs.service_definition)));
        [
            ("kubernetesConfig", self.kubernetes_files),
            ("awsEcs/taskDefinition", task),
            ("awsEcs/serviceDefinition", service),
            ("googleCloudRun", self.google_cloud_run.and_then(|run| run.local.as_ref())),
        ]
    }
}
