//! Runtimes, applications and releases.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ChannelStatus;
use crate::id::{
    ApplicationId, ApplicationName, ChannelId, ChannelName, JobId, ReleaseId, RuntimeId,
    RuntimeName, ServiceName,
};
use crate::status::{CheckKind, CheckStatus, Status};
use crate::time::Timestamp;

body! {
    /// A runtime.
    Runtime {
        /// Its id.
        id: RuntimeId,
        /// Its name.
        name: RuntimeName,
        /// `custom`, `local`, `fake`, `kubernetes`.
        kind: String,
        /// Its labels, with the automatic ones.
        labels: BTreeMap<String, String>,
        /// Where its jobs run, for a custom one.
        proxy_runtime: Option<RuntimeName>,
        /// Applies at a time; absent means no limit.
        max_concurrency: Option<u32>,
        /// Instances that it serves.
        instances: u64,
    }
}

body! {
    /// A runtime of a kind that is built in, as the `custom` one that it is made to: `runtimes
    /// eject`.
    EjectedRuntime {
        /// The document, without its secrets.
        document: serde_json::Value,
    }
}

body! {
    /// An application in one line.
    ApplicationSummary {
        /// Its id.
        id: ApplicationId,
        /// Its name.
        name: ApplicationName,
        /// Its channels, in order.
        release_channels: Vec<ChannelName>,
        /// How many services it has.
        services: u64,
    }
}

body! {
    /// An application: `applications get`.
    Application {
        /// Its id.
        id: ApplicationId,
        /// Its name.
        name: ApplicationName,
        /// Its channels, in order, groups expanded.
        release_channels: Vec<ReleaseChannel>,
        /// Its services by name.
        services: Vec<ServiceName>,
    }
}

body! {
    /// A release channel.
    ReleaseChannel {
        /// Its id.
        id: ChannelId,
        /// Its name.
        name: ChannelName,
        /// The group that made it.
        group: Option<String>,
        /// Its runtime connections.
        runtimes: Vec<RuntimeConnection>,
        /// Its preconditions, as the config says them.
        preconditions: Vec<serde_json::Value>,
        /// Its labels.
        labels: BTreeMap<String, String>,
    }
}

body! {
    /// A runtime under the name by which a channel's services ask for it.
    RuntimeConnection {
        /// The connection's name.
        name: String,
        /// The runtime.
        runtime: RuntimeName,
    }
}

body! {
    /// A release: `releases list`.
    Release {
        /// Its id.
        release: ReleaseId,
        /// Its version.
        version: String,
        /// The application.
        application: ApplicationName,
        /// The service.
        service: ServiceName,
        /// How it stands, over all its channels.
        status: Status,
        /// When it was made.
        created_at: Timestamp,
        /// By whom.
        by: String,
        /// Channel by channel.
        channels: Vec<ChannelStatus>,
        /// The parameter values, those of one channel as `channel:name`; secrets as `***`.
        params: BTreeMap<String, String>,
        /// The version of the service's config that it was made from. Servers of before tell none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config_version: Option<u64>,
    }
}

body! {
    /// What works and what does not where a runtime's jobs run: `runtimes check`.
    RuntimeCheck {
        /// The runtime that was asked about.
        runtime: RuntimeName,
        /// Whether nothing failed.
        ok: bool,
        /// In the order in which a job would need it; for a Kubernetes runtime one custom runtime
        /// after the other. Places first, then what is on the scheduler's machine, then one service
        /// instance after the other.
        checks: Vec<Finding>,
    }
}

body! {
    /// One thing that was checked.
    Finding {
        /// The runtime whose jobs it concerns.
        runtime: RuntimeName,
        /// What was checked.
        check: CheckKind,
        /// What was found.
        status: CheckStatus,
        /// A sentence for people.
        message: String,
        /// What to do about it; there is one exactly when it failed.
        remedy: Option<String>,
        /// The service instance whose job found it out: `application/service in channel`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance: Option<String>,
        /// That job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<JobId>,
    }
}

impl Finding {
    /// One that no job found out.
    pub fn new(
        runtime: &RuntimeName,
        check: CheckKind,
        status: CheckStatus,
        message: impl Into<String>,
    ) -> Self {
        let runtime = runtime.clone();
        let (message, remedy) = (message.into(), None);
        Self { runtime, check, status, message, remedy, instance: None, job: None }
    }

    /// What works.
    pub fn ok(runtime: &RuntimeName, check: CheckKind, message: impl Into<String>) -> Self {
        Self::new(runtime, check, CheckStatus::Ok, message)
    }

    /// What was not tried, and why.
    pub fn skipped(runtime: &RuntimeName, check: CheckKind, why: impl Into<String>) -> Self {
        Self::new(runtime, check, CheckStatus::Skipped, why)
    }

    /// What does not work, and what to do about it.
    pub fn failed(
        runtime: &RuntimeName,
        check: CheckKind,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let failed = Self::new(runtime, check, CheckStatus::Failed, message);
        Self { remedy: Some(remedy.into()), ..failed }
    }
}
