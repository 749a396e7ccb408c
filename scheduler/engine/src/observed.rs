//! Reports -> what is so: the end of a fetch becomes an observation, and the objects of any
//! observation are held against the desired version. Called by `finish/fetch.rs` and `observe.rs`;
//! pure reading, it changes nothing.

use schema::status::Reason;
use schema::time::Timestamp;

use crate::action::StopReason;
use crate::desired::{FetchAnswer, PollPolicy, WorkExitCodes};
use crate::event::{FetchResult, Outcome};
use crate::late::{ended_at, overdue, timed_out};
use crate::limits::USUAL_WORK_EXIT_CODE;
use crate::observation::{
    Blame, Observation, ObservationError, ObservationSource, ObservedWorld, WorldReport,
};
use crate::state::Job;

mod objects;

use objects::compare;

/// What people see of an explanation that cannot be read, or not without showing a secret.
const UNREADABLE: &str = "the explanation that the fetch left cannot be shown; `pvnctl services \
                          retry` has another one made";

/// What an observation says of what is desired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As desired.
    Clean,
    /// Work to do: why, and in words.
    Work(Reason, String),
    /// The versions match, but something is on its way.
    Pending(String),
    /// The versions match, but something is broken.
    Broken(String),
}

/// The end of a fetch as the observation that it is.
pub(crate) fn of_fetch(
    job: &Job,
    policy: &PollPolicy,
    outcome: Outcome,
    now: Timestamp,
) -> Observation {
    let at = ended_at(job, &outcome, now);
    let error = |why: String, blame| Err(ObservationError { why, blame });
    let result = match (outcome, &job.stop) {
        (Outcome::Exited { code, said, seen, .. }, stop) => {
            match (read(policy.mode, &policy.work, code, &said, *seen), stop) {
                (Ok(report), _) => Ok(report),
                (Err(_), Some(StopReason::Person(who))) => {
                    error(format!("was cancelled by {who}"), Blame::Person)
                }
                (Err(_), Some(StopReason::Deadline | StopReason::NotWanted)) => {
                    error(timed_out(job), Blame::Command)
                }
                (Err(why), None) => error(why, Blame::Command),
            }
        }
        (_, Some(StopReason::Person(who))) => {
            error(format!("was cancelled by {who}"), Blame::Person)
        }
        (Outcome::BadOutput { why }, _) => error(why, Blame::Command),
        (Outcome::TimedOut, _) => error(timed_out(job), Blame::Command),
        (_, Some(StopReason::Deadline)) => error(overdue(job), Blame::Command),
        (Outcome::NotStarted { why, surroundings: true } | Outcome::InputLost { why }, _) => {
            error(format!("could not be started: {why}"), Blame::Surroundings)
        }
        (Outcome::NotStarted { why, surroundings: false }, _) => {
            error(format!("could not be started: {why}"), Blame::Command)
        }
        (Outcome::Cancelled { .. }, _) => error("was cancelled".to_owned(), Blame::Person),
        (Outcome::Unknown { why, .. }, _) => {
            error(format!("ended with an unknown outcome: {why}"), Blame::Command)
        }
    };
    Observation { source: ObservationSource::Job(job.id), at, result }
}

/// Reads the end of a fetch whose command ran to an exit code.
///
/// # Errors
/// Why this is no answer, as the end of the sentence "fetch …".
fn read(
    mode: FetchAnswer,
    work: &WorkExitCodes,
    code: i32,
    said: &str,
    mut seen: FetchResult,
) -> Result<WorldReport, String> {
    let world = match mode {
        FetchAnswer::ExitCode if code == 0 => ObservedWorld::AsDesired,
        FetchAnswer::ExitCode if work.says_work(code) => {
            ObservedWorld::Work(work_in_words(code, said, &seen))
        }
        FetchAnswer::ExitCode => {
            let code = format!("{code} (0 means converged and {} work to do)", work.that_mean());
            return Err(ended_with(&code, said));
        }
        // Whoever means work by 2 has the other mode in mind; any other code is a failure in both.
        FetchAnswer::StructuredOutput if code == USUAL_WORK_EXIT_CODE => {
            return Err(ended_with(
                &format!("{code} (with structured output work is what is printed, with code 0)"),
                said,
            ));
        }
        FetchAnswer::StructuredOutput if code != 0 => {
            return Err(ended_with(&code.to_string(), said));
        }
        FetchAnswer::StructuredOutput => match seen.objects.take() {
            None => return Err("brought no structured output".to_owned()),
            Some(Err(why)) => {
                return Err(format!("printed something else than a FetchOutput: {why}"));
            }
            Some(Ok(objects)) => ObservedWorld::Objects(objects),
        },
    };
    Ok(WorldReport {
        world,
        fingerprint: seen.fingerprint(),
        plan: seen.plan,
        // It binds a yes whether or not it can be shown.
        explanation: seen
            .explanation_text
            .or_else(|| seen.explanation.map(|_| UNREADABLE.to_owned())),
        may_destroy: !seen.destroys_nothing,
        is_cut: seen.is_cut,
        doubt: seen.doubt,
    })
}

