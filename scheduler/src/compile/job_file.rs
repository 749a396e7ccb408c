//! The Kubernetes Job files that a command may be given as. Called by `commands`.

use schema::config::KubernetesConfig;
use schema::status::JobKind;

use super::Command;
use super::configs::Configs;
use super::problem::{Place, Problems};
use super::template::Scope;

/// A Job file, read.
pub(super) struct JobFile {}

/// Reads the file.
pub(super) fn read(_: &Configs, _: &KubernetesConfig, place: &Place, problems: &mut Problems) -> Option<JobFile> {
    problems.add(place.problem("not supported yet: `kubernetesConfig` of a command").help("use `taskConfig`"));
    None
}

impl JobFile {
    /// The command of its container.
    pub(super) fn render(&self, _: JobKind, _: &Scope, _: &Place, _: &mut Problems) -> Option<Command> {
        None
    }
}
