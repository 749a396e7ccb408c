//! `terraformRunner`: fetch is `pvn-wrapper terraform plan`, apply runs exactly that plan, getInfo
//! shows the outputs. Called by `effective`.

use schema::schedule::Duration;

use super::block::{Block, BlockForm, BlockText, BlockValue};
use super::parts::{of_the_image, pre_run, retry, seconds, text_parameter, tool_task};
use super::{KindOfCommands, Origins};
use crate::custom::{ApplyCommand, FetchCommand, GetInfoCommand};
use crate::task::TaskK8s;
use crate::{CustomRuntime, Exec, FetchMode, IacRunner, Service, TaskConfig, TerraformService};

/// See docs/config.md, `terraformRunner`, for the defaults.
const POLL: Duration = seconds(300);
const STEADY_POLL: Duration = seconds(3600);
const FETCH_RETRY: [Duration; 2] = [seconds(60), seconds(900)];
const APPLY_RETRY: [Duration; 2] = [seconds(30), seconds(300)];

/// Longest plan: it asks a provider about each resource, thousands of them in a large state.
const PLAN_TIMEOUT: Duration = seconds(3600);

/// How long an apply may take to end well once it is asked to stop: the operation on the way ends
/// and the state is saved, where a kill loses both.
const APPLY_STOP_GRACE: Duration = seconds(300);

/// The exit code of what may be over by another try: a stale plan, a lock.
const TRY_AGAIN: i32 = 75;

const ORIGINS: Origins = &[
    ("proxyRuntime", "proxyRuntime"),
    ("parameters", ""),
    ("fetch", ""),
    ("fetch/pollInterval", "pollInterval"),
    ("fetch/steadyStatePollInterval", "steadyStatePollInterval"),
    ("fetch/retryPolicy", "fetchRetryPolicy"),
    ("fetch/env", "env"),
    ("fetch/taskConfig/volumes", "volumes"),
    ("fetch/taskConfig/program/cmd", "preRun"),
    ("fetch/taskConfig/program/resources", "taskResources"),
    ("fetch/taskConfig/k8s", ""),
    ("apply", ""),
    ("apply/retryPolicy", "applyRetryPolicy"),
    ("apply/env", "env"),
    ("apply/taskConfig/volumes", "volumes"),
    ("apply/taskConfig/program/cmd", "preRun"),
    ("apply/taskConfig/program/resources", "taskResources"),
    ("apply/taskConfig/k8s", ""),
    ("getInfo", ""),
    ("getInfo/env", "env"),
    ("getInfo/taskConfig/volumes", "volumes"),
    ("getInfo/taskConfig/program/cmd", "preRun"),
    ("getInfo/taskConfig/program/resources", "taskResources"),
    ("getInfo/taskConfig/k8s", ""),
];

/// The field of a service.
const BLOCK: &str = "terraform";

pub(super) const KIND: KindOfCommands =
    KindOfCommands { kind: "terraformRunner", origins: ORIGINS, block: Some(BLOCK) };

