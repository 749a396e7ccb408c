//! What the API server wrote down of Jobs: how often each was created. A Job of ours is named after
//! the one decision that it is made for, so that a second creation is a broken promise, whichever
//! test saw it, or none.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};

use serde_json::Value;

use super::layout::Layout;

/// Where the creations of clusters that are over are kept until somebody has looked at all of them.
const CREATED: &str = "created.log";
/// As much of them as is kept when nobody looks: the creations of some hundred thousand Jobs.
const CREATED_LIMIT_BYTES: u64 = 32 << 20;
/// What the name of a namespace begins with in which a test makes Jobs as a person would, under the
/// names of ours: by `create`, which is not our way.
const BY_HAND: &str = "pvn-proxy-runtime-by-hand-";
/// Length of a job's id, hexadecimal digits; the name of its Job ends with them.
const ID_DIGITS: usize = 32;

/// The creations of Jobs in an audit log: namespace and name of each, in the order in which they
/// happened.
pub(super) fn creations(log: &str) -> Vec<(String, String)> {
    // The last line may be in the middle of being written.
    let events = log
        .lines()
        .filter(|line| line.contains("\"jobs\""))
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let created = events.filter(|event| {
        let object = &event["objectRef"];
        // Whatever the verb is: server-side apply creates by `patch`.
        let is_made = object["resource"] == "jobs"
            && object["subresource"].is_null()
            && event["responseStatus"]["code"] == 201;
        let is_by_hand = event["verb"] == "create"
            && object["namespace"].as_str().is_some_and(|namespace| namespace.starts_with(BY_HAND));
        is_made && !is_by_hand
    });
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    created
        .map(|event| (text(&event["objectRef"]["namespace"]), text(&event["objectRef"]["name"])))
        .collect()
}

/// Keeps the creations of a cluster that is about to be cleared away.
pub(super) fn keep(layout: &Layout) -> io::Result<()> {
    let log = match fs::read(layout.audit_log()) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut kept = File::options().create(true).append(true).open(layout.cache().join(CREATED))?;
    if kept.metadata()?.len() > CREATED_LIMIT_BYTES {
        kept.set_len(0)?;
    }
    let lines: String = creations(&String::from_utf8_lossy(&log))
        .iter()
        .map(|(namespace, name)| format!("{namespace} {name}\n"))
        .collect();
    kept.write_all(lines.as_bytes())?;
    // Not twice, when the rest cannot be cleared away the first time.
    fs::remove_file(layout.audit_log())
}

/// Looks at all that was kept, and forgets it: how many jobs of ours had a Job.
///
/// # Errors
/// The jobs that had more than one.
pub(super) fn check(layout: &Layout) -> Result<usize, String> {
    let path = layout.cache().join(CREATED);
    let kept = match fs::read_to_string(&path) {
        Ok(kept) => kept,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
    };
    let checked = once_each(&kept);
    fs::remove_file(&path)
        .map_err(|error| format!("{} cannot be removed: {error}", path.display()))?;
    checked
}

/// By the id alone: a Job in another namespace, or of another name, would be a second one too.
fn once_each(kept: &str) -> Result<usize, String> {
    let mut jobs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in kept.lines() {
        let id = line.rsplit(['-', ' ']).next().unwrap_or_default();
        if id.len() == ID_DIGITS && id.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            jobs.entry(id).or_default().push(line);
        }
    }
    let twice: Vec<String> =
        jobs.values().filter(|lines| lines.len() > 1).map(|lines| lines.join("\n  ")).collect();
    if twice.is_empty() {
        return Ok(jobs.len());
    }
    Err(format!(
        "the API server created more than one Job for one decision (namespace, name):\n  {}",
        twice.join("\n  ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00112233445566778899aabbccddeeff";

    /// As the API server writes it, less what nobody reads.
    fn event(verb: &str, resource: &str, namespace: &str, name: &str, code: u16) -> String {
        let reference = format!(
            r#"{{"resource":"{resource}","namespace":"{namespace}","name":"{name}","apiGroup":"batch"}}"#
        );
        format!(
            r#"{{"kind":"Event","stage":"ResponseComplete","verb":"{verb}","objectRef":{reference},"responseStatus":{{"metadata":{{}},"code":{code}}}}}"#
        )
    }

    fn check_run(clusters: &[&[String]]) -> Result<usize, String> {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        fs::create_dir_all(layout.cache()).unwrap();
        for log in clusters {
            fs::create_dir_all(layout.state()).unwrap();
            fs::write(layout.audit_log(), log.join("\n")).unwrap();
            keep(&layout).unwrap();
            keep(&layout).unwrap();
        }
        let checked = check(&layout);
        assert_eq!(check(&layout), Ok(0), "what was looked at is forgotten");
        checked
    }

    #[test]
    fn rule_11_a_job_that_was_created_twice_in_a_run_is_found() {
        let name = format!("web-apply-{ID}");
        let created = event("patch", "jobs", "one", &name, 201);
        let others = [
            event("patch", "jobs", "one", &name, 200),
            event("create", "jobs", "one", &format!("web-apply-{}", ID.replace('f', "e")), 201),
            event("create", "jobs", "one", &name, 409),
            event("create", "secrets", "one", &name, 201),
            event("create", "jobs", "one", "hello", 201),
            event("create", "jobs", "one", "hello", 201),
            event("create", "jobs", &format!("{BY_HAND}x"), &name, 201),
            r#"{"kind":"Event","objectRef":{"resource":"jobs""#.to_owned(),
        ];
        let once = [std::slice::from_ref(&created), &others[..]].concat();
        assert_eq!(check_run(&[&once]), Ok(2), "each once; `hello` is none of ours");
        for again in [
            created.clone(),
            event("create", "jobs", "two", &name, 201),
            event("patch", "jobs", &format!("{BY_HAND}x"), &name, 201),
            event("patch", "jobs", "one", &format!("other-fetch-{ID}"), 201),
        ] {
            let twice = [&once[..], std::slice::from_ref(&again)].concat();
            let why = check_run(&[&twice]).unwrap_err();
            assert!(why.contains(&format!("one {name}")), "{why}");
            check_run(&[&once, &[again]]).unwrap_err();
        }
    }
}
