//! What a runtime comes to, whatever its kind: the commands that run for a service on it, and what
//! jobs of other runtimes find on it. The one place where kinds are told apart; the checks here and
//! the scheduler's `compile` ask what a runtime comes to, never which kind it is. Pure, from the
//! document alone.
//!
//! A kind that is built in makes its commands out of its own block, in a file of its own, and says
//! with them where in that block each part comes from, so that a problem of a command is shown
//! where somebody wrote what is wrong.

use std::borrow::Cow;

use crate::{
    CustomRuntime, FakeRuntime, KubernetesRuntime, LocalRuntime, PerReleaseChannel, Runtime,
    RuntimeKind, Service,
};

mod aws_ecs;
mod block;
mod cloud;
mod eject;
mod google_cloud_run;
mod iac;
mod parts;
mod pulumi;
mod terraform;

pub(crate) use eject::EJECTED_SECRET;

pub use block::{Block, BlockDocument, BlockForm, BlockSource, BlockText, BlockValue};

/// What a runtime is to its services and to other runtimes.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeRole<'a> {
    /// Its kind in one word: the field with its block, what lists show, the label `@type`.
    pub kind: &'static str,
    /// What runs for a service on it.
    pub commands: Option<EffectiveRuntime<'a>>,
    /// What jobs find there whose `proxyRuntime` names it.
    pub host: Option<JobHost<'a>>,
}

/// Where jobs run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JobHost<'a> {
    /// On a Kubernetes cluster.
    Kubernetes(Option<&'a KubernetesRuntime>),
    /// As processes on the scheduler's own machine.
    Local(&'a LocalRuntime),
    /// Nowhere: they are made up. A service may stand on it without commands, too.
    Fake(&'a FakeRuntime),
}

/// Where a part of generated commands comes from: pointers from the block on, without a slash in
/// front, in which `*` is any of the commands. The longest that fits counts; what is below it is
/// the same in both.
type Origins = &'static [(&'static str, &'static str)];

/// What holds for all runtimes of a kind that has commands.
#[derive(Debug, PartialEq)]
struct KindOfCommands {
    /// The field of the runtime with its block.
    kind: &'static str,
    origins: Origins,
    /// The field of a service with what it says to it, beside `customRuntime`.
    block: Option<&'static str>,
}

/// Commands as somebody wrote them.
const CUSTOM: KindOfCommands = KindOfCommands { kind: "custom", origins: &[], block: None };

/// The commands of a runtime and the rules around them.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveRuntime<'a> {
    of: &'static KindOfCommands,
    custom: Cow<'a, CustomRuntime>,
}

impl EffectiveRuntime<'_> {
    /// The commands, as a `custom` block has them.
    pub fn custom(&self) -> &CustomRuntime {
        &self.custom
    }

    /// Whether somebody wrote them as they are, so that they are not made from another block.
    pub fn is_as_written(&self) -> bool {
        matches!(self.custom, Cow::Borrowed(_))
    }

    /// The field of a service with what it says to a runtime of this kind, beside `customRuntime`.
    pub fn block(&self) -> Option<&'static str> {
        self.of.block
    }

    /// Whether a block says something to these commands: to those of its kind, and to those that
    /// somebody wrote with the same parameters.
    pub fn takes(&self, block: &Block<'_>) -> bool {
        let has = |name: &str| self.custom.parameters.iter().any(|known| known.name == name);
        self.of.block == Some(block.field)
            || self.is_as_written()
                && !block.values.is_empty()
                && block.values.iter().all(|value| has(value.parameter))
    }

    /// Who asks for a parameter that nobody gives, and how a service gives it.
    pub fn asks(&self, runtime: &str) -> String {
        let way = match self.of.block {
            Some(block) => format!("as a field of `{block}`"),
            None => "under `customRuntime.parameterValues`".to_owned(),
        };
        format!("runtime `{runtime}` asks for it: give it {way}")
    }

    /// JSON pointer of a part of the commands, given by its own from `custom` on (`fetch/env/A`).
    /// Where somebody wrote it, [`Document::problem`](crate::Document::problem) finds out.
    pub fn pointer(&self, part: &str) -> String {
        format!("/runtime/{}/{part}", self.of.kind)
    }

    /// The pointer of what somebody wrote for the part that this pointer is about.
    fn written<'p>(&self, pointer: &'p str) -> Cow<'p, str> {
        written(self.of.kind, self.of.origins, pointer)
    }
}

