//! What documents and values mean together, one subject a file, each through one `check` helper.

mod arbitrary;
mod built_in;
mod checks;
mod cluster;
mod commands;
mod examples;
mod groups;
mod job_files;
mod params;
mod policies;

use std::collections::BTreeMap;

use schema::api::{ConfigFile, Diagnostic, PushRequest};
use schema::id::ReleaseId;
use schema::time::Timestamp;

use super::*;

/// Seals so that tests can read it.
pub(super) struct Brackets;

impl Seal for Brackets {
    fn seal(&self, clear: &str) -> String {
        format!("[{clear}]")
    }
}

/// A runtime, an application with one channel and a service: enough for most tests.
pub(super) const SMALL: &str = "
runtime:
  name: tool
  labels: [{label: env, value: test}]
  custom:
    proxyRuntime: {runtime: local}
    apply: {taskConfig: {program: {cmd: [apply, '{{.Params.x}}']}}}
    parameters: [{name: x, string: {defaultValue: fallback}}]
---
application:
  name: app
  releaseChannels: [{name: staging, runtimes: [{runtime: tool}]}]
---
service:
  name: svc
  application: app
";

pub(super) fn configs(text: &str) -> Configs {
    configs_with(text, &[])
}

/// The documents of one file with these local files beside it.
pub(super) fn configs_with(text: &str, attachments: &[(&str, &str)]) -> Configs {
    let attachments =
        attachments.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let file = ConfigFile { path: "test.pvn.yaml".to_owned(), text: text.to_owned(), attachments };
    let mut configs = Configs::default();
    for document in
        config::read(&[file]).unwrap_or_else(|problems| panic!("{}", problems[0].render(false)))
    {
        configs.put(document);
    }
    configs
}

/// Texts replaced by others, each of which must be there.
pub(super) fn changed(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from:?} is not in {text}");
        text.replace(from, to)
    })
}

/// Problems as `path: message`.
pub(super) fn lines(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|one| format!("{}: {}", one.path, one.message)).collect()
}

/// Parameter values as `x=1 production:x=2`.
pub(super) fn request(text: &str) -> PushRequest {
    let mut request = PushRequest::default();
    for (name, value) in text.split_whitespace().map(|pair| pair.split_once('=').unwrap()) {
        match name.split_once(':') {
            None => request.params.insert(name.to_owned(), value.to_owned()),
            Some((channel, name)) => request
                .params_for_channel
                .entry(channel.to_owned())
                .or_insert_with(BTreeMap::new)
                .insert(name.to_owned(), value.to_owned()),
        };
    }
    request
}

/// The only service of the documents, in this channel, with these values.
pub(super) fn compiled(
    text: &str,
    channel: &str,
    params: &str,
) -> Result<CompiledInstance, Vec<Diagnostic>> {
    compiled_with(&configs(text), &Options::default(), channel, params)
}

pub(super) fn compiled_with(
    configs: &Configs,
    options: &Options,
    channel: &str,
    params: &str,
) -> Result<CompiledInstance, Vec<Diagnostic>> {
    let service = configs.services().next().unwrap();
    let channels = super::channels(configs, configs.application(&service.application).unwrap())?;
    let values =
        sound(super::values(configs, service, &channels, &request(params), None, &Brackets))?;
    let release = Release {
        id: ReleaseId::from_bytes([7; 16]),
        version: "svc-1",
        released_at: Timestamp::from_millis(1000),
        values: &values,
    };
    let channel = channels.iter().find(|one| one.name.as_str() == channel).unwrap();
    sound(compile(configs, options, service, channel, &release, &Brackets))
        .map(|compiled| compiled.expect("what has no problem is compiled"))
}

/// What was made, unless something is wrong with it.
pub(super) fn sound<T>((made, problems): (T, Vec<Diagnostic>)) -> Result<T, Vec<Diagnostic>> {
    if problems.is_empty() { Ok(made) } else { Err(problems) }
}

/// Environment as `A=1 B=secret(key@3)`.
pub(super) fn env(command: &Command) -> String {
    let one = |variable: &EnvVar| match &variable.value {
        EnvValue::Plain(text) => format!("{}={text}", variable.key),
        EnvValue::Secret { key, version } => format!("{}=secret({key}@{version})", variable.key),
        EnvValue::KubernetesSecret { name, key } => {
            format!("{}=kubernetes({name}/{key})", variable.key)
        }
        EnvValue::Sealed(sealed) => format!("{}={sealed}", variable.key),
    };
    command.env.iter().map(one).collect::<Vec<_>>().join(" ")
}
