//! Messages to people who did not ask: as a webhook is sent them, and as the list shows them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{
    ApplicationName, ChannelName, NotificationId, RuntimeName, ServiceName, TargetName,
};
use crate::notification::{NotificationKind, NotificationStatus};
use crate::time::Timestamp;

body! {
    /// What a webhook is sent, as JSON. Its headers are those of Standard Webhooks: `webhook-id`,
    /// the same however often it is sent, `webhook-timestamp`, and `webhook-signature` where the
    /// target has a `signingKey`.
    NotificationMessage {
        /// What it is about.
        #[serde(rename = "type")]
        kind: NotificationKind,
        /// When that was.
        timestamp: Timestamp,
        /// The rest.
        data: NotificationData,
    }
}

body! {
    /// What a message says.
    NotificationData {
        /// The id, the same as in the header `webhook-id`.
        id: NotificationId,
        /// The application whose config names the target.
        application: ApplicationName,
        /// The service concerned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        service: Option<ServiceName>,
        /// The channel concerned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<ChannelName>,
        /// The runtime concerned, where it is about one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runtime: Option<RuntimeName>,
        /// The version that the service pursues in the channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// What happened, on one line: `shop/orders@production failed`.
        text: String,
        /// Why, in the words of `pvnctl services explain`.
        why: String,
        /// What the plan that people are asked about would do, on one line, as the tool says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<String>,
        /// The page with more, where the scheduler knows its own address (`--advertise-url`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// Of a digest how many messages of each kind it stands for.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        counts: BTreeMap<NotificationKind, u64>,
        /// Of a digest some of these messages, each on one line.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lines: Vec<String>,
    }
}

impl NotificationData {
    /// That of a message to the targets of this application, which says nothing yet.
    pub fn of(id: NotificationId, application: ApplicationName) -> Self {
        Self {
            id,
            application,
            service: None,
            channel: None,
            runtime: None,
            version: None,
            text: String::new(),
            why: String::new(),
            plan: None,
            url: None,
            counts: BTreeMap::new(),
            lines: Vec::new(),
        }
    }
}

body! {
    /// A message and what became of it: `notifications list`.
    Notification {
        /// Its id.
        id: NotificationId,
        /// What it is about.
        kind: NotificationKind,
        /// How it stands.
        status: NotificationStatus,
        /// The application whose config names the target.
        application: ApplicationName,
        /// Whom it is for.
        target: TargetName,
        /// The service concerned.
        service: Option<ServiceName>,
        /// The channel concerned.
        channel: Option<ChannelName>,
        /// What happened, on one line.
        text: String,
        /// Why.
        why: String,
        /// How often sending it failed.
        attempts: u32,
        /// Why it failed last.
        error: Option<String>,
        /// The digest that told it, where one did.
        digest: Option<NotificationId>,
        /// When it was decided.
        created_at: Timestamp,
        /// When it is tried next, while it is pending.
        next_attempt_at: Option<Timestamp>,
        /// Since when it is sent, digested or dead.
        ended_at: Option<Timestamp>,
    }
}
