//! The names that templates may use whatever a config defines: `{{.Builtins.…}}`. The reader knows
//! them by this table, the scheduler fills them in by it.

/// The application of the service.
pub const APPLICATION_NAME: &str = "Builtins.Application.Name";

/// The service that is released.
pub const SERVICE_NAME: &str = "Builtins.Service.Name";

/// The version that it is released as.
pub const SERVICE_VERSION: &str = "Builtins.Service.Version";

/// The channel that it is released to.
pub const RELEASE_CHANNEL_NAME: &str = "Builtins.ReleaseChannel.Name";

/// The runtime that serves the channel.
pub const RUNTIME_NAME: &str = "Builtins.Runtime.Name";

/// The group that made the channel, where one did.
pub const GROUP: &str = "Builtins.Group";

/// All that every template of a release may use.
pub const OF_A_RELEASE: [&str; 6] =
    [APPLICATION_NAME, SERVICE_NAME, SERVICE_VERSION, RELEASE_CHANNEL_NAME, RUNTIME_NAME, GROUP];

/// What stands before the key of a label of the runtime.
pub const RUNTIME_LABELS: &str = "Builtins.Runtime.Labels.";

/// The same, of the labels that pvn itself sets.
pub const RUNTIME_LABELS_OF_PVN: &str = "Builtins.Runtime.Labels.@";