/// The commands.
pub(super) fn commands(runner: &IacRunner) -> CustomRuntime {
    let [image, wrapper, shell] = of_the_image();
    CustomRuntime {
        proxy_runtime: runner.proxy_runtime.clone(),
        fetch: Some(FetchCommand {
            exec: Exec::Task(Box::new(task(runner, "plan"))),
            fetch_mode: FetchMode::ExitCode,
            poll_interval: Some(runner.poll_interval.unwrap_or(POLL)),
            steady_state_poll_interval: Some(
                runner.steady_state_poll_interval.unwrap_or(STEADY_POLL),
            ),
            poll_schedule: None,
            timezone: None,
            retry_policy: Some(retry(
                runner.fetch_retry_policy.as_ref(),
                FETCH_RETRY[0],
                FETCH_RETRY[1],
            )),
            env: runner.env.clone(),
            timeout: Some(PLAN_TIMEOUT),
        }),
        apply: ApplyCommand {
            exec: Exec::Task(Box::new(TaskConfig {
                stop_grace: Some(APPLY_STOP_GRACE),
                ..task(runner, "apply")
            })),
            max_concurrency: None,
            retryable_exit_codes: vec![TRY_AGAIN],
            retry_policy: Some(retry(
                runner.apply_retry_policy.as_ref(),
                APPLY_RETRY[0],
                APPLY_RETRY[1],
            )),
            window: None,
            env: runner.env.clone(),
            timeout: None,
        },
        get_info: Some(GetInfoCommand {
            exec: Exec::Task(Box::new(task(runner, "info"))),
            poll_interval: None,
            poll_schedule: None,
            timezone: None,
            retry_policy: None,
            env: runner.env.clone(),
            timeout: None,
        }),
        parameters: vec![
            image,
            text_parameter(
                "path",
                "Directory of the configuration, in the image or below the \
                                    runtime's root",
                "",
            ),
            text_parameter("extraInitArgs", "More arguments for `terraform init`", ""),
            wrapper,
            shell,
        ],
        require_approval_before_apply: runner.require_approval_before_apply,
        convergence_grace_period: runner.convergence_grace_period,
        apply_id: None,
        approval_timeout: None,
    }
}

fn task(runner: &IacRunner, step: &str) -> TaskConfig {
    let mut task = tool_task(
        step,
        &[
            "terraform",
            step,
            "--init-args={{.Params.extraInitArgs}}",
            "--shell={{.Params.shellPath}}",
        ],
        pre_run(&runner.pre_run),
    );
    task.program.working_directory = Some("{{.Params.path}}".into());
    task.program.resources.clone_from(&runner.task_resources);
    task.volumes.clone_from(&runner.volumes);
    task.k8s = runner
        .service_account
        .as_ref()
        .map(|service_account| TaskK8s { service_account: service_account.clone() });
    task
}

/// What a service says, with what its channel has over it.
pub(super) fn block<'a>(
    own: Option<&'a TerraformService>,
    service: &'a Service,
) -> Option<Block<'a>> {
    let blocks = [own, service.terraform.as_ref()];
    if blocks.iter().all(Option::is_none) {
        return None;
    }
    let text = |parameter, field: &str, of: fn(&'a TerraformService) -> Option<&'a _>| {
        BlockValue::text(parameter, field, blocks.map(|block| block.and_then(of)))
    };
    let texts = [
        text("image", "image", |block| block.image.as_ref()),
        text("path", "path", |block| block.path.as_ref()),
        text("pvnWrapperPath", "pvnWrapperPath", |block| block.pvn_wrapper_path.as_ref()),
        text("shellPath", "shellPath", |block| block.shell_path.as_ref()),
    ];
    let words = init_args(blocks);
    let words = (!words.is_empty())
        .then_some(BlockValue { parameter: "extraInitArgs", is: BlockForm::Words(words) });
    let values = texts.into_iter().chain([words]).flatten().collect();
    Some(Block { field: BLOCK, is_of_channel: own.is_some(), values })
}

/// `backendConfig` by its keys, and what else `init` is given.
fn init_args<'a>([own, base]: [Option<&'a TerraformService>; 2]) -> Vec<BlockText<'a>> {
    let mut backend = std::collections::BTreeMap::new();
    for (block, is_of_channel) in [(base, false), (own, true)] {
        for (key, text) in block.iter().flat_map(|block| &block.backend_config) {
            backend.insert(
                key,
                BlockText {
                    prefix: format!("-backend-config={key}="),
                    text,
                    is_of_channel,
                    path: format!("backendConfig.{key}"),
                },
            );
        }
    }
    let (more, is_of_channel) = match own.filter(|own| !own.extra_init_args.is_empty()) {
        Some(own) => (own.extra_init_args.as_slice(), true),
        None => (base.map_or(&[][..], |base| &base.extra_init_args), false),
    };
    let more = more.iter().enumerate().map(|(index, text)| BlockText {
        prefix: String::new(),
        text,
        is_of_channel,
        path: format!("extraInitArgs[{index}]"),
    });
    backend.into_values().chain(more).collect()
}
