//! What answers without a token: health, readiness, schemas; and metrics, when they are open.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schema::access::Capability;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::driver;
use crate::http::Api;
use crate::http::access;
use crate::http::error::{Error, Result};
use crate::http::extract::PathParams;
use crate::http::openapi::{HandlerOutput, Operation, Routes, about};
use crate::store::Unrenewed;

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get("/healthz", healthz, about("healthz", "health", "Whether the process answers"))
        .get("/readyz", readyz, about("readyz", "health", "Whether it can decide and store"))
        .get(
            "/metrics",
            metrics,
            about(
                "metrics",
                "health",
                "Numbers for Prometheus; needs a token unless started with --open-metrics",
            ),
        )
        .get(
            "/schemas/",
            schema_names,
            about("listSchemas", "schemas", "The names of the JSON Schemas"),
        )
        .get(
            "/schemas/{name}",
            schema_file,
            about("getSchema", "schemas", "One JSON Schema (draft 7)"),
        )
}

/// How long the question whether the database can be read may take: well below what probes of
/// others wait.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// How it stands.
#[derive(Serialize, JsonSchema)]
struct HealthAnswer {
    /// `ok`.
    status: &'static str,
    /// The version of the program.
    version: &'static str,
}

/// Whether it can decide and store.
#[derive(Serialize, JsonSchema)]
struct Readiness {
    /// `ok`.
    status: &'static str,
    /// Instances that stand still (BROKEN), each with the reason; the others go on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<String>,
    /// What a person has to look at although it is ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

async fn healthz() -> axum::Json<HealthAnswer> {
    axum::Json(HealthAnswer { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

async fn readyz(State(api): State<Api>) -> Result<axum::Json<Readiness>> {
    // Reading is asked, deciding tells: it knows how its last commit went. Whoever asks has a
    // deadline of its own, and is told nothing when it passes.
    let read = tokio::time::timeout(READ_WITHIN, notes(&api)).await.unwrap_or_else(|_| {
        let within = READ_WITHIN.as_secs();
        Err(Error::unavailable(format!(
            "the database could not be read within {within} s: its disk hangs or is overloaded"
        )))
    });
    match health(&api) {
        driver::Health::Ready => {
            Ok(axum::Json(Readiness { status: "ok", broken: api.driver.broken(), notes: read? }))
        }
        driver::Health::Degraded { why, since } => {
            let goes_on = if read.is_ok() { "; reading goes on" } else { "" };
            Err(Error::unavailable(format!("nothing new is started since {since}: {why}{goes_on}")))
        }
    }
}

/// Whether it can decide and store, without asking anybody.
fn health(api: &Api) -> driver::Health {
    let health = api.driver.health().borrow().clone();
    // Where nothing is due nothing is stored, and deciding cannot know; whoever keeps the database
    // does.
    match (health, api.store.unrenewed()) {
        (driver::Health::Ready, Some(Unrenewed { why, since })) => {
            driver::Health::Degraded { why, since }
        }
        (health, _) => health,
    }
}

/// What a person has to look at although it is ready.
async fn notes(api: &Api) -> Result<Vec<String>> {
    api.store.counters().await?;
    let lost = match api.driver.lost().await {
        0 => None,
        lost => Some(format!(
            "the spool directory of {lost} applies that were under way is lost, and nobody can \
             say whether they run: see whether they do, then `pvnctl services retry` them"
        )),
    };
    let restored = api.store.restored_at().await?;
    let restored = restored.map(|at| {
        format!(
            "restored from a backup at {at}: it observes and applies nothing until `pvn-scheduler \
             activate`"
        )
    });
    let observer = (api.driver.is_observer() && restored.is_none()).then(|| {
        "observer mode: it looks, and applies nothing; start it without `--observer` and \
         PVN_OBSERVER to let it act"
            .to_owned()
    });
    Ok(lost.into_iter().chain(restored).chain(observer).collect())
}

async fn metrics(State(api): State<Api>, request: axum::extract::Request) -> Result<MetricsText> {
    if !api.open_metrics {
        let (parts, _) = request.into_parts();
        access::caller(&parts, &api, Capability::Read).await?;
    }
    let mut numbers = api.driver.metrics().await?;
    numbers.extend(api.store.pruned().metrics());
    let is_ready = health(&api) == driver::Health::Ready;
    numbers.insert("pvn_ready".to_owned(), f64::from(u8::from(is_ready)));
    numbers.extend(api.store.notification_metrics().await?);
    numbers.extend(api.streams.metrics());
    Ok(MetricsText(exposition(&numbers)))
}

/// The text format, with the type of each metric before its samples: those that end in `_total`
/// count up. A metric's samples stand together, because the map is in order and `{` comes after
/// every character of a name.
fn exposition(numbers: &BTreeMap<String, f64>) -> String {
    let mut text = String::new();
    let mut last = "";
    for (sample, value) in numbers {
        let name = sample.split('{').next().unwrap_or_default();
        if name != last {
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            text += &format!("# TYPE {name} {kind}\n");
            last = name;
        }
        text += &format!("{sample} {value}\n");
    }
    text
}

/// Metrics in Prometheus' text format.
struct MetricsText(String);

impl IntoResponse for MetricsText {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], self.0)
            .into_response()
    }
}

impl HandlerOutput for MetricsText {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer(
            "200",
            "Numbers.",
            Some(("text/plain", serde_json::json!({"type": "string"}))),
        );
    }
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// The file's name.
    name: String,
}

async fn schema_names() -> axum::Json<Vec<&'static str>> {
    axum::Json(config::schemas::PUBLISHED.iter().map(|(name, _)| *name).collect())
}

async fn schema_file(
    PathParams(Name { name }): PathParams<Name>,
) -> Result<axum::Json<serde_json::Value>> {
    let found = config::schemas::PUBLISHED.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| {
        Error::not_found(format!("there is no schema `{name}`; /schemas/ lists those there are"))
    })?;
    serde_json::from_str(text).map(axum::Json).map_err(Error::internal)
}
