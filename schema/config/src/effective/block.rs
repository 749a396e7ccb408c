//! What a service says to a runtime whose kind has a block of its own (`terraform`, …), as values
//! for the parameters of the commands that the kind is made to. Read by the scheduler's `compile`,
//! which puts the values of the release in.

use crate::kubernetes::LocalFiles;
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
    /// This document, as JSON: values go into its strings, so that none changes its structure.
    Document(BlockDocument<'a>),
    /// This, whatever the values.
    Fixed(&'static str),
}

/// A document that a block holds or names, YAML or JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockDocument<'a> {
    /// Its text, or the files that hold it.
    pub source: BlockSource<'a>,
    /// Whether it is the channel's own rather than the service's.
    pub is_of_channel: bool,
    /// The fields that lead to it from the block on.
    pub path: &'static str,
}

/// Where the text of a document is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BlockSource<'a> {
    /// In the config.
    Inlined(&'a str),
    /// In files beside it.
    Local(&'a LocalFiles),
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

impl<'a> Block<'a> {
    /// Of the channel's and the service's own, where either has one.
    pub(super) fn over<T>(
        field: &'static str,
        blocks: [Option<&'a T>; 2],
        values: impl FnOnce([Option<&'a T>; 2]) -> Vec<BlockValue<'a>>,
    ) -> Option<Self> {
        let [own, base] = blocks;
        own.or(base)?;
        Some(Self { field, is_of_channel: own.is_some(), values: values(blocks) })
    }
}

/// What the channel says, else what the service does; whether it is the channel's own.
fn first<T>([own, base]: [Option<T>; 2]) -> Option<(T, bool)> {
    own.map(|own| (own, true)).or_else(|| base.map(|base| (base, false)))
}

impl<'a> BlockValue<'a> {
    /// Words of a command line, if there are any.
    pub(super) fn words(parameter: &'static str, words: Vec<BlockText<'a>>) -> Option<Self> {
        (!words.is_empty()).then_some(Self { parameter, is: BlockForm::Words(words) })
    }

    /// The document of a field, that of the channel before that of the service.
    pub(super) fn document(
        parameter: &'static str,
        path: &'static str,
        sources: [Option<BlockSource<'a>>; 2],
    ) -> Option<Self> {
        let (source, is_of_channel) = first(sources)?;
        let is = BlockForm::Document(BlockDocument { source, is_of_channel, path });
        Some(Self { parameter, is })
    }

    /// The text of a field, if the channel or the service has it.
    pub(super) fn text(
        parameter: &'static str,
        field: &str,
        texts: [Option<&'a Template>; 2],
    ) -> Option<Self> {
        let (text, is_of_channel) = first(texts)?;
        let is = BlockForm::Text(BlockText {
            prefix: String::new(),
            text,
            is_of_channel,
            path: field.to_owned(),
        });
        Some(Self { parameter, is })
    }
}

impl<'a> BlockText<'a> {
    /// The items of a list: the channel's, else the service's. An empty one says nothing.
    pub(super) fn of_list(field: &str, lists: [Option<&'a Vec<Template>>; 2]) -> Vec<Self> {
        let said = lists.map(|list| list.filter(|list| !list.is_empty()));
        let Some((items, is_of_channel)) = first(said) else { return Vec::new() };
        let text = |(index, text)| Self {
            prefix: String::new(),
            text,
            is_of_channel,
            path: format!("{field}[{index}]"),
        };
        items.iter().enumerate().map(text).collect()
    }
}
