//! What a single document must keep to and a JSON Schema cannot say: fields that depend on each
//! other, names given twice, Job files. Each problem by JSON pointer.

mod application;
mod jobs;
mod notifications;
mod runtime;
mod service;

use std::collections::BTreeMap;

use schema::schedule::Duration;

use crate::{Body, Constant, LocalFiles, ParameterDefinition};

/// Shortest deadline that people or an apply may be given, milliseconds: what is shorter is a slip
/// of units, and would pass again and again.
const SHORTEST_DEADLINE_MS: i64 = 1_000;

/// A rule that is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleViolation {
    pub(super) pointer: String,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// Everything of one document that breaks a rule. What is missing is told of a whole document
/// alone: of another one, what was wrong by itself has been taken out.
pub(super) fn check(
    body: &Body,
    attachments: &BTreeMap<String, String>,
    is_whole: bool,
) -> Vec<RuleViolation> {
    let mut rules = Rules { broken: Vec::new(), attachments, is_whole };
    match body {
        Body::Runtime(runtime) => {
            rules.runtime(runtime, "/runtime");
            rules
                .broken
                .iter_mut()
                .for_each(|rule| rule.pointer = runtime.written(&rule.pointer).into_owned());
        }
        Body::Application(application) => rules.application(application, "/application"),
        Body::Service(service) => rules.service(service, "/service"),
    }
    rules.broken
}

struct Rules<'a> {
    broken: Vec<RuleViolation>,
    attachments: &'a BTreeMap<String, String>,
    is_whole: bool,
}

impl Rules<'_> {
    fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.broken.push(RuleViolation {
            pointer: pointer.into(),
            message: message.into(),
            help: None,
        });
    }

    fn help(&mut self, help: impl Into<String>) {
        if let Some(last) = self.broken.last_mut() {
            last.help = Some(help.into());
        }
    }

    /// No two of these names are the same.
    fn unique<'n>(
        &mut self,
        names: impl IntoIterator<Item = &'n str>,
        what: &str,
        pointer: impl Fn(usize) -> String,
    ) {
        let mut first = BTreeMap::new();
        for (index, name) in names.into_iter().enumerate() {
            if first.insert(name.to_owned(), index).is_some() {
                self.add(pointer(index), format!("{what} `{name}` is given twice"));
            }
        }
    }

    /// A duration that is not meant to be shorter, with the reason.
    fn at_least_a_second(&mut self, duration: Option<Duration>, field: &str, why: &str, at: &str) {
        if let Some(short) = duration.filter(|duration| duration.as_ms() < SHORTEST_DEADLINE_MS) {
            self.add(format!("{at}/{field}"), format!("`{field}` {short} is too short: {why}"));
            self.help("give at least `1s`; without it there is no limit");
        }
    }

    fn local(&mut self, local: Option<&LocalFiles>, at: &str) {
        let Some(local) = local else { return };
        let at = format!("{at}/local");
        if local.path.is_none() && local.paths.is_empty() {
            self.add(format!("{at}/paths"), "`paths` is empty; name at least one file");
        }
        if local.sub_path.is_some() && local.path.is_none() {
            self.add(format!("{at}/subPath"), "`subPath` is a part of `path`, which is missing");
        }
        for (name, patterns) in [
            ("includePatterns", &local.include_patterns),
            ("excludePatterns", &local.exclude_patterns),
        ] {
            for (index, pattern) in patterns.iter().enumerate() {
                let filter =
                    crate::local::Filter { include: vec![pattern.clone()], exclude: Vec::new() };
                if let Err(why) = filter.compile() {
                    self.add(format!("{at}/{name}/{index}"), why);
                }
            }
        }
        for reference in crate::local::references(local, &at) {
            let own = LocalFiles {
                path: Some(reference.path.clone()),
                paths: Vec::new(),
                ..local.clone()
            };
            if crate::local::attached(self.attachments, &own, None).is_empty() {
                self.add(
                    reference.pointer,
                    format!(
                        "`{}` was not sent along with the config file",
                        schema::check::cut(&reference.path)
                    ),
                );
                self.help("`pvnctl` sends it; it reads local files relative to the config file");
            }
        }
    }

    fn parameters(&mut self, parameters: &[ParameterDefinition], at: &str) {
        let names = parameters.iter().map(|parameter| parameter.name.as_str());
        self.unique(names, "parameter", |index| format!("{at}/parameters/{index}/name"));
    }

    fn constants(&mut self, constants: &[Constant], at: &str) {
        self.unique(constants.iter().map(|constant| constant.name.as_str()), "constant", |index| {
            format!("{at}/constants/{index}/name")
        });
    }
}
