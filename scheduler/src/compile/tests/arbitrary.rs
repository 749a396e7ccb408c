//! Documents that nobody would write, made from the schema itself: whatever passes the reader can
//! be checked, compiled and shown without a panic. The values are those that break programs: empty,
//! long, twice, templates, other scripts, edges of numbers.

use config;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

const SCHEMA: &str = include_str!("../../../../schema/json/config.json");

/// Names that documents find each other by, one that is built in among them.
const NAMES: &[&str] =
    &["local", "a", "b", "a-b", "x0123456789012345678901234567890123456789012345678901234567890-z"];

/// Texts for where the schema asks for nothing in particular.
const TEXTS: &[&str] = &[
    "",
    " ",
    "a",
    "\u{0}",
    "\n\n\u{2028}",
    "{{",
    "{{.Params.a}}",
    "{{.Params.a.Tag}}",
    "{{.Constants.b}}{{.Builtins.Runtime.Labels.a}}",
    "{{\"{{\"}}",
    "{{.Builtins.Group}}",
    "{{.Builtins.Runtime.Name}}",
    "a=b +(-@type=local)",
    "@group=a",
    "((((((((",
    "-1",
    "9223372036854775808",
    "9999-12-31T23:59:59-01:00",
    "٣",
    "e\u{301}\u{202e}\u{1f469}\u{200d}\u{1f4bb}",
    "/",
    "../../..",
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {containers: \
     [{name: c, image: i}], restartPolicy: Never}}}\n",
    "apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {containers: [{}, 1, null]}}}\n",
    "- &a [*a]",
];

const DURATIONS: &[&str] = &["1ms", "0s", "1s", "876000h", "999999999999h", "1.5s", "-1s"];
const CRONS: &[&str] = &[
    "* * * * *",
    "0 0 31 2 *",
    "0 0 29 2 1",
    "0 30 2 * * *",
    "* * * * * * 2100",
    "60 * * * *",
    "@daily",
];
const ZONES: &[&str] = &["UTC", "Pacific/Apia", "Europe/Berlin", "Mars"];

