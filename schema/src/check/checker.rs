//! A compiled JSON Schema and what it finds in a document. Arrays are checked item by item, so that
//! the number of problems held at any moment is bounded whatever the document.

use serde_json::{Map, Value};
use url::Url;
use valico::json_schema::SchemaVersion;
use valico::json_schema::schema::ScopedSchema;
use valico::json_schema::scope::Scope;

use super::problem::{Notation, Problem, pointer_segment};

mod faults;
mod formats;
mod keywords;

pub use formats::FormatRule;

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
        Self::new(serde_json::from_str(text).expect("our schemas are JSON"), &[])
    }

    /// Compiles a schema of ours. `own_formats`: what it asks for by `format` that no other does.
    ///
    /// # Panics
    /// When the schema is not one that valico takes; a test compiles every one.
    pub fn new(schema: Value, own_formats: &'static [(&'static str, FormatRule)]) -> Self {
        let mut scope = Scope::without_formats(SchemaVersion::Draft7);
        formats::add_to(&mut scope, own_formats);
        keywords::add_to(&mut scope);
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
}

fn required<'a>(node: &'a SchemaNode<'_>) -> impl Iterator<Item = &'a str> {
    node.says
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}
