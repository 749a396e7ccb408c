//! What the runtimes of clouds have in common: a structured fetch and an apply by the wrapper's
//! command for the cloud's own program, and a getInfo. Called by each of them.

use schema::schedule::Duration;

use super::parts::{TRY_AGAIN, tool_task};
use crate::custom::{ApplyCommand, FetchCommand, GetInfoCommand};
use crate::task::TaskK8s;
use crate::template::Template;
use crate::{
    CustomRuntime, Env, EnvValue, Exec, FetchMode, ParameterDefinition, ProxyRuntime, TaskConfig,
};

/// What somebody wrote in a field that has nothing but a secret: one, however it is written.
pub(super) fn secret(written: &EnvValue) -> EnvValue {
    match written {
        EnvValue::Value(text) => EnvValue::RawSecret(text.clone()),
        written => written.clone(),
    }
}

/// Whether such a field has it in the open.
pub(super) fn is_bare(written: Option<&EnvValue>) -> bool {
    matches!(written, Some(EnvValue::Value(text)) if !text.as_str().contains("{{"))
}

/// What a runtime of a cloud says.
pub(super) struct Cloud<'a> {
    /// The name of the wrapper's command.
    pub(super) tool: &'static str,
    /// Its arguments behind the step.
    pub(super) arguments: Vec<Template>,
    pub(super) proxy_runtime: Option<&'a ProxyRuntime>,
    pub(super) image: Option<&'a String>,
    pub(super) service_account: Option<&'a String>,
    /// `pollInterval` and `steadyStatePollInterval`.
    pub(super) polls: [Option<Duration>; 2],
    pub(super) env: Env,
    pub(super) require_approval_before_apply: bool,
    pub(super) parameters: Vec<ParameterDefinition>,
}

impl Cloud<'_> {
    /// The commands.
    pub(super) fn commands(self) -> CustomRuntime {
        let exec = |step| Exec::Task(Box::new(self.task(step)));
        let (fetch, apply, info) = (exec("fetch"), exec("apply"), exec("info"));
        let [poll_interval, steady_state_poll_interval] = self.polls;
        CustomRuntime {
            // Published files name none: these jobs ran beside the server.
            proxy_runtime: self.proxy_runtime.cloned().unwrap_or_else(|| ProxyRuntime {
                runtime: "local".parse().expect("the built-in runtime has a name"),
                container_orchestration: None,
            }),
            fetch: Some(FetchCommand {
                exec: fetch,
                fetch_mode: FetchMode::StructuredOutput,
                poll_interval,
                steady_state_poll_interval,
                poll_schedule: None,
                timezone: None,
                retry_policy: None,
                env: self.env.clone(),
                timeout: None,
                work_exit_codes: Vec::new(),
            }),
            apply: ApplyCommand {
                exec: apply,
                max_concurrency: None,
                retryable_exit_codes: vec![TRY_AGAIN],
                retry_policy: None,
                window: None,
                env: self.env.clone(),
                timeout: None,
            },
            get_info: Some(GetInfoCommand {
                exec: info,
                poll_interval: None,
                poll_schedule: None,
                timezone: None,
                retry_policy: None,
                env: self.env,
                timeout: None,
            }),
            parameters: self.parameters,
            require_approval_before_apply: self.require_approval_before_apply,
            require_approval_for_destroy: false,
            convergence_grace_period: None,
            apply_id: None,
            approval_timeout: None,
        }
    }

    fn task(&self, step: &str) -> TaskConfig {
        let mut task = tool_task(step, &[self.tool, step], self.arguments.clone());
        task.program.image = self.image.map(|image| image.as_str().into());
        task.k8s = self
            .service_account
            .map(|service_account| TaskK8s { service_account: service_account.clone() });
        task
    }
}
