//! A compiled JSON Schema and what it finds in a document. Arrays are checked item by item, so that
//! the number of problems held at any moment is bounded whatever the document.

use serde_json::{Map, Value};
use url::Url;
use valico::json_schema::SchemaVersion;
use valico::json_schema::schema::{ScopedSchema, WalkContext};
use valico::json_schema::scope::Scope;
use valico::json_schema::validators::{BoxedValidator, ValidationState};

use super::problem::{Notation, Problem, ValueFault, cut, found_words, pointer_segment};

mod formats;

use formats::{FORMATS, as_validator, failed};

/// Most unknown fields of one object that are looked at, so that a hostile object costs no more
/// than its own size.
const UNKNOWN_FIELDS: usize = 20;

/// The id under which a schema is compiled. Nothing is ever fetched from it; without one valico
/// would draw a random one.
const SCHEMA_ID: &str = "json-schema://pvn/document";

/// A compiled schema.
#[derive(Debug)]
pub struct Checker {
    schema: Value,
    scope: Scope,
    id: Url,
}

/// A part of the schema: where it is and what it says, with references followed.
#[derive(Clone)]
pub struct SchemaNode<'a> {
    location: String,
    pub says: &'a Map<String, Value>,
}

impl SchemaNode<'_> {
    /// Pointer of it in the schema: of a message `/definitions/` and its name.
    pub fn location(&self) -> &str {
        &self.location
    }
}

impl Checker {
    /// Compiles a schema of ours from its JSON text.
    ///
    /// # Panics
    /// When the schema is not one that valico takes; a test compiles every one.
    pub fn from_text(text: &str) -> Self {
        Self::new(serde_json::from_str(text).expect("our schemas are JSON"))
    }

