//! How messages of the config are declared. A message is a struct that is read and written in
//! camelCase and refuses unknown fields. Where exactly one of several fields is given, people write
//! them side by side, and so do the JSON form and the schema; everybody behind the reader has an
//! enum of them, so that none and two cannot be asked about.

/// A message.
macro_rules! message {
    ($(#[$meta:meta])* $type:ident { $($(#[$field_meta:meta])* $field:ident: $of:ty,)* }) => {
        #[derive(Debug, Clone, PartialEq)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        $(#[$meta])*
        pub struct $type { $($(#[$field_meta])* pub $field: $of,)* }
    };
}
pub(crate) use message;

/// A message of which exactly one field is given: an enum. What a field is called for people is
/// before the arrow, its variant behind.
macro_rules! one_of {
    (
        $(#[doc = $doc:expr])* $(#[schemars($($schemars:tt)*)])*
        $type:ident {$(
            $(#[doc = $field_doc:expr])*
            $(#[schemars($($field_schemars:tt)*)])*
            $field:ident: $of:ty => $variant:ident,
        )+}
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $type { $($(#[doc = $field_doc])* $variant($of),)+ }

        const _: () = {
            $(#[doc = $doc])*
            #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            $(#[schemars($($schemars)*)])*
            struct Written {$(
                $(#[doc = $field_doc])*
                $(#[schemars($($field_schemars)*)])*
                $field: Option<$of>,
            )+}

            impl From<&$type> for Written {
                fn from(one: &$type) -> Self {
                    let mut written = Self { $($field: None,)+ };
                    match one {$(
                        $type::$variant(value) => written.$field = Some(value.clone()),
                    )+}
                    written
                }
            }

            impl TryFrom<Written> for $type {
                type Error = &'static str;

                fn try_from(written: Written) -> Result<Self, Self::Error> {
                    $crate::message::only([$(written.$field.map(Self::$variant)),+])
                }
            }

            $crate::message::as_written!($type);
        };
    };
}
pub(crate) use one_of;

/// A message that has besides fields of its own a group of which exactly one is given: between the
/// others, as an enum that is declared for itself.
macro_rules! message_with_one {
    (
        $(#[doc = $doc:expr])* $(#[schemars($($schemars:tt)*)])*
        $type:ident {$(
            $(#[doc = $before_doc:expr])*
            $(#[serde($($before_serde:tt)*)])*
            $(#[schemars($($before_schemars:tt)*)])*
            $before:ident: $before_of:ty,
        )*}
        $(#[doc = $kind_doc:expr])* $kind:ident: $enum:ident {$(
            $(#[doc = $field_doc:expr])*
            $(#[schemars($($field_schemars:tt)*)])*
            $field:ident: $of:ty => $variant:ident,
        )+}
        {$(
            $(#[doc = $after_doc:expr])*
            $(#[serde($($after_serde:tt)*)])*
            $(#[schemars($($after_schemars:tt)*)])*
            $after:ident: $after_of:ty,
        )*}
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $type {
            $($(#[doc = $before_doc])* pub $before: $before_of,)*
            $(#[doc = $kind_doc])*
            pub $kind: $enum,
            $($(#[doc = $after_doc])* pub $after: $after_of,)*
        }

        const _: () = {
            $(#[doc = $doc])*
            #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            $(#[schemars($($schemars)*)])*
            struct Written {
                $(
                    $(#[doc = $before_doc])*
                    $(#[serde($($before_serde)*)])*
                    $(#[schemars($($before_schemars)*)])*
                    $before: $before_of,
                )*
                $(
                    $(#[doc = $field_doc])*
                    $(#[schemars($($field_schemars)*)])*
                    $field: Option<$of>,
                )+
                $(
                    $(#[doc = $after_doc])*
                    $(#[serde($($after_serde)*)])*
                    $(#[schemars($($after_schemars)*)])*
                    $after: $after_of,
                )*
            }

            impl From<&$type> for Written {
                fn from(message: &$type) -> Self {
                    let $type { $($before,)* $kind, $($after,)* } = message.clone();
                    let mut written = Self { $($before,)* $($field: None,)+ $($after,)* };
                    match $kind { $($enum::$variant(value) => written.$field = Some(value),)+ }
                    written
                }
            }

            impl TryFrom<Written> for $type {
                type Error = &'static str;

                fn try_from(written: Written) -> Result<Self, Self::Error> {
                    let Written { $($before,)* $($field,)+ $($after,)* } = written;
                    let $kind = $crate::message::only([$($field.map($enum::$variant)),+])?;
                    Ok(Self { $($before,)* $kind, $($after,)* })
                }
            }

            $crate::message::as_written!($type);
        };
    };
}
pub(crate) use message_with_one;

/// Reads, writes and describes a type as the `Written` beside it.
macro_rules! as_written {
    ($type:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Written::from(self).serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::try_from(Written::deserialize(deserializer)?)
                    .map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                Written::json_schema(generator)
            }
        }
    };
}
pub(crate) use as_written;

/// The one of a group that is given. The reader has told with names and places what is wrong with
/// any other group.
pub(crate) fn only<T>(group: impl IntoIterator<Item = Option<T>>) -> Result<T, &'static str> {
    let mut given = group.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err("none of the fields is given of which exactly one is needed"),
        (Some(_), Some(_)) => Err("two of the fields are given of which exactly one is needed"),
    }
}
