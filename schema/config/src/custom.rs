//! `runtime.custom`: the three commands and the rules around them.

use schema::id::RuntimeName;
use schema::schedule::{CronText, Duration, Timezone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::kubernetes::KubernetesConfig;
use crate::message::{message, message_with_one};
use crate::params::ParameterDefinition;
use crate::task::TaskConfig;
use crate::template::Template;

message! {
    /// A Custom Runtime: fetch tells whether there is work to do, apply does it, getInfo shows
    /// people something.
    #[schemars(extend("x-aliases" = {"debug": "getInfo"}))]
    CustomRuntime {
        /// Where the jobs run.
        proxy_runtime: ProxyRuntime,
        /// Is there work to do? Without it apply runs once for each new version.
        fetch: Option<FetchCommand>,
        /// Do the work.
        apply: ApplyCommand,
        /// Show people something.
        get_info: Option<GetInfoCommand>,
        /// Parameters that a service gives this runtime (`customRuntime.parameterValues`).
        #[serde(default)]
        parameters: Vec<ParameterDefinition>,
        /// Ask people before every apply. Default: false.
        #[serde(default)]
        require_approval_before_apply: bool,
        /// Ask people before an apply whose plan destroys or replaces something, and let others go
        /// through: what fetch says in an output `plan-destroys`, or does not say. Default: false.
        #[serde(default)]
        require_approval_for_destroy: bool,
        /// How long after the start of an apply the world may take to converge before apply runs
        /// again. Default: 600s.
        convergence_grace_period: Option<Duration>,
        /// Without fetch: apply runs only when this text (a template) differs from that of the last
        /// apply, if that succeeded.
        apply_id: Option<Template>,
        /// How long an approval that was asked for stays valid. Default: without end.
        approval_timeout: Option<Duration>,
    }
}

message! {
    /// Where the jobs of a runtime run.
    ProxyRuntime {
        /// A Kubernetes runtime, or `local`.
        runtime: RuntimeName,
        /// Where on that runtime.
        container_orchestration: Option<ContainerOrchestration>,
    }
}

message! {
    /// Where on a runtime that orchestrates containers.
    ContainerOrchestration {
        /// On Kubernetes.
        k8s: Option<K8sPlace>,
    }
}

message! {
    /// A place on Kubernetes.
    K8sPlace {
        /// The namespace, which must exist. Default: `pvn-proxy-runtime-` and the runtime's name,
        /// created when missing.
        #[schemars(
            length(min = 1, max = 63),
            regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"),
            extend(
                "patternErrorMessage" = "namespaces are 1 to 63 characters: lower-case letters, \
                                         digits and `-`, not starting or ending with `-`"
            )
        )]
        namespace: Option<String>,
    }
}

/// What a fetch's answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FetchMode {
    /// Exit code 0: converged. 2, or one of `workExitCodes`: work to do. Anything else: an error.
    #[default]
    ExitCode,
    /// Exit code 0 and a FetchOutput on stdout, which is compared with the desired version.
    StructuredOutput,
}

message_with_one! {
    /// Is there work to do?
    #[schemars(extend("x-exactlyOne" = ["taskConfig", "kubernetesConfig"]))]
    FetchCommand {
        /// What its answer means. Default: EXIT_CODE.
        #[serde(default)]
        fetch_mode: FetchMode,
    }
    /// How it is given.
    exec: Exec {
        /// The command as a program.
        task_config: Box<TaskConfig> => Task,
        /// The command as a Kubernetes Job.
        kubernetes_config: Box<KubernetesConfig> => Kubernetes,
    }
    {
        /// From the end of one fetch to the next while not converged. Default: 30s.
        poll_interval: Option<Duration>,
        /// The same while converged; up to a tenth is added so that many do not bunch. Default:
        /// 300s.
        steady_state_poll_interval: Option<Duration>,
        /// A cron schedule: five fields as crontab(5) has them, or six with the second first, as in
        /// `0 */15 * * * *`. It takes the place of the two intervals, given or not.
        #[schemars(with = "Option<String>", extend("format" = "pvn-cron"))]
        poll_schedule: Option<CronText>,
        /// Time zone of `pollSchedule`, as in `Europe/Berlin`. Default: UTC.
        #[schemars(with = "Option<String>", extend("format" = "pvn-timezone"))]
        timezone: Option<Timezone>,
        /// When to try again after an error. Default: after `pollInterval`.
        retry_policy: Option<RetryPolicy>,
        /// Environment; wins over that of service and channel.
        #[serde(default, skip_serializing_if = "Env::is_empty")]
        #[schemars(extend("propertyNames" = {"pattern": r"^[a-zA-Z_][a-zA-Z0-9_]*$"}))]
        env: Env,
        /// Longest run. Default: 600s.
        timeout: Option<Duration>,
        /// Exit codes that mean that there is work, in mode EXIT_CODE; any other but 0 is an error,
        /// 2 as well where it is not named. Default: 2.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(inner(range(min = 1, max = 255)))]
        work_exit_codes: Vec<i32>,
    }
}

message_with_one! {
    /// Do the work.
    #[schemars(extend("x-exactlyOne" = ["taskConfig", "kubernetesConfig"]))]
    ApplyCommand {}
    /// How it is given.
    exec: Exec {
        /// The command as a program.
        task_config: Box<TaskConfig> => Task,
        /// The command as a Kubernetes Job.
        kubernetes_config: Box<KubernetesConfig> => Kubernetes,
    }
    {
        /// Applies at a time on this runtime, over all services. Default: no limit.
        #[schemars(range(min = 1))]
        max_concurrency: Option<u32>,
        /// Exit codes after which apply runs again without counting as failed.
        #[serde(default)]
        #[schemars(inner(range(min = 1, max = 255)))]
        retryable_exit_codes: Vec<i32>,
        /// When to run again after those. Default: 30s doubling to 300s, at most until the grace
        /// period ends.
        retry_policy: Option<RetryPolicy>,
        /// Apply only inside this window.
        window: Option<Window>,
        /// Environment; wins over that of service and channel.
        #[serde(default, skip_serializing_if = "Env::is_empty")]
        #[schemars(extend("propertyNames" = {"pattern": r"^[a-zA-Z_][a-zA-Z0-9_]*$"}))]
        env: Env,
        /// Longest run. Default: no limit.
        timeout: Option<Duration>,
    }
}

