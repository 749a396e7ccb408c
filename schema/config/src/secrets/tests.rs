//! Every way of writing a secret into a config, and what must still be seen.

use schema::api::ConfigFile;

use super::*;

/// Every way of writing the field that was thought of, each with `hunter2-secret` as the value;
/// what must still be seen.
const SPELLINGS: &[(&str, &str)] = &[
    ("env:\n  A: {rawSecret: hunter2-secret}\n", "A: {rawSecret: "),
    ("env:\n  A:\n    rawSecret: hunter2-secret\n  B: {value: x}\n", "  B: {value: x}\n"),
    (
        "env:\n  A:\n    raw_secret: |\n      hunter2-secret\n      hunter2-secret\n  B: {value: \
         x}\n",
        "  B: {value: x}\n",
    ),
    (
        "env:\n  A:\n    raw_secret: |2-\n      hunter2-secret\n\n  B: {value: x}\n",
        "  B: {value: x}\n",
    ),
    ("env:\n  A:\n    \"rawSecret\": \"hunter2-secret\"\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A:\n    'rawSecret' : 'hunter2-secret'\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A:\n    ? rawSecret\n    : hunter2-secret\n  B: 1\n", "? rawSecret\n"),
    ("env:\n  A:\n    ? \"rawSecret\"\n    : |\n     hunter2-secret\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A: {? rawSecret : hunter2-secret}\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A:\n    \"raw\\x53ecret\": hunter2-secret\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A: {\"raw\\u0053ecret\":hunter2-secret}\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A: {\"rawSecret\":\"hunter2-secret\"}\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A: {rawSecret:\n  hunter2-secret,\n  other: 1}\n  B: 1\n", "  other: 1}\n"),
    ("env:\n  A:\n    rawSecret:\n      hunter2-secret\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A:\n    rawSecret: \"hunter2-\\\n      secret\"\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A:\n    rawSecret: 'first\n\n      hunter2-secret'\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A:\n    rawSecret: first\n      hunter2-secret\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A:\n    rawSecret: !!str hunter2-secret\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A:\n    rawSecret: &a hunter2-secret\n  B: {rawSecret: *a}\n  C: 1\n", "  C: 1\n"),
    ("x: &a hunter2-secret\nenv:\n  B: {rawSecret: *a}\n  C: 1\n", "  C: 1\n"),
    ("x: &a {rawSecret: hunter2-secret}\nenv:\n  B: {<<: *a}\n  C: 1\n", "  C: 1\n"),
    ("env:\n  B:\n    <<: {rawSecret: hunter2-secret}\n    rawSecret: other\n  C: 1\n", "  C: 1\n"),
    ("x: &k rawSecret\nenv:\n  A:\n    *k : hunter2-secret\n  C: 1\n", "  C: 1\n"),
    ("values:\n- name: a\n  secret: {rawSecret: 'hunter2-secret'}\n- name: b\n", "- name: b\n"),
    ("values:\n- rawSecret: >\n    hunter2-secret\n- name: b\n", "- name: b\n"),
    ("env:\n  A: {rawSecrte: hunter2-secret}\n", "rawSecrte: "),
    ("values: [{name: a, secret: hunter2-secret}]\n", "name: a, secret: "),
    ("values: [{name: a, secret: {value: hunter2-secret}}]\n", "name: a, secret: {value: "),
    ("env: {A: {rawSecret: hunter2-secret}}  # was hunter2-secret before\n", "before"),
    ("env: {A: {value: x}}  # rawSecret: hunter2-secret\nB: 1\n", "B: 1\n"),
    ("# rawSecret: hunter2-secret\nB: 1\n", "B: 1\n"),
    ("env:\r\n  A:\r\n    rawSecret: hunter2-secret\r\n  B: 1\r\n", "  B: 1\r\n"),
    ("env:\n  ü: {rawSecret: hunter2-secret, ö: \"ä\"}\n", "ö: \"ä\"}"),
    // Not in quotes, so that YAML ends the value before what its writer thinks.
    ("env:\n  A:\n    rawSecret: first #hunter2-secret\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A:\n    rawSecret: first\n      second # hunter2-secret\n  B: 1\n", "  B: 1\n"),
    ("env:\n  A: {rawSecret: first,hunter2-secret}\n  B: 1\n", "A: {rawSecret: "),
    ("env:\n  A: {rawSecret: first, hunter2-secret, value: x}\n  B: 1\n", ", value: x}\n"),
    // The colon is missing.
    ("env:\n  A: {rawSecret hunter2-secret}\n  B: 1\n", "A: {rawSecret "),
    ("env:\n  A:\n    rawSecret hunter2-secret\n  B: 1\n", "    rawSecret "),
    // So is the blank behind it.
    ("env:\n  A: {rawSecret:'hunter2-secret'}\n  B: 1\n", "A: {rawSecret:'"),
    ("env:\n  A: {rawSecret:\"hunter2-secret\"}\n  B: 1\n", "A: {rawSecret:\""),
    // Where its name goes.
    ("env:\n  A: {kubernetesSecret: 'hunter2-secret'}\n  B: 1\n", "A: {kubernetesSecret: "),
    ("env:\n  A: {kubernetes_secret: hunter2-secret}\n  B: 1\n", "A: {kubernetes_secret: "),
    // No YAML at all.
    ("env:\n  A: {rawSecret: \"hunter2-secret}\n", "env:\n  A: "),
    ("env:\n  A:\n    rawSecret: |\n    \thunter2-secret\n  B: [\n", "  B: [\n"),
    ("env:\n  A:\n    ? rawSecret\n    : hunter2-secret\n  B: [\n", "  B: [\n"),
    ("env:\n  A:\n    \"raw\\x53ecret\": hunter2-secret\n  B: [\n", "  B: [\n"),
    ("env:\n  A: {rawSecret:\nhunter2-secret\n  B: [\n", "  B: [\n"),
];

