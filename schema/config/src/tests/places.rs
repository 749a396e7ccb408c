//! What a document knows about itself: places of its fields, its own text, its digest; and that no
//! text makes the reader stumble.

use proptest::prelude::*;
use schema::api::ConfigFile;

use super::{documents, file, problems};
use crate::diagnostic::{Diagnostic, dotted, pointer};
use crate::{
    DOCUMENT_PROBLEM_LIMIT, DocumentSource, FILE_LIMIT_BYTES, PROBLEM_LIMIT, read, read_source,
    references,
};

const TWO: &str = "# first\napplication:\n  {name: a, releaseChannels: [{name: p, runtimes: \
                   [{runtime: r}]}]}\n---\n\n# second\nservice:\n  name: s\n  application: a\n  \
                   env:\n    A:\n      value: \"x {{.Params.y}} {{.Params.z}}\"\n  \
                   per_release_channel:\n  - release_channel: p\n";

#[track_caller]
fn check_place(problem: &Diagnostic, expected: (usize, usize, &str)) {
    let (line, column) = problem.line_and_column();
    let span = problem.span.clone().unwrap();
    assert_eq!((line, column, &problem.source.text[span]), expected, "{}", problem.render(false));
}

#[test]
fn a_field_is_found_by_pointer_and_by_path() {
    let service = &documents(TWO)[1];
    check_place(&service.problem("/service/application", ""), (9, 16, "a"));
    check_place(&service.problem("service.application", ""), (9, 16, "a"));
    check_place(
        &service.problem("service.env.A.value", ""),
        (12, 14, "\"x {{.Params.y}} {{.Params.z}}\""),
    );
    check_place(&service.problem("service.perReleaseChannel[0].releaseChannel", ""), (14, 22, "p"));
    assert_eq!(
        service.problem("/service/perReleaseChannel/0/releaseChannel", "").path,
        "service.perReleaseChannel[0].releaseChannel"
    );
}

#[test]
fn a_field_that_is_not_there_is_told_at_the_nearest_one() {
    let service = &documents(TWO)[1];
    check_place(&service.problem("/service/env/B/value", ""), (10, 3, "env"));
    check_place(
        &service.problem("/service/perReleaseChannel/7", ""),
        (13, 3, "per_release_channel"),
    );
    check_place(
        &service.problem("", ""),
        (
            7,
            1,
            "service:\n  name: s\n  application: a\n  env:\n    A:\n      value: \"x \
             {{.Params.y}} {{.Params.z}}\"\n  per_release_channel:\n  - release_channel: p",
        ),
    );
}

#[test]
fn a_part_of_a_text_is_found() {
    let service = &documents(TWO)[1];
    check_place(
        &service.problem_in("service.env.A.value", 0, "{{.Params.z}}", ""),
        (12, 31, "{{.Params.z}}"),
    );
    check_place(&service.problem_in("service.env.A.value", 2, "{{", ""), (12, 17, "{{"));
    check_place(&service.problem_in("service.env.A.value", 16, "{{", ""), (12, 31, "{{"));
    check_place(
        &service.problem_in("service.env.A.value", 0, "nowhere", ""),
        (12, 14, "\"x {{.Params.y}} {{.Params.z}}\""),
    );
}

#[test]
fn a_path_and_a_pointer_are_the_same_place() {
    assert_eq!(dotted("/service/perReleaseChannel/0/env/A"), "service.perReleaseChannel[0].env.A");
    assert_eq!(pointer("service.perReleaseChannel[0].env.A"), "/service/perReleaseChannel/0/env/A");
    assert_eq!((dotted(""), pointer("")), (String::new(), String::new()));
}

#[test]
fn a_document_keeps_its_own_text_and_reads_back_from_it() {
    let read_twice = documents(TWO);
    assert_eq!(
        read_twice[0].source().text,
        "# first\napplication:\n  {name: a, releaseChannels: [{name: p, runtimes: [{runtime: \
         r}]}]}\n"
    );
    assert_eq!(read_twice[1].source().first_line, 4);
    let stored = serde_json::to_string(read_twice[1].source()).unwrap();
    let again =
        read_source(serde_json::from_str::<DocumentSource>(&stored).unwrap()).unwrap().unwrap();
    assert_eq!(again.body(), read_twice[1].body());
    assert_eq!(again.digest(), read_twice[1].digest());
    check_place(&again.problem("/service/application", ""), (9, 16, "a"));
}

