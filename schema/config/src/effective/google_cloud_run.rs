//! `googleCloudRun`: `pvn-wrapper google-cloud-run` by the `gcloud` program. Called by `effective`.

use super::block::{Block, BlockSource, BlockValue};
use super::cloud::{Cloud, is_bare, secret};
use super::parts::{text_parameter, wrapper_parameter};
use super::{KindOfCommands, Origins};
use crate::{CustomRuntime, GoogleCloudRunRuntime, GoogleCloudRunService, Service};

/// The field of a service.
const BLOCK: &str = "googleCloudRun";

/// The variable that the wrapper takes a key from.
const KEY: &str = "GOOGLE_SERVICE_ACCOUNT_JSON";

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
    ("*/env/GOOGLE_SERVICE_ACCOUNT_JSON", "serviceAccountJson"),
];

pub(super) const KIND: KindOfCommands =
    KindOfCommands { kind: "googleCloudRun", origins: ORIGINS, block: Some(BLOCK) };

/// The commands.
pub(super) fn commands(runtime: &GoogleCloudRunRuntime) -> CustomRuntime {
    let mut env = runtime.env.clone();
    let key = runtime.service_account_json.as_ref().map(secret);
    env.extend(key.map(|value| (KEY.to_owned(), value)));
    let mut spec = text_parameter("serviceSpec", "The service, as JSON", "");
    spec.required = true;
    Cloud {
        tool: "google-cloud-run",
        arguments: vec![
            format!("--project={}", runtime.project).as_str().into(),
            format!("--region={}", runtime.region).as_str().into(),
            "--service-spec={{.Params.serviceSpec}}".into(),
        ],
        proxy_runtime: runtime.proxy_runtime.as_ref(),
        image: runtime.image.as_ref(),
        service_account: runtime.service_account.as_ref(),
        polls: [runtime.poll_interval, runtime.steady_state_poll_interval],
        require_approval_before_apply: runtime.require_approval_before_apply,
        env,
        parameters: vec![spec, wrapper_parameter()],
    }
    .commands()
}

/// The field with a secret that is written in the open.
pub(super) fn bare_secret(runtime: &GoogleCloudRunRuntime) -> Option<&'static str> {
    is_bare(runtime.service_account_json.as_ref())
        .then_some("/runtime/googleCloudRun/serviceAccountJson/value")
}

/// What a service says, with what its channel has over it.
pub(super) fn block<'a>(
    own: Option<&'a GoogleCloudRunService>,
    service: &'a Service,
) -> Option<Block<'a>> {
    let source = |block: &'a GoogleCloudRunService| {
        let inlined = block.inlined.as_deref().map(BlockSource::Inlined);
        inlined.or_else(|| block.local.as_ref().map(BlockSource::Local))
    };
    Block::over(BLOCK, [own, service.google_cloud_run.as_deref()], |blocks| {
        let sources = blocks.map(|block| block.and_then(source));
        BlockValue::document("serviceSpec", "", sources).into_iter().collect()
    })
}
