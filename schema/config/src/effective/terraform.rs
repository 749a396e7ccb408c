//! `terraformRunner`: fetch is `pvn-wrapper terraform plan`, apply runs exactly that plan, getInfo
//! shows the outputs. Called by `effective`.

use super::block::{Block, BlockForm, BlockText, BlockValue};
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
    let more = BlockText::of_list("extraInitArgs", more, is_of_channel);
    backend.into_values().chain(more).collect()
}
