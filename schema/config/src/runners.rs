//! The built-in runtimes and what a service says to them. The scheduler compiles them to `custom`.

use schema::schedule::Duration;

use crate::custom::{ProxyRuntime, RetryPolicy};
use crate::env::Env;
use crate::kubernetes::LocalFiles;
use crate::message::{message, one_of};
use crate::task::{Resources, Volume};
use crate::template::Template;

message! {
    /// Terraform, OpenTofu or Pulumi: fetch is a plan, apply is exactly that plan.
    IacRunner {
        /// Where the jobs run.
        proxy_runtime: ProxyRuntime,
        /// Environment of all commands.
        #[serde(default, skip_serializing_if = "Env::is_empty")]
        #[schemars(extend("propertyNames" = {"pattern": r"^[a-zA-Z_][a-zA-Z0-9_]*$"}))]
        env: Env,
        /// Volumes to mount into their containers.
        #[serde(default)]
        volumes: Vec<Volume>,
        /// Commands that run first, such as a login.
        #[serde(default)]
        pre_run: Vec<PreRun>,
        /// From the end of one plan to the next while not converged. Default: 300s.
        poll_interval: Option<Duration>,
        /// The same while converged. Default: 3600s.
        steady_state_poll_interval: Option<Duration>,
        /// Ask people before every apply. Default: false.
        #[serde(default)]
        require_approval_before_apply: bool,
        /// Ask people before an apply whose plan destroys or replaces something, and let others go
        /// through. Default: false.
        #[serde(default)]
        require_approval_for_destroy: bool,
        /// How long after the start of an apply the world may take to converge before apply runs
        /// again. Default: 600s.
        convergence_grace_period: Option<Duration>,
        /// When to plan again after an error. Default: 60s doubling to 900s.
        fetch_retry_policy: Option<RetryPolicy>,
        /// When to apply again after a stale plan or a lock. Default: 30s doubling to 300s.
        apply_retry_policy: Option<RetryPolicy>,
        /// CPU and memory of the jobs.
        task_resources: Option<Resources>,
        /// Kubernetes service account of the jobs.
        #[schemars(length(min = 1))]
        service_account: Option<String>,
    }
}

message! {
    /// A command that runs first.
    PreRun {
        /// The command, run by the shell: what it exports, and where it changes to, holds for the
        /// tool.
        #[schemars(length(min = 1))]
        cmd: Template,
    }
}

message! {
    /// What a service says to a `terraformRunner`. Every text may be a template.
    TerraformService {
        /// The image that holds Terraform and the configuration.
        #[schemars(length(min = 1))]
        image: Option<Template>,
        /// Directory of the configuration in the image.
        #[schemars(length(min = 1))]
        path: Option<Template>,
        /// Path of the wrapper in the image. Default: `/pvn-wrapper`.
        #[schemars(length(min = 1))]
        pvn_wrapper_path: Option<Template>,
        /// Path of a shell in the image. Default: `/bin/sh`.
        #[schemars(length(min = 1))]
        shell_path: Option<Template>,
        /// Values for `-backend-config`.
        #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
        backend_config: std::collections::BTreeMap<String, Template>,
        /// More arguments for `terraform init`.
        #[serde(default)]
        extra_init_args: Vec<Template>,
    }
}

message! {
    /// What a service says to a `pulumiRunner`. Every text may be a template.
    PulumiService {
        /// The image that holds Pulumi and the program.
        #[schemars(length(min = 1))]
        image: Option<Template>,
        /// Directory of the program in the image.
        #[schemars(length(min = 1))]
        path: Option<Template>,
        /// The stack.
        #[schemars(length(min = 1))]
        stack: Option<Template>,
        /// What stands before `pulumi`, such as `poetry run`.
        #[serde(default)]
        pulumi_command_prefix: Vec<Template>,
    }
}

