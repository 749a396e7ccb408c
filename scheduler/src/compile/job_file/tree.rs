//! The documents of a file with a Job, and what is read out of one. Called by `job_file`.

use config::yaml::{self, NodeKind, YamlNode};

use super::super::problem::{DocumentField, Problems};
use super::JobFile;

/// The one Job of the files, which must hold nothing else.
pub(super) fn only_job(
    files: Vec<(Option<String>, &str)>,
    place: DocumentField,
    problems: &mut Problems,
) -> Option<JobFile> {
    let mut objects = objects(files, &place, problems)?;
    let found: Vec<String> = objects.iter().map(|(_, _, _, tree)| words(tree)).collect();
    match (objects.pop(), objects.is_empty()) {
        (Some((file, text, start, tree)), true) if is_job(&tree) => {
            Some(JobFile { place, file, text: text.to_owned(), start, tree })
        }
        _ => {
            let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
            problems.add(place.problem(format!(
                "a command's Kubernetes file must hold exactly one batch/v1 Job and nothing else; \
                 found {found}"
            )));
            None
        }
    }
}

/// A document of a file: the file's name and text, where it starts, and what it says.
type FoundDocument<'a> = (Option<String>, &'a str, usize, YamlNode);

/// All documents that hold something; `None` where one cannot be read.
fn objects<'a>(
    files: Vec<(Option<String>, &'a str)>,
    place: &DocumentField,
    problems: &mut Problems,
) -> Option<Vec<FoundDocument<'a>>> {
    let mut objects = Vec::new();
    for (file, text) in files {
        for range in yaml::documents(text) {
            match yaml::parse(&text[range.clone()]) {
                Ok(Some(tree)) if !tree.is_null() => {
                    objects.push((file.clone(), text, range.start, tree))
                }
                Ok(_) => {}
                Err(error) => {
                    problems.add(place.problem(format!("malformed YAML in the file: {error}")));
                    return None;
                }
            }
        }
    }
    Some(objects)
}

pub(super) fn is_job(tree: &YamlNode) -> bool {
    scalar(tree, "/apiVersion") == Some("batch/v1") && scalar(tree, "/kind") == Some("Job")
}

pub(super) fn words(tree: &YamlNode) -> String {
    match (scalar(tree, "/apiVersion"), scalar(tree, "/kind")) {
        (Some(version), Some(kind)) => format!("{version} {kind}"),
        _ => "a document without `apiVersion` and `kind`".to_owned(),
    }
}

pub(super) fn at<'a>(tree: &'a YamlNode, pointer: &str) -> Option<&'a YamlNode> {
    let (node, _, found) = tree.nearest(pointer);
    (found && !node.is_null()).then_some(node)
}

pub(super) fn scalar<'a>(tree: &'a YamlNode, pointer: &str) -> Option<&'a str> {
    match &at(tree, pointer)?.kind {
        NodeKind::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

pub(super) fn items<'a>(tree: &'a YamlNode, pointer: &str) -> &'a [YamlNode] {
    match at(tree, pointer).map(|node| &node.kind) {
        Some(NodeKind::List(items)) => items,
        _ => &[],
    }
}
