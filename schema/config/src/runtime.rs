//! The document `runtime` and the kinds that are not commands of the user.

use std::borrow::Cow;

use schema::id::RuntimeName;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::custom::CustomRuntime;
use crate::message::{message, only};
use crate::runners::{AwsEcsRuntime, GoogleCloudRunRuntime, IacRunner};

/// A place where services live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenRuntime", into = "WrittenRuntime")]
pub struct Runtime {
    /// Its name, unique in the scheduler.
    pub name: RuntimeName,
    /// Labels for selectors.
    pub labels: Vec<Label>,
    /// What kind of runtime it is.
    pub kind: RuntimeKind,
}

/// What kind of runtime it is. What each of them comes to says [`Runtime::role`].
#[derive(Debug, Clone, PartialEq)]
pub enum RuntimeKind {
    /// `custom`.
    Custom(Box<CustomRuntime>),
    /// `kubernetes`, or no kind block (`None`).
    Kubernetes(Option<KubernetesRuntime>),
    /// `local`.
    Local(LocalRuntime),
    /// `fake`.
    Fake(FakeRuntime),
    /// `terraformRunner`.
    TerraformRunner(Box<IacRunner>),
    /// `pulumiRunner`.
    PulumiRunner(Box<IacRunner>),
    /// `awsEcs`.
    AwsEcs(Box<AwsEcsRuntime>),
    /// `googleCloudRun`.
    GoogleCloudRun(Box<GoogleCloudRunRuntime>),
}

/// A runtime as it is read and written: its kinds are fields side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(
    description = "A place where services live. With no kind block it is a Kubernetes cluster.",
    extend(
        "x-aliases" = {"extension": "custom"},
        "x-atMostOne" = [
            "custom", "kubernetes", "local", "fake", "terraformRunner", "pulumiRunner", "awsEcs",
            "googleCloudRun"
        ]
    )
)]
struct WrittenRuntime {
    /// Its name, unique in the scheduler.
    name: RuntimeName,
    /// Labels for selectors.
    #[serde(default)]
    labels: Vec<Label>,
    /// A runtime made of three commands.
    custom: Option<Box<CustomRuntime>>,
    /// A Kubernetes cluster.
    kubernetes: Option<KubernetesRuntime>,
    /// Processes on the scheduler's own machine.
    local: Option<LocalRuntime>,
    /// Nothing runs and all succeeds at once; for trying configs out.
    fake: Option<FakeRuntime>,
    /// Terraform or OpenTofu.
    terraform_runner: Option<Box<IacRunner>>,
    /// Pulumi.
    pulumi_runner: Option<Box<IacRunner>>,
    /// AWS Elastic Container Service.
    aws_ecs: Option<Box<AwsEcsRuntime>>,
    /// Google Cloud Run.
    google_cloud_run: Option<Box<GoogleCloudRunRuntime>>,
}

impl TryFrom<WrittenRuntime> for Runtime {
    type Error = &'static str;

    fn try_from(written: WrittenRuntime) -> Result<Self, Self::Error> {
        let WrittenRuntime {
            name,
            labels,
            custom,
            kubernetes,
            local,
            fake,
            terraform_runner,
            pulumi_runner,
            aws_ecs,
            google_cloud_run,
        } = written;
        let kinds = [
            custom.map(RuntimeKind::Custom),
            kubernetes.map(|kubernetes| RuntimeKind::Kubernetes(Some(kubernetes))),
            local.map(RuntimeKind::Local),
            fake.map(RuntimeKind::Fake),
            terraform_runner.map(RuntimeKind::TerraformRunner),
            pulumi_runner.map(RuntimeKind::PulumiRunner),
            aws_ecs.map(RuntimeKind::AwsEcs),
            google_cloud_run.map(RuntimeKind::GoogleCloudRun),
        ];
        let no_block = kinds.iter().all(Option::is_none).then_some(RuntimeKind::Kubernetes(None));
        Ok(Self { name, labels, kind: only(kinds.into_iter().chain([no_block]))? })
    }
}

impl From<Runtime> for WrittenRuntime {
    fn from(Runtime { name, labels, kind }: Runtime) -> Self {
        let mut written = Self {
            name,
            labels,
            custom: None,
            kubernetes: None,
            local: None,
            fake: None,
            terraform_runner: None,
            pulumi_runner: None,
            aws_ecs: None,
            google_cloud_run: None,
        };
        match kind {
            RuntimeKind::Custom(custom) => written.custom = Some(custom),
            RuntimeKind::Kubernetes(kubernetes) => written.kubernetes = kubernetes,
            RuntimeKind::Local(local) => written.local = Some(local),
            RuntimeKind::Fake(fake) => written.fake = Some(fake),
            RuntimeKind::TerraformRunner(runner) => written.terraform_runner = Some(runner),
            RuntimeKind::PulumiRunner(runner) => written.pulumi_runner = Some(runner),
            RuntimeKind::AwsEcs(ecs) => written.aws_ecs = Some(ecs),
            RuntimeKind::GoogleCloudRun(run) => written.google_cloud_run = Some(run),
        }
        written
    }
}

impl JsonSchema for Runtime {
    fn schema_name() -> Cow<'static, str> {
        "Runtime".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WrittenRuntime::json_schema(generator)
    }
}

message! {
    /// A label, for selectors.
    Label {
        /// Its key.
        #[schemars(
            regex(pattern = r"^[A-Za-z0-9_]([A-Za-z0-9_./-]*[A-Za-z0-9_])?$"),
            extend(
                "patternErrorMessage" = "label keys are letters, digits, `_`, `-`, `.` and `/`, \
                                         starting and ending with a letter, a digit or `_`"
            )
        )]
        label: String,
        /// Its value.
        value: String,
    }
}

message! {
    /// A Kubernetes cluster. Without `kubeconfig`: the scheduler's own cluster, else the default
    /// kubeconfig.
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
        /// The image that holds the wrapper, at `/pvn-wrapper`. Default: the wrapper image of the
        /// scheduler's version.
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
