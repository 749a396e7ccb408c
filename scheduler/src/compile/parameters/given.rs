//! The values that a service gives a runtime: rendered, checked against what the runtime declares,
//! secrets sealed. Called by `instance`.

use std::collections::BTreeMap;

use config::template::Template;
use config::{ParameterDefinition, ParameterKind, ParameterValue, ParameterValueKind};

use super::super::commands::sealed;
use super::super::nearest;
use super::super::problem::{DocumentField, Problems};
use super::super::template::{self, Rendered, TemplateScope};
use super::super::value::{Seal, SecretValue};
use super::{Bound, EMPTY_HELP, check_text, is_empty_secret, type_name};

/// The values that a service gives a runtime, by name: those of `list` with templates rendered.
pub(in super::super) struct RuntimeValues<'a> {
    /// The runtime, for messages.
    pub(in super::super) runtime: &'a str,
    pub(in super::super) definitions: &'a [ParameterDefinition],
    /// The names that the values' templates may use.
    pub(in super::super) scope: &'a TemplateScope,
    /// Seals raw secrets.
    pub(in super::super) seal: &'a dyn Seal,
}

impl RuntimeValues<'_> {
    /// Checks and renders the values; what is wrong goes into `problems`.
    pub(in super::super) fn bind(
        &self,
        values: &[(&ParameterValue, DocumentField)],
        problems: &mut Problems,
    ) -> BTreeMap<String, Bound> {
        let mut bound = BTreeMap::new();
        for (value, place) in values {
            let Some(definition) =
                self.definitions.iter().find(|definition| definition.name == value.name)
            else {
                let names = self.definitions.iter().map(|definition| definition.name.as_str());
                problems.add(
                    place
                        .field("name")
                        .problem(format!(
                            "runtime `{}` has no parameter `{}`",
                            self.runtime, value.name
                        ))
                        .help(nearest::help(&value.name, "parameters", names)),
                );
                continue;
            };
            // Even a wrong value is a value: "missing" besides would be one problem told twice.
            let one = match self.one(definition, value, place, problems).unwrap_or(Bound::Unknown) {
                Bound::Secret(secret)
                    if definition.required && is_empty_secret(&secret, self.seal) =>
                {
                    Bound::Text(String::new())
                }
                one => one,
            };
            bound.insert(value.name.clone(), one);
        }
        bound
    }

    fn one(
        &self,
        definition: &ParameterDefinition,
        value: &ParameterValue,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<Bound> {
        match given(&value.kind, &definition.kind) {
            Ok(Given::Secret(secret)) => self.secret(definition, secret, place, problems),
            Ok(Given::Int(number)) => Some(Bound::Text(number.to_string())),
            Ok(Given::Text(text, fields)) => {
                let place = fields.iter().fold(place.clone(), |place, field| place.field(field));
                self.text(definition, text, &place, problems)
            }
            Err(given) => {
                let wanted = type_name(definition);
                let field = if wanted == "dockerImage" { "dockerImageTag" } else { wanted };
                let problem = place.problem(format!(
                    "parameter `{}` of runtime `{}` is of type {wanted}, not {given}",
                    value.name, self.runtime
                ));
                problems.add(problem.help(format!("give it as `{field}`")));
                None
            }
        }
    }

    fn text(
        &self,
        definition: &ParameterDefinition,
        text: &Template,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<Bound> {
        let name = &definition.name;
        let wants_secret = matches!(definition.kind, ParameterKind::Secret(_));
        let is_image = matches!(definition.kind, ParameterKind::DockerImage(_));
        match template::render(text, self.scope) {
            Ok(Rendered::Secret(secret)) if wants_secret => Some(Bound::Secret(secret)),
            Ok(Rendered::Secret(_)) => {
                let problem = place
                    .problem(format!("a secret is given to parameter `{name}`, which is none"));
                problems.add(
                    problem.help(format!(
                        "declare it in runtime `{}` as `secret: {{}}`",
                        self.runtime
                    )),
                );
                None
            }
            // An empty text stands for a secret parameter of the service that nobody filled.
            Ok(Rendered::Text(text)) if wants_secret && !text.is_empty() => {
                problems.add(
                    place
                        .problem(format!(
                            "parameter `{name}` is a secret, and its value stands here in clear"
                        ))
                        .hide()
                        .help(
                            "give it as `secret: {secretRef: {key: …}}`, or as `secret: \
                             {rawSecret: …}`",
                        ),
                );
                None
            }
            // An image of the service, too, that nobody has to give; or the runtime has to have it,
            // which is said of it then.
            Ok(Rendered::Text(empty))
                if empty.is_empty()
                    && (definition.required || is_image && self.scope.is_unfilled(text)) =>
            {
                Some(Bound::Text(empty))
            }
            Ok(Rendered::Text(text)) => match check_text(definition, &text) {
                Ok(()) => Some(Bound::Text(text)),
                Err(why) => {
                    let problem = place.problem(format!(
                        "parameter `{name}` of runtime `{}`: {why}",
                        self.runtime
                    ));
                    problems.add(if text.is_empty() { problem.help(EMPTY_HELP) } else { problem });
                    None
                }
            },
            Ok(Rendered::Unknown) => Some(Bound::Unknown),
            Err(errors) => {
                problems.add_template(place, errors);
                None
            }
        }
    }

    fn secret(
        &self,
        definition: &ParameterDefinition,
        secret: &config::SecretValue,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<Bound> {
        let raw = match secret {
            config::SecretValue::SecretRef(reference) => {
                let version = reference.version.map_or(0, u64::from);
                return Some(Bound::Secret(SecretValue::Stored {
                    key: reference.key.clone(),
                    version,
                }));
            }
            config::SecretValue::RawSecret(raw) => raw,
        };
        let place = place.field("secret").field("rawSecret");
        match template::render(raw, self.scope) {
            Ok(Rendered::Text(empty)) if empty.is_empty() && definition.required => {
                Some(Bound::Text(empty))
            }
            Ok(Rendered::Text(clear)) => Some(Bound::Secret(SecretValue::Sealed(sealed(
                &clear, self.seal, &place, problems,
            )))),
            Ok(Rendered::Secret(secret)) => Some(Bound::Secret(secret)),
            Ok(Rendered::Unknown) => Some(Bound::Secret(SecretValue::Sealed(String::new()))),
            Err(errors) => {
                problems.add_template(&place, errors);
                None
            }
        }
    }
}

/// A value as a service gives it.
enum Given<'a> {
    Secret(&'a config::SecretValue),
    Int(i64),
    /// With templates, and the fields that lead to it.
    Text(&'a Template, &'static [&'static str]),
}

/// # Errors
/// The word for its type, of which the parameter takes no values.
fn given<'a>(
    value: &'a ParameterValueKind,
    parameter: &ParameterKind,
) -> Result<Given<'a>, &'static str> {
    Ok(match (value, parameter) {
        (ParameterValueKind::Secret(secret), ParameterKind::Secret(_)) => Given::Secret(secret),
        (ParameterValueKind::Secret(_), _) => return Err("secret"),
        (ParameterValueKind::Int(value), ParameterKind::Int(_) | ParameterKind::String(_)) => {
            Given::Int(*value)
        }
        (ParameterValueKind::Int(_), _) => return Err("int"),
        (ParameterValueKind::String(text), _) => Given::Text(text, &["string"]),
        (ParameterValueKind::DockerImageTag(text), ParameterKind::DockerImage(_)) => {
            Given::Text(text, &["dockerImageTag"])
        }
        (ParameterValueKind::DockerImageTag(_), _) => return Err("dockerImageTag"),
        (ParameterValueKind::Commit(text), ParameterKind::Commit(_)) => {
            Given::Text(text, &["commit"])
        }
        (ParameterValueKind::Commit(_), _) => return Err("commit"),
        (ParameterValueKind::Blob(blob), ParameterKind::Blob(_)) => {
            Given::Text(&blob.inlined, &["blob", "inlined"])
        }
        (ParameterValueKind::Blob(_), _) => return Err("blob"),
    })
}
