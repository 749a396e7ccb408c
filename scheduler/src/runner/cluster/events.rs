//! What the events of a Job or Pod say where its status says nothing: why nothing goes on, and that
//! a command runs. Called by the job's task.
//!
//! They are asked for, not watched: only a job that has not begun needs them, and a namespace has
//! many.
//!
//! A node writes no status of a Pod while it starts its containers, one after the other: as long as
//! it fetches the image of a later one or a `postStart` hook runs, the command's container is said
//! to wait, although it runs. Source: the kubelet's `SyncPod`. Its events come at once.

use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{Container, Event, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use schema::time::Timestamp;

use super::ask::{LOOK_WITHIN, RequestRefusal, within};
use super::blockers::StartBlocker;
use super::follow::JobFollower;
use super::sight::{event_words, had_node, time};

/// Most events of one object that are looked at. What happens again is counted in the same one.
const EVENTS_LIMIT: u32 = 50;

/// How a node says that a container runs.
const STARTED: &str = "Started";

impl JobFollower {
    /// What happened to a Job or a Pod.
    ///
    /// # Errors
    /// Why that is not known.
    pub(super) async fn events_of(&self, name: &str) -> Result<Vec<Event>, RequestRefusal> {
        let events: Api<Event> =
            Api::namespaced(self.cluster.client.clone(), &self.record.place.namespace);
        let params = ListParams::default()
            .fields(&format!("involvedObject.name={name}"))
            .limit(EVENTS_LIMIT);
        let what = "looking for its events";
        let found = self.ask(Duration::ZERO, what, || events.list(&params)).boxed();
        Ok(within(LOOK_WITHIN, what, found).await?.items)
    }

    /// Whether the command of a Pod runs although its status does not say so. Where nobody may list
    /// events the status counts.
    ///
    /// # Errors
    /// Why that is not known.
    pub(super) async fn runs_unseen(&self, pod: &Pod) -> Result<bool, RequestRefusal> {
        if !may_run_unseen(pod) {
            return Ok(false);
        }
        match self.events_of(&pod.name_any()).await {
            Ok(events) => Ok(began(&events, pod, &self.record.container).is_some()),
            Err(RequestRefusal::Never(_)) => Ok(false),
            Err(refused) => Err(refused),
        }
    }
}

/// Whether a container of a Pod may run for longer than a moment before its status says so.
fn may_run_unseen(pod: &Pod) -> bool {
    let Some(spec) = pod.spec.as_ref().filter(|_| had_node(pod)) else { return false };
    let has_hook = |container: &Container| {
        container.lifecycle.as_ref().is_some_and(|lifecycle| lifecycle.post_start.is_some())
    };
    spec.containers.len() > 1 || spec.containers.iter().any(has_hook)
}

/// Since when a container of a Pod runs, or ran.
pub(super) fn began(events: &[Event], pod: &Pod, container: &str) -> Option<Timestamp> {
    let field = format!("spec.containers{{{container}}}");
    let is_it = |event: &&Event| {
        let about = &event.involved_object;
        event.reason.as_deref() == Some(STARTED)
            && about.field_path.as_deref() == Some(field.as_str())
            && about.uid == pod.metadata.uid
    };
    let at = |event: &Event| {
        let by_count = event.first_timestamp.as_ref().map(time);
        by_count
            .or_else(|| Some(Timestamp::from_millis(event.event_time.as_ref()?.0.as_millisecond())))
    };
    events.iter().filter(is_it).filter_map(at).min()
}

/// Why nothing goes on with an object, in the words of whoever cannot go on: the newest warning
/// about it.
pub(super) fn warning(events: &[Event], pod: Option<&Pod>) -> Option<StartBlocker> {
    // A Pod that waits for a node says so in its status; one that has its node does so no more.
    let told = events.iter().filter(|event| {
        event.type_.as_deref() == Some("Warning")
            && event.reason.as_deref() != Some("FailedScheduling")
    });
    let event = told.max_by_key(|event| {
        let at = event.last_timestamp.as_ref().map(|at| at.0);
        at.or(event.event_time.as_ref().map(|at| at.0))
    })?;
    let reason = event.reason.as_deref().unwrap_or_default();
    let message = event.message.as_deref().unwrap_or_default();
    let said = event_words(pod, event.involved_object.field_path.as_deref(), reason, message);
    Some(StartBlocker::said(reason, said))
}