message_with_one! {
    /// Show people something.
    #[schemars(extend("x-exactlyOne" = ["taskConfig", "kubernetesConfig"]))]
    GetInfoCommand {}
    /// How it is given.
    exec: Exec {
        /// The command as a program.
        task_config: Box<TaskConfig> => Task,
        /// The command as a Kubernetes Job.
        kubernetes_config: Box<KubernetesConfig> => Kubernetes,
    }
    {
        /// From the end of one getInfo to the next. Default: 300s.
        poll_interval: Option<Duration>,
        /// A cron schedule: five fields as crontab(5) has them, or six with the second first, as in
        /// `0 */15 * * * *`. It takes the place of the interval, given or not.
        #[schemars(with = "Option<String>", extend("format" = "pvn-cron"))]
        poll_schedule: Option<CronText>,
        /// Time zone of `pollSchedule`, as in `Europe/Berlin`. Default: UTC.
        #[schemars(with = "Option<String>", extend("format" = "pvn-timezone"))]
        timezone: Option<Timezone>,
        /// When to try again after an error. Default: 30s doubling to 600s.
        retry_policy: Option<RetryPolicy>,
        /// Environment; wins over that of service and channel.
        #[serde(default, skip_serializing_if = "Env::is_empty")]
        #[schemars(extend("propertyNames" = {"pattern": r"^[a-zA-Z_][a-zA-Z0-9_]*$"}))]
        env: Env,
        /// Longest run. Default: 600s.
        timeout: Option<Duration>,
    }
}

message! {
    /// Exponential back-off: `baseInterval`, doubled each time up to `maxInterval`.
    RetryPolicy {
        /// First wait. Default: the default of the field that holds this policy.
        base_interval: Option<Duration>,
        /// Longest wait, not less than `baseInterval`.
        max_interval: Option<Duration>,
        /// Attempts in all; 0 or less means no limit. Default: 0.
        max_attempts: Option<i32>,
    }
}

message! {
    /// A recurring span of time.
    Window {
        /// When it opens: a cron schedule of five fields as crontab(5) has them, or six with the
        /// second first, as in `0 0 9 * * Mon-Fri`.
        #[schemars(with = "String", extend("format" = "pvn-cron"))]
        schedule: CronText,
        /// How long it stays open.
        duration: Duration,
        /// Time zone of `schedule`, as in `Europe/Berlin`. Default: UTC.
        #[schemars(with = "Option<String>", extend("format" = "pvn-timezone"))]
        timezone: Option<Timezone>,
    }
}

impl RetryPolicy {
    /// First and longest wait, with these where nothing is given. The longest is never shorter than
    /// the first; where only a short `maxInterval` is given, it holds from the first wait on.
    pub fn waits<T>(given: Option<&Self>, (base, max): (T, T)) -> (T, T)
    where
        T: Copy + Ord + From<Duration>,
    {
        let given_max = given.and_then(|given| given.max_interval).map(T::from);
        let base = match given.and_then(|given| given.base_interval) {
            Some(base) => T::from(base),
            None => given_max.map_or(base, |max| base.min(max)),
        };
        (base, given_max.unwrap_or(max).max(base))
    }
}

/// How a command is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Exec {
    /// `taskConfig`.
    Task(Box<TaskConfig>),
    /// `kubernetesConfig`.
    Kubernetes(Box<KubernetesConfig>),
}

/// What the three commands have in common, so that what holds for each is written once.
#[derive(Debug, Clone, Copy)]
pub struct RuntimeCommand<'a> {
    /// Its field.
    pub name: &'static str,
    /// How it is given.
    pub exec: &'a Exec,
    /// The variables beside that.
    pub env: &'a Env,
    /// `retryPolicy`.
    pub retry_policy: Option<&'a RetryPolicy>,
    /// `pollSchedule`; an apply has none.
    pub poll_schedule: Option<&'a CronText>,
    /// `timezone`; an apply has none.
    pub timezone: Option<Timezone>,
}

impl CustomRuntime {
    /// The commands that it has.
    pub fn commands(&self) -> impl Iterator<Item = RuntimeCommand<'_>> {
        let fetch = self.fetch.as_ref().map(|fetch| RuntimeCommand {
            name: "fetch",
            exec: &fetch.exec,
            env: &fetch.env,
            retry_policy: fetch.retry_policy.as_ref(),
            poll_schedule: fetch.poll_schedule.as_ref(),
            timezone: fetch.timezone,
        });
        let apply = RuntimeCommand {
            name: "apply",
            exec: &self.apply.exec,
            env: &self.apply.env,
            retry_policy: self.apply.retry_policy.as_ref(),
            poll_schedule: None,
            timezone: None,
        };
        let get_info = self.get_info.as_ref().map(|get_info| RuntimeCommand {
            name: "getInfo",
            exec: &get_info.exec,
            env: &get_info.env,
            retry_policy: get_info.retry_policy.as_ref(),
            poll_schedule: get_info.poll_schedule.as_ref(),
            timezone: get_info.timezone,
        });
        fetch.into_iter().chain([apply]).chain(get_info)
    }
}
