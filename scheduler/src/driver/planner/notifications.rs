//! Messages that a person has sent again.

use schema::id::NotificationId;
use schema::log_kind::LogKind;
use schema::notification::NotificationStatus;
use serde_json::json;

use super::super::calls::Plan;
use super::super::{Caller, Handle, Refusal};
use super::{Planner, Request, entry};
use crate::store::Change;

impl Handle {
    /// Has a message sent again, with the id that it had.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Conflict`] when it is on its way,
    /// [`Refusal::Unavailable`].
    pub async fn resend_notification(
        &self,
        id: NotificationId,
        caller: Caller,
    ) -> Result<(), Refusal> {
        self.plan(|reply| Request::ResendNotification { id, caller, reply }).await
    }
}

impl Planner {
    pub(super) async fn resend_notification(
        &self,
        id: NotificationId,
        caller: &Caller,
    ) -> Result<(), Refusal> {
        let Some(found) = self.store.notification(id).await? else {
            return Err(Refusal::NotFound(format!(
                "{id} does not exist; `pvnctl notifications list` shows those that do"
            )));
        };
        caller.reaches(&found.application, found.channel.iter())?;
        if found.status == NotificationStatus::Pending {
            return Err(Refusal::Conflict(format!("{id} is on its way; there is nothing to do")));
        }
        let message = format!(
            "{} has a notification sent to `{}` again: {}",
            caller.who, found.target, found.text
        );
        let mut entry = entry(LogKind::NotificationResent, caller, message, json!({"id": id}));
        entry.application = Some(found.application);
        (entry.service, entry.channel) = (found.service, found.channel);
        self.commit(Plan {
            changes: vec![Change::NotificationResent { id, at: self.now() }],
            entries: vec![entry],
            ..Plan::default()
        })
        .await
    }
}
