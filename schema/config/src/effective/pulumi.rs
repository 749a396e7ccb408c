//! `pulumiRunner`: fetch is `pvn-wrapper pulumi preview`, apply is `up`, getInfo shows the stack's
//! outputs. Called by `effective`.

use super::block::{Block, BlockText, BlockValue};
use super::parts::{of_the_image, text_parameter};
use super::{KindOfCommands, iac};
use crate::{CustomRuntime, IacRunner, PulumiService, Service};

/// The field of a service.
const BLOCK: &str = "pulumi";

pub(super) const KIND: KindOfCommands =
    KindOfCommands { kind: "pulumiRunner", origins: iac::ORIGINS, block: Some(BLOCK) };

/// The commands.
pub(super) fn commands(runner: &IacRunner) -> CustomRuntime {
    let [image, wrapper, shell] = of_the_image();
    let path = text_parameter(
        "path",
        "Directory of the program, in the image or below the runtime's root",
        "",
    );
    let mut stack = text_parameter("stack", "The stack", "");
    stack.required = true;
    let prefix = text_parameter("pulumiCommandPrefix", "What stands before `pulumi`", "");
    iac::commands(
        runner,
        "pulumi",
        ["preview", "up", "info"],
        &["--stack={{.Params.stack}}", "--command-prefix={{.Params.pulumiCommandPrefix}}"],
        vec![image, path, stack, prefix, wrapper, shell],
    )
}

/// What a service says, with what its channel has over it.
pub(super) fn block<'a>(own: Option<&'a PulumiService>, service: &'a Service) -> Option<Block<'a>> {
    Block::over(BLOCK, [own, service.pulumi.as_deref()], |blocks| {
        let text = |field: &'static str, of: fn(&'a PulumiService) -> Option<&'a _>| {
            BlockValue::text(field, field, blocks.map(|block| block.and_then(of)))
        };
        let prefix = blocks.map(|block| block.map(|block| &block.pulumi_command_prefix));
        let values = [
            text("image", |block| block.image.as_ref()),
            text("path", |block| block.path.as_ref()),
            text("stack", |block| block.stack.as_ref()),
            BlockValue::words(
                "pulumiCommandPrefix",
                BlockText::of_list("pulumiCommandPrefix", prefix),
            ),
        ];
        values.into_iter().flatten().collect()
    })
}
