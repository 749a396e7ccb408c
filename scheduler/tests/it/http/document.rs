//! The OpenAPI document and the routes are one.

use axum::body::Body;
use axum::http::StatusCode;
use serde_json::Value;

use super::{Service, request};

/// Every operation: method, path, the operation itself.
async fn operations(service: &Service) -> Vec<(String, String, Value)> {
    let document = service.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            found.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    found
}

/// The path with something in the place of each parameter.
fn filled(path: &str) -> String {
    path.split('/')
        .map(|part| if part.starts_with('{') { "x" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

#[tokio::test]
async fn every_documented_operation_is_served_and_asks_for_a_token_where_it_says_so() {
    let service = Service::start().await;
    let operations = operations(&service).await;
    assert!(operations.len() > 30, "{}", operations.len());
    for (method, path, operation) in operations {
        let answer = service.ask(request(&method, &filled(&path), None, Body::empty())).await;
        // Whose link stands for a token.
        let is_sign_in = path == "/v1/sign-in";
        let secured = operation["security"].is_array() || path == "/metrics" || is_sign_in;
        assert_eq!(
            answer.status == StatusCode::UNAUTHORIZED,
            secured,
            "{method} {path}: {}",
            answer.status
        );
        assert_ne!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        for name in path.split('/').filter_map(|part| part.strip_prefix('{')) {
            let name = name.trim_end_matches('}');
            assert!(
                parameters
                    .iter()
                    .any(|parameter| parameter["name"] == name && parameter["in"] == "path"),
                "{path}: {name}"
            );
        }
        assert!(!operation["responses"].as_object().unwrap().is_empty(), "{method} {path}");
        assert!(
            parameters.iter().all(|parameter| parameter["description"] != ""),
            "{method} {path}: a parameter without a word"
        );
    }
}

#[tokio::test]
async fn operation_ids_are_unique() {
    let service = Service::start().await;
    let mut ids: Vec<_> = operations(&service)
        .await
        .into_iter()
        .map(|(_, _, operation)| operation["operationId"].as_str().unwrap().to_owned())
        .collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[tokio::test]
async fn every_reference_in_the_document_leads_somewhere() {
    let service = Service::start().await;
    let document = service.get("/openapi.json").await.json();
    let mut queue = vec![&document];
    let mut references = 0;
    while let Some(value) = queue.pop() {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            references += 1;
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
        match value {
            Value::Array(items) => queue.extend(items),
            Value::Object(fields) => queue.extend(fields.values()),
            _ => {}
        }
    }
    assert!(references > 20, "{references}");
}

/// A value that fits a schema, with every field that it names.
fn example(document: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return example(document, document.pointer(reference.trim_start_matches('#')).unwrap());
    }
    if let Some(any) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return example(document, &any[0]);
    }
    if let Some(words) = schema["enum"].as_array() {
        return words[0].clone();
    }
    if !schema["const"].is_null() {
        return schema["const"].clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("object");
    match kind {
        "string" if schema["format"] == "date-time" => "2026-01-01T00:00:00.000Z".into(),
        "string" if schema["pattern"] == "^sha256:[0-9a-f]{64}$" => {
            format!("sha256:{}", "0".repeat(64)).into()
        }
        "string" => "eA==".into(),
        "boolean" => true.into(),
        "integer" | "number" => 1.into(),
        "array" => Value::Array(vec![example(document, &schema["items"])]),
        _ => {
            let mut fields: serde_json::Map<String, Value> = schema["properties"]
                .as_object()
                .map(|fields| {
                    fields
                        .iter()
                        .map(|(name, field)| (name.clone(), example(document, field)))
                        .collect()
                })
                .unwrap_or_default();
            if schema["additionalProperties"].is_object() {
                fields.insert("key".to_owned(), example(document, &schema["additionalProperties"]));
            }
            fields.into()
        }
    }
}

#[tokio::test]
async fn every_documented_body_is_read() {
    let service = Service::start().await;
    let document = service.get("/openapi.json").await.json();
    let mut bodies = 0;
    for (method, path, operation) in operations(&service).await {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        bodies += 1;
        let body = example(&document, schema);
        let answer = service
            .ask(request(&method, &filled(&path), Some("admin"), body.to_string().into()))
            .await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            !text.contains("cannot be read"),
            "{method} {path} does not take the documented {body}: {text}"
        );
    }
    assert!(bodies > 10, "{bodies}");
}