/// What a fetch says that found work by its exit code.
fn work_in_words(code: i32, said: &str, seen: &FetchResult) -> String {
    if said.is_empty() {
        format!("fetch ended with exit code {code}: there is work to do")
    } else if seen.is_cut {
        format!("fetch found work to do, and what is kept of its output is not whole: {said}")
    } else if seen.doubt.is_some() {
        format!(
            "fetch ended with exit code {code}, which means work and is also what a shell's syntax \
             error ends with, and printed only errors: {said}"
        )
    } else {
        format!("fetch found work to do: {said}")
    }
}

/// What it means that the world is like this.
pub(crate) fn verdict(world: &ObservedWorld, version: &str) -> Verdict {
    match world {
        ObservedWorld::AsDesired => Verdict::Clean,
        ObservedWorld::Work(what) => Verdict::Work(Reason::RuntimeObjectApplyNeeded, what.clone()),
        ObservedWorld::Objects(objects) => compare(objects, version),
    }
}

/// The end of the sentence "the job …" for a command that failed.
pub(crate) fn ended_with(code: &str, said: &str) -> String {
    if said.is_empty() {
        format!("ended with exit code {code}")
    } else {
        format!("ended with exit code {code}: {said}")
    }
}

#[cfg(test)]
mod tests {
    use schema::output::RuntimeObject;

    use super::objects::tests::object;
    use super::*;

    fn read(
        mode: FetchAnswer,
        version: &str,
        code: i32,
        said: &str,
        seen: &FetchResult,
    ) -> Result<Verdict, String> {
        super::read(mode, &WorkExitCodes::default(), code, said, seen.clone())
            .map(|report| verdict(&report.world, version))
    }

    fn check_structured(objects: &str, expected: &str) {
        let seen = FetchResult {
            objects: Some(Ok(objects.split_whitespace().map(object).collect())),
            ..FetchResult::default()
        };
        let told = match read(FetchAnswer::StructuredOutput, "v2", 0, "", &seen).unwrap() {
            Verdict::Clean => "clean".to_owned(),
            Verdict::Work(reason, _) => reason.to_string(),
            Verdict::Pending(_) => "pending".to_owned(),
            Verdict::Broken(_) => "broken".to_owned(),
        };
        assert_eq!(told, expected, "{objects}");
    }

    #[test]
    fn converged_takes_every_object_with_exactly_the_desired_version() {
        check_structured("a=SUCCEEDED:v2*", "clean");
        check_structured("a=SUCCEEDED:v2*,v1", "clean");
        check_structured("a=SUCCEEDED:v2*,v1! b=SUCCEEDED:v2*", "clean");
    }

    #[test]
    fn another_no_or_a_second_active_version_is_work() {
        check_structured("", "VERSION_MISMATCH");
        check_structured("a=SUCCEEDED:", "VERSION_MISMATCH");
        check_structured("a=SUCCEEDED:v2", "VERSION_MISMATCH");
        check_structured("a=SUCCEEDED:v1*", "VERSION_MISMATCH");
        check_structured("a=SUCCEEDED:*", "VERSION_MISMATCH");
        check_structured("a=SUCCEEDED:v1*,v2*", "VERSION_MISMATCH");
        check_structured("a=SUCCEEDED:v2*,v2*", "VERSION_MISMATCH");
        check_structured("a=SUCCEEDED:v2* b=FAILED:v1*", "VERSION_MISMATCH");
        check_structured("a=PENDING:v2*! b=SUCCEEDED:v2*", "VERSION_DIRTY");
    }

