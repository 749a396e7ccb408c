//! The document `service`: what is released, and what differs from channel to channel.

use schema::id::{ApplicationName, ChannelName, ConnectionName, ServiceName};
use schema::schedule::Duration;

use crate::env::Env;
use crate::kubernetes::{KubernetesConfig, KubernetesOverride};
use crate::message::message;
use crate::params::{Constant, ParameterDefinition, ParameterValue};
use crate::runners::{AwsEcsService, GoogleCloudRunService, PulumiService, TerraformService};

message! {
    /// A service: what is released.
    #[schemars(extend(
        "x-aliases" = {"runtimeExtension": "customRuntime"},
        "x-atMostOne" = ["customRuntime", "kubernetesConfig", "terraform", "pulumi", "awsEcs", "googleCloudRun"]
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
        /// Kubernetes documents, for a Kubernetes runtime.
        kubernetes_config: Option<KubernetesConfig>,
        /// For a `terraformRunner`.
        terraform: Option<TerraformService>,
        /// For a `pulumiRunner`.
        pulumi: Option<PulumiService>,
        /// For an `awsEcs` runtime.
        aws_ecs: Option<AwsEcsService>,
        /// For a `googleCloudRun` runtime.
        google_cloud_run: Option<GoogleCloudRunService>,
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
        bundle_name: Option<String>,
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
        "x-atMostOne" = ["customRuntime", "kubernetesConfig", "terraform", "pulumi", "awsEcs", "googleCloudRun"]
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
        terraform: Option<TerraformService>,
        /// For a `pulumiRunner`.
        pulumi: Option<PulumiService>,
        /// For an `awsEcs` runtime.
        aws_ecs: Option<AwsEcsService>,
        /// For a `googleCloudRun` runtime.
        google_cloud_run: Option<GoogleCloudRunService>,
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
