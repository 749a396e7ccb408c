//! Names and ids as newtypes. Parsing is the only way in, so whoever holds one holds a legal one.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use schemars::JsonSchema;
use sha2::{Digest, Sha256};

use crate::text_form::written_as_text;

/// Why a text is not a legal name or id. The message names the text and the rule, to follow "failed
/// to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}: {rule}")]
pub struct ParseError {
    /// The text as given.
    pub text: String,
    /// What it should have been, with its article: "a service name".
    pub what: &'static str,
    /// The rule that it breaks, in words.
    pub rule: &'static str,
}

/// What a name looks like, as a pattern; [`NAME_RULE`] says it in words.
pub const NAME_PATTERN: &str = r"^[a-z]([a-z0-9-]*[a-z0-9])?$";

const HEX_RULE: &str = "it must be the prefix and 32 lower-case hexadecimal digits";
pub const NAME_RULE: &str = "names are 1 to 63 characters: lower-case letters, digits and `-`, \
                             starting with a letter and not ending with `-`";
/// SHA-256 of no bytes at all. Source: FIPS 180-4; a test holds it against the implementation.
const EMPTY: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

const BLOB_RULE: &str = "it must be `sha256:` and 64 lower-case hexadecimal digits";

fn to_hex(bytes: &[u8]) -> String {
    let digit = |four_bits: u8| char::from(b"0123456789abcdef"[usize::from(four_bits)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

macro_rules! as_text {
    ($type:ident) => {
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        written_as_text!($type);
    };
}

macro_rules! id {
    ($(#[$doc:meta])* $type:ident, $prefix:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
        #[schemars(transparent)]
        pub struct $type(#[schemars(with = "String")] [u8; 16]);

        impl $type {
            /// The prefix of every id of this kind.
            pub const PREFIX: &str = $prefix;

            /// The id with these 128 bits: random ones, or ones that say which wanted thing it
            /// names.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// The id that always follows from these parts: the first 128 bits of SHA-256 over each
            /// part with its length.
            pub fn derive(parts: &[&[u8]]) -> Self {
                let mut hash = Sha256::new();
                for part in parts {
                    hash.update((part.len() as u64).to_le_bytes());
                    hash.update(part);
                }
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&hash.finalize()[..16]);
                Self(bytes)
            }

            /// The 128 bits.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Self::PREFIX)?;
                f.write_str(&to_hex(&self.0))
            }
        }

        impl FromStr for $type {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                let found = text.strip_prefix(Self::PREFIX).and_then(from_hex).map(Self);
                found.ok_or_else(|| ParseError {
                    text: text.to_owned(),
                    what: $what,
                    rule: HEX_RULE,
                })
            }
        }

        as_text!($type);
    };
}

id!(/** An application. */ ApplicationId, "app-", "an application id");
id!(/** A service. */ ServiceId, "svc-", "a service id");
id!(/** A release channel. */ ChannelId, "rch-", "a release channel id");
id!(/** A runtime. */ RuntimeId, "rtm-", "a runtime id");
id!(/** A release. */ ReleaseId, "rel-", "a release id");
id!(/** A job: one execution of one of the three commands. */ JobId, "job-", "a job id");
id!(/** An approval that was asked for. */ ApprovalId, "apr-", "an approval id");
id!(/** A message to people who did not ask. */ NotificationId, "ntf-", "a notification id");
id!(
    /// A service instance: one service in one release channel. Derived from the two ids, see
    /// [`InstanceId::of`].
    InstanceId, "ins-", "a service instance id"
);

impl InstanceId {
    /// The one instance of this service in this channel.
    pub fn of(service: ServiceId, channel: ChannelId) -> Self {
        Self::derive(&[service.as_bytes(), channel.as_bytes()])
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
        #[schemars(transparent)]
        pub struct $type(
            #[schemars(
                with = "String",
                length(min = 1, max = 63),
                regex(pattern = NAME_PATTERN),
                extend("patternErrorMessage" = NAME_RULE)
            )]
            Box<str>,
        );

        impl $type {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                let bytes = text.as_bytes();
                let legal = matches!(bytes.first(), Some(b'a'..=b'z'))
                    && bytes.len() <= 63
                    && bytes.last() != Some(&b'-')
                    && bytes.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
                if legal {
                    Ok(Self(text.into()))
                } else {
                    Err(ParseError { text: text.to_owned(), what: $what, rule: NAME_RULE })
                }
            }
        }

        as_text!($type);
    };
}

