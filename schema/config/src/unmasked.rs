//! Secrets that people see: those in configs that are too short to be masked in what jobs print,
//! what a comment cuts off from one, those of runtimes and notification targets that are written as
//! no secret, and those of a cluster that only files hold. Told as warnings by `configs apply` and
//! `validate`.

use schema::mask::SHORTEST_BYTES;

use crate::diagnostic::Diagnostic;
use crate::secrets::comment_after;
use crate::yaml::{self, MappingEntry, NodeKind, Visited, YamlNode};
use crate::{
    Body, Document, Env, EnvValue, Exec, RuntimeCommand, SentValue, TaskConfig, VolumeSource,
};

/// What is wrong with a `rawSecret` as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WrittenFlaw {
    Short,
    /// YAML takes its end for a comment.
    Cut,
}

/// One warning for each `rawSecret` that is written as it stands and too short, or cut by a
/// comment, for each credential of a runtime that is written as no secret, and for each Secret that
/// is mounted and no variable.
pub fn unmasked_secrets<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for document in documents {
        let found = &document.noticed.flawed_secrets;
        warnings.extend(found.iter().map(|(pointer, flaw)| match flaw {
            WrittenFlaw::Short => {
                let message = format!(
                    "this secret is not masked in what jobs print: it is shorter than \
                     {SHORTEST_BYTES} bytes"
                );
                document
                    .problem(pointer, message)
                    .help("use a longer secret; one that short would black out ordinary words")
            }
            WrittenFlaw::Cut => {
                let message = "this secret ends before ` #`: what follows is a comment, which no \
                               job gets and nothing masks"
                    .to_owned();
                document
                    .problem(pointer, message)
                    .help("put the whole value in quotes, or the comment on a line of its own")
            }
        }));
        warnings.extend(bare(document));
        warnings.extend(mounted(document));
        warnings.extend(of_targets(document));
    }
    warnings
}

/// What targets of notifications are reached by and nobody else should know, in the clear.
fn of_targets(document: &Document) -> Vec<Diagnostic> {
    let Body::Application(application) = document.body() else { return Vec::new() };
    let mut warnings = Vec::new();
    for (index, target) in application.notifications.iter().enumerate() {
        for (field, value) in target.confidential() {
            if !matches!(value, SentValue::Value(_)) {
                continue;
            }
            let at = format!("/application/notifications/{index}/{}/{field}/value", target.kind());
            let (name, allows) = match field {
                "url" => ("this address", "write into the channel"),
                "signingKey" => ("this key", "sign in pvn's name"),
                _ => ("this password", "send mail as `user`"),
            };
            let message = format!("{name} is no secret here: whoever reads it can {allows}");
            let last = field.rsplit('/').next().unwrap_or(field);
            warnings.push(document.problem(&at, message).help(format!(
                "keep it with `pvnctl secrets set KEY` and write `{last}: {{secret: {{key: \
                 KEY}}}}`, or write `rawSecret` in the place of `value`"
            )));
        }
    }
    warnings
}

/// The credentials of a runtime, where whoever may read its config reads them.
fn bare(document: &Document) -> Option<Diagnostic> {
    let Body::Runtime(runtime) = document.body() else { return None };
    let message = "this is a secret, and written as a `value`: whoever may read configs sees it";
    let help = "keep it with `pvnctl secrets set KEY` and name it as `secret: {key: KEY}`, or \
                write `rawSecret` in the place of `value`; and change it where it is valid";
    Some(document.problem_hiding(runtime.bare_secret()?, message).help(help))
}

/// The Secrets whose values no wrapper knows, since its command gets them as files alone.
fn mounted(document: &Document) -> Vec<Diagnostic> {
    let Body::Runtime(runtime) = document.body() else { return Vec::new() };
    let Some(commands) = runtime.role().commands else { return Vec::new() };
    let mut warnings = Vec::new();
    for RuntimeCommand { name, exec, env, .. } in commands.custom().commands() {
        let Exec::Task(task) = exec else { continue };
        for (index, secret) in secrets(task) {
            if [env, &task.program.env].into_iter().any(|env| is_variable(env, secret)) {
                continue;
            }
            let pointer =
                commands.pointer(&format!("{name}/taskConfig/volumes/{index}/source/secret"));
            let message = format!(
                "what the files of the Secret `{secret}` hold is not masked in what jobs print: no \
                 wrapper knows its values"
            );
            let help = format!(
                "give the keys that must not be shown as variables too: `kubernetesSecret: \
                 {{secretName: {secret}, key: …}}`"
            );
            let warning = document.problem(&pointer, message).help(help);
            // All commands of a built-in tool have the volume that is written once.
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// The Secrets that a task mounts, with the places of their volumes.
fn secrets(task: &TaskConfig) -> impl Iterator<Item = (usize, &str)> {
    let volumes = task.volumes.iter().enumerate();
    volumes.filter_map(|(index, volume)| match &volume.source {
        VolumeSource::Secret(secret) => Some((index, secret.secret_name.as_str())),
        VolumeSource::Ephemeral(_) => None,
    })
}

fn is_variable(env: &Env, secret: &str) -> bool {
    env.values()
        .any(|value| matches!(value, EnvValue::KubernetesSecret(of) if of.secret_name == secret))
}

/// What is wrong with them as they are written, and their pointers.
pub(crate) fn flaws(tree: &YamlNode, written: &str) -> Vec<(String, WrittenFlaw)> {
    let mut found = Vec::new();
    tree.visit(&mut Vec::new(), &mut |steps, visited| {
        if let Visited::Entry(MappingEntry { key, value, .. }) = visited
            && let ("rawSecret", NodeKind::Scalar { text, .. }) = (key.as_str(), &value.kind)
        {
            if (1..SHORTEST_BYTES).contains(&text.len()) && !text.contains("{{") {
                found.push((yaml::pointer(steps), WrittenFlaw::Short));
            }
            if comment_after(written, &value.span).is_some() {
                found.push((yaml::pointer(steps), WrittenFlaw::Cut));
            }
        }
        true
    });
    found
}
