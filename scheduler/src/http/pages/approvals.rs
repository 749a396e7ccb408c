//! `/approvals`: every question that waits for somebody, with its plan.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pages::OpenQuestion;
use pages::frame::NavEntry;
use schema::status::{ApprovalStatus, Status};

use super::{frame, page};
use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::Result;
use crate::store::StandingOrder;

/// Instances whose questions are on one page: each may have a plan of 64 KiB, and nobody decides
/// more before they look again.
const QUESTIONS: u32 = 20;

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/approvals", get(approvals))
}

async fn approvals(State(api): State<Api>, Viewer(token): Viewer) -> Result<Response> {
    let mut frame = frame(&api, &token, "Approvals", NavEntry::Approvals).await?;
    frame.live = Some("/live".to_owned());
    let waits = [Status::WaitingManualApproval];
    let lines = api.store.standing(&waits, StandingOrder::LongestFirst, QUESTIONS + 1).await?;
    let left_out = lines.len() > QUESTIONS as usize;
    let mut waiting = Vec::new();
    for line in lines.into_iter().take(QUESTIONS as usize) {
        let (app, name) = (line.application.as_str(), line.service.as_str());
        let Some(service) = api.store.service(app, name).await? else { continue };
        let found = service.channels.into_iter().filter(|one| one.channel == line.channel);
        let asked = found.flat_map(|one| one.approvals);
        let pending = asked.filter(|approval| approval.status == ApprovalStatus::Pending);
        waiting.extend(pending.map(|approval| OpenQuestion {
            application: line.application.clone(),
            service: line.service.clone(),
            channel: line.channel.clone(),
            approval,
        }));
    }
    page(pages::approvals(&frame, &waiting, left_out))
}
