//! The config language: what a user writes in a `.pvn.yaml`, and what reads, checks and describes
//! that. One type for each document kind and message, one kind a file. Plain data: the
//! reader (`read`) makes it from text and has checked by then all that a single document can say
//! about itself; what documents say about each other is `references`, what they mean is the
//! scheduler's `compile`.
//!
//! Field names are Prodvana's (camelCase here, snake_case accepted by the reader). A list or map
//! that is absent is empty; anything else that is absent is `None`, and its default is in the
//! field's description.
//!
//! Pure, as `schema` is, on which it stands. The scheduler and pvnctl import it; the wrapper and
//! the engine do not.

mod application;
pub mod builtins;
mod coerce;
mod contended;
mod custom;
pub mod diagnostic;
mod document;
mod effective;
mod env;
mod estate;
mod formats;
mod group_template;
mod groups;
mod here;
mod ineffective;
mod json_schema;
mod kubernetes;
mod local;
mod message;
mod notifications;
mod params;
pub mod precondition;
mod read;
mod references;
mod rules;
mod runners;
mod runtime;
pub mod schemas;
mod secrets;
pub mod selector;
mod service;
mod shared;
mod source;
mod task;
pub mod template;
mod texts;
pub mod tool_document;
mod unmasked;
mod untaken;
mod written;
pub mod yaml;

pub use application::{
    Application, ChannelGroup, ChannelRuntime, ChannelTemplate, Policy, ReleaseChannel,
    TemplateRuntime,
};
pub use custom::{
    ApplyCommand, ContainerOrchestration, CustomRuntime, Exec, FetchCommand, FetchMode,
    GetInfoCommand, K8sPlace, ProxyRuntime, RetryPolicy, RuntimeCommand, Window,
};
pub use document::Document;
pub use effective::{
    Block, BlockDocument, BlockForm, BlockSource, BlockText, BlockValue, EffectiveRuntime, JobHost,
    RuntimeRole,
};
pub use env::{Env, EnvValue, KubernetesSecret, SECRET_KEY_RULE, SecretRef, is_secret_key};
pub use group_template::{ConstantTemplate, LabelTemplate, StringTemplate};
pub use here::{NO_PROGRAM_HELP, NotHere, not_here};
pub use ineffective::ineffective;
pub use kubernetes::{KubernetesConfig, KubernetesOverride, KubernetesType, LocalFiles};
pub use local::{CompiledFilter, Filter, Reference};
pub use notifications::{
    EmailProvider, NotificationProvider, NotificationTarget, SentValue, SlackProvider, SmtpServer,
    SmtpTls, WebhookProvider, signing_key, web_address,
};
pub use params::{
    BlobParameter, BlobValue, CommitParameter, Constant, DockerImageParameter, ImageRegistryInfo,
    IntParameter, ParameterDefinition, ParameterKind, ParameterValue, ParameterValueKind,
    SecretParameter, SecretValue, StringConstant, StringParameter,
};
pub use read::{
    FILE_LIMIT_BYTES, PROBLEM_LIMIT, not_utf8, read, read_source, references, too_large,
};
pub use references::check_references;
pub use runners::{
    AwsCredentials, AwsEcsRuntime, AwsEcsService, GoogleCloudRunRuntime, GoogleCloudRunService,
    IacRunner, PreRun, PulumiService, SpecFile, TerraformService,
};
pub use runtime::{
    FakeRuntime, KubernetesRuntime, Label, LocalEnv, LocalRuntime, Runtime, RuntimeKind,
    WrapperInjection,
};
pub use secrets::{Secret, masked, secrets};
pub use service::{AutoRollback, CustomRuntimeValues, PerReleaseChannel, Service};
pub use shared::shared_by_instances;
pub use source::{DOCUMENT_PROBLEM_LIMIT, DocumentSource};
pub use task::{
    Capabilities, EphemeralSource, Medium, Mount, Program, ResourceList, Resources, RetryConfig,
    SeLinuxOptions, SecretSource, SecurityContext, SecurityProfile, TaskConfig, TaskK8s, Volume,
    VolumeSource,
};
pub use texts::NO_NUL;
pub use unmasked::unmasked_secrets;
pub use untaken::{UntakenBlock, untaken_blocks};

/// The content of one document: exactly one of the top-level keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// `runtime`.
    Runtime(Box<Runtime>),
    /// `application`.
    Application(Box<Application>),
    /// `service`.
    Service(Box<Service>),
}

/// One document as the schema knows it: what [`Body`] is made from.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "pvn config", extend("x-exactlyOne" = ["runtime", "application", "service"]))]
pub(crate) struct WrittenDocument {
    /// A place where services live.
    pub(crate) runtime: Option<Runtime>,
    /// The channels through which services are released.
    pub(crate) application: Option<Application>,
    /// What is released.
    pub(crate) service: Option<Service>,
}

#[cfg(test)]
mod tests;
