//! The document `runtime` and the kinds that are not commands of the user.

use schema::id::RuntimeName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::custom::CustomRuntime;
use crate::message;
use crate::runners::{AwsEcsRuntime, GoogleCloudRunRuntime, IacRunner};

message! {
    /// A place where services live. With no kind block it is a Kubernetes cluster.
    #[schemars(extend(
        "x-aliases" = {"extension": "custom"},
        "x-atMostOne" = ["custom", "kubernetes", "local", "fake", "terraformRunner", "pulumiRunner", "awsEcs", "googleCloudRun"]
    ))]
    Runtime {
        /// Its name, unique in the scheduler.
        name: RuntimeName,
        /// Labels for selectors.
        #[serde(default)]
        labels: Vec<Label>,
        /// A runtime made of three commands.
        custom: Option<CustomRuntime>,
        /// A Kubernetes cluster.
        kubernetes: Option<KubernetesRuntime>,
        /// Processes on the scheduler's own machine.
        local: Option<LocalRuntime>,
        /// Nothing runs and all succeeds at once; for trying configs out.
        fake: Option<FakeRuntime>,
        /// Terraform or OpenTofu.
        terraform_runner: Option<IacRunner>,
        /// Pulumi.
        pulumi_runner: Option<IacRunner>,
        /// AWS Elastic Container Service.
        aws_ecs: Option<AwsEcsRuntime>,
        /// Google Cloud Run.
        google_cloud_run: Option<GoogleCloudRunRuntime>,
    }
}

message! {
    /// A label, for selectors.
    Label {
        /// Its key.
        #[schemars(regex(pattern = r"^[A-Za-z0-9_]([A-Za-z0-9_./-]*[A-Za-z0-9_])?$"), extend("patternErrorMessage" = "label keys are letters, digits, `_`, `-`, `.` and `/`, starting and ending with a letter, a digit or `_`"))]
        label: String,
        /// Its value.
        value: String,
    }
}

message! {
    /// A Kubernetes cluster. Without `kubeconfig`: the scheduler's own cluster, else the default kubeconfig.
    KubernetesRuntime {
        /// Path of a kubeconfig on the scheduler's machine.
        #[schemars(length(min = 1))]
        kubeconfig: Option<String>,
        /// The context to use. Default: the current one.
        #[schemars(length(min = 1))]
        context: Option<String>,
        /// Whether and how the wrapper gets into images that have none.
        wrapper: Option<WrapperInjection>,
    }
}

message! {
    /// Whether and how the wrapper gets into images that have none.
    WrapperInjection {
        /// Put the wrapper before the command, by an init container. Default: false.
        #[serde(default)]
        inject: bool,
        /// The image that holds the wrapper. Default: the wrapper image of the scheduler's version.
        #[schemars(length(min = 1))]
        image: Option<String>,
    }
}

message! {
    /// Processes on the scheduler's own machine.
    LocalRuntime {
        /// Directory in which commands run. Default: where the scheduler was started.
        #[schemars(length(min = 1))]
        root: Option<String>,
        /// What commands inherit of the scheduler's environment. Default: inherit.
        env: Option<LocalEnv>,
    }
}

/// What local commands inherit of the scheduler's environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LocalEnv {
    /// All but `PVN_*`.
    #[default]
    Inherit,
    /// Only PATH, HOME, USER, LANG and TMPDIR.
    Clean,
}

message! {
    /// Nothing runs and all succeeds at once.
    FakeRuntime {
        /// Names of programs whose commands fail.
        #[serde(default)]
        crashing_programs: Vec<String>,
    }
}

/// What kind of runtime it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RuntimeKind<'a> {
    /// `custom`.
    Custom(&'a CustomRuntime),
    /// `kubernetes`, or no kind block (`None`).
    Kubernetes(Option<&'a KubernetesRuntime>),
    /// `local`.
    Local(&'a LocalRuntime),
    /// `fake`.
    Fake(&'a FakeRuntime),
    /// `terraformRunner`.
    TerraformRunner(&'a IacRunner),
    /// `pulumiRunner`.
    PulumiRunner(&'a IacRunner),
    /// `awsEcs`.
    AwsEcs(&'a AwsEcsRuntime),
    /// `googleCloudRun`.
    GoogleCloudRun(&'a GoogleCloudRunRuntime),
}

impl Runtime {
    /// What kind of runtime it is.
    pub fn kind(&self) -> RuntimeKind<'_> {
        let kinds = [
            self.custom.as_ref().map(RuntimeKind::Custom),
            self.local.as_ref().map(RuntimeKind::Local),
            self.fake.as_ref().map(RuntimeKind::Fake),
            self.terraform_runner.as_ref().map(RuntimeKind::TerraformRunner),
            self.pulumi_runner.as_ref().map(RuntimeKind::PulumiRunner),
            self.aws_ecs.as_ref().map(RuntimeKind::AwsEcs),
            self.google_cloud_run.as_ref().map(RuntimeKind::GoogleCloudRun),
        ];
        kinds.into_iter().flatten().next().unwrap_or(RuntimeKind::Kubernetes(self.kubernetes.as_ref()))
    }
}
