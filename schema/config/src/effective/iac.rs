//! What Terraform's and Pulumi's runners have in common: fetch is a plan, apply carries it out,
//! getInfo shows the outputs. Called by both.

use schema::schedule::Duration;

use super::Origins;
use super::parts::{TRY_AGAIN, pre_run, retry, seconds, tool_task};
use crate::custom::{ApplyCommand, FetchCommand, GetInfoCommand};
use crate::task::TaskK8s;
use crate::{CustomRuntime, Exec, FetchMode, IacRunner, ParameterDefinition, TaskConfig};

/// See docs/config.md, `iac runner`, for the defaults.
const POLL: Duration = seconds(300);
const STEADY_POLL: Duration = seconds(3600);
const FETCH_RETRY: (Duration, Duration) = (seconds(60), seconds(900));
const APPLY_RETRY: (Duration, Duration) = (seconds(30), seconds(300));

/// Longest plan: it asks a provider about each resource, thousands of them in a large state.
const PLAN_TIMEOUT: Duration = seconds(3600);

/// How long an apply may take to end well once it is asked to stop: the operation on the way ends
/// and the state is saved, where a kill loses both.
const APPLY_STOP_GRACE: Duration = seconds(300);

/// Where each part of the commands comes from.
pub(super) const ORIGINS: Origins = &[
    ("proxyRuntime", "proxyRuntime"),
    ("parameters", ""),
    ("fetch/pollInterval", "pollInterval"),
    ("fetch/steadyStatePollInterval", "steadyStatePollInterval"),
    ("fetch/retryPolicy", "fetchRetryPolicy"),
    ("apply/retryPolicy", "applyRetryPolicy"),
    ("requireApprovalBeforeApply", "requireApprovalBeforeApply"),
    ("requireApprovalForDestroy", "requireApprovalForDestroy"),
    ("*", ""),
    ("*/env", "env"),
    ("*/taskConfig/volumes", "volumes"),
    ("*/taskConfig/program/cmd", "preRun"),
    ("*/taskConfig/program/resources", "taskResources"),
    ("*/taskConfig/k8s", ""),
];

/// The arguments of the wrapper for a step, behind the name of the tool.
pub(super) type StepArguments = &'static [&'static str];

/// The commands: the wrapper's for the tool, with these steps for fetch, apply and getInfo.
pub(super) fn commands(
    runner: &IacRunner,
    tool: &str,
    steps: [&str; 3],
    arguments: StepArguments,
    parameters: Vec<ParameterDefinition>,
) -> CustomRuntime {
    let [fetch, apply, info] = steps.map(|step| task(runner, tool, step, arguments));
    CustomRuntime {
        proxy_runtime: runner.proxy_runtime.clone(),
        fetch: Some(FetchCommand {
            exec: Exec::Task(Box::new(fetch)),
            fetch_mode: FetchMode::ExitCode,
            poll_interval: Some(runner.poll_interval.unwrap_or(POLL)),
            steady_state_poll_interval: Some(
                runner.steady_state_poll_interval.unwrap_or(STEADY_POLL),
            ),
            poll_schedule: None,
            timezone: None,
            retry_policy: Some(retry(runner.fetch_retry_policy.as_ref(), FETCH_RETRY)),
            env: runner.env.clone(),
            timeout: Some(PLAN_TIMEOUT),
            work_exit_codes: Vec::new(),
        }),
        apply: ApplyCommand {
            exec: Exec::Task(Box::new(TaskConfig { stop_grace: Some(APPLY_STOP_GRACE), ..apply })),
            max_concurrency: None,
            retryable_exit_codes: vec![TRY_AGAIN],
            retry_policy: Some(retry(runner.apply_retry_policy.as_ref(), APPLY_RETRY)),
            window: None,
            env: runner.env.clone(),
            timeout: None,
        },
        get_info: Some(GetInfoCommand {
            exec: Exec::Task(Box::new(info)),
            poll_interval: None,
            poll_schedule: None,
            timezone: None,
            retry_policy: None,
            env: runner.env.clone(),
            timeout: None,
        }),
        parameters,
        require_approval_before_apply: runner.require_approval_before_apply,
        require_approval_for_destroy: runner.require_approval_for_destroy,
        convergence_grace_period: runner.convergence_grace_period,
        apply_id: None,
        approval_timeout: None,
    }
}

fn task(runner: &IacRunner, tool: &str, step: &str, arguments: StepArguments) -> TaskConfig {
    let words = [&[tool, step], arguments, &["--shell={{.Params.shellPath}}"]].concat();
    let mut task = tool_task(step, &words, pre_run(&runner.pre_run));
    task.program.working_directory = Some("{{.Params.path}}".into());
    task.program.resources.clone_from(&runner.task_resources);
    task.volumes.clone_from(&runner.volumes);
    task.k8s = runner
        .service_account
        .as_ref()
        .map(|service_account| TaskK8s { service_account: service_account.clone() });
    task
}
