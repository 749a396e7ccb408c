//! `taskConfig`: a program in an image, and what it needs around it.

use schema::schedule::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::message::{message, one_of};
use crate::params::{ImageRegistryInfo, TAG_RULE, TAG_TEMPLATE_PATTERN};
use crate::template::Template;

message! {
    /// A program that runs to completion.
    TaskConfig {
        /// The program.
        program: Program,
        /// Volumes to mount into its container.
        #[serde(default)]
        volumes: Vec<Volume>,
        /// How long a finished Kubernetes Job is kept. Default: 3600s.
        ttl: Option<Duration>,
        /// How long to try again (not supported yet; use the command's `retryPolicy`).
        retry_config: Option<RetryConfig>,
        /// What concerns Kubernetes only.
        k8s: Option<TaskK8s>,
        /// What its container may do; only on Kubernetes. What a namespace with `restricted` Pod
        /// security asks for stands here.
        security_context: Option<SecurityContext>,
        /// Let what the program leaves behind live on, unless it was stopped (cancelled, or at its
        /// timeout) or killed; only on `local` runtimes. Default: false.
        #[serde(default)]
        leave_running: bool,
        /// How long it has to end once it was asked to stop, before it is killed. Default: 10s, on
        /// Kubernetes 30s.
        stop_grace: Option<Duration>,
    }
}

message! {
    /// A program: image, command, environment.
    Program {
        /// Its name, for people and for `fake` runtimes. Default: the command's name.
        #[schemars(
            length(min = 1, max = 63),
            regex(pattern = schema::id::NAME_PATTERN),
            extend("patternErrorMessage" = schema::id::NAME_RULE)
        )]
        name: Option<String>,
        /// The image with its tag. Not with `imageTag`; not needed on `local` runtimes.
        #[schemars(length(min = 1))]
        image: Option<Template>,
        /// The tag alone, or a digest; the rest of the image is in `imageRegistryInfo`. May be a
        /// template.
        #[schemars(
            regex(pattern = TAG_TEMPLATE_PATTERN),
            extend("patternErrorMessage" = TAG_RULE)
        )]
        image_tag: Option<Template>,
        /// Registry and repository of the image.
        image_registry_info: Option<ImageRegistryInfo>,
        /// Arguments, as `CMD` in Docker.
        #[serde(default)]
        cmd: Vec<Template>,
        /// The program and its first arguments, as `ENTRYPOINT` in Docker.
        #[serde(default)]
        entrypoint: Vec<Template>,
        /// Environment; wins over that of the command.
        #[serde(default, skip_serializing_if = "Env::is_empty")]
        #[schemars(extend("propertyNames" = {"pattern": r"^[a-zA-Z_][a-zA-Z0-9_]*$"}))]
        env: Env,
        /// CPU and memory on Kubernetes.
        resources: Option<Resources>,
        /// Working directory; on `local` runtimes relative to the runtime's root.
        #[schemars(length(min = 1))]
        working_directory: Option<Template>,
    }
}

message! {
    /// CPU and memory of a container.
    Resources {
        /// What it is given for certain.
        requests: Option<ResourceList>,
        /// What it may use at most.
        limits: Option<ResourceList>,
    }
}

message! {
    /// Amounts as Kubernetes writes them.
    ResourceList {
        /// For example `500m`.
        #[schemars(length(min = 1))]
        cpu: Option<String>,
        /// For example `256Mi`.
        #[schemars(length(min = 1))]
        memory: Option<String>,
    }
}

message! {
    /// A volume and where it is mounted.
    Volume {
        /// Its name.
        #[schemars(
            length(min = 1, max = 63),
            regex(pattern = schema::id::NAME_PATTERN),
            extend("patternErrorMessage" = schema::id::NAME_RULE)
        )]
        name: String,
        /// What is in it.
        source: VolumeSource,
        /// Where the program finds it.
        mount: Mount,
    }
}

one_of! {
    /// What is in a volume.
    #[schemars(extend("x-exactlyOne" = ["secret", "ephemeral"]))]
    VolumeSource {
        /// The keys of a Kubernetes Secret as files. What they hold is masked only where `env` has
        /// them as variables too.
        secret: SecretSource => Secret,
        /// Empty space that lives as long as the job.
        ephemeral: EphemeralSource => Ephemeral,
    }
}

message! {
    /// A Kubernetes Secret as a volume.
    SecretSource {
        /// Name of the Secret.
        #[schemars(length(min = 1))]
        secret_name: String,
    }
}

message! {
    /// Empty space.
    EphemeralSource {
        /// Where it is kept. Default: DEFAULT.
        #[serde(default)]
        medium: Medium,
    }
}

/// Where ephemeral space is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Medium {
    /// On the node's disk.
    #[default]
    Default,
    /// In memory.
    Memory,
}

message! {
    /// Where a volume is mounted.
    Mount {
        /// Absolute path in the container.
        #[schemars(
            regex(pattern = r"^/"),
            extend("patternErrorMessage" = "a mount path is absolute: it starts with `/`")
        )]
        mount_path: String,
        /// Refuse writing. Default: false.
        #[serde(default)]
        read_only: bool,
    }
}

message! {
    /// How long to try a task again.
    #[schemars(extend("x-exactlyOne" = ["maxRetryDuration", "retryForever"]))]
    RetryConfig {
        /// For this long.
        max_retry_duration: Option<Duration>,
        /// Without end.
        retry_forever: Option<bool>,
    }
}

message! {
    /// What concerns a task on Kubernetes only.
    TaskK8s {
        /// The service account that the Pod runs as.
        #[schemars(length(min = 1))]
        service_account: String,
    }
}

message! {
    /// What a container may do, as in a Pod of Kubernetes.
    SecurityContext {
        /// The user, by number.
        run_as_user: Option<i64>,
        /// The group, by number.
        run_as_group: Option<i64>,
        /// Whether it is refused when it would run as root.
        run_as_non_root: Option<bool>,
        /// Whether nothing but volumes can be written.
        read_only_root_filesystem: Option<bool>,
        /// Whether it can get more rights than it was started with.
        allow_privilege_escalation: Option<bool>,
        /// Whether it may do what root of the node may.
        privileged: Option<bool>,
        /// Rights of root that it has more or less than usual.
        capabilities: Option<Capabilities>,
        /// Which system calls it may make.
        seccomp_profile: Option<SecurityProfile>,
        /// What AppArmor lets it do.
        app_armor_profile: Option<SecurityProfile>,
        /// Its SELinux label.
        se_linux_options: Option<SeLinuxOptions>,
    }
}

message! {
    /// Rights of root (capabilities(7) without `CAP_`).
    Capabilities {
        /// Given.
        #[serde(default)]
        add: Vec<String>,
        /// Taken away; `ALL` is all of them.
        #[serde(default)]
        drop: Vec<String>,
    }
}

message! {
    /// A profile of the node.
    SecurityProfile {
        /// `RuntimeDefault`, `Localhost` or `Unconfined`.
        #[serde(rename = "type")]
        kind: String,
        /// With `Localhost`: which one.
        localhost_profile: Option<String>,
    }
}

message! {
    /// An SELinux label.
    SeLinuxOptions {
        /// Its user.
        user: Option<String>,
        /// Its role.
        role: Option<String>,
        /// Its type.
        #[serde(rename = "type")]
        kind: Option<String>,
        /// Its level.
        level: Option<String>,
    }
}
