//! What pushes and rollbacks ask for and are answered.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cause;
use crate::id::{ChannelName, ReleaseId, RuntimeName};

request! {
    /// Body of `POST /v1/applications/{app}/services/{service}/push`.
    PushRequest {
        /// Values for all channels.
        params: BTreeMap<String, String>,
        /// Values for one channel each, which win.
        params_for_channel: BTreeMap<String, BTreeMap<String, String>>,
        /// Only these channels; absent means all.
        channels: Option<Vec<String>>,
        /// Channels that get it too where one that gets it waits for them to be stable, or they
        /// wait for one that gets it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        together: Vec<String>,
        /// Check and compare, release nothing.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        dry_run: bool,
    }
}

body! {
    /// A release made: answer of push and rollback, `services push -o json`.
    Pushed {
        /// The release; of a dry run one that is not there.
        release: ReleaseId,
        /// The version that it was given.
        version: String,
        /// What is allowed and probably not meant, with what to do. Servers of before tell none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
        /// Of a dry run: what would change, channel by channel.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        preview: Vec<ChannelPreview>,
    }
}

body! {
    /// What a release would change in a channel.
    ChannelPreview {
        /// The channel.
        channel: ChannelName,
        /// The runtime that would serve it.
        runtime: RuntimeName,
        /// The version that it pursues now, if it has one.
        before: Option<String>,
        /// The parameters whose values would be other ones.
        params: Vec<ParameterChange>,
        /// What would keep its apply back, in words, in order.
        waits_for: Vec<String>,
        /// The commands that would be other ones because of the config, not of values, and what of
        /// them: `apply (arguments, env REGION)`. Servers of before tell none of this.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commands: Vec<String>,
        /// What would happen first, in words.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        next: String,
        /// What would keep its apply back, as far as is known now: `waits_for` with codes and
        /// times.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        held_up_by: Vec<Cause>,
    }
}

body! {
    /// A parameter whose value would be another one; secrets are masked.
    ParameterChange {
        /// The parameter.
        name: String,
        /// Its value now; none is what the definition says.
        before: Option<String>,
        /// Its value then.
        after: Option<String>,
        /// The version that it is kept from, where this push does not give it: it was released
        /// elsewhere, and comes here with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept_from: Option<String>,
    }
}

request! {
    /// Body of `POST …/rollback`.
    RollbackRequest {
        /// To which version; absent means the one that the channels were converged at before.
        version: Option<String>,
        /// Only these channels; absent means all.
        channels: Option<Vec<String>>,
    }
}
