//! The names that templates may use, and the one table of those that exist whatever a config
//! defines: `{{.Builtins.…}}`. The reader knows names by what stands here, the scheduler fills them
//! in by it.

/// What stands before the name of a parameter.
pub const PARAMETERS: &str = "Params.";

/// What stands before the name of a constant.
pub const CONSTANTS: &str = "Constants.";

/// The words that a name can start with, each with its dot.
pub const ROOTS: [&str; 3] = [PARAMETERS, CONSTANTS, "Builtins."];

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

/// All that the name of a version may use: it is the same in all channels.
pub const OF_A_VERSION: [&str; 2] = [APPLICATION_NAME, SERVICE_NAME];

/// All that the templates of a channel group may use, besides the runtime's labels.
pub const OF_A_GROUP: [&str; 2] = [GROUP, RUNTIME_NAME];

/// What stands before the key of a label of the runtime.
pub const RUNTIME_LABELS: &str = "Builtins.Runtime.Labels.";

/// The same, of the labels that pvn itself sets.
pub const RUNTIME_LABELS_OF_PVN: &str = "Builtins.Runtime.Labels.@";

/// A parameter; of an image the whole reference.
pub fn parameter(name: &str) -> String {
    format!("{PARAMETERS}{name}")
}

/// The tag alone of a parameter that is an image.
pub fn image_tag(name: &str) -> String {
    format!("{PARAMETERS}{name}.Tag")
}

/// A constant of the channel or the service.
pub fn constant(name: &str) -> String {
    format!("{CONSTANTS}{name}")
}

/// A label of the runtime.
pub fn runtime_label(key: &str) -> String {
    format!("{RUNTIME_LABELS}{key}")
}
