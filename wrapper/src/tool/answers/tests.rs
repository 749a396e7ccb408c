//! What is shared, with whom, for how long; and that nothing that is wrong here fails a job.

use serde_json::json;

use super::*;

/// A cache, and the answers that jobs with these variables find in it.
struct Cache(tempfile::TempDir);

impl Cache {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// For a job that takes what was asked for after then.
    fn after(&self, fresh_after: Option<Timestamp>) -> SharedAnswers {
        self.with(fresh_after, &[("AWS_PROFILE", "one"), ("PVN_JOB_ID", "a")], &[])
    }

    fn with(
        &self,
        fresh_after: Option<Timestamp>,
        variables: &[(&str, &str)],
        credentials: &[PathBuf],
    ) -> SharedAnswers {
        let mut environment: Environment = vec![(CACHE_VARIABLE.into(), self.0.path().into())];
        let fresh_after =
            fresh_after.map(|at| (FRESH_AFTER_VARIABLE.into(), at.to_string().into()));
        environment.extend(fresh_after);
        environment.extend(variables.iter().map(|(key, value)| (key.into(), value.into())));
        SharedAnswers::to(&["tool", "place"], credentials, &["credential_process"], &environment)
            .unwrap()
    }
}

/// Some time ago: what was asked for in this test is newer.
fn before() -> Option<Timestamp> {
    Some(now().minus(Duration::from_secs(60)))
}

/// An instant that is after all that was asked for so far, and before all that is later.
fn instant_after() -> Timestamp {
    let instant = now();
    while now() <= instant {
        std::thread::yield_now();
    }
    instant
}

/// Asks, and gives what was told and which names were asked for.
fn ask(answers: &SharedAnswers, name: &str) -> (Option<Value>, Vec<Vec<String>>) {
    let mut asked = Vec::new();
    let told = answers.of(name, 2, |names| {
        asked.push(names.to_vec());
        Ok(names.iter().map(|name| (name.clone(), json!({"is": name}))).collect())
    });
    (told.unwrap(), asked)
}

#[test]
fn a_job_with_a_turn_takes_what_another_was_told_and_asks_for_those_that_are_next() {
    let cache = Cache::new();
    for name in ["a", "b", "c", "d"] {
        let (told, asked) = ask(&cache.after(None), name);
        assert_eq!((told, asked), (Some(json!({"is": name})), vec![vec![name.to_owned()]]));
    }
    let since = Some(instant_after());
    // Nothing is new enough, so it asks, for those along that were wanted longest ago.
    let (_, asked) = ask(&cache.after(since), "d");
    assert_eq!(asked, [["d", "a", "b"]]);
    assert_eq!(ask(&cache.after(since), "a"), (Some(json!({"is": "a"})), vec![]));
    assert_eq!(ask(&cache.after(since), "b").1.len(), 0);
    // The others are told already.
    let (_, asked) = ask(&cache.after(since), "c");
    assert_eq!(asked[0][0], "c");
    assert_eq!(ask(&cache.after(since), "c").1.len(), 0);
}

#[test]
fn who_names_no_instant_asks_for_itself_alone_and_is_told_how_it_is_now() {
    let cache = Cache::new();
    ask(&cache.after(None), "a");
    ask(&cache.after(None), "b");
    assert_eq!(ask(&cache.after(None), "a").1, [["a"]]);
    assert_eq!(ask(&cache.after(before()), "a").1.len(), 0, "it is kept for who does");
    assert_eq!(ask(&cache.after(Some(now().plus(LASTS))), "a").1.len(), 1);
}

#[test]
fn nothing_is_shared_across_credentials() {
    let cache = Cache::new();
    let keys = cache.0.path().join("credentials");
    let with =
        |variables: &[(&str, &str)]| cache.with(before(), variables, std::slice::from_ref(&keys));
    ask(&with(&[("AWS_PROFILE", "one"), ("PVN_JOB_ID", "a")]), "a");
    let is_known = |variables| ask(&with(variables), "a").1.is_empty();
    assert!(is_known(&[("AWS_PROFILE", "one"), ("PVN_JOB_ID", "b"), ("PWD", "/x")]));
    assert!(!is_known(&[("AWS_PROFILE", "two")]));
    assert!(!is_known(&[("AWS_PROFILE", "one"), ("AWS_ROLE_ARN", "r")]));
    std::fs::write(&keys, "[one]").unwrap();
    assert!(!is_known(&[("AWS_PROFILE", "one")]));
    assert!(is_known(&[("AWS_PROFILE", "one")]));
    std::fs::write(&keys, "[other]").unwrap();
    assert!(!is_known(&[("AWS_PROFILE", "one")]));
    std::fs::write(&keys, "credential_process = who-knows").unwrap();
    let environment = vec![(CACHE_VARIABLE.into(), cache.0.path().into())];
    let shared = SharedAnswers::to(
        &["tool"],
        std::slice::from_ref(&keys),
        &["credential_process"],
        &environment,
    );
    assert!(shared.is_none(), "a program may give other ones each time");
}

