//! `awsEcs`: `pvn-wrapper aws-ecs` by the `aws` program. Called by `effective`.

use super::block::{Block, BlockForm, BlockSource, BlockValue};
use super::cloud::{Cloud, is_bare, secret};
use super::parts::{text_parameter, wrapper_parameter};
use super::{KindOfCommands, Origins};
use crate::{AwsEcsRuntime, AwsEcsService, CustomRuntime, EnvValue, Service, SpecFile};

/// The field of a service.
const BLOCK: &str = "awsEcs";

const ORIGINS: Origins = &[
    ("proxyRuntime", "proxyRuntime"),
    ("parameters", ""),
    ("fetch/pollInterval", "pollInterval"),
    ("fetch/steadyStatePollInterval", "steadyStatePollInterval"),
    ("requireApprovalBeforeApply", "requireApprovalBeforeApply"),
    ("*", ""),
    ("*/taskConfig/program/image", "image"),
    ("*/taskConfig/k8s", "serviceAccount"),
    ("*/env", "env"),
    ("*/env/AWS_ACCESS_KEY_ID", "credentials/accessKey"),
    ("*/env/AWS_SECRET_ACCESS_KEY", "credentials/secretKey"),
];

pub(super) const KIND: KindOfCommands =
    KindOfCommands { kind: "awsEcs", origins: ORIGINS, block: Some(BLOCK) };

/// What goes with a key of a session, by its new and by its old name. Source: botocore,
/// `EnvProvider`.
const SESSION_TOKENS: &[&str] = &["AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"];

/// The commands.
pub(super) fn commands(runtime: &AwsEcsRuntime) -> CustomRuntime {
    let mut arguments = vec![
        format!("--cluster={}", runtime.ecs_cluster).as_str().into(),
        format!("--region={}", runtime.region).as_str().into(),
        "--task-definition={{.Params.taskDefinition}}".into(),
        "--service-definition={{.Params.serviceDefinition}}".into(),
        "--service-name={{.Params.ecsServiceNameOverride}}".into(),
        "--update-task-definition-only={{.Params.updateTaskDefinitionOnly}}".into(),
    ];
    let mut env = runtime.env.clone();
    if let Some(credentials) = &runtime.credentials {
        for (name, value) in [
            ("AWS_ACCESS_KEY_ID", credentials.access_key.clone()),
            ("AWS_SECRET_ACCESS_KEY", credentials.secret_key.as_ref().map(secret)),
        ] {
            env.extend(value.map(|value| (name.to_owned(), value)));
        }
        if credentials.secret_key.is_some() {
            // The session of whoever runs the scheduler is none of this key, and empty is none.
            for name in SESSION_TOKENS {
                env.entry((*name).to_owned()).or_insert_with(|| EnvValue::Value("".into()));
            }
        }
        let role = credentials.assume_role_arn.as_ref();
        arguments.extend(role.map(|arn| format!("--assume-role-arn={arn}").as_str().into()));
    }
    let mut task = text_parameter("taskDefinition", "The task definition, as JSON", "");
    task.required = true;
    Cloud {
        tool: "aws-ecs",
        arguments,
        proxy_runtime: runtime.proxy_runtime.as_ref(),
        image: runtime.image.as_ref(),
        service_account: runtime.service_account.as_ref(),
        polls: [runtime.poll_interval, runtime.steady_state_poll_interval],
        require_approval_before_apply: runtime.require_approval_before_apply,
        env,
        parameters: vec![
            task,
            text_parameter("serviceDefinition", "The service, as JSON", ""),
            text_parameter("ecsServiceNameOverride", "Name of the ECS service", ""),
            text_parameter(
                "updateTaskDefinitionOnly",
                "`true`: somebody else makes the service",
                "false",
            ),
            wrapper_parameter(),
        ],
    }
    .commands()
}

/// The field with a secret that is written in the open.
pub(super) fn bare_secret(runtime: &AwsEcsRuntime) -> Option<&'static str> {
    let credentials = runtime.credentials.as_ref();
    let key = credentials.and_then(|credentials| credentials.secret_key.as_ref());
    is_bare(key).then_some("/runtime/awsEcs/credentials/secretKey/value")
}

/// What a service says, with what its channel has over it.
pub(super) fn block<'a>(own: Option<&'a AwsEcsService>, service: &'a Service) -> Option<Block<'a>> {
    let source = |spec: &'a SpecFile| match spec {
        SpecFile::Inlined(text) => BlockSource::Inlined(text),
        SpecFile::Local(files) => BlockSource::Local(files),
    };
    Block::over(BLOCK, [own, service.aws_ecs.as_deref()], |blocks| {
        let document = |field, of: fn(&'a AwsEcsService) -> Option<&'a SpecFile>| {
            BlockValue::document(field, field, blocks.map(|block| of(block?).map(source)))
        };
        let name = blocks.map(|block| block?.ecs_service_name_override.as_ref());
        let is_only_task = blocks.iter().flatten().any(|block| block.update_task_definition_only);
        let values = [
            document("taskDefinition", |block| block.task_definition.as_ref()),
            document("serviceDefinition", |block| block.service_definition.as_ref()),
            BlockValue::text("ecsServiceNameOverride", "ecsServiceNameOverride", name),
            is_only_task.then_some(BlockValue {
                parameter: "updateTaskDefinitionOnly",
                is: BlockForm::Fixed("true"),
            }),
        ];
        values.into_iter().flatten().collect()
    })
}
