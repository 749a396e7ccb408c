//! A walk over all entries of all mappings of a tree, each with the way to it.

use schema::check::pointer_segment;

use super::{MappingEntry, NodeKind, YamlNode};

/// A step down from a node.
#[derive(Debug, Clone, Copy)]
pub enum YamlStep<'a> {
    /// Into the value of an entry.
    Entry(&'a MappingEntry),
    /// Into an item of a list.
    Item(usize, &'a YamlNode),
}

/// What of a tree a walk shows.
#[derive(Debug, Clone, Copy)]
pub enum Visited<'a> {
    /// A key with its value; the last step leads to the value.
    Entry(&'a MappingEntry),
    /// A value that is no mapping and no list.
    Scalar(&'a str, &'a YamlNode),
    /// A mapping, after all that is in it.
    Mapping(&'a [MappingEntry]),
}

impl YamlNode {
    /// Shows `see` everything in this node, in the order of the text, with the steps to it from
    /// where the walk began. Of an entry it answers whether to go on into its value. No deeper
    /// than [`super::DEPTH_LIMIT`], for each alias once more.
    pub fn visit<'a>(
        &'a self,
        steps: &mut Vec<YamlStep<'a>>,
        see: &mut dyn FnMut(&[YamlStep<'a>], Visited<'a>) -> bool,
    ) {
        match &self.kind {
            NodeKind::Scalar { text, .. } => {
                see(steps, Visited::Scalar(text, self));
            }
            NodeKind::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    steps.push(YamlStep::Item(index, item));
                    item.visit(steps, see);
                    steps.pop();
                }
            }
            NodeKind::Mapping(entries) => {
                entries.iter().for_each(|entry| entry.visit(steps, see));
                see(steps, Visited::Mapping(entries));
            }
        }
    }
}

impl MappingEntry {
    /// The same of an entry.
    pub fn visit<'a>(
        &'a self,
        steps: &mut Vec<YamlStep<'a>>,
        see: &mut dyn FnMut(&[YamlStep<'a>], Visited<'a>) -> bool,
    ) {
        steps.push(YamlStep::Entry(self));
        if see(steps, Visited::Entry(self)) {
            self.value.visit(steps, see);
        }
        steps.pop();
    }
}

/// The JSON pointer of where these steps lead.
pub fn pointer(steps: &[YamlStep<'_>]) -> String {
    let mut pointer = String::new();
    for step in steps {
        match step {
            YamlStep::Entry(entry) => pointer_segment(&mut pointer, &entry.key),
            YamlStep::Item(index, _) => pointer_segment(&mut pointer, &index.to_string()),
        }
    }
    pointer
}
