//! Local files that a document refers to: which ones it wants (for the client, which reads them)
//! and which of those that were sent along a `local` block takes in. Pure; paths are text, with `/`
//! between their parts.

use std::collections::BTreeMap;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::LocalFiles;

/// What is taken of a directory when nothing is said.
const DEFAULT_PATTERNS: &[&str] = &["*.yaml", "*.yml", "*.json"];

/// A reference to a local file or directory, as the client needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// JSON pointer of the field in its document that holds the path.
    pub pointer: String,
    /// The path as it is written, relative to the config file.
    pub path: String,
    /// What is taken if it is a directory.
    pub filter: Filter,
}

/// Which files of a directory are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only these; empty means YAML and JSON files.
    pub include: Vec<String>,
    /// Not these.
    pub exclude: Vec<String>,
}

impl Filter {
    /// The filter in a form that can be asked.
    ///
    /// # Errors
    /// A pattern that is none, and why.
    pub fn compile(&self) -> Result<CompiledFilter, String> {
        let include: Vec<&str> = if self.include.is_empty() {
            DEFAULT_PATTERNS.to_vec()
        } else {
            self.include.iter().map(String::as_str).collect()
        };
        let exclude: Vec<&str> = self.exclude.iter().map(String::as_str).collect();
        Ok(CompiledFilter { include: globs(&include)?, exclude: globs(&exclude)? })
    }
}

/// A [`Filter`] that can be asked.
#[derive(Debug, Clone)]
pub struct CompiledFilter {
    include: GlobSet,
    exclude: GlobSet,
}

impl CompiledFilter {
    /// Whether the file at this path inside the directory is taken.
    pub fn takes(&self, path: &str) -> bool {
        self.include.is_match(path) && !self.exclude.is_match(path)
    }
}

/// As in `.gitignore`: a pattern without a slash is about names at any depth, one with a slash
/// about the path from the directory; a directory stands for all that is in it.
fn globs(patterns: &[&str]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let trimmed = pattern.trim_end_matches('/');
        let rooted = match trimmed.strip_prefix('/') {
            Some(rest) => rest.to_owned(),
            None if trimmed.contains('/') => trimmed.to_owned(),
            None => format!("**/{trimmed}"),
        };
        for glob in [rooted.clone(), format!("{rooted}/**")] {
            let glob = GlobBuilder::new(&glob)
                .literal_separator(true)
                .build()
                .map_err(|error| format!("`{pattern}` is not a file pattern: {}", error.kind()))?;
            set.add(glob);
        }
    }
    set.build().map_err(|error| error.to_string())
}

/// The references of one `local` block that stands at `pointer`.
pub(super) fn references(local: &LocalFiles, pointer: &str) -> Vec<Reference> {
    let filter =
        Filter { include: local.include_patterns.clone(), exclude: local.exclude_patterns.clone() };
    let one = |pointer: String, path: &str| Reference {
        pointer,
        path: path.to_owned(),
        filter: filter.clone(),
    };
    let path = local.path.iter().map(|path| one(format!("{pointer}/path"), path));
    path.chain(
        local
            .paths
            .iter()
            .enumerate()
            .map(|(index, path)| one(format!("{pointer}/paths/{index}"), path)),
    )
    .collect()
}

/// The files of a `local` block among those sent along: each path's own file, or those of its
/// directory in order of their paths.
pub(super) fn attached<'a>(
    attachments: &'a BTreeMap<String, String>,
    local: &LocalFiles,
    sub_path: Option<&str>,
) -> Vec<(&'a str, &'a str)> {
    let mut files = Vec::new();
    for path in local.path.iter().chain(&local.paths) {
        let path =
            match sub_path.map(|sub_path| sub_path.trim_start_matches("./").trim_matches('/')) {
                Some("." | "") | None => path.clone(),
                Some(sub_path) => format!("{}/{sub_path}", path.trim_end_matches('/')),
            };
        if let Some((name, text)) = attachments.get_key_value(&path) {
            files.push((name.as_str(), text.as_str()));
            continue;
        }
        let directory = format!("{}/", path.trim_end_matches('/'));
        let inside = attachments
            .range(directory.clone()..)
            .take_while(|(name, _)| name.starts_with(&directory));
        files.extend(inside.map(|(name, text)| (name.as_str(), text.as_str())));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(include: &[&str], exclude: &[&str], path: &str, taken: bool) {
        let owned =
            |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let filter = Filter { include: owned(include), exclude: owned(exclude) }.compile().unwrap();
        assert_eq!(filter.takes(path), taken, "{path} of {include:?} without {exclude:?}");
    }

    #[test]
    fn patterns_mean_what_they_mean_in_gitignore() {
        check(&[], &[], "job.yaml", true);
        check(&[], &[], "deep/down/job.yml", true);
        check(&[], &[], "README.md", false);
        check(&["*.txt"], &[], "a/b.txt", true);
        check(&["*.txt"], &[], "a/b.yaml", false);
        check(&[], &["test"], "a/test/job.yaml", false);
        check(&[], &["test/"], "test/job.yaml", false);
        check(&[], &["/test"], "a/test/job.yaml", true);
        check(&[], &["a/*.yaml"], "a/b/job.yaml", true);
        check(&[], &["a/**/*.yaml"], "a/b/job.yaml", false);
    }

    #[test]
    fn a_wrong_pattern_is_named() {
        let error =
            Filter { include: vec!["a[".to_owned()], exclude: Vec::new() }.compile().unwrap_err();
        assert!(error.starts_with("`a[` is not a file pattern"), "{error}");
    }

    #[test]
    fn a_directory_gives_its_files_in_order_and_a_path_wins_over_a_prefix() {
        let text = |name: &str| (name.to_owned(), format!("text of {name}"));
        let attachments: BTreeMap<_, _> =
            [text("jobs/b.yaml"), text("jobs/a/x.yaml"), text("jobs-2/c.yaml"), text("one.yaml")]
                .into();
        let names = |path: &str, sub_path: Option<&str>| {
            let local: LocalFiles =
                serde_json::from_value(serde_json::json!({ "path": path })).unwrap();
            attached(&attachments, &local, sub_path)
                .into_iter()
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(names("jobs", None), "jobs/a/x.yaml jobs/b.yaml");
        assert_eq!(names("jobs/", Some("./a")), "jobs/a/x.yaml");
        assert_eq!(names("jobs", Some("b.yaml")), "jobs/b.yaml");
        assert_eq!(names("one.yaml", None), "one.yaml");
        assert_eq!(names("nothing", None), "");
    }
}
