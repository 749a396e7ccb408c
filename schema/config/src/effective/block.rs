//! What a service says to a runtime whose kind has a block of its own (`terraform`, …), as values
//! for the parameters of the commands that the kind is made to. Read by the scheduler's `compile`,
//! which puts the values of the release in.

use crate::template::Template;

/// What a service says in such a block.
#[derive(Debug, Clone, PartialEq)]
pub struct Block<'a> {
    /// Its field.
    pub field: &'static str,
    /// Whether the channel has one of its own, over that of the service.
    pub is_of_channel: bool,
    /// What it says, that of the channel winning field by field.
    pub values: Vec<BlockValue<'a>>,
}

/// A value for a parameter of the commands.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockValue<'a> {
    /// The parameter.
    pub parameter: &'static str,
    /// What it becomes.
    pub is: BlockForm<'a>,
}

/// How a value is made of what stands in the block.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockForm<'a> {
    /// This text.
    Text(BlockText<'a>),
    /// Words of a command line, each quoted as a shell wants it once its values are in.
    Words(Vec<BlockText<'a>>),
}

/// A text of a block, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockText<'a> {
    /// What stands before it in the value.
    pub prefix: String,
    /// The text.
    pub text: &'a Template,
    /// Whether it is the channel's own rather than the service's.
    pub is_of_channel: bool,
    /// The fields that lead to it from the block on: `backendConfig.bucket`, `extraInitArgs[0]`.
    pub path: String,
}

impl<'a> BlockValue<'a> {
    /// The text of a field, if the channel or the service has it.
    pub(super) fn text(
        parameter: &'static str,
        field: &str,
        [own, base]: [Option<&'a Template>; 2],
    ) -> Option<Self> {
        let (text, is_of_channel) =
            own.map(|text| (text, true)).or_else(|| base.map(|text| (text, false)))?;
        let is = BlockForm::Text(BlockText {
            prefix: String::new(),
            text,
            is_of_channel,
            path: field.to_owned(),
        });
        Some(Self { parameter, is })
    }
}