name! {
    /// The name of an application, unique in the daemon.
    ApplicationName, "an application name"
}
name! {
    /// The name of a service, unique in its application.
    ServiceName, "a service name"
}
name! {
    /// The name of a release channel, unique in its application.
    ChannelName, "a release channel name"
}
name! {
    /// The name of a runtime, unique in the daemon.
    RuntimeName, "a runtime name"
}
name! {
    /// The name of a runtime connection, unique in its channel.
    ConnectionName, "a runtime connection name"
}

/// Where nobody says otherwise, a connection is called as its runtime is.
impl From<&RuntimeName> for ConnectionName {
    fn from(RuntimeName(name): &RuntimeName) -> Self {
        Self(name.clone())
    }
}

name! {
    /// The name of a target of notifications, unique in its application.
    TargetName, "a notification target's name"
}

name! {
    /// The name of a group of release channels, unique in its application.
    GroupName, "a release channel group name"
}

/// Piece in which a reader is hashed: large enough that calls cost nothing beside the hashing.
const PIECE_BYTES: usize = 256 << 10;

/// The content address of a blob: SHA-256 of its bytes, written `sha256:` and 64 hexadecimal
/// digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(transparent, extend("pattern" = "^sha256:[0-9a-f]{64}$"))]
pub struct BlobId(#[schemars(with = "String")] [u8; 32]);

impl BlobId {
    /// The address of the blob whose SHA-256 this is.
    pub const fn from_digest(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// The address of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        // Of most streams there are none, and asking the processor which instructions it has takes
        // longer than most commands spend in the wrapper.
        if bytes.is_empty() {
            return Self(EMPTY);
        }
        Self(Sha256::digest(bytes).into())
    }

    /// Whether it is the address of no bytes at all.
    pub fn is_of_nothing(self) -> bool {
        self.0 == EMPTY
    }

    /// The address of what a reader gives up to its end, in flat memory.
    ///
    /// # Errors
    /// When the reader fails.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Ok(Self(hash.finalize().into())),
                Ok(count) => hash.update(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The 64 hexadecimal digits without the prefix; legal as a file name.
    pub fn hex(&self) -> String {
        to_hex(&self.0)
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl FromStr for BlobId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        text.strip_prefix("sha256:").and_then(from_hex).map(Self).ok_or_else(|| ParseError {
            text: text.to_owned(),
            what: "a blob id",
            rule: BLOB_RULE,
        })
    }
}

as_text!(BlobId);

#[cfg(test)]
mod tests {
    use super::*;

    fn check_name(text: &str, legal: bool) {
        assert_eq!(text.parse::<ServiceName>().is_ok(), legal, "{text:?}");
    }

    #[test]
    fn names_follow_their_pattern() {
        check_name("a", true);
        check_name("my-service-2", true);
        check_name(&"a".repeat(63), true);
        for text in ["", "-a", "a-", "A", "1a", "a_b", "a.b", "ä", &"a".repeat(64)] {
            check_name(text, false);
        }
    }

    #[test]
    fn a_reader_has_the_address_of_its_bytes() {
        for length in [0, 1, PIECE_BYTES, PIECE_BYTES + 1] {
            let bytes = vec![7; length];
            assert_eq!(
                BlobId::of_reader(&bytes[..]).unwrap(),
                BlobId::of(&bytes),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn an_id_reads_back_what_it_wrote() {
        let id = JobId::derive(&[b"x", b"y"]);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.to_string().starts_with("job-"));
        assert_eq!(id.to_string().len(), 36);
        assert_ne!(id, JobId::derive(&[b"xy"]), "parts are kept apart");
    }

    #[test]
    fn a_blob_id_is_the_sha256_of_its_bytes() {
        assert_eq!(BlobId::of(b""), BlobId(Sha256::digest(b"").into()));
        let id = BlobId::of(b"");
        assert_eq!(id.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("sha256:E3".parse::<BlobId>().is_err());
    }
}
