//! Request and response bodies of the HTTP API under `/v1`, and what `pvnctl -o json` prints.
//! Stable: fields may be added, never changed or removed.

macro_rules! body {
    ($(#[$doc:meta])* $type:ident { $($(#[$field_doc:meta])* $field:ident: $of:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $type { $($(#[$field_doc])* pub $field: $of,)* }
    };
}

macro_rules! request {
    ($(#[$doc:meta])* $type:ident { $($(#[$field_doc:meta])* $field:ident: $of:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct $type { $($(#[$field_doc])* pub $field: $of,)* }
    };
}

mod configs;
mod estate;
mod jobs;
mod notifications;
mod overview;
mod records;
mod releases;
mod services;

pub use configs::*;
pub use estate::*;
pub use jobs::*;
pub use notifications::*;
pub use overview::*;
pub use records::*;
pub use releases::*;
pub use services::*;
