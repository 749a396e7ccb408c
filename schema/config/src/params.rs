//! Parameters, their values, constants, and where images come from.

use crate::env::SecretRef;
use crate::message::{message, message_with_one, one_of};
use crate::template::Template;

/// What the name of a parameter or a constant looks like, and the same in words.
const NAME_PATTERN: &str = r"^[A-Za-z_][A-Za-z0-9_-]*$";
const NAME_RULE: &str = "names of parameters and constants are letters, digits, `_` and `-`, \
                         starting with a letter or `_`";

/// What the tag or digest of an image looks like where it may be a template, and what else one is
/// in words.
pub(crate) const TAG_TEMPLATE_PATTERN: &str =
    r"^([A-Za-z0-9_][0-9A-Za-z_.-]*|sha256:[0-9a-f]{64}|.*\{\{.*\}\}.*)$";
pub(crate) const TAG_RULE: &str = "a tag is letters, digits, `_`, `.` and `-`, not starting with \
                                   `.` or `-`; a digest is `sha256:` and 64 hex digits";

message_with_one! {
    /// A parameter: exactly one of the type fields says what it takes.
    #[schemars(extend("x-exactlyOne" = [
        "string", "int", "dockerImage", "secret", "commit", "blob"
    ]))]
    ParameterDefinition {
        /// Its name, as in `{{.Params.name}}`.
        #[schemars(regex(pattern = NAME_PATTERN), extend("patternErrorMessage" = NAME_RULE))]
        name: String,
        /// What people should know about it.
        description: Option<String>,
        /// Refuse a release without a value, or with an empty one. Default: false.
        #[serde(default)]
        required: bool,
    }
    /// What it takes.
    kind: ParameterKind {
        /// Text.
        string: StringParameter => String,
        /// A whole number.
        int: IntParameter => Int,
        /// An image of a given repository; its value is the tag.
        docker_image: DockerImageParameter => DockerImage,
        /// A secret.
        secret: SecretParameter => Secret,
        /// A commit of a repository.
        commit: CommitParameter => Commit,
        /// A file; its value is the content.
        blob: BlobParameter => Blob,
    }
    {}
}

message! {
    /// Text.
    StringParameter {
        /// The value when none is given. Default: empty.
        default_value: Option<String>,
    }
}

message! {
    /// A whole number.
    IntParameter {
        /// The value when none is given. Default: 0.
        default_value: Option<i64>,
    }
}

message! {
    /// An image of a given repository.
    DockerImageParameter {
        /// The tag when none is given.
        #[schemars(
            regex(pattern = r"^([A-Za-z0-9_][0-9A-Za-z_.-]*|sha256:[0-9a-f]{64})$"),
            extend("patternErrorMessage" = TAG_RULE)
        )]
        default_tag: Option<String>,
        /// Registry and repository.
        image_registry_info: Option<ImageRegistryInfo>,
    }
}

message! {
    /// A secret; it has no settings.
    #[derive(Eq, Default)]
    SecretParameter {}
}

message! {
    /// A commit of a repository.
    CommitParameter {
        /// The repository, as an address or `owner/name`.
        #[schemars(length(min = 1))]
        repository: String,
        /// The branch that commits are taken from. Default: `main`.
        branch: Option<String>,
    }
}

message! {
    /// A file.
    BlobParameter {
        /// The blob id when none is given.
        default_value: Option<String>,
    }
}

message! {
    /// Where an image comes from.
    #[schemars(extend("x-atMostOne" = ["containerRegistry", "containerRegistryId"]))]
    ImageRegistryInfo {
        /// The registry's host, for example `ghcr.io`.
        container_registry: Option<String>,
        /// The registry by an id of the installation.
        container_registry_id: Option<String>,
        /// All after the host, for example `owner/name`.
        #[schemars(length(min = 1))]
        image_repository: String,
    }
}

/// The type of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterKind {
    /// `string`.
    String(StringParameter),
    /// `int`.
    Int(IntParameter),
    /// `dockerImage`.
    DockerImage(DockerImageParameter),
    /// `secret`.
    Secret(SecretParameter),
    /// `commit`.
    Commit(CommitParameter),
    /// `blob`.
    Blob(BlobParameter),
}

impl ParameterKind {
    /// Whether the definition has a value for where none is given: one that says something, which a
    /// required parameter needs.
    pub fn has_default(&self) -> bool {
        let is_there = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        match self {
            Self::String(string) => is_there(&string.default_value),
            Self::Int(int) => int.default_value.is_some(),
            Self::DockerImage(image) => is_there(&image.default_tag),
            Self::Blob(blob) => is_there(&blob.default_value),
            Self::Secret(_) | Self::Commit(_) => false,
        }
    }
}

message_with_one! {
    /// The value of a parameter: exactly one of the value fields.
    #[schemars(extend("x-exactlyOne" = [
        "string", "int", "dockerImageTag", "secret", "commit", "blob"
    ]))]
    ParameterValue {
        /// The parameter's name.
        #[schemars(regex(pattern = NAME_PATTERN), extend("patternErrorMessage" = NAME_RULE))]
        name: String,
    }
    /// The value.
    kind: ParameterValueKind {
        /// Text. May be a template.
        string: Template => String,
        /// A whole number.
        int: i64 => Int,
        /// Tag or digest of an image. May be a template.
        #[schemars(
            regex(pattern = TAG_TEMPLATE_PATTERN),
            extend("patternErrorMessage" = TAG_RULE)
        )]
        docker_image_tag: Template => DockerImageTag,
        /// A secret.
        secret: SecretValue => Secret,
        /// A commit. May be a template.
        commit: Template => Commit,
        /// A file.
        blob: BlobValue => Blob,
    }
    {}
}

one_of! {
    /// A secret: exactly one of its fields.
    #[schemars(extend("x-exactlyOne" = ["rawSecret", "secretRef"]))]
    SecretValue {
        /// The secret itself; masked wherever it would be shown.
        raw_secret: Template => RawSecret,
        /// A secret kept by the scheduler.
        secret_ref: SecretRef => SecretRef,
    }
}

message! {
    /// A file.
    BlobValue {
        /// Its content. May be a template.
        inlined: Template,
    }
}

/// Which value a [`ParameterValue`] has.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValueKind {
    /// `string`.
    String(Template),
    /// `int`.
    Int(i64),
    /// `dockerImageTag`.
    DockerImageTag(Template),
    /// `secret`.
    Secret(SecretValue),
    /// `commit`.
    Commit(Template),
    /// `blob`.
    Blob(BlobValue),
}

message! {
    /// A constant for templates: `{{.Constants.name}}`.
    Constant {
        /// Its name.
        #[schemars(regex(pattern = NAME_PATTERN), extend("patternErrorMessage" = NAME_RULE))]
        name: String,
        /// Its text.
        string: StringConstant,
    }
}

message! {
    /// Text of a constant.
    StringConstant {
        /// The text.
        value: String,
    }
}
