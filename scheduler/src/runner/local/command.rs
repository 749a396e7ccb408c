//! A job -> the command line, environment and directory of its wrapper. Pure but for the look
//! whether the directory is there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use schema::spool;

use crate::runner::{End, JobSpec, wrapped};

/// Variables that a local job inherits in mode `clean`. Source: docs/commands.md.
const CLEAN: &[&str] = &["PATH", "HOME", "USER", "LANG", "TMPDIR"];

/// Where a command is looked up when nothing says so. Source: `_PATH_DEFPATH` of paths.h.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The wrapper's arguments after its own name.
pub(super) fn arguments(spec: &JobSpec, directory: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["exec".into(), "--job".into(), directory.into()];
    if let Some(ms) = spec.command.stop_grace_ms {
        arguments.push(format!("--kill-after={ms}ms").into());
    }
    arguments.extend(wrapped::arguments(spec, &spec.command.argv).into_iter().map(OsString::from));
    arguments
}

/// The wrapper's whole environment, which is the command's. `places`: directories that variables
/// name; `inherited` is the daemon's.
pub(super) fn environment(
    spec: &JobSpec,
    directory: &Path,
    places: &[(&str, &Path)],
    wrapper: &Path,
    inherited: &[(OsString, OsString)],
) -> BTreeMap<OsString, OsString> {
    let is_ours = |key: &OsString| key.as_encoded_bytes().starts_with(b"PVN_");
    let kept = |key: &OsString| {
        !is_ours(key) && (!spec.clean_env || CLEAN.iter().any(|clean| key == clean))
    };
    let mut all: BTreeMap<OsString, OsString> =
        inherited.iter().filter(|(key, _)| kept(key)).cloned().collect();
    all.extend(spec.env.iter().map(|(key, value)| (key.into(), value.into())));
    all.insert(spool::DIRECTORY_VARIABLE.into(), directory.into());
    all.extend(places.iter().map(|(key, place)| (key.into(), (*place).into())));
    let mut secret_keys = spec.secret_keys.clone();
    for (key, value) in spec.hidden_variables() {
        all.insert(key.clone().into(), value.clone());
        secret_keys.push(key);
    }
    if !secret_keys.is_empty() {
        all.insert("PVN_SECRET_KEYS".into(), secret_keys.join(",").into());
    }
    // Last, so that a wrapper that is on PATH already is found before.
    if let Some(own) = wrapper.parent() {
        let path = all.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
        path.push(":");
        path.push(own);
    }
    all
}

/// What to say when the kernel finds all that too much for a program. Each single text may have 128
/// KiB, all together a quarter of the stack's limit, 2 MiB as a rule. Source: execve(2).
pub(super) fn too_long(
    arguments: &[OsString],
    environment: &BTreeMap<OsString, OsString>,
) -> String {
    let named = environment
        .iter()
        .map(|(key, value)| (key.len() + value.len(), format!("`{}`", key.display())));
    let texts =
        named.chain(arguments.iter().map(|argument| (argument.len(), "an argument".to_owned())));
    let texts: Vec<_> = texts.collect();
    let all: usize = texts.iter().map(|(length, _)| length).sum();
    let (longest, name) = texts.into_iter().max().unwrap_or_default();
    format!(
        "its arguments and environment are too long for the system, {} KiB in all; the longest of \
         them is {name}, with {} KiB: put what is large into a file, and give the command its path",
        all >> 10,
        longest >> 10
    )
}

/// Where the command is to run.
///
/// # Errors
/// The end of a job whose directory is not there, or may not be entered, which it names.
pub(super) fn working_directory(spec: &JobSpec, started_in: &Path) -> Result<PathBuf, End> {
    let mut root = started_in.to_owned();
    root.extend(&spec.root);
    // It may be mounted late, or be being made anew; one that is there and may not be entered stays
    // so.
    let surroundings =
        std::fs::metadata(&root).is_err_and(|error| error.kind() != ErrorKind::PermissionDenied);
    let mut directory = entered(root).map_err(|why| End::NotStarted { why, surroundings })?;
    directory.extend(&spec.command.working_directory);
    entered(directory).map_err(|why| End::NotStarted { why, surroundings: false })
}

