//! Parameters: which values they take, and what templates see of them. Used twice: for the
//! parameters of a service, filled by a release, and for those of a custom runtime, filled by the
//! service.

use config::{ImageRegistryInfo, ParameterDefinition, ParameterKind, builtins};

use super::problem::{ConfigProblem, DocumentField, Problems};
use super::template::{TemplateScope, Value};
use super::value::{Seal, SecretValue, StoredValue};

mod given;

pub(super) use given::RuntimeValues;

/// A value for one parameter, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bound {
    /// Known, and checked against the parameter's type.
    Text(String),
    /// There will be one.
    Unknown,
    Secret(SecretValue),
}

/// The word for a parameter's type, as it stands in the config.
pub(super) fn type_name(definition: &ParameterDefinition) -> &'static str {
    match &definition.kind {
        ParameterKind::String(_) => "string",
        ParameterKind::Int(_) => "int",
        ParameterKind::DockerImage(_) => "dockerImage",
        ParameterKind::Secret(_) => "secret",
        ParameterKind::Commit(_) => "commit",
        ParameterKind::Blob(_) => "blob",
    }
}

/// What definitions ask for that is not acted on yet.
pub(super) fn check_definitions(
    definitions: &[ParameterDefinition],
    place: &DocumentField,
    problems: &mut Problems,
) {
    for (index, definition) in definitions.iter().enumerate() {
        check_definition(definition, &place.item(index), problems);
    }
}

fn check_definition(
    definition: &ParameterDefinition,
    place: &DocumentField,
    problems: &mut Problems,
) {
    if let ParameterKind::DockerImage(image) = &definition.kind
        && let Some(info) = &image.image_registry_info
        && info.container_registry_id.is_some()
    {
        let place =
            place.field("dockerImage").field("imageRegistryInfo").field("containerRegistryId");
        problems.add(
            place
                .problem("not supported yet: a registry by its id")
                .help("write its host as `containerRegistry`, for example `ghcr.io`"),
        );
    }
}

/// Whether a text is a value of the parameter; else what it should be.
pub(super) fn check_text(definition: &ParameterDefinition, text: &str) -> Result<(), String> {
    if text.contains('\0') {
        return Err("the value holds a NUL character, which no command can be given".to_owned());
    }
    match &definition.kind {
        ParameterKind::Int(_) if text.parse::<i64>().is_err() => {
            Err(format!("`{text}` is not a whole number of 64 bits"))
        }
        ParameterKind::DockerImage(_) if text.is_empty() => {
            Err("an empty text is not a tag of an image".to_owned())
        }
        ParameterKind::DockerImage(_) if !is_tag(text) => Err(format!(
            "`{text}` is not a tag of an image; write the tag alone, as in `v1.2`, or a digest as \
             in `sha256:` and 64 hexadecimal digits"
        )),
        _ => Ok(()),
    }
}

fn is_tag(text: &str) -> bool {
    if let Some(digest) = text.strip_prefix("sha256:") {
        return digest.len() == 64
            && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    }
    let first = text.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// What the definition says when nobody gives a value: its default, else "" or 0.
pub(super) fn default_value(definition: &ParameterDefinition) -> Option<String> {
    match &definition.kind {
        ParameterKind::String(string) => string.default_value.clone(),
        ParameterKind::Int(int) => int.default_value.map(|value| value.to_string()),
        ParameterKind::DockerImage(image) => image.default_tag.clone(),
        ParameterKind::Blob(blob) => blob.default_value.clone(),
        ParameterKind::Secret(_) | ParameterKind::Commit(_) => None,
    }
}

fn empty_value(definition: &ParameterDefinition) -> &'static str {
    if matches!(definition.kind, ParameterKind::Int(_)) { "0" } else { "" }
}

/// Why a required parameter is not satisfied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// It has neither value nor default.
    Value,
    /// Its value is empty.
    Content,
}

