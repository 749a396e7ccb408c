//! `googleCloudRun`: `pvn-wrapper google-cloud-run` by the `gcloud` program. Called by `effective`.

use super::block::{Block, BlockSource, BlockValue};
use super::cloud::Cloud;
use super::parts::{text_parameter, wrapper_parameter};
use super::{KindOfCommands, Origins};
use crate::{CustomRuntime, Env, GoogleCloudRunRuntime, GoogleCloudRunService, Service};

/// The field of a service.
const BLOCK: &str = "googleCloudRun";

/// The variable that the wrapper takes a key from.
const KEY: &str = "GOOGLE_SERVICE_ACCOUNT_JSON";

const ORIGINS: Origins = &[
    ("proxyRuntime", "proxyRuntime"),
    ("parameters", ""),
    ("fetch", ""),
    ("fetch/taskConfig/program/image", "image"),
    ("fetch/taskConfig/k8s", "serviceAccount"),
    ("fetch/pollInterval", "pollInterval"),
    ("fetch/steadyStatePollInterval", "steadyStatePollInterval"),
    ("fetch/env/GOOGLE_SERVICE_ACCOUNT_JSON", "serviceAccountJson"),
    ("apply", ""),
    ("apply/taskConfig/program/image", "image"),
    ("apply/taskConfig/k8s", "serviceAccount"),
    ("apply/env/GOOGLE_SERVICE_ACCOUNT_JSON", "serviceAccountJson"),
    ("getInfo", ""),
    ("getInfo/taskConfig/program/image", "image"),
    ("getInfo/taskConfig/k8s", "serviceAccount"),
    ("getInfo/env/GOOGLE_SERVICE_ACCOUNT_JSON", "serviceAccountJson"),
];

pub(super) const KIND: KindOfCommands =
    KindOfCommands { kind: "googleCloudRun", origins: ORIGINS, block: Some(BLOCK) };

/// The commands.
pub(super) fn commands(runtime: &GoogleCloudRunRuntime) -> CustomRuntime {
    let mut env = Env::default();
    env.extend(runtime.service_account_json.clone().map(|value| (KEY.to_owned(), value)));
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
        env,
        parameters: vec![spec, wrapper_parameter()],
    }
    .commands()
}

/// What a service says, with what its channel has over it.
pub(super) fn block<'a>(
    own: Option<&'a GoogleCloudRunService>,
    service: &'a Service,
) -> Option<Block<'a>> {
    let blocks = [own, service.google_cloud_run.as_ref()];
    if blocks.iter().all(Option::is_none) {
        return None;
    }
    let inlined =
        |block: &'a GoogleCloudRunService| block.inlined.as_deref().map(BlockSource::Inlined);
    let local = |block: &'a GoogleCloudRunService| block.local.as_ref().map(BlockSource::Local);
    let [own_block, base] =
        blocks.map(|block| block.and_then(|block| inlined(block).or_else(|| local(block))));
    let values = BlockValue::document("serviceSpec", "", [own_block, base]).into_iter().collect();
    Some(Block { field: BLOCK, is_of_channel: own.is_some(), values })
}