#[test]
fn a_secret_is_hidden_however_it_is_written() {
    for (text, kept) in SPELLINGS {
        let shown = masked(text, &secrets(text), &[], |_| "***".to_owned());
        assert!(
            !shown.contains("hunter2") && !shown.contains("secret\"") && shown.contains("***"),
            "{text}\n--\n{shown}"
        );
        assert!(shown.contains(kept), "{text}\n--\n{shown}");
        let blank = blanked(text, &secrets(text));
        assert!(!blank.contains("hunter2"), "{text}\n--\n{blank}");
        assert_eq!(
            (blank.len(), blank.lines().count()),
            (text.len(), text.lines().count()),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_secret_is_shown() {
    for text in [
        "env: {A: {value: x}, SECRET: {secret: {key: db, version: 2}}, C: {kubernetesSecret: \
         {secretName: n, key: k}}}\n",
        "parameters: [{name: token, secret: {}}]\nvalues: [{name: token, secret: {secretRef: \
         {key: db}}}]\n",
        "volumes: [{name: v, source: {secret: {secretName: n}}}]\n",
    ] {
        assert_eq!(masked(text, &secrets(text), &[], |_| "***".to_owned()), text);
    }
}

#[test]
fn a_secret_has_a_path_by_which_it_is_known_again() {
    let found = secrets(
        "values:\n- name: a\n  secret: {rawSecret: one}\n- {name: b, secret: {raw_secret: two}}\n",
    );
    let told: Vec<_> =
        found.iter().map(|secret| (secret.path.as_str(), secret.value.as_str())).collect();
    assert_eq!(
        told,
        [("/values/a/secret/rawSecret", "one"), ("/values/b/secret/raw_secret", "two")]
    );
}

/// What the reader says of a runtime with this under `apply`.
fn told(apply: &str) -> String {
    let text = format!(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: local}}\n    \
         apply:\n{apply}      taskConfig: {{program: {{cmd: [x]}}}}\n"
    );
    let file = ConfigFile { path: "a.pvn.yaml".to_owned(), text, ..ConfigFile::default() };
    let problems = match super::super::read(&[file]) {
        Ok(documents) => super::super::check_references(&documents),
        Err(problems) => problems,
    };
    assert!(!problems.is_empty(), "{apply}");
    problems
        .iter()
        .map(|problem| format!("{}\n{:?}\n", problem.render(false), problem.to_api()))
        .collect()
}

#[test]
fn no_problem_shows_a_secret() {
    for apply in [
        "      env: {A: {rawSecret: hunter2-secret, value: x}}\n",
        "      env: {A: {rawSecrte: hunter2-secret}}\n",
        "      env: {A: {rawSecret: hunter2-secret}, A: {value: x}}\n",
        "      env: {A: {rawSecret: [hunter2-secret]}}\n",
        "      env: {A: {rawSecret: first,hunter2-secret}}\n",
        "      env: {A: {rawSecret hunter2-secret}}\n",
        "      env:\n        A:\n          rawSecret hunter2-secret\n",
        "      env:\n        A:\n          rawSecrt hunter2-secret\n",
        "      env: {A: {rawSecret: {x: hunter2-secret}}}\n",
        "      env: {A: {secret: hunter2-secret}}\n",
        "      env: {A: {secret: {value: hunter2-secret}}}\n",
        "      env: {A: {rawSecret: 'a {{hunter2-secret'}}\n",
        "      env: {A: {rawSecret: 'a {{ hunter2-secret }} b'}}\n",
        "      env: {A: {rawSecret: 'a {{.hunter2-secret}} b'}}\n",
        "      env: {A: {rawSecret: !hunter2-secret}}\n",
        "      env: {A: {rawSecret: &hunter2-secret }}\n",
        "      env: {A: {rawSecret: *hunter2-secret }}\n",
        "      env: {A: {rawSecret: \"hunter2-secret}}\n",
        "      env: {A: {rawSecret: @hunter2-secret}}\n",
        "      env: {A: {rawSecret: %hunter2-secret}}\n",
        "      env: {A: {rawSecret: hunter2-secret\u{7}}}\n",
        "      env: {1A: {rawSecret: hunter2-secret}}\n",
        "      nonsense: 1\n      env:\n        A:\n          rawSecret: |\n            \
         hunter2-secret\n       B: 1\n",
        "      env:\n        A:\n          rawSecret: {\n\"password\": \"hunter2-secret\"\n}\n",
        "      env:\n        A:\n          rawSecret: {\n\t\"password\": \"hunter2-secret\"\n}\n",
        "      env:\n        A:\n          rawSecret: |\n{\n\"password\": \"hunter2-secret\"\n}\n",
    ] {
        let told = told(apply);
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn no_problem_shows_what_stands_under_the_field_at_a_wrong_place() {
    let wrong = "{rawSecret: hunter2-secret}";
    let mut shown = Vec::new();
    let mut see = |told: String| {
        if told.contains("hunter2") {
            shown.push(told);
        }
    };
    for apply in [
        format!("      A: {wrong}\n"),
        format!("      env: [A: {wrong}]\n"),
        format!("      env: {wrong}\n"),
        format!("      env: {{A: {{value: {wrong}}}}}\n"),
        format!("      env: {{A: {{secret: {wrong}}}}}\n"),
        format!("      taskConfig: {wrong}\n"),
        "      env: {A: {rawSecret:hunter2-secret}}\n".to_owned(),
        "      A: {rawSecret:hunter2-secret}\n".to_owned(),
        "      env: {A: {rawSecret:'hunter2-secret'}}\n".to_owned(),
        "      env: {A: {rawSecret:\"hunter2-secret\"}}\n".to_owned(),
        "      env: {A: {rawSecret : 'hunter2-secret', rawSecret:'hunter2-secret'}}\n".to_owned(),
        "      env: {A: {kubernetesSecret: 'hunter2-secret'}}\n".to_owned(),
        "      env: {A: {\"rawSecret: hunter2-secret\"}}\n".to_owned(),
        "      env: {A: 'rawSecret: hunter2-secret'}\n".to_owned(),
        "      env: {A: rawSecret=hunter2-secret}\n".to_owned(),
        "      env:\n        - {name: A, rawSecret: hunter2-secret}\n".to_owned(),
        "      env: {A: {rawSecret: {hunter2: 1, hunter2: 2}}}\n".to_owned(),
        "      env: {A: {rawSecret: {hunter2-secret: {program: 1}}}}\n".to_owned(),
        "      env: {A: {rawSecret: {program: hunter2}}, hunter2: {value: x, value: y}}\n"
            .to_owned(),
        "      env: {A: {rawSecret: hunter2}, hunter2: {rawSecret: x}, B: {hunter2: x}}\n"
            .to_owned(),
    ] {
        see(told(&apply));
    }
    for text in [
        format!("A: {wrong}\n"),
        "rawSecret: hunter2-secret\n".to_owned(),
        "rawSecret:hunter2-secret\n".to_owned(),
        format!("runtime: {wrong}\n"),
        format!("runtime:\n  name: r\n  A: {wrong}\n"),
        format!("runtime:\n  name: {wrong}\n"),
        format!("application:\n  name: a\n  releaseChannels: [{wrong}]\n"),
        format!(
            "service:\n  name: s\n  application: a\n  parameters: [{wrong}]\n  customRuntime: \
             {{parameterValues: [{wrong}]}}\n"
        ),
        format!(
            "service:\n  name: s\n  application: a\n  constants: [{{name: x, value: {wrong}}}]\n"
        ),
    ] {
        let file = ConfigFile { path: "a.pvn.yaml".to_owned(), text, ..ConfigFile::default() };
        let problems = super::super::read(&[file]).unwrap_err();
        see(problems
            .iter()
            .map(|problem| format!("{}\n{:?}\n", problem.render(false), problem.to_api()))
            .collect());
    }
    assert!(shown.is_empty(), "{} of them\n{}", shown.len(), shown.join("\n----\n"));
}
