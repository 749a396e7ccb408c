//! `terraformRunner`: fetch is `pvn-wrapper terraform plan`, apply runs exactly that plan, getInfo
//! shows the outputs. Called by `effective`.

use super::block::{Block, BlockText, BlockValue};
use super::parts::{of_the_image, text_parameter};
use super::{KindOfCommands, iac};
use crate::{CustomRuntime, IacRunner, Service, TerraformService};

/// The field of a service.
const BLOCK: &str = "terraform";

pub(super) const KIND: KindOfCommands =
    KindOfCommands { kind: "terraformRunner", origins: iac::ORIGINS, block: Some(BLOCK) };

/// The commands.
pub(super) fn commands(runner: &IacRunner) -> CustomRuntime {
    let [image, wrapper, shell] = of_the_image();
    let path = text_parameter(
        "path",
        "Directory of the configuration, in the image or below the runtime's root",
        "",
    );
    let init = text_parameter("extraInitArgs", "More arguments for `terraform init`", "");
    iac::commands(
        runner,
        "terraform",
        ["plan", "apply", "info"],
        &["--init-args={{.Params.extraInitArgs}}"],
        vec![image, path, init, wrapper, shell],
    )
}

/// What a service says, with what its channel has over it.
pub(super) fn block<'a>(
    own: Option<&'a TerraformService>,
    service: &'a Service,
) -> Option<Block<'a>> {
    Block::over(BLOCK, [own, service.terraform.as_deref()], |blocks| {
        let text = |field: &'static str, of: fn(&'a TerraformService) -> Option<&'a _>| {
            BlockValue::text(field, field, blocks.map(|block| block.and_then(of)))
        };
        let values = [
            text("image", |block| block.image.as_ref()),
            text("path", |block| block.path.as_ref()),
            text("pvnWrapperPath", |block| block.pvn_wrapper_path.as_ref()),
            text("shellPath", |block| block.shell_path.as_ref()),
            BlockValue::words("extraInitArgs", init_args(blocks)),
        ];
        values.into_iter().flatten().collect()
    })
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
    let more = [own, base].map(|block| block.map(|block| &block.extra_init_args));
    let more = BlockText::of_list("extraInitArgs", more);
    backend.into_values().chain(more).collect()
}