fn written<'p>(kind: &str, origins: Origins, pointer: &'p str) -> Cow<'p, str> {
    let part = pointer
        .strip_prefix("/runtime/")
        .and_then(|rest| rest.strip_prefix(kind)?.strip_prefix('/'));
    let Some(part) = part else { return pointer.into() };
    let below = |generated: &str| {
        let rest = match generated.strip_prefix('*') {
            Some(of_any) => ["fetch", "apply", "getInfo"]
                .iter()
                .find_map(|command| part.strip_prefix(command))?
                .strip_prefix(of_any),
            None => part.strip_prefix(generated),
        };
        rest.filter(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let fits = origins
        .iter()
        .filter_map(|(generated, source)| Some((generated.len(), source, below(generated)?)));
    match fits.max_by_key(|(length, ..)| *length) {
        Some((_, &"", rest)) => format!("/runtime/{kind}{rest}").into(),
        Some((_, source, rest)) => format!("/runtime/{kind}/{source}{rest}").into(),
        None => pointer.into(),
    }
}

impl Service {
    /// What it says in the block for a kind of runtime that is built in, with what the channel has
    /// over it, if either has one. Whatever runtime has the parameters can be given the values: the
    /// commands of a kind go on with the same services where somebody writes them out.
    pub fn block<'a>(&'a self, own: Option<&'a PerReleaseChannel>) -> Option<Block<'a>> {
        terraform::block(own.and_then(|own| own.terraform.as_deref()), self)
            .or_else(|| pulumi::block(own.and_then(|own| own.pulumi.as_deref()), self))
            .or_else(|| aws_ecs::block(own.and_then(|own| own.aws_ecs.as_deref()), self))
            .or_else(|| {
                google_cloud_run::block(own.and_then(|own| own.google_cloud_run.as_deref()), self)
            })
    }
}

impl Runtime {
    /// What it is to its services and to other runtimes.
    pub fn role(&self) -> RuntimeRole<'_> {
        let commands = |of: &'static KindOfCommands, custom| RuntimeRole {
            kind: of.kind,
            commands: Some(EffectiveRuntime { of, custom }),
            host: None,
        };
        let host = |kind, host| RuntimeRole { kind, commands: None, host: Some(host) };
        match &self.kind {
            RuntimeKind::Custom(custom) => commands(&CUSTOM, Cow::Borrowed(&**custom)),
            RuntimeKind::Kubernetes(kubernetes) => {
                host("kubernetes", JobHost::Kubernetes(kubernetes.as_ref()))
            }
            RuntimeKind::Local(local) => host("local", JobHost::Local(local)),
            RuntimeKind::Fake(fake) => host("fake", JobHost::Fake(fake)),
            RuntimeKind::TerraformRunner(runner) => {
                commands(&terraform::KIND, Cow::Owned(terraform::commands(runner)))
            }
            RuntimeKind::PulumiRunner(runner) => {
                commands(&pulumi::KIND, Cow::Owned(pulumi::commands(runner)))
            }
            RuntimeKind::AwsEcs(runtime) => {
                commands(&aws_ecs::KIND, Cow::Owned(aws_ecs::commands(runtime)))
            }
            RuntimeKind::GoogleCloudRun(runtime) => {
                commands(&google_cloud_run::KIND, Cow::Owned(google_cloud_run::commands(runtime)))
            }
        }
    }

    /// The pointer of a secret that is written in the open, in a field that has nothing else.
    pub(super) fn bare_secret(&self) -> Option<&'static str> {
        match &self.kind {
            RuntimeKind::AwsEcs(runtime) => aws_ecs::bare_secret(runtime),
            RuntimeKind::GoogleCloudRun(runtime) => google_cloud_run::bare_secret(runtime),
            RuntimeKind::Custom(_)
            | RuntimeKind::Kubernetes(_)
            | RuntimeKind::Local(_)
            | RuntimeKind::Fake(_)
            | RuntimeKind::TerraformRunner(_)
            | RuntimeKind::PulumiRunner(_) => None,
        }
    }

    /// The pointer of what somebody wrote for what this pointer into the document is about, which
    /// may be a part of commands that were made from it.
    pub(super) fn written<'p>(&self, pointer: &'p str) -> Cow<'p, str> {
        self.role().commands.map_or(pointer.into(), |commands| commands.written(pointer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_generated_commands_leads_back_to_what_somebody_wrote() {
        let origins: Origins = &[
            ("fetch", ""),
            ("fetch/taskConfig/volumes", "volumes"),
            ("fetch/taskConfig/program/cmd", "preRun"),
            ("apply/retryPolicy", "applyRetryPolicy"),
            ("*/env", "env"),
        ];
        let check = |part: &str, expected: &str| {
            assert_eq!(
                written("builtIn", origins, &format!("/runtime/builtIn/{part}")),
                format!("/runtime/builtIn{expected}")
            );
        };
        check("fetch/taskConfig/volumes/1/mount/mountPath", "/volumes/1/mount/mountPath");
        check("fetch/taskConfig/program/cmd/0", "/preRun/0");
        check("fetch", "");
        check("apply/retryPolicy/maxInterval", "/applyRetryPolicy/maxInterval");
        check("apply/retryPolicyOfOthers", "/apply/retryPolicyOfOthers");
        check("proxyRuntime/runtime", "/proxyRuntime/runtime");
        check("apply/env/A/value", "/env/A/value");
        check("getInfo/env", "/env");
        check("getInfo/environment", "/getInfo/environment");
        assert_eq!(written("builtIn", origins, "/runtime/name"), "/runtime/name");
        assert_eq!(
            written("custom", &[], "/runtime/custom/fetch/env/A"),
            "/runtime/custom/fetch/env/A"
        );
    }
}