#[test]
fn the_digest_is_of_the_meaning() {
    let digest = |text: &str| documents(text)[0].digest();
    let one = digest(
        "service: {name: s, application: a, progressDeadline: 90s, env: {A: {value: x}, B: \
         {value: y}}}",
    );
    let same = [
        "# a comment\nservice:\n  application: a\n  name: \"s\"\n  progress_deadline: 1m30s\n  \
         env: {B: {value: y}, A: {value: x}}\n",
        "---\nservice: {name: s, application: a, parameters: [], bundleName: null, \
         progressDeadline: 1.5m, env: {A: {value: x}, B: {value: y}}}",
    ];
    same.iter().for_each(|text| assert_eq!(digest(text), one, "{text}"));
    assert_ne!(
        digest(
            "service: {name: s, application: a, progressDeadline: 91s, env: {A: {value: x}, B: \
             {value: y}}}"
        ),
        one
    );
    assert_ne!(
        digest("runtime: {name: r}"),
        digest("runtime: {name: r, fake: {}}"),
        "an empty message is something"
    );
}

const WITH_FILES: &str = "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    \
                          apply:\n      kubernetesConfig: {type: KUBERNETES, local: {path: jobs, \
                          excludePatterns: [old]}}\n---\nservice:\n  name: s\n  application: a\n  \
                          awsEcs: {taskDefinition: {local: {path: task.json}}}\n  colour: red\n";

#[test]
fn the_local_files_that_are_asked_for_are_told_with_their_place() {
    let wanted = references("app.pvn.yaml", WITH_FILES);
    let told: Vec<_> = wanted
        .iter()
        .map(|(reference, asked)| {
            (reference.path.as_str(), asked.line_and_column().0, asked.path.as_str())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("jobs", 6, "runtime.custom.apply.kubernetesConfig.local.path"),
            ("task.json", 11, "service.awsEcs.taskDefinition.local.path")
        ]
    );
    assert_eq!(wanted[0].0.filter.exclude, ["old"]);
}

#[test]
fn a_document_keeps_the_files_that_it_asks_for_and_they_are_part_of_its_meaning() {
    let text = WITH_FILES.replace("  colour: red\n", "");
    let job = "{apiVersion: batch/v1, kind: Job, metadata: {name: j}}";
    let with = |job: &str| {
        let attachments = [
            ("jobs/a.yaml".to_owned(), job.to_owned()),
            ("task.json".to_owned(), "{}".to_owned()),
            ("other".to_owned(), String::new()),
        ];
        read(&[ConfigFile { attachments: attachments.into(), ..file(&text) }])
            .unwrap_or_else(|problems| panic!("{}", problems[0].render(false)))
    };
    let read = with(job);
    assert_eq!(read[0].source().attachments.keys().collect::<Vec<_>>(), ["jobs/a.yaml"]);
    assert_eq!(read[1].source().attachments.keys().collect::<Vec<_>>(), ["task.json"]);
    let changed = with("{apiVersion: batch/v1, kind: Job, metadata: {name: k}}");
    assert_ne!(read[0].digest(), changed[0].digest());
    assert_eq!(read[1].digest(), changed[1].digest());
}

#[test]
fn bad_input_file_over_8_mib() {
    let text = format!("application: {{name: a}}\n#{}", "x".repeat(FILE_LIMIT_BYTES));
    assert_eq!(
        problems(&text),
        "error: 8388632 bytes are too many; the limit is 8388608 (8 MiB) a file\n--> app.pvn.yaml"
    );
}

#[test]
fn bad_input_aliases_that_stand_for_billions_of_values() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let before = level - 1;
        text += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 10].join(", "));
    }
    assert!(
        problems(&text)
            .starts_with("error: aliases blow the document up to more than 100000 values"),
        "{}",
        problems(&text)
    );
    assert!(
        problems("a: &a [*a]").starts_with("error: an alias stands inside the value that it names")
    );
}

#[test]
fn bad_input_millions_of_values() {
    assert!(
        problems(&format!("[{}", "a,".repeat(2_000_000)))
            .starts_with("error: more than 1000000 values in one document")
    );
}