fn entered(directory: PathBuf) -> Result<PathBuf, String> {
    match std::fs::metadata(&directory) {
        // One can be looked at and not entered; where the wrapper is started nobody can tell any
        // more which of the two was refused.
        Ok(metadata) if metadata.is_dir() => {
            match accessat(CWD, &directory, Access::EXEC_OK, AtFlags::EACCESS) {
                Ok(()) => Ok(directory),
                Err(error) => Err(format!(
                    "its working directory {} cannot be entered: {}; give the scheduler's user \
                     the `x` permission on it, or name another",
                    directory.display(),
                    std::io::Error::from(error)
                )),
            }
        }
        Ok(_) => Err(format!("its working directory {} is no directory", directory.display())),
        Err(error) => {
            Err(format!("its working directory {} cannot be entered: {error}", directory.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use schema::id::JobId;
    use schema::report::StructuredKind;
    use schema::status::JobKind;

    use super::*;
    use crate::compile::Command;

    fn spec(argv: &[&str]) -> JobSpec {
        let command = Command {
            expect: Some(StructuredKind::GetInfo),
            leave_running: true,
            ..Command::new("test", argv)
        };
        JobSpec {
            env: vec![
                ("A".into(), "1".into()),
                ("PVN_JOB_ID".into(), "j".into()),
                ("A".into(), "2".into()),
            ],
            secret_keys: vec!["A".into(), "B".into()],
            timeout_ms: Some(1500),
            success_exit_codes: vec![0, 2],
            ..JobSpec::new(JobId::derive(&[b"x"]), JobKind::Fetch, command)
        }
    }

    fn check(argv: &[&str], expected: &str) {
        let arguments = arguments(&spec(argv), Path::new("/spool/job"));
        let text: Vec<_> = arguments.iter().map(|argument| argument.to_str().unwrap()).collect();
        assert_eq!(
            text.join(" "),
            format!(
                "exec --job /spool/job --job-timeout=1500ms --success-exit-codes=0,2 \
                 --expect=get-info --leave-running {expected}"
            )
        );
    }

    #[test]
    fn a_command_is_wrapped_once() {
        check(&["terraform", "plan"], "-- terraform plan");
        check(&["/bin/pvn-wrapper", "exec", "--out", "a=b", "--", "true"], "--out a=b -- true");
        check(&["pvn-wrapper", "validate", "fetch", "x"], "-- pvn-wrapper validate fetch x");
    }

    fn environment_of(spec: &JobSpec) -> BTreeMap<OsString, OsString> {
        let inherited = [("HOME", "/h"), ("SHELL", "sh"), ("PVN_DATA_DIR", "/d"), ("A", "0")]
            .map(|(key, value)| (key.into(), value.into()));
        environment(
            spec,
            Path::new("/spool/job"),
            &[("PVN_INSTANCE_DIR", Path::new("/data/own"))],
            Path::new("/opt/pvn-wrapper"),
            &inherited,
        )
    }

    #[test]
    fn a_job_inherits_the_daemons_environment_less_its_own_variables() {
        let all = environment_of(&spec(&["true"]));
        let get = |key: &str| all.get(&OsString::from(key)).map(|value| value.to_str().unwrap());
        assert_eq!(
            (get("HOME"), get("SHELL"), get("A"), get("PVN_DATA_DIR")),
            (Some("/h"), Some("sh"), Some("2"), None)
        );
        assert_eq!(
            (get("PVN_JOB_ID"), get("PVN_JOB_DIR"), get("PVN_SECRET_KEYS")),
            (Some("j"), Some("/spool/job"), Some("A,B"))
        );
        assert_eq!(get("PVN_INSTANCE_DIR"), Some("/data/own"));
        assert_eq!(get("PATH"), Some("/usr/bin:/bin:/opt"), "the wrapper is found last");
    }

    #[test]
    fn values_that_are_only_to_be_masked_have_variables_of_the_wrappers_own() {
        let all = environment_of(&JobSpec {
            hidden: vec!["one".into()],
            former: vec!["two".into()],
            ..spec(&["true"])
        });
        let get = |key: &str| all.get(&OsString::from(key)).map(|value| value.to_str().unwrap());
        assert_eq!((get("PVN_HIDDEN_0"), get("PVN_HIDDEN_1")), (Some("one"), Some("two")));
        assert_eq!(get("PVN_SECRET_KEYS"), Some("A,B,PVN_HIDDEN_0,PVN_HIDDEN_1"));
    }

    #[test]
    fn a_clean_job_inherits_five_variables_only() {
        let all = environment_of(&JobSpec { clean_env: true, ..spec(&["true"]) });
        assert!(all.contains_key(&OsString::from("HOME")));
        assert!(!all.contains_key(&OsString::from("SHELL")));
    }

    #[test]
    fn a_working_directory_that_is_missing_is_named() {
        let mut spec = spec(&["true"]);
        spec.command.working_directory = Some("no/such".into());
        let refused = |end| matches!(end, Err(End::NotStarted { why, surroundings: false }) if why.contains("/tmp/no/such"));
        assert!(refused(working_directory(&spec, Path::new("/tmp"))));
        // What a whole runtime starts in may come back.
        let waits = |end| matches!(end, Err(End::NotStarted { why, surroundings: true }) if why.contains("its working directory /no/such cannot be entered"));
        assert!(waits(working_directory(&spec, Path::new("/no/such"))));
        spec.root = Some("/".into());
        spec.command.working_directory = Some("tmp".into());
        assert_eq!(working_directory(&spec, Path::new("/x")).unwrap(), Path::new("/tmp"));
    }
}
