//! Closed sets of words: an enum whose variants are written as one word each, the same in JSON, in
//! tables and on pages.

macro_rules! words {
    (
        $(#[$doc:meta])*
        $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $type {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $type {
            /// Every word, in the order of its definition.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word as it stands in JSON, in tables and on pages.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::id::ParseError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().copied().find(|word| word.as_str() == text);
                found.ok_or_else(|| crate::id::ParseError {
                    text: text.to_owned(),
                    what: concat!("a ", stringify!($type)),
                    rule: concat!("it must be one of ", $($word, " ",)*),
                })
            }
        }
    };
}
pub(crate) use words;