#[test]
fn bad_input_deep_nesting() {
    for text in [
        "[".repeat(100_000),
        "- ".repeat(100_000),
        "{a: ".repeat(100_000),
        (0..3000).map(|n| format!("{}a:\n", " ".repeat(n))).collect(),
    ] {
        let shown = problems(&text);
        assert!(shown.starts_with("error: "), "{}", &shown[..shown.len().min(300)]);
        assert!(shown.len() < 5000, "one problem, cut: {}", shown.len());
    }
}

#[test]
fn bad_input_hundreds_of_thousands_of_problems_are_bounded() {
    let count = |text: &str| read(&[file(text)]).unwrap_err().len();
    assert!(
        count(&format!("application: {{name: a, releaseChannels: [{}]}}", "1,".repeat(200_000)))
            <= DOCUMENT_PROBLEM_LIMIT
    );
    assert_eq!(count(&"---\na: b\n".repeat(20_000)), PROBLEM_LIMIT + 1);
}

#[test]
fn the_column_in_a_long_line_is_the_true_one() {
    for length in [3_000, 300_000] {
        let text = format!(
            "service: {{name: s, application: a, bundleName: \"{}\", nope: 1}}",
            "x".repeat(length)
        );
        let problem = &read(&[file(&text)]).unwrap_err()[0];
        assert_eq!(problem.line_and_column(), (1, length + 52));
        let shown = problem.render(false);
        assert!(shown.contains(&format!("--> app.pvn.yaml:1:{}\n", length + 52)), "{shown}");
        assert!(shown.contains("^^^^ service.nope") && shown.len() < 2000, "{shown}");
    }
}

#[test]
fn colour_only_when_asked() {
    let problem = &read(&[file("a: b")]).unwrap_err()[0];
    assert!(problem.render(true).contains('\u{1b}'));
    assert!(!problem.render(false).contains('\u{1b}'));
    let told = problem.to_api();
    assert_eq!(
        (told.file.as_str(), told.line, told.column, told.path.as_str()),
        ("app.pvn.yaml", 1, 1, "a")
    );
    assert_eq!(told.snippet, problem.render(false));
}

/// Every problem lies inside its text and can be shown.
fn check_any(text: &str) {
    for problem in read(&[file(text)]).err().unwrap_or_default() {
        if let Some(span) = &problem.span {
            assert!(
                span.start <= span.end && span.end <= problem.source.text.len(),
                "{span:?} of {:?}",
                problem.source.text
            );
            assert!(
                problem.source.text.get(span.clone()).is_some(),
                "{span:?} cuts a character of {:?}",
                problem.source.text
            );
            let (line, _) = problem.line_and_column();
            assert!(
                (1..=text.matches('\n').count() + 1).contains(&line),
                "line {line} of {text:?}"
            );
        }
        assert!(!problem.render(false).is_empty());
    }
    references("app.pvn.yaml", text);
}

/// A text that is a config, with a few places replaced by something else.
fn spoiled() -> impl Strategy<Value = String> {
    let whole = include_str!("everything.pvn.yaml");
    let piece = prop_oneof![
        "\\PC{0,6}",
        prop::sample::select(vec![
            "\n",
            "\t",
            "---\n",
            ": ",
            "- ",
            "{",
            "}",
            "[",
            "]",
            "\"",
            "'",
            "&a ",
            "*a",
            "!!str ",
            "|\n",
            "#",
            "ä€😀",
            "\r\n",
            "<<: ",
            "null",
            "%",
            "\u{feff}"
        ])
        .prop_map(str::to_owned),
    ];
    (0..whole.len(), prop::collection::vec((0..2000_usize, 0..20_usize, piece), 1..6)).prop_map(
        move |(start, edits)| {
            let mut text: String = whole
                .bytes()
                .skip(start)
                .take(2500)
                .map(char::from)
                .filter(char::is_ascii)
                .collect();
            for (at, length, piece) in edits {
                let chars: Vec<char> = text.chars().collect();
                let at = at.min(chars.len());
                let end = (at + length).min(chars.len());
                text = chars[..at].iter().collect::<String>()
                    + &piece
                    + &chars[end..].iter().collect::<String>();
            }
            text
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_text_makes_the_reader_stumble(text in "\\PC{0,60}|([a-z\\-:{}\\[\\]&*!|>'\"#%@, \\n\\t]{0,80})") {
        check_any(&text);
    }

    #[test]
    fn no_spoiled_config_makes_the_reader_stumble(text in spoiled()) {
        check_any(&text);
    }
}