message! {
    /// An Amazon ECS cluster.
    AwsEcsRuntime {
        /// Where the jobs run. Default: on `local`.
        proxy_runtime: Option<ProxyRuntime>,
        /// AWS region.
        #[schemars(length(min = 1))]
        region: String,
        /// Name of the ECS cluster.
        #[schemars(length(min = 1))]
        ecs_cluster: String,
        /// Credentials. Default: those of the place where the jobs run.
        credentials: Option<AwsCredentials>,
        /// Environment of all commands.
        #[serde(default, skip_serializing_if = "Env::is_empty")]
        #[schemars(extend("propertyNames" = {"pattern": r"^[a-zA-Z_][a-zA-Z0-9_]*$"}))]
        env: Env,
        /// From the end of one fetch to the next while not converged. Default: 30s.
        poll_interval: Option<Duration>,
        /// The same while converged. Default: 300s.
        steady_state_poll_interval: Option<Duration>,
        /// Ask people before every apply. Default: false.
        #[serde(default)]
        require_approval_before_apply: bool,
        /// Image with the tool and the wrapper. Needed where the jobs run on Kubernetes.
        #[schemars(length(min = 1))]
        image: Option<String>,
        /// Kubernetes service account of the jobs.
        #[schemars(length(min = 1))]
        service_account: Option<String>,
    }
}

message! {
    /// AWS credentials.
    AwsCredentials {
        /// Access key id. Default, with `secretKey`: the credentials of the place where the jobs
        /// run, such as those of a Kubernetes service account.
        access_key: Option<crate::env::EnvValue>,
        /// Secret access key.
        secret_key: Option<crate::env::EnvValue>,
        /// A role to assume with them.
        #[schemars(length(min = 1))]
        assume_role_arn: Option<String>,
    }
}

message! {
    /// What a service says to an `awsEcs` runtime. In `perReleaseChannel` each field wins over that
    /// of the service.
    AwsEcsService {
        /// The task definition, as JSON for `aws ecs register-task-definition`. Required, here or
        /// there.
        task_definition: Option<SpecFile>,
        /// The service, as JSON for `aws ecs create-service`.
        service_definition: Option<SpecFile>,
        /// Name of the ECS service. Default: made from service and channel.
        #[schemars(length(min = 1))]
        ecs_service_name_override: Option<Template>,
        /// Somebody else makes the service; only its task definition is updated. Default: false.
        #[serde(default)]
        update_task_definition_only: bool,
    }
}

one_of! {
    /// A definition: exactly one of its fields.
    #[schemars(extend("x-exactlyOne" = ["inlined", "local"]))]
    SpecFile {
        /// The definition as text.
        #[schemars(length(min = 1))]
        inlined: String => Inlined,
        /// A file that holds it.
        local: LocalFiles => Local,
    }
}

message! {
    /// Google Cloud Run in one project and region.
    GoogleCloudRunRuntime {
        /// Where the jobs run. Default: on `local`.
        proxy_runtime: Option<ProxyRuntime>,
        /// The project's id.
        #[schemars(length(min = 1))]
        project: String,
        /// The region.
        #[schemars(length(min = 1))]
        region: String,
        /// Key file of a service account. Default: the credentials of the place where the jobs run.
        service_account_json: Option<crate::env::EnvValue>,
        /// Environment of all commands.
        #[serde(default, skip_serializing_if = "Env::is_empty")]
        #[schemars(extend("propertyNames" = {"pattern": r"^[a-zA-Z_][a-zA-Z0-9_]*$"}))]
        env: Env,
        /// From the end of one fetch to the next while not converged. Default: 30s.
        poll_interval: Option<Duration>,
        /// The same while converged. Default: 300s.
        steady_state_poll_interval: Option<Duration>,
        /// Ask people before every apply. Default: false.
        #[serde(default)]
        require_approval_before_apply: bool,
        /// Image with the tool and the wrapper. Needed where the jobs run on Kubernetes.
        #[schemars(length(min = 1))]
        image: Option<String>,
        /// Kubernetes service account of the jobs.
        #[schemars(length(min = 1))]
        service_account: Option<String>,
    }
}

message! {
    /// What a service says to a `googleCloudRun` runtime: exactly one of its fields, here or in
    /// `perReleaseChannel`, which wins.
    #[schemars(extend("x-atMostOne" = ["inlined", "local"]))]
    GoogleCloudRunService {
        /// The service as YAML, as for `gcloud run services replace`.
        #[schemars(length(min = 1))]
        inlined: Option<String>,
        /// A file that holds it.
        local: Option<LocalFiles>,
    }
}
