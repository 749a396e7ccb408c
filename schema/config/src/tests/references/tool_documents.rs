//! What is told without a server of the documents that services give to tools, and of the texts
//! beside them.

use crate::check_references;
use crate::tests::file;

/// Path and message of each problem of a service with these fields, its files beside it.
fn told(fields: &str, files: &[(&str, &str)]) -> Vec<String> {
    let text = format!(
        "service:\n  name: s\n  application: a\n  parameters: [{{name: tag, string: {{}}}}]\n\
         {fields}"
    );
    let attachments =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let read = crate::read(&[schema::api::ConfigFile { attachments, ..file(&text) }]).unwrap();
    let problems = check_references(&read);
    problems.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect()
}

/// A service with a document in each of the places that have one.
fn inlined(document: &str) -> Vec<(String, String)> {
    let document = document.replace('\n', "\n          ");
    let of = |path: &str, fields: &str| {
        let fields = fields.replace("DOCUMENT", &format!("|\n          {document}"));
        (path.to_owned(), fields)
    };
    vec![
        of("service.googleCloudRun.inlined", "  googleCloudRun:\n    inlined: DOCUMENT\n"),
        of(
            "service.awsEcs.taskDefinition.inlined",
            "  awsEcs:\n    taskDefinition:\n      inlined: DOCUMENT\n",
        ),
        of(
            "service.awsEcs.serviceDefinition.inlined",
            "  awsEcs:\n    taskDefinition: {inlined: '{}'}\n    serviceDefinition:\n      \
             inlined: DOCUMENT\n",
        ),
        of(
            "service.perReleaseChannel[0].awsEcs.taskDefinition.inlined",
            "  perReleaseChannel:\n  - releaseChannel: c\n    awsEcs:\n      \
             taskDefinition:\n        inlined: DOCUMENT\n",
        ),
    ]
}

#[test]
fn bad_input_a_document_for_a_tool_is_told_without_a_server() {
    let one = "exactly one document with fields is expected here, found";
    for (document, messages) in [
        ("{family: web, image: '{{.Params.tag}}'}", vec![]),
        ("[{family: web}]", vec![format!("{one} a list")]),
        ("web.json", vec![format!("{one} a text without fields")]),
        ("# nothing", vec![format!("{one} nothing")]),
        ("a: 1\n---\nb: 2", vec![format!("{one} 2 documents")]),
        (
            "{family: a, b: [{c: 1, c: 2}], family: b}",
            vec!["`c` is given twice".to_owned(), "`family` is given twice".to_owned()],
        ),
        ("a: '{{.Params.nobody}}'", vec!["undefined name `{{.Params.nobody}}`".to_owned()]),
        ("a: [", vec!["malformed YAML: ".to_owned()]),
    ] {
        for (path, fields) in inlined(document) {
            let told = told(&fields, &[]);
            assert_eq!(told.len(), messages.len(), "{fields}: {told:?}");
            for message in &messages {
                let start = format!("{path}: {message}");
                assert!(told.iter().any(|told| told.starts_with(&start)), "{start}: {told:?}");
            }
        }
    }
}

#[test]
fn a_document_of_a_file_of_its_own_is_told_with_its_line() {
    let ecs = "  awsEcs: {taskDefinition: {local: {path: task.json}}}\n";
    let twice = "{\n\"family\": \"a\",\n\"family\": \"b\"\n}\n";
    assert_eq!(
        told(ecs, &[("task.json", twice)]),
        ["service.awsEcs.taskDefinition.local: `family` is given twice (`task.json`, line 3)"]
    );
    let run = "  googleCloudRun: {local: {path: run}}\n";
    let two = [("run/a.yaml", "a: 1\n"), ("run/b.yaml", "b: 1\n")];
    let told = told(run, &two);
    assert!(told[0].contains("found 2 documents (`run/a.yaml`, line 1)"), "{told:?}");
}

#[test]
fn a_document_that_is_too_long_for_a_program_is_told_at_its_field() {
    let document = format!("{{a: {}}}", "x".repeat(128 << 10));
    for (path, fields) in inlined(&document) {
        let told = told(&fields, &[]);
        let start = format!("{path}: this is 131080 bytes long as it is given to the tool");
        assert!(told.len() == 1 && told[0].starts_with(&start), "{told:?}");
    }
}

#[test]
fn the_texts_of_a_block_are_looked_at_too() {
    let block = "  terraform:\n    path: '{{.Params.nobody}}'\n    backendConfig: {key: \
                 '{{.Params.none}}'}\n  perReleaseChannel:\n  - releaseChannel: c\n    terraform: \
                 {path: '{{.Params.tga}}'}\n";
    let undefined =
        |path: &str, name: &str| format!("service.{path}: undefined name `{{{{.Params.{name}}}}}`");
    assert_eq!(
        told(block, &[]),
        [
            undefined("terraform.path", "nobody"),
            undefined("terraform.backendConfig.key", "none"),
            undefined("perReleaseChannel[0].terraform.path", "tga"),
        ]
    );
}
