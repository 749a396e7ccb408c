//! Routes with their description: a route is added together with what its OpenAPI operation says,
//! and its parameters, body and answer are read off the handler's own types. So nothing is served
//! that the document does not have.

mod describe;

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::header;
use axum::routing::{MethodFilter, get, on};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::Api;
pub(super) use describe::{Described, FileBytes, HandlerInput, HandlerOutput, body, parameters};

/// Where the document is served.
const PATH: &str = "/openapi.json";

/// What a route does, in words.
pub(super) struct RouteDescription {
    /// A name that never changes: generated clients call their functions by it.
    pub(super) id: &'static str,
    /// The resource.
    pub(super) tag: &'static str,
    /// One line.
    pub(super) summary: &'static str,
    /// More, where the line is not enough.
    pub(super) description: &'static str,
}

/// A route's description without more than a line.
pub(super) const fn about(
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
) -> RouteDescription {
    RouteDescription { id, tag, summary, description: "" }
}

/// An operation of the document, while it is being made.
pub(super) struct Operation<'a> {
    /// Makes the schemas of bodies and keeps their definitions.
    pub(super) schemas: &'a mut SchemaGenerator,
    /// The operation's members.
    pub(super) members: Map<String, Value>,
}

/// The routes so far, and the document that describes them.
pub(super) struct Routes {
    router: Router<Api>,
    schemas: SchemaGenerator,
    paths: Map<String, Value>,
}

impl Routes {
    /// None yet.
    pub(super) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self { router: Router::new(), schemas: settings.into_generator(), paths: Map::new() }
    }

    /// Adds a `GET`.
    pub(super) fn get<H: Handler<T, Api> + Described<I, O>, T: 'static, I, O>(
        self,
        path: &str,
        handler: H,
        about: RouteDescription,
    ) -> Self {
        self.add(MethodFilter::GET, "get", path, handler, about)
    }

    /// Adds a `POST`.
    pub(super) fn post<H: Handler<T, Api> + Described<I, O>, T: 'static, I, O>(
        self,
        path: &str,
        handler: H,
        about: RouteDescription,
    ) -> Self {
        self.add(MethodFilter::POST, "post", path, handler, about)
    }

    /// Adds a `PUT`.
    pub(super) fn put<H: Handler<T, Api> + Described<I, O>, T: 'static, I, O>(
        self,
        path: &str,
        handler: H,
        about: RouteDescription,
    ) -> Self {
        self.add(MethodFilter::PUT, "put", path, handler, about)
    }

    /// Adds a `PATCH`.
    pub(super) fn patch<H: Handler<T, Api> + Described<I, O>, T: 'static, I, O>(
        self,
        path: &str,
        handler: H,
        about: RouteDescription,
    ) -> Self {
        self.add(MethodFilter::PATCH, "patch", path, handler, about)
    }

    /// Adds a `HEAD` where there is no `GET`.
    pub(super) fn head<H: Handler<T, Api> + Described<I, O>, T: 'static, I, O>(
        self,
        path: &str,
        handler: H,
        about: RouteDescription,
    ) -> Self {
        self.add(MethodFilter::HEAD, "head", path, handler, about)
    }

    /// Adds a `DELETE`.
    pub(super) fn delete<H: Handler<T, Api> + Described<I, O>, T: 'static, I, O>(
        self,
        path: &str,
        handler: H,
        about: RouteDescription,
    ) -> Self {
        self.add(MethodFilter::DELETE, "delete", path, handler, about)
    }

    fn add<H: Handler<T, Api> + Described<I, O>, T: 'static, I, O>(
        mut self,
        filter: MethodFilter,
        method: &str,
        path: &str,
        handler: H,
        about: RouteDescription,
    ) -> Self {
        let mut operation = Operation { schemas: &mut self.schemas, members: Map::new() };
        operation.members.insert("operationId".to_owned(), about.id.into());
        operation.members.insert("tags".to_owned(), json!([about.tag]));
        operation.members.insert("summary".to_owned(), about.summary.into());
        operation.explain(about.description);
        H::describe(&mut operation);
        let members = operation.members;
        let entry = self.paths.entry(path.to_owned()).or_insert_with(|| json!({}));
        let known = entry
            .as_object_mut()
            .expect("only objects are put here")
            .insert(method.to_owned(), members.into());
        assert!(known.is_none(), "{method} {path} is there twice");
        self.router = self.router.route(path, on(filter, handler));
        self
    }

    /// The router, with the document as one more route.
    pub(super) fn finish(mut self) -> Router<Api> {
        let what = "HTTP API of pvn-scheduler. Names and ids are accepted alike. Fields may be \
                    added; what is here stays.";
        let of_job = "The token that a job finds in PVN_TOKEN.";
        let document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "pvn",
                "version": env!("CARGO_PKG_VERSION"),
                "description": what,
            },
            "paths": self.paths,
            "components": {
                "schemas": self.schemas.take_definitions(true),
                "securitySchemes": {
                    "bearer": {"type": "http", "scheme": "bearer", "description": "An API token."},
                    "job": {"type": "http", "scheme": "bearer", "description": of_job},
                },
            },
        });
        let text: Arc<str> = document.to_string().into();
        let is_json = [(header::CONTENT_TYPE, "application/json")];
        self.router.route(PATH, get(move || async move { (is_json, text.to_string()) }))
    }
}

impl Operation<'_> {
    /// Adds sentences to the description.
    pub(super) fn explain(&mut self, sentences: &str) {
        if sentences.is_empty() {
            return;
        }
        let text = match self.members.get("description").and_then(Value::as_str) {
            Some(before) => format!("{before} {sentences}"),
            None => sentences.to_owned(),
        };
        self.members.insert("description".to_owned(), text.into());
    }

    /// Adds an answer under a status, or `default`; a second media type joins the first.
    pub(super) fn answer(&mut self, status: &str, description: &str, media: Option<(&str, Value)>) {
        let responses = self.members.entry("responses").or_insert_with(|| json!({}));
        let response = responses
            .as_object_mut()
            .expect("only objects are put here")
            .entry(status)
            .or_insert_with(|| json!({"description": description}));
        if let Some((kind, schema)) = media {
            let content = response
                .as_object_mut()
                .expect("made above")
                .entry("content")
                .or_insert_with(|| json!({}));
            content
                .as_object_mut()
                .expect("made above")
                .insert(kind.to_owned(), json!({"schema": schema}));
        }
    }
}
