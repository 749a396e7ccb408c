//! The environment of a command, from all layers of the config. Called by `commands`.

use std::collections::BTreeMap;

use config::Env;
use schema::wire::{SECRET_KEYS_VARIABLE, SPOOL_VARIABLE};

use super::super::problem::{DocumentField, Problems};
use super::super::template::{self, Rendered, TemplateScope};
use super::super::{EnvValue, RunTarget as JobPlace};
use super::{Maker, sealed};

/// Environment that is the same for all three commands: where it is, and the names that its
/// templates may use.
pub(in super::super) struct EnvLayer<'a> {
    pub(in super::super) env: &'a Env,
    pub(in super::super) place: DocumentField,
    pub(in super::super) scope: &'a TemplateScope,
}

impl Maker<'_> {
    pub(super) fn add_env(
        &self,
        variables: &mut BTreeMap<String, EnvValue>,
        env: &Env,
        on: Option<&JobPlace>,
        place: &DocumentField,
        scope: &TemplateScope,
        problems: &mut Problems,
    ) {
        for (key, value) in env {
            let place = place.field(key);
            let value = match value {
                config::EnvValue::Value(text) => match template::render(text, scope) {
                    Ok(Rendered::Text(text)) => Some(EnvValue::Plain(text)),
                    Ok(Rendered::Unknown) => Some(EnvValue::Plain(String::new())),
                    Ok(Rendered::Secret(secret)) => Some(secret.into()),
                    Err(errors) => {
                        problems.add_template(&place.field("value"), errors);
                        None
                    }
                },
                config::EnvValue::RawSecret(text) => match template::render(text, scope) {
                    Ok(Rendered::Text(text)) => Some(EnvValue::Sealed(sealed(
                        &text,
                        self.seal,
                        &place.field("rawSecret"),
                        problems,
                    ))),
                    Ok(Rendered::Unknown) => Some(EnvValue::Sealed(String::new())),
                    Ok(Rendered::Secret(secret)) => Some(secret.into()),
                    Err(errors) => {
                        problems.add_template(&place.field("rawSecret"), errors);
                        None
                    }
                },
                config::EnvValue::Secret(secret) => Some(EnvValue::Secret {
                    key: secret.key.clone(),
                    version: secret.version.map_or(0, u64::from),
                }),
                // Nothing runs there, so nothing is missing.
                config::EnvValue::KubernetesSecret(_)
                    if matches!(on, Some(JobPlace::Fake { .. })) =>
                {
                    None
                }
                config::EnvValue::KubernetesSecret(secret)
                    if matches!(on, Some(JobPlace::Cluster(_))) =>
                {
                    Some(EnvValue::KubernetesSecret {
                        name: secret.secret_name.clone(),
                        key: secret.key.clone(),
                    })
                }
                config::EnvValue::KubernetesSecret(_) => {
                    let problem = place
                        .field("kubernetesSecret")
                        .problem("not supported yet: a secret of the cluster on this machine");
                    problems.add(problem.help(
                        "keep it with `pvnctl secrets set KEY` and name it as `secret: {key: KEY}`",
                    ));
                    None
                }
            };
            if let Some(value) = value {
                variables.insert(key.clone(), value);
            }
        }
    }

    /// What a config says of the wrapper's own variables, and cannot.
    pub(super) fn check_wrappers_own(
        &self,
        variables: &BTreeMap<String, EnvValue>,
        on: Option<&JobPlace>,
        place: &DocumentField,
        problems: &mut Problems,
    ) {
        if variables
            .get(SECRET_KEYS_VARIABLE)
            .is_some_and(|value| !matches!(value, EnvValue::Plain(_)))
        {
            let problem = place.problem(format!(
                "`{SECRET_KEYS_VARIABLE}` is a secret; it holds the names of the variables that \
                 are"
            ));
            problems.add(problem.help("write the names as its `value`, with commas between"));
        }
        if variables.contains_key(SPOOL_VARIABLE)
            && matches!(on, Some(JobPlace::Local { .. }))
            && !self.options.everything_local
        {
            let problem = place.problem(format!(
                "`{SPOOL_VARIABLE}` cannot be set on this machine: the scheduler collects what is \
                 there"
            ));
            problems.add(problem.help("take it out, or run the command on a cluster"));
        }
    }
}
