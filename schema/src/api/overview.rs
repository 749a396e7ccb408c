//! How everything stands at a glance.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Approval, ObservedOnly};
use crate::id::{ApplicationName, ChannelName, JobId, ServiceName};
use crate::status::{JobKind, JobStatus, Reason, Status};
use crate::time::Timestamp;

body! {
    /// How everything stands: `status`.
    Overview {
        /// When it was so.
        at: Timestamp,
        /// Instances by how they stand, all of them; what there is none of is left out.
        counts: BTreeMap<String, u64>,
        /// Those that want to be seen, first what waits for a person, then what failed, then what
        /// is on its way; CONVERGED ones only where all have room.
        instances: Vec<OverviewInstance>,
        /// How many more want to be seen than are told.
        more: u64,
    }
}

body! {
    /// A service instance at a glance.
    OverviewInstance {
        /// The application.
        application: ApplicationName,
        /// The service.
        service: ServiceName,
        /// The channel.
        channel: ChannelName,
        /// How it stands.
        status: Status,
        /// Why.
        reason: Option<Reason>,
        /// In a sentence.
        message: String,
        /// What it should be.
        desired_version: Option<String>,
        /// Since when it stands so.
        since: Timestamp,
        /// When something happens next by itself.
        next_action_at: Option<Timestamp>,
        /// Who wants it to be observed only; absent where nobody does. Servers of before tell none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        observed: Option<ObservedOnly>,
        /// The approvals that wait for people, without their explanations.
        approvals: Vec<Approval>,
        /// Its newest fetch or apply that has not ended.
        job: Option<OverviewJob>,
    }
}

body! {
    /// A job that has not ended.
    OverviewJob {
        /// Its id.
        id: JobId,
        /// Which command.
        kind: JobKind,
        /// How it stands.
        status: JobStatus,
        /// From 1.
        attempt: u32,
        /// When its command started.
        started_at: Option<Timestamp>,
        /// How long such a job of this instance takes, milliseconds: the middle one of the last
        /// few that succeeded.
        usual_ms: Option<u64>,
        /// The last line that it printed so far.
        last_line: Option<String>,
    }
}