    /// Compiles a schema of ours.
    ///
    /// # Panics
    /// When the schema is not one that valico takes; a test compiles every one.
    pub fn new(schema: Value) -> Self {
        let mut scope = Scope::with_formats(
            |formats| {
                for (name, rule) in FORMATS {
                    formats.insert(
                        (*name).to_owned(),
                        Box::new(move |_: &Value, _: &WalkContext<'_>| {
                            Ok(Some(as_validator(*rule)))
                        }),
                    );
                }
            },
            SchemaVersion::Draft7,
        );
        add_groups(&mut scope);
        let id = Url::parse(SCHEMA_ID).expect("the constant is a URL");
        scope.compile_with_id(&id, schema.clone(), false).expect("our schemas compile");
        Self { schema, scope, id }
    }

    /// Every problem of `document`, outer ones first, at most `limit`.
    pub fn check(&self, document: &Value, limit: usize) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some((root, schema)) =
            self.root().and_then(|root| self.compiled(&root).map(|schema| (root, schema)))
        {
            self.check_part(document, &root, &schema, String::new(), limit, &mut problems);
        }
        problems.truncate(limit);
        problems
    }

    fn compiled(&self, node: &SchemaNode<'_>) -> Option<ScopedSchema<'_>> {
        let mut url = self.id.clone();
        url.set_fragment(Some(node.location.as_str()).filter(|location| !location.is_empty()));
        self.scope.resolve(&url)
    }

    fn check_part(
        &self,
        part: &Value,
        node: &SchemaNode<'_>,
        schema: &ScopedSchema<'_>,
        pointer: String,
        limit: usize,
        problems: &mut Vec<Problem>,
    ) {
        let mut lists = Vec::new();
        let hollow = self.hollow(part, node, &mut pointer.clone(), &mut lists);
        let found = schema.validate_in(&hollow, &pointer).errors;
        let mut here: Vec<Problem> = found
            .iter()
            .map(|error| self.problem(error.as_ref(), part, node, pointer.len()))
            .collect();
        // valico goes through keywords in random order; and a text that breaks its length and its
        // pattern broke one rule for people.
        here.sort_by(|a, b| {
            a.pointer
                .cmp(&b.pointer)
                .then_with(|| a.fault.words(Notation::Json).cmp(&b.fault.words(Notation::Json)))
        });
        here.dedup();
        problems.extend(here);
        for (items, node, pointer) in lists {
            let Some(schema) = self.compiled(&node) else { continue };
            for (index, item) in items.iter().enumerate() {
                if problems.len() >= limit {
                    return;
                }
                let mut pointer = pointer.clone();
                pointer_segment(&mut pointer, &index.to_string());
                self.check_part(item, &node, &schema, pointer, limit, problems);
            }
        }
    }

    /// A copy of `part` with every array empty, keys as pointer segments, and no more than
    /// [`UNKNOWN_FIELDS`] fields that the schema does not know. The arrays, with the schema of
    /// their items, go to `lists`.
    fn hollow<'d, 's>(
        &'s self,
        part: &'d Value,
        node: &SchemaNode<'s>,
        pointer: &mut String,
        lists: &mut Vec<(&'d [Value], SchemaNode<'s>, String)>,
    ) -> Value {
        match part {
            Value::Array(items) => {
                if let Some(node) = self.item(node) {
                    lists.push((items, node, pointer.clone()));
                }
                Value::Array(Vec::new())
            }
            Value::Object(members) => {
                let mut copy = Map::new();
                let mut unknown = 0;
                for (key, member) in members {
                    let length = pointer.len();
                    pointer_segment(pointer, key);
                    let name = pointer[length + 1..].to_owned();
                    match self.member(node, key) {
                        Some(node) => {
                            copy.insert(name, self.hollow(member, &node, pointer, lists));
                        }
                        None => {
                            unknown += 1;
                            if unknown <= UNKNOWN_FIELDS {
                                copy.insert(name, Value::Null);
                            }
                        }
                    }
                    pointer.truncate(length);
                }
                Value::Object(copy)
            }
            scalar => scalar.clone(),
        }
    }

    /// Takes out every member that is `null` and that the schema knows and does not require: null
    /// equals absent.
    pub fn drop_nulls(&self, document: &mut Value) {
        if let Some(root) = self.root() {
            self.drop_nulls_in(document, &root);
        }
    }

    fn drop_nulls_in(&self, part: &mut Value, node: &SchemaNode<'_>) {
        match part {
            Value::Array(items) => {
                if let Some(node) = self.item(node) {
                    items.iter_mut().for_each(|item| self.drop_nulls_in(item, &node));
                }
            }
            Value::Object(members) => {
                members.retain(|key, member| {
                    !member.is_null()
                        || self.member(node, key).is_none()
                        || required(node).any(|name| name == key)
                });
                for (key, member) in members {
                    if let Some(node) = self.member(node, key) {
                        self.drop_nulls_in(member, &node);
                    }
                }
            }
            Value::Number(number) => {
                // A whole number may be written `3.0`; the types read it as `3`.
                let whole = number.as_f64().filter(|value| {
                    number.is_f64() && value.fract() == 0.0 && value.abs() < 9.0e15
                });
                if let Some(whole) = whole
                    .filter(|_| node.says.get("type").and_then(Value::as_str) == Some("integer"))
                {
                    #[expect(
                        clippy::cast_possible_truncation,
                        reason = "below 2^53 and whole, so it is exact"
                    )]
                    let whole = whole as i64;
                    *part = whole.into();
                }
            }
            _ => {}
        }
    }

    /// Calls `see` with pointer, place of the definition in the schema, and value, for every object
    /// that the schema knows.
    pub fn visit(&self, document: &Value, see: &mut dyn FnMut(&str, &str, &Value)) {
        if let Some(root) = self.root() {
            self.visit_in(document, &root, &mut String::new(), see);
        }
    }

    fn visit_in(
        &self,
        part: &Value,
        node: &SchemaNode<'_>,
        pointer: &mut String,
        see: &mut dyn FnMut(&str, &str, &Value),
    ) {
        let mut go = |name: &str, value: &Value, node: Option<SchemaNode<'_>>| {
            if let Some(node) = node {
                let length = pointer.len();
                pointer_segment(pointer, name);
                self.visit_in(value, &node, pointer, see);
                pointer.truncate(length);
            }
        };
        match part {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, item)| go(&index.to_string(), item, self.item(node))),
            Value::Object(members) => {
                members.iter().for_each(|(name, member)| go(name, member, self.member(node, name)));
                see(pointer, &node.location, part);
            }
            _ => {}
        }
    }

    /// The whole schema.
    pub fn root(&self) -> Option<SchemaNode<'_>> {
        self.follow(String::new(), &self.schema)
    }

    /// The schema of a member of an object, by its exact name.
    pub fn member(&self, node: &SchemaNode<'_>, key: &str) -> Option<SchemaNode<'_>> {
        let says = self.at(&node.location)?;
        if let Some(property) = says.get("properties").and_then(|properties| properties.get(key)) {
            return self.follow(format!("{}/properties/{key}", node.location), property);
        }
        let rest = says.get("additionalProperties").filter(|rest| rest.is_object())?;
        self.follow(format!("{}/additionalProperties", node.location), rest)
    }

    /// The schema of an array's items.
    pub fn item(&self, node: &SchemaNode<'_>) -> Option<SchemaNode<'_>> {
        let items = self.at(&node.location)?.get("items")?;
        self.follow(format!("{}/items", node.location), items)
    }

    fn at(&self, location: &str) -> Option<&Value> {
        self.schema.pointer(location)
    }

    /// Follows references; schemars writes a description beside one as `allOf` of the one
    /// reference.
    fn follow<'s>(&'s self, mut location: String, mut schema: &'s Value) -> Option<SchemaNode<'s>> {
        /// References to references: our schemas have two at most.
        const HOPS: usize = 8;
        for _ in 0..HOPS {
            let says = schema.as_object()?;
            if let Some(reference) = says.get("$ref").and_then(Value::as_str) {
                location = reference.strip_prefix('#')?.to_owned();
            } else if let Some([_]) = says.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
            {
                location.push_str("/allOf/0");
            } else {
                return Some(SchemaNode { location, says });
            }
            schema = self.at(&location)?;
        }
        None
    }

    /// The schema at a pointer relative to `node`.
    fn below(&self, node: &SchemaNode<'_>, pointer: &str) -> Option<SchemaNode<'_>> {
        let mut below = self.follow(node.location.clone(), self.at(&node.location)?)?;
        for segment in pointer.split('/').skip(1) {
            let key = segment.replace("~1", "/").replace("~0", "~");
            below = self.member(&below, &key)?;
        }
        Some(below)
    }

    fn problem(
        &self,
        error: &dyn valico::common::error::ValicoError,
        part: &Value,
        node: &SchemaNode<'_>,
        base: usize,
    ) -> Problem {
        let pointer = error.get_path().to_owned();
        let below = pointer.get(base..).unwrap_or_default();
        let value = || part.pointer(below).cloned().unwrap_or(Value::Null);
        let says =
            |name: &str| self.below(node, below).and_then(|node| node.says.get(name).cloned());
        let text = |name: &str| says(name).and_then(|value| value.as_str().map(str::to_owned));
        let fault = match error.get_code() {
            "wrong_type" => {
                ValueFault::Type { expected: text("type").unwrap_or_default(), found: value() }
            }
            "required" => ValueFault::Missing {
                field: below.rsplit('/').next().unwrap_or_default().to_owned(),
            },
            "properties" => {
                // The key stands in the detail only: "Additional property 'KEY' is not allowed".
                let detail = error.get_detail().unwrap_or_default();
                let name = detail
                    .find('\'')
                    .zip(detail.rfind('\''))
                    .and_then(|(from, to)| detail.get(from + 1..to))
                    .unwrap_or_default();
                let known = says("properties")
                    .and_then(|known| Some(known.as_object()?.keys().cloned().collect()))
                    .unwrap_or_default();
                let field = name.replace("~1", "/").replace("~0", "~");
                return Problem {
                    pointer: format!("{pointer}/{name}"),
                    fault: ValueFault::Unknown { field, known },
                };
            }
            "enum" | "const" => {
                let allowed = says("enum")
                    .and_then(|words| serde_json::from_value(words).ok())
                    .unwrap_or_default();
                ValueFault::Word { found: value(), allowed }
            }
            "min_length" | "max_length" | "pattern" => {
                ValueFault::Rule(match text("patternErrorMessage") {
                    Some(rule) => format!(
                        "{} is not allowed here: {rule}",
                        found_words(&value(), Notation::Yaml)
                    ),
                    None if error.get_code() == "min_length" => "must not be empty".to_owned(),
                    None => format!(
                        "`{}` does not fit {}",
                        cut(value().as_str().unwrap_or_default()),
                        text("pattern").unwrap_or_default()
                    ),
                })
            }
            "minimum" | "maximum" => {
                let limits = (says("minimum"), says("maximum"));
                ValueFault::Rule(match limits {
                    (Some(least), Some(most)) => {
                        format!("must be from {least} to {most}, found {}", value())
                    }
                    (Some(least), None) => format!("must be at least {least}, found {}", value()),
                    (_, most) => {
                        format!("must be at most {}, found {}", most.unwrap_or_default(), value())
                    }
                })
            }
            "format" => ValueFault::Rule(error.get_detail().unwrap_or_default().to_owned()),
            // Our schemas use no other keyword; if one is added, this is honest until it has words
            // of its own.
            other => ValueFault::Rule(format!("breaks the rule `{other}` of the schema")),
        };
        Problem { pointer, fault }
    }
}

fn required<'a>(node: &'a SchemaNode<'_>) -> impl Iterator<Item = &'a str> {
    node.says
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Keywords of our own: `x-exactlyOne` and `x-atMostOne` name the fields of a group;
/// `propertyNames` gives the place of the key where valico's gives none.
fn add_groups(scope: &mut Scope) {
    for (keyword, one_is_needed) in [("x-exactlyOne", true), ("x-atMostOne", false)] {
        scope.add_keyword(vec![keyword], move |schema: &Value, _: &WalkContext<'_>| {
            let fields: Vec<String> =
                schema.get(keyword).and_then(|fields| serde_json::from_value(fields.clone()).ok()).unwrap_or_default();
            let check = move |value: &Value, path: &str, _: &Scope, _: &ValidationState| match group(value, &fields, one_is_needed) {
                Some(detail) => failed(path.to_owned(), detail),
                None => ValidationState::new(),
            };
            Ok(Some(Box::new(check) as BoxedValidator))
        });
    }
    scope.add_keyword(vec!["propertyNames"], |_: &Value, _: &WalkContext<'_>| {
        let check = |value: &Value, path: &str, _: &Scope, _: &ValidationState| {
            let mut state = ValidationState::new();
            for key in
                value.as_object().into_iter().flat_map(Map::keys).filter(|key| !is_env_key(key))
            {
                let detail = format!(
                    "`{}` is not the key of an environment variable: letters, digits and `_`, not \
                     starting with a digit",
                    cut(key)
                );
                state.append(failed(format!("{path}/{key}"), detail));
            }
            state
        };
        Ok(Some(Box::new(check) as BoxedValidator))
    });
}

/// `^[a-zA-Z_][a-zA-Z0-9_]*$`, the only rule for keys that our schemas have.
fn is_env_key(key: &str) -> bool {
    !key.starts_with(|c: char| c.is_ascii_digit())
        && !key.is_empty()
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn group(value: &Value, fields: &[String], one_is_needed: bool) -> Option<String> {
    let object = value.as_object()?;
    let given: Vec<&str> =
        fields.iter().map(String::as_str).filter(|field| object.contains_key(*field)).collect();
    let quoted = |names: &[&str]| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let all = quoted(&fields.iter().map(String::as_str).collect::<Vec<_>>());
    let rule = if one_is_needed { "exactly one" } else { "at most one" };
    match given.as_slice() {
        [] if one_is_needed => Some(format!("exactly one of {all} is needed; none is given")),
        [] | [_] => None,
        [_, _] if fields.len() == 2 => Some(format!("{rule} of {all}; both are given")),
        many => Some(format!("{rule} of {all}; {} are given", quoted(many))),
    }
}
