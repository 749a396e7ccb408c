//! What a value names as secret within itself: the `private_key` of a service account, a password
//! in the lines of a `.env` file. Programs print such a field alone, and neither the value nor one
//! of its lines is found there. Called by `mask` once for each value.

use serde_json::Value;

/// Shortest field that is masked: the name is no more than a sign, and a short one may be an
/// ordinary word.
const SHORTEST_FIELD_BYTES: usize = 8;

/// How the names of fields that are secret end, in small letters: `AWS_SECRET_ACCESS_KEY`,
/// `privateKey`, not `private_key_id`.
const SECRET_NAMES: [&str; 9] = [
    "key",
    "secret",
    "token",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "credential",
    "credentials",
];

/// The secret fields of a document in JSON, or of lines of `name: value` and `name=value`.
pub(super) fn fields(value: &[u8]) -> Vec<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(value) else { return Vec::new() };
    let mut found = Vec::new();
    match serde_json::from_str(text) {
        Ok(document) => collect(document, false, &mut found),
        Err(_) => found.extend(text.lines().filter_map(of_line)),
    }
    found.retain(|field| field.len() >= SHORTEST_FIELD_BYTES);
    found.into_iter().map(String::into_bytes).collect()
}

fn collect(value: Value, is_secret: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) if is_secret => found.push(text),
        Value::Array(items) => items.into_iter().for_each(|item| collect(item, is_secret, found)),
        Value::Object(fields) => fields
            .into_iter()
            .for_each(|(name, value)| collect(value, is_secret_name(&name), found)),
        _ => {}
    }
}

fn of_line(line: &str) -> Option<String> {
    let (name, value) = line.split_once(['=', ':'])?;
    let quotes = ['"', '\''];
    let value = value.trim().trim_end_matches(',').trim_matches(quotes);
    is_secret_name(name.trim().trim_matches(quotes)).then(|| value.to_owned())
}

/// A bare `key` is no name of a secret: `{"key": "region", "value": …}`.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name != "key" && SECRET_NAMES.iter().any(|end| name.ends_with(end))
}
