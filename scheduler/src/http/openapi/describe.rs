//! What a handler's types say about its operation: parameters and body from its arguments, answers
//! from its result.

use std::future::Future;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, NoContent, Response};
use schema::api::Problem;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::Operation;
use crate::http::Api;
use crate::http::error::{PROBLEM, Result};

/// An argument of a handler.
pub(in crate::http) trait HandlerInput {
    /// Adds what it asks of a request.
    fn describe(_: &mut Operation<'_>) {}
}

/// A result of a handler.
pub(in crate::http) trait HandlerOutput {
    /// Adds what it answers.
    fn describe(operation: &mut Operation<'_>);
}

/// A handler whose arguments and result are described.
pub(in crate::http) trait Described<I, O> {
    /// Adds all of them.
    fn describe(operation: &mut Operation<'_>);
}

macro_rules! described {
    ($($argument:ident)*) => {
        impl<F, R, $($argument,)*> Described<($($argument,)*), R::Output> for F
        where
            F: Fn($($argument),*) -> R,
            R: Future,
            R::Output: HandlerOutput,
            $($argument: HandlerInput,)*
        {
            fn describe(operation: &mut Operation<'_>) {
                $($argument::describe(operation);)*
                R::Output::describe(operation);
            }
        }
    };
}

described!();
described!(A1);
described!(A1 A2);
described!(A1 A2 A3);
described!(A1 A2 A3 A4);
described!(A1 A2 A3 A4 A5);

impl HandlerInput for State<Api> {}
impl HandlerInput for HeaderMap {}
impl HandlerInput for Request {}

impl<T: JsonSchema> HandlerOutput for Json<T> {
    fn describe(operation: &mut Operation<'_>) {
        let schema = operation.schemas.subschema_for::<T>().to_value();
        operation.answer("200", "Done; the answer.", Some(("application/json", schema)));
    }
}

impl HandlerOutput for NoContent {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer("204", "Done; nothing to add.", None);
    }
}

/// An answer that is the bytes of a file.
pub(in crate::http) struct FileBytes(pub(in crate::http) Response);

impl IntoResponse for FileBytes {
    fn into_response(self) -> Response {
        self.0
    }
}

impl HandlerOutput for FileBytes {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer("200", "The bytes.", Some(("application/octet-stream", json!({}))));
    }
}

/// An answer that the handler makes by hand describes itself by what it is wrapped in.
impl HandlerOutput for Response {
    fn describe(_: &mut Operation<'_>) {}
}

impl<T: HandlerOutput> HandlerOutput for Result<T> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
        let schema = operation.schemas.subschema_for::<Problem>().to_value();
        operation.answer(
            "default",
            "What went wrong and what to do next (RFC 9457).",
            Some((PROBLEM, schema)),
        );
    }
}

/// Parameters, `place` being `path` or `query`, from the fields of a struct.
pub(in crate::http) fn parameters<T: JsonSchema>(operation: &mut Operation<'_>, place: &str) {
    let schema = T::json_schema(operation.schemas).to_value();
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let parameters = operation.members.entry("parameters").or_insert_with(|| json!([]));
    let parameters = parameters.as_array_mut().expect("only lists are put here");
    for (name, mut field) in fields {
        let description = field
            .as_object_mut()
            .and_then(|field| field.remove("description"))
            .unwrap_or_else(|| "".into());
        let required = required.contains(&name.as_str());
        parameters.push(json!({
            "name": name, "in": place, "required": required, "description": description,
            "schema": field,
        }));
    }
}

pub(in crate::http) fn body<T: JsonSchema>(operation: &mut Operation<'_>) {
    let schema = operation.schemas.subschema_for::<T>().to_value();
    operation.members.insert(
        "requestBody".to_owned(),
        json!({"required": false, "content": {"application/json": {"schema": schema}}}),
    );
}
