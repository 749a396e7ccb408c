//! What a release comes to in each of its channels, and everything that is wrong with it, told in
//! one go: each problem once, with the channels and the service where the place does not show them.
//! Called by `release` and `back`.

use std::collections::{BTreeMap, BTreeSet};

use schema::api::Diagnostic;
use schema::id::ChannelName;

use super::super::Refusal;
use super::Planner;
use crate::compile::{Channel, CompiledInstance, EnvValue, RunTarget};

/// Something that is wrong.
struct ReleaseProblem {
    problem: Diagnostic,
    /// In which channels; none where it is of no channel in particular.
    channels: Vec<ChannelName>,
}

/// The channels of a release, compiled.
pub(super) struct CompiledChannels {
    compiled: Vec<CompiledInstance>,
    wrong: Vec<ReleaseProblem>,
    /// How many there are.
    channels: usize,
}

/// Compiles the channels that are wanted.
pub(super) fn compile_each(
    channels: &[Channel],
    wanted: &BTreeSet<ChannelName>,
    compile: impl Fn(&Channel) -> (Option<CompiledInstance>, Vec<Diagnostic>),
) -> CompiledChannels {
    let mut tried =
        CompiledChannels { compiled: Vec::new(), wrong: Vec::new(), channels: wanted.len() };
    for channel in channels.iter().filter(|channel| wanted.contains(&channel.name)) {
        let (instance, found) = compile(channel);
        tried.compiled.extend(instance);
        for problem in found {
            // Channels have most of theirs in common.
            match tried.wrong.iter_mut().find(|wrong| is_same(&wrong.problem, &problem)) {
                Some(wrong) => wrong.channels.push(channel.name.clone()),
                None => tried
                    .wrong
                    .push(ReleaseProblem { problem, channels: vec![channel.name.clone()] }),
            }
        }
    }
    tried
}

/// Whether it is the same problem: its help may name the channel.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    let place = |problem: &Diagnostic| (problem.line, problem.column);
    one.file == other.file
        && place(one) == place(other)
        && one.path == other.path
        && one.message == other.message
}

/// The parameter that a problem of a release's values is about.
fn parameter(problem: &Diagnostic) -> Option<&str> {
    let is_value = problem.file.is_empty() && problem.path.starts_with("params");
    problem.path.rsplit('.').next().filter(|_| is_value)
}

impl CompiledChannels {
    /// With what is wrong with the values that were given. What is missing for that alone is not
    /// told.
    pub(super) fn with_values(mut self, wrong: Vec<Diagnostic>) -> Self {
        let told: BTreeSet<&str> = wrong.iter().filter_map(parameter).collect();
        self.wrong
            .retain(|wrong| parameter(&wrong.problem).is_none_or(|name| !told.contains(name)));
        drop(told);
        self.wrong.splice(
            0..0,
            wrong.into_iter().map(|problem| ReleaseProblem { problem, channels: Vec::new() }),
        );
        self
    }
}

impl ReleaseProblem {
    /// As people read it: where it is not wrong in all channels with those in which it is, and with
    /// the service that it is `of`.
    fn told(self, channels: usize, of: Option<&str>) -> Diagnostic {
        let Self { mut problem, channels: wrong_in } = self;
        // The lines of the service's own config show whose they are.
        let of = of.filter(|_| !problem.path.starts_with("service"));
        let mut words: Vec<String> =
            of.map(|service| format!("for service `{service}`")).into_iter().collect();
        if !wrong_in.is_empty() && wrong_in.len() < channels {
            let names: Vec<String> = wrong_in.iter().map(|name| format!("`{name}`")).collect();
            let channel = if names.len() == 1 { "channel" } else { "channels" };
            words.push(format!("in {channel} {}", names.join(", ")));
        }
        if !words.is_empty() {
            problem.message = format!("{} ({})", problem.message, words.join(" "));
        }
        problem
    }
}

impl Planner {
    /// All that was wanted, when nothing is wrong with any of it and all its secrets are there.
    /// `of`: the service, where it has to be named.
    pub(super) async fn whole(
        &self,
        tried: CompiledChannels,
        of: Option<&str>,
    ) -> Result<Vec<CompiledInstance>, Refusal> {
        let CompiledChannels { compiled, mut wrong, channels } = tried;
        wrong.extend(self.missing_secrets(&compiled).await?);
        if wrong.is_empty() {
            return Ok(compiled);
        }
        Err(Refusal::Config(wrong.into_iter().map(|wrong| wrong.told(channels, of)).collect()))
    }

    /// Secrets that the commands are to get and that nobody has set: told now, where somebody
    /// listens, rather than by every job.
    async fn missing_secrets(
        &self,
        compiled: &[CompiledInstance],
    ) -> Result<Vec<ReleaseProblem>, Refusal> {
        let mut wanted: BTreeMap<(&str, u64), BTreeSet<&ChannelName>> = BTreeMap::new();
        for instance in compiled
            .iter()
            .filter(|instance| !matches!(instance.commands.place, RunTarget::Fake { .. }))
        {
            let commands = &instance.commands;
            let commands = commands.fetch.iter().chain([&commands.apply]).chain(&commands.get_info);
            for variable in commands.flat_map(|command| &command.env) {
                if let EnvValue::Secret { key, version } = &variable.value {
                    wanted.entry((key.as_str(), *version)).or_default().insert(&instance.channel);
                }
            }
        }
        let mut missing = Vec::new();
        for ((key, version), channels) in wanted {
            if self.store.secret(key, version).await?.is_some() {
                continue;
            }
            let (message, help) = match version {
                0 => (
                    format!("secret `{key}` does not exist"),
                    format!("set it with `pvnctl secrets set {key}`"),
                ),
                _ => (
                    format!("secret `{key}` has no version {version}"),
                    "`pvnctl secrets list` shows those it has".to_owned(),
                ),
            };
            let problem = of_release(format!("secrets.{key}"), message, Some(help));
            missing.push(ReleaseProblem {
                problem,
                channels: channels.into_iter().cloned().collect(),
            });
        }
        Ok(missing)
    }
}

/// A problem that came with no document: there is no line to show.
pub(super) fn of_release(path: String, message: String, help: Option<String>) -> Diagnostic {
    Diagnostic {
        file: String::new(),
        line: 0,
        column: 0,
        snippet: String::new(),
        path,
        message,
        help,
    }
}

/// Adds the problems that are not among them yet.
pub(super) fn add_new(problems: &mut Vec<Diagnostic>, found: Vec<Diagnostic>) {
    let new: Vec<_> = found.into_iter().filter(|problem| !problems.contains(problem)).collect();
    problems.extend(new);
}