/// Answers to "which", one byte each; zeros for ever when they are used up, which end lists and
/// leave out fields.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        usize::from(*self.0.next().unwrap_or(&0)) % count.max(1)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A value that the schema may take.
fn value(schema: &Value, root: &Value, choices: &mut Choices<'_>, depth: usize) -> Value {
    if let Some(pointer) = schema["$ref"].as_str() {
        return value(root.pointer(&pointer[1..]).unwrap(), root, choices, depth);
    }
    if let Some(inner) = schema["allOf"]
        .as_array()
        .and_then(|all| all.iter().find(|inner| inner.get("$ref").is_some()))
        && schema.get("properties").is_none()
    {
        return value(inner, root, choices, depth);
    }
    if let Some(words) = schema["enum"].as_array() {
        return words[choices.below(words.len())].clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or_default();
    match kind {
        "object" => object(schema, root, choices, depth),
        "array" => {
            let count = if depth > 12 { 0 } else { choices.of(&[0, 1, 1, 2, 3]) };
            (0..count).map(|_| value(&schema["items"], root, choices, depth + 1)).collect()
        }
        "integer" => choices.of(&[0, 1, -1, 75, 255, i64::MAX, i64::from(i32::MAX)]).into(),
        "boolean" => json!(choices.below(2) == 1),
        _ => text(schema, choices).into(),
    }
}

fn object(schema: &Value, root: &Value, choices: &mut Choices<'_>, depth: usize) -> Value {
    let mut made = Map::new();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let exactly_one = schema.get("allOf").is_some();
    if let Some(fields) = schema["properties"].as_object() {
        let names: Vec<&String> = fields.keys().collect();
        let picked = choices.below(names.len());
        for (index, name) in names.into_iter().enumerate() {
            // Of most groups only one may be there; which ones are groups is for the reader to say.
            let wanted = required.contains(&name.as_str())
                || if exactly_one { index == picked } else { depth < 12 && choices.below(4) == 3 };
            if wanted {
                made.insert(name.clone(), value(&fields[name], root, choices, depth + 1));
            }
        }
    } else if schema["additionalProperties"].is_object() && depth < 12 {
        for _ in 0..choices.below(3) {
            let key = choices.of(&["A", "b", "PVN_JOB_ID", "PATH", "_"]);
            made.insert(
                key.to_owned(),
                value(&schema["additionalProperties"], root, choices, depth + 1),
            );
        }
    }
    Value::Object(made)
}

fn text(schema: &Value, choices: &mut Choices<'_>) -> String {
    match schema["format"].as_str() {
        Some("pvn-duration") => return choices.of(DURATIONS).to_owned(),
        Some("pvn-cron") => return choices.of(CRONS).to_owned(),
        Some("pvn-timezone") => return choices.of(ZONES).to_owned(),
        _ => {}
    }
    if schema.get("pattern").is_some() {
        return choices.of(NAMES).to_owned();
    }
    let text = choices.of(TEXTS);
    if choices.below(40) == 39 { text.repeat(10_000) } else { text.to_owned() }
}

/// Everything that becomes of documents before a job is started.
fn use_documents(texts: &[String]) -> usize {
    let mut documents = Vec::new();
    for text in texts {
        let file = ConfigFile {
            path: "a.pvn.yaml".to_owned(),
            text: text.clone(),
            ..ConfigFile::default()
        };
        config::masked(text, &config::secrets(text), &[], |_| "***".to_owned());
        match config::read(&[file]) {
            Ok(found) => documents.extend(found),
            Err(problems) => problems.iter().for_each(|problem| drop(problem.to_api())),
        }
    }
    for problem in config::check_references(&documents) {
        drop(problem.to_api());
    }
    let passed = documents.len();
    let mut configs = Configs::default();
    documents.into_iter().for_each(|document| configs.put(document));
    for options in [Options::default(), Options { everything_local: true }] {
        drop(check(&configs, &options, None));
        for service in configs.services() {
            let Some(application) = configs.application(&service.application) else { continue };
            let Ok(channels) = super::super::channels(&configs, application) else { continue };
            let Ok(values) = sound(super::super::values(
                &configs,
                service,
                &channels,
                &request("a=b b=1"),
                None,
                &Brackets,
            )) else {
                continue;
            };
            let id = ReleaseId::from_bytes([7; 16]);
            let release = Release {
                id,
                version: "v",
                released_at: Timestamp::from_millis(i64::MAX),
                values: &values,
            };
            for channel in &channels {
                drop(compile(&configs, &options, service, channel, &release, &Brackets));
            }
        }
    }
    passed
}

fn document(kind: &str, root: &Value, bytes: &[u8]) -> String {
    let body = value(&root["properties"][kind], root, &mut Choices(bytes.iter()), 0);
    json!({kind: body}).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_passes_the_reader_never_panics(
        runtimes in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 1..4),
        application in proptest::collection::vec(any::<u8>(), 0..120),
        services in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 1..4),
    ) {
        let root: Value = serde_json::from_str(SCHEMA).unwrap();
        let mut texts: Vec<_> = runtimes.iter().map(|bytes| document("runtime", &root, bytes)).collect();
        texts.push(document("application", &root, &application));
        texts.extend(services.iter().map(|bytes| document("service", &root, bytes)));
        use_documents(&texts);
    }

    #[test]
    fn a_document_with_any_one_value_changed_never_panics(
        at in any::<prop::sample::Index>(),
        poison in 0..TEXTS.len(),
        twice in any::<bool>(),
    ) {
        let mut texts: Vec<String> = SMALL.split("---").map(str::to_owned).collect();
        let words: Vec<_> = SMALL.split("---").enumerate().flat_map(|(index, text)| {
            text.split_whitespace().map(move |word| (index, word.to_owned())).collect::<Vec<_>>()
        }).collect();
        let (index, word) = &words[at.index(words.len())];
        let poison = TEXTS[poison];
        let other = if twice { format!("{word} {word}") } else { poison.to_owned() };
        texts[*index] = texts[*index].replacen(word.as_str(), &other, 1);
        use_documents(&texts);
    }
}

/// What is made is not all refused: the walk above reaches the compiler.
#[test]
fn enough_of_what_is_made_passes_the_reader() {
    let root: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut passed = 0;
    for seed in 0..400_u32 {
        let bytes: Vec<u8> = (0..40_u32)
            .map(|at| {
                (seed.wrapping_mul(2_654_435_761).wrapping_add(at.wrapping_mul(40_503)) >> 11) as u8
            })
            .collect();
        let kind = ["runtime", "application", "service"][seed as usize % 3];
        passed += use_documents(&[document(kind, &root, &bytes)]);
    }
    assert!(passed > 40, "{passed} of 400");
}