/// Puts a parameter into the scope: `Params.x`, and for an image `Params.x.Tag`. `value` is `None`
/// when nobody gave one.
///
/// # Errors
/// The parameter is required, and has neither value nor default, or an empty one.
pub(super) fn insert(
    scope: &mut TemplateScope,
    definition: &ParameterDefinition,
    value: Option<Bound>,
) -> Result<(), Lack> {
    let (name, tag_name) =
        (builtins::parameter(&definition.name), builtins::image_tag(&definition.name));
    let value = match value.or_else(|| default_value(definition).map(Bound::Text)) {
        Some(value) => value,
        None if definition.required => return Err(Lack::Value),
        None => {
            scope.leave_unfilled(tag_name.as_str());
            scope.leave_unfilled(name.as_str());
            Bound::Text(empty_value(definition).to_owned())
        }
    };
    let value = match value {
        Bound::Text(text) if definition.required && text.is_empty() => return Err(Lack::Content),
        Bound::Text(text) => Value::Text(text),
        Bound::Unknown => Value::Unknown,
        Bound::Secret(secret) => Value::Secret(secret),
    };
    if let ParameterKind::DockerImage(image) = &definition.kind {
        let reference = match &value {
            Value::Text(tag) => {
                Value::Text(image_reference(image.image_registry_info.as_ref(), tag))
            }
            other => other.clone(),
        };
        scope.insert(tag_name, value);
        scope.insert(name, reference);
    } else {
        scope.insert(name, value);
    }
    Ok(())
}

/// The full reference of an image: `registry/repository:tag`, or `…@sha256:…`. No tag: no
/// reference. No repository: the tag alone.
pub(super) fn image_reference(info: Option<&ImageRegistryInfo>, tag: &str) -> String {
    let Some(info) = info.filter(|_| !tag.is_empty()) else { return tag.to_owned() };
    let registry = info
        .container_registry
        .as_deref()
        .map(|registry| format!("{}/", registry.trim_end_matches('/')))
        .unwrap_or_default();
    let separator = if tag.starts_with("sha256:") { '@' } else { ':' };
    format!("{registry}{}{separator}{tag}", info.image_repository)
}

/// Puts something in the scope under every name that the definitions give, for checking names
/// before there are values.
pub(super) fn insert_unknown(scope: &mut TemplateScope, definitions: &[ParameterDefinition]) {
    for definition in definitions {
        let value = match &definition.kind {
            ParameterKind::Secret(_) => Bound::Secret(SecretValue::Sealed(String::new())),
            _ => Bound::Unknown,
        };
        // A value is given, so none can be missing.
        let _ = insert(scope, definition, Some(value));
    }
}

/// Whether a secret that was given in clear is empty. What stands in for one while configs are
/// checked is not even sealed.
fn is_empty_secret(secret: &SecretValue, seal: &dyn Seal) -> bool {
    matches!(secret, SecretValue::Sealed(sealed) if !sealed.is_empty() && *sealed == seal.seal(""))
}

/// A value that came with a release, against its definition as it is now.
///
/// # Errors
/// What is wrong with it. That it is empty and must not be says [`insert`].
pub(super) fn from_release(
    definition: &ParameterDefinition,
    given: &StoredValue,
    seal: &dyn Seal,
) -> Result<Bound, String> {
    match (&definition.kind, given) {
        (ParameterKind::Secret(_), StoredValue::Secret(secret))
            if definition.required && is_empty_secret(secret, seal) =>
        {
            Ok(Bound::Text(String::new()))
        }
        (ParameterKind::Secret(_), StoredValue::Secret(secret)) => {
            Ok(Bound::Secret(secret.clone()))
        }
        (_, StoredValue::Text(text)) if definition.required && text.is_empty() => {
            Ok(Bound::Text(String::new()))
        }
        (_, StoredValue::Text(text)) if !matches!(definition.kind, ParameterKind::Secret(_)) => {
            check_text(definition, text).map(|()| Bound::Text(text.clone()))
        }
        _ => Err("its type in the config has changed between secret and not secret since the \
                  value was given"
            .to_owned()),
    }
}

/// What to do where an empty value is refused.
pub(super) const EMPTY_HELP: &str = "give it a value, or leave it out (where it comes from a \
                                     variable, as in CI: is the variable set?)";

/// Says what a required parameter lacks. `way` is how it is given.
pub(super) fn missing(
    definition: &ParameterDefinition,
    lack: Lack,
    place: &DocumentField,
    way: &str,
) -> ConfigProblem {
    let description =
        definition.description.as_deref().map(|text| format!(" ({text})")).unwrap_or_default();
    let name = &definition.name;
    match lack {
        Lack::Value => place
            .problem(format!("parameter `{name}`{description} is required and has no value"))
            .help(way),
        Lack::Content => place
            .problem(format!("parameter `{name}`{description} is required and its value is empty"))
            .help(format!(
                "{way} (where it comes from a variable, as in CI: is the variable set?); where an \
                 empty value is meant, leave `required` out"
            )),
    }
}