    #[test]
    fn an_object_that_has_the_version_and_could_not_take_it_into_use_has_failed() {
        check_structured("a=FAILED:v1*,v2", "RUNTIME_OBJECT_FAILED");
        check_structured("a=FAILED:v2", "RUNTIME_OBJECT_FAILED");
        check_structured("a=SUCCEEDED:v2* b=FAILED:v1*,v2", "RUNTIME_OBJECT_FAILED");
        // What has failed may be the version that is to be replaced.
        check_structured("a=FAILED:v1*", "VERSION_MISMATCH");
        check_structured("a=FAILED:v1*,v2*", "VERSION_MISMATCH");
        check_structured("a=PENDING:v1*,v2", "VERSION_MISMATCH");
    }

    #[test]
    fn with_the_right_versions_the_status_decides() {
        check_structured("a=PENDING:v2*", "pending");
        check_structured("a=FAILED:v2*", "broken");
        check_structured("a=PENDING:v2* b=FAILED:v2*", "broken");
        check_structured("a=PENDING:v2* b=SUCCEEDED:v2*", "pending");
    }

    #[test]
    fn exit_codes_have_two_meanings_and_all_others_are_errors() {
        for code in 0..=255 {
            let verdict = read(FetchAnswer::ExitCode, "v2", code, "", &FetchResult::default());
            match code {
                0 => assert_eq!(verdict, Ok(Verdict::Clean)),
                2 => assert!(matches!(
                    verdict,
                    Ok(Verdict::Work(Reason::RuntimeObjectApplyNeeded, _))
                )),
                _ => assert!(verdict.unwrap_err().contains(&code.to_string())),
            }
        }
    }

    #[test]
    fn with_codes_of_the_config_2_is_an_error_like_any_other() {
        let work = WorkExitCodes::chosen(&[10, 11]);
        let read = |code| {
            super::read(FetchAnswer::ExitCode, &work, code, "", FetchResult::default())
                .map(|report| verdict(&report.world, "v2"))
        };
        assert_eq!(read(0), Ok(Verdict::Clean));
        for code in [10, 11] {
            assert!(matches!(read(code), Ok(Verdict::Work(..))), "{code}");
        }
        assert_eq!(
            read(2),
            Err("ended with exit code 2 (0 means converged and 10 and 11 mean work to do)".into())
        );
    }

    #[test]
    fn what_the_command_said_is_part_of_the_message() {
        let said = |code| match read(
            FetchAnswer::ExitCode,
            "v2",
            code,
            "1 to add",
            &FetchResult::default(),
        ) {
            Ok(Verdict::Work(_, what)) => what,
            other => other.unwrap_err(),
        };
        assert_eq!(said(2), "fetch found work to do: 1 to add");
        assert_eq!(
            said(1),
            "ended with exit code 1 (0 means converged and 2 means work to do): 1 to add"
        );
    }

    #[test]
    fn a_structured_fetch_must_end_with_0_and_print_a_document() {
        assert!(
            read(FetchAnswer::StructuredOutput, "v2", 2, "", &FetchResult::default())
                .unwrap_err()
                .contains("exit code 2")
        );
        assert!(
            read(FetchAnswer::StructuredOutput, "v2", 0, "", &FetchResult::default())
                .unwrap_err()
                .contains("no structured output")
        );
        let seen = FetchResult {
            objects: Some(Err("/objects: missing".to_owned())),
            ..FetchResult::default()
        };
        assert!(
            read(FetchAnswer::StructuredOutput, "v2", 0, "", &seen)
                .unwrap_err()
                .contains("/objects: missing")
        );
    }

    #[test]
    fn what_is_found_is_named() {
        let seen = FetchResult {
            objects: Some(Ok(vec![object("web=SUCCEEDED:v1*")])),
            ..FetchResult::default()
        };
        let Ok(Verdict::Work(_, what)) = read(FetchAnswer::StructuredOutput, "v2", 0, "", &seen)
        else {
            panic!("work")
        };
        assert_eq!(what, "Process `web` runs v1 instead of v2");
        for (objects, expected) in [
            ("web=SUCCEEDED:v2*!", "Process `web` was changed behind pvn's back: size is 3"),
            ("web=SUCCEEDED:v1*", "Process `web` runs v1 instead of v2: size is 3"),
            (
                "web=FAILED:v1*,v2",
                "Process `web` runs v1 instead of v2, and reports that it failed: size is 3",
            ),
        ] {
            let object = RuntimeObject { message: "size is 3".to_owned(), ..object(objects) };
            let Verdict::Work(_, what) = verdict(&ObservedWorld::Objects(vec![object]), "v2")
            else {
                panic!("work")
            };
            assert_eq!(what, expected);
        }
    }
}
