//! The HTTP API in process: access by role, limits, problems, pages, streams, and the document that
//! describes it.

mod access;
mod config_versions;
mod document;
mod files;
mod limits;
mod lists;
mod live;
mod notifications;
mod observe;
mod offers;
mod open_window;
mod overview;
mod pages;
mod problems;
mod rights;
mod streams;
mod token_limits;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use futures::FutureExt as _;
use pvn_scheduler::blobs::Blobs;
use pvn_scheduler::clock::Clock;
use pvn_scheduler::delivery::{self, Delivery, TokenSigner};
use pvn_scheduler::http::{Api, BrowserSessions, ConnectionLimits, OutputRange, router};
use pvn_scheduler::secrets::Sealer;
use pvn_scheduler::store::{Change, Commit, TokenRow};
use schema::access::TokenRights;
use schema::status::Role;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::driver::{Rig, TWO_CHANNELS};
use crate::store::at;

/// An API over a driver whose jobs all succeed, with the application `app`, its service `web` in
/// `staging` and `production`, and a token for each role, named like it.
pub(crate) struct Service {
    pub(crate) rig: Rig,
    router: Router,
    pub(crate) sessions: BrowserSessions,
    pub(crate) stop: CancellationToken,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The detail of a problem, whose shape is checked on the way.
    pub(crate) fn detail(&self) -> String {
        let problem = self.json();
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(problem["status"], self.status.as_u16());
        assert!(problem["type"].as_str().unwrap().starts_with("/problems/"), "{problem}");
        assert!(!problem["title"].as_str().unwrap().is_empty());
        problem["detail"].as_str().unwrap().to_owned()
    }
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::printing(|_: &OutputRange| Ok(Vec::new())).await
    }

    /// With room for so many connections.
    pub(crate) async fn with_connections(all: usize) -> Self {
        let nothing = |_: &OutputRange| Ok(Vec::new());
        let limits = ConnectionLimits::of(all);
        Self::within(limits, Rig::start(|_| Some(0)).await, nothing, Vec::new()).await
    }

    /// With jobs that never end.
    pub(crate) async fn hanging() -> Self {
        let rig = Rig::start(|_| None).await;
        Self::over(rig, |_: &OutputRange| Ok(Vec::new()), Vec::new()).await
    }

    /// With jobs whose output is what `output` says.
    pub(crate) async fn printing(
        output: impl Fn(&OutputRange) -> std::io::Result<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self::printing_in_order(output, Vec::new()).await
    }

    /// The same, where the wrapper wrote down this order of both streams.
    pub(crate) async fn printing_in_order(
        output: impl Fn(&OutputRange) -> std::io::Result<Vec<u8>> + Send + Sync + 'static,
        order: Vec<u8>,
    ) -> Self {
        Self::over(Rig::start(|_| Some(0)).await, output, order).await
    }

    async fn over(
        rig: Rig,
        output: impl Fn(&OutputRange) -> std::io::Result<Vec<u8>> + Send + Sync + 'static,
        order: Vec<u8>,
    ) -> Self {
        Self::within(ConnectionLimits::default(), rig, output, order).await
    }

    async fn within(
        limits: ConnectionLimits,
        rig: Rig,
        output: impl Fn(&OutputRange) -> std::io::Result<Vec<u8>> + Send + Sync + 'static,
        order: Vec<u8>,
    ) -> Self {
        let output = Arc::new(move |range: OutputRange| std::future::ready(output(&range)).boxed());
        let orders = Arc::new(move |_, _, offset: u64| {
            let from = usize::try_from(offset).unwrap().min(order.len());
            std::future::ready(Ok(order[from..].to_vec())).boxed()
        });
        rig.apply(TWO_CHANNELS).await.unwrap();
        let tokens = Role::ALL.iter().map(|role| token(role.as_str(), *role)).collect();
        rig.store.commit(&Commit { changes: tokens, ..Commit::default() }).await.unwrap();
        let stop = CancellationToken::new();
        let api = Api::new(
            rig.store.clone(),
            rig.handle.clone(),
            (output, orders),
            uploads(&rig),
            Clock::System,
            false,
            stop.clone(),
        )
        .within(limits);
        Self { rig, sessions: api.sessions.clone(), router: router(api), stop }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> axum::response::Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn ask(&self, request: Request<Body>) -> Answer {
        let (parts, body) = self.send(request).await.into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: to_bytes(body, usize::MAX).await.unwrap().to_vec(),
        }
    }

    /// `GET` as the admin.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(request("GET", path, Some("admin"), Body::empty())).await
    }

    /// `POST` of JSON as the admin.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.ask(request("POST", path, Some("admin"), body.to_owned().into())).await
    }
}

/// Uploads of jobs that nobody hands over.
fn uploads(rig: &Rig) -> Delivery {
    let settings = delivery::DeliverySettings {
        directory: rig.dir.path().join("uploads"),
        url: "http://localhost".to_owned(),
    };
    let blobs = Blobs::open(&rig.dir.path().join("other-blobs")).unwrap();
    Delivery::open(settings, blobs, TokenSigner::new(&Sealer::with_key([1; 32])), Clock::System)
        .unwrap()
}

/// A token whose text is its name.
pub(crate) fn token(name: &str, role: Role) -> Change {
    token_with(name, role.into())
}

/// The same with these rights.
pub(crate) fn token_with(name: &str, rights: TokenRights) -> Change {
    Change::Token(TokenRow {
        name: name.to_owned(),
        rights,
        hash: TokenRow::hash(name),
        created_at: at(1),
        expires_at: None,
        revoked_at: None,
    })
}

pub(crate) fn request(method: &str, path: &str, token: Option<&str>, body: Body) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.body(body).unwrap()
}
