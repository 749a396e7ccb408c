//! The objects that were seen, held against the desired version.

use schema::output::{ObjectStatus, RuntimeObject};
use schema::shown::beginning;
use schema::status::Reason;

use super::Verdict;

/// Most bytes of a name or a version that a sentence shows: those of pvn's own have 63.
const NAMED_BYTES: usize = 200;

/// Most bytes of what an object says of itself.
const SAID_BYTES: usize = 1_000;

/// Holds what was seen against the desired version. Source of the rules: docs/convergence.md,
/// "Structured". What calls for work comes before what only calls for patience.
pub(super) fn compare(objects: &[RuntimeObject], version: &str) -> Verdict {
    if objects.is_empty() {
        return Verdict::Work(
            Reason::VersionMismatch,
            format!("there are no objects yet that run {version}"),
        );
    }
    if let Some((reason, what)) = objects.iter().find_map(|object| mismatch(object, version)) {
        return Verdict::Work(reason, what);
    }
    let drifted =
        |object: &&RuntimeObject| object.versions.iter().any(|at| at.active && at.drifted);
    if let Some(object) = objects.iter().find(drifted) {
        return Verdict::Work(Reason::VersionDirty, told(object, "was changed behind pvn's back"));
    }
    let with = |status| objects.iter().find(move |object| object.status == status);
    match (with(ObjectStatus::Failed), with(ObjectStatus::Pending)) {
        (Some(failed), _) => Verdict::Broken(told(failed, "reports that it failed")),
        (None, Some(pending)) => Verdict::Pending(told(pending, "is still on its way")),
        (None, None) => Verdict::Clean,
    }
}

/// What is so of an object, with what it says of itself.
fn told(object: &RuntimeObject, what: &str) -> String {
    match object.message.as_str() {
        "" => format!("{} {what}", name(object)),
        message => format!("{} {what}: {}", name(object), beginning(message, SAID_BYTES)),
    }
}

/// Why an object does not run exactly this version, if it does not. One that has it, has it not
/// active, and says that it failed could not take it into use: that is known at once, and nothing
/// is to be hoped for from waiting.
fn mismatch(object: &RuntimeObject, version: &str) -> Option<(Reason, String)> {
    let mut active = object.versions.iter().filter(|at| at.active).map(|at| at.version.as_str());
    let (first, second) = (active.next(), active.next());
    if second.is_none() && first == Some(version) {
        return None;
    }
    let what = match (first.map(shown), second.map(shown)) {
        (Some(only), None) => format!("runs {only} instead of {version}"),
        (None, _) => format!("has no active version; it should be {version}"),
        (Some(first), Some(second)) => {
            format!("runs {first} and {second} at once instead of {version} alone")
        }
    };
    let has_it = object.versions.iter().any(|at| at.version == version && !at.active);
    if has_it && object.status == ObjectStatus::Failed {
        let what = told(object, &format!("{what}, and reports that it failed"));
        return Some((Reason::RuntimeObjectFailed, what));
    }
    Some((Reason::VersionMismatch, told(object, &what)))
}

/// A version as people read it: one that ends with a blank or a line end (a file with CR LF, say)
/// looks like the desired one.
fn shown(version: &str) -> String {
    match version {
        "" => "an unknown version".to_owned(),
        odd if odd.trim() != odd || odd.contains(char::is_control) => {
            format!("{:?}", beginning(odd, NAMED_BYTES))
        }
        plain => beginning(plain, NAMED_BYTES),
    }
}

fn name(object: &RuntimeObject) -> String {
    let name = beginning(&object.name, NAMED_BYTES);
    if object.object_type.is_empty() {
        format!("`{name}`")
    } else {
        format!("{} `{name}`", beginning(&object.object_type, NAMED_BYTES))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use schema::output::ObjectVersion;

    use super::*;

    /// `web=SUCCEEDED:v1*,v2*!` is an object with two versions; `*` = active, `!` = drifted.
    pub(in super::super) fn object(text: &str) -> RuntimeObject {
        let (name, rest) = text.split_once('=').unwrap();
        let (status, versions) = rest.split_once(':').unwrap();
        let version = |text: &str| ObjectVersion {
            version: text.trim_end_matches(['*', '!']).to_owned(),
            active: text.contains('*'),
            drifted: text.contains('!'),
            replicas: None,
            available_replicas: None,
            target_replicas: None,
        };
        RuntimeObject {
            name: name.to_owned(),
            object_type: "Process".to_owned(),
            versions: versions.split(',').filter(|text| !text.is_empty()).map(version).collect(),
            status: match status {
                "PENDING" => ObjectStatus::Pending,
                "FAILED" => ObjectStatus::Failed,
                _ => ObjectStatus::Succeeded,
            },
            external_links: Vec::new(),
            debug_events: Vec::new(),
            message: String::new(),
        }
    }

    #[test]
    fn a_version_that_looks_like_the_desired_one_is_quoted() {
        let mut seen = object("web=SUCCEEDED:v2*");
        assert_eq!(mismatch(&seen, "v2"), None);
        seen.versions[0].version = "v2\r".to_owned();
        let (_, what) = mismatch(&seen, "v2").unwrap();
        assert_eq!(what, r#"Process `web` runs "v2\r" instead of v2"#);
    }

    #[test]
    fn what_a_sentence_shows_of_an_object_has_a_limit() {
        let long = "ä".repeat(1 << 20);
        let mut seen = RuntimeObject {
            name: long.clone(),
            object_type: long.clone(),
            message: long.clone(),
            ..object("web=FAILED:v2*")
        };
        let told = |seen: &RuntimeObject| match compare(std::slice::from_ref(seen), "v2") {
            Verdict::Broken(what) | Verdict::Work(_, what) => what,
            other => panic!("{other:?}"),
        };
        assert!(told(&seen).len() < 4 * NAMED_BYTES + SAID_BYTES && told(&seen).ends_with("ä…"));
        seen.versions[0].version = long;
        assert!(told(&seen).len() < 4 * NAMED_BYTES + SAID_BYTES && told(&seen).ends_with("ä…"));
    }
}