#[test]
fn a_name_that_spoils_the_answer_for_many_is_no_reason_to_fail_and_asks_alone_from_then_on() {
    let cache = Cache::new();
    ask(&cache.after(None), "bad");
    let mut calls = Vec::new();
    let mut with_one = |name: &str, told: &[&str]| {
        let found = cache.after(Some(now())).of(name, 9, |names| {
            calls.push(names.to_vec());
            if names.len() > 1 && names.contains(&"bad".to_owned()) {
                return Err(Fault::failed("InvalidParameterException"));
            }
            let told = names.iter().filter(|name| told.contains(&name.as_str()));
            Ok(told.map(|name| (name.clone(), Value::Null)).collect())
        });
        found.unwrap().is_some()
    };
    assert!(with_one("good", &["good"]));
    assert!(with_one("good", &["good"]));
    assert!(!with_one("other", &[]), "an answer that says nothing of it is none");
    let asked: Vec<_> = calls.iter().map(|names| names.join(" ")).collect();
    assert_eq!(asked, ["good bad", "good", "good", "other bad good", "other"]);

    let again = cache.after(Some(now())).of("third", 9, |_| Err(Fault::again("throttled")));
    assert_eq!(again.unwrap_err().why, "throttled", "another call would be throttled, too");
}

#[test]
fn whatever_is_wrong_with_the_cache_a_job_asks_for_itself() {
    let cache = Cache::new();
    ask(&cache.after(None), "a");
    let answers = cache.after(before());
    std::fs::write(answers.file("a", "answer"), "{").unwrap();
    assert_eq!(ask(&answers, "a").1.len(), 1);
    let future = StoredAnswer { asked_at: now().plus(LASTS), answer: Value::Null };
    std::fs::write(answers.file("a", "answer"), serde_json::to_vec(&future).unwrap()).unwrap();
    assert_eq!(ask(&answers, "a").1.len(), 1, "a clock was set back");
    for name in ["../a", "", "a/b", "ä"] {
        assert_eq!(ask(&answers, name).1, [[name]]);
        assert_eq!(ask(&answers, name).1, [[name]]);
    }
    // In the place of its directory there is something else.
    std::fs::remove_dir_all(&answers.directory).unwrap();
    std::fs::write(&answers.directory, "").unwrap();
    assert_eq!(ask(&answers, "a").1, [["a"]]);
}

#[test]
fn what_lasts_is_asked_for_once_and_anew_by_who_must_know() {
    let cache = Cache::new();
    let ask = |fresh_after: Option<Timestamp>| {
        let mut asked = false;
        let answer = cache.after(fresh_after).lasting("arn:aws:x/y:1", || {
            asked = true;
            Ok(json!(1))
        });
        assert_eq!(answer.unwrap(), 1);
        asked
    };
    assert!(ask(before()));
    assert!(!ask(Some(now())));
    assert!(ask(None));
}

#[test]
fn questions_that_nobody_asks_any_more_make_room() {
    let cache = Cache::new();
    for profile in 0..QUESTIONS_OF_THE_TEST {
        let profile = profile.to_string();
        ask(&cache.with(None, &[("AWS_PROFILE", &profile)], &[]), "a");
    }
    let kept = std::fs::read_dir(cache.0.path().join("answers")).unwrap().count();
    assert_eq!(kept, 64);
    let old = clock() - Duration::from_secs(3 * 60 * 60);
    let answers = cache.after(None);
    ask(&answers, "a");
    for kind in ["answer", "wanted"] {
        let file = File::options().write(true).open(answers.file("a", kind)).unwrap();
        file.set_modified(old).unwrap();
    }
    ask(&cache.after(Some(now())), "b");
    assert!(!answers.file("a", "answer").exists() && answers.file("b", "answer").exists());
}

/// More than are kept.
const QUESTIONS_OF_THE_TEST: usize = 70;
