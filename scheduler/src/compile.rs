//! Config documents and parameter values -> compiled instances. Pure: no IO, no clock. Called by the driver when
//! configs are applied (to refuse what cannot work) and when a release is pushed.

pub mod cycle;
pub mod environment;
mod nearest;
pub mod selector;
pub mod template;
pub mod value;

use engine::desired::Desired;
use schema::id::{ChannelName, RuntimeName};
use serde::{Deserialize, Serialize};

/// Everything that one service instance needs for a release: what the engine decides with, and the commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledInstance {
    /// The channel.
    pub channel: ChannelName,
    /// The custom runtime that serves it.
    pub runtime: RuntimeName,
    /// Where the jobs run.
    pub place: Place,
    /// For the engine.
    pub desired: Desired,
    /// For the runner. Stored by its digest, which is `desired.compiled`.
    pub commands: Commands,
}

/// Where jobs run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// Processes on the scheduler's own machine.
    Local {
        /// Directory of the commands as the config says it, relative to where the scheduler was started (`dev`: to DIR);
        /// `None` = there.
        root: Option<String>,
        /// Whether jobs get only PATH, HOME, USER, LANG and TMPDIR of the daemon's environment.
        clean_env: bool,
    },
    /// Nothing runs; every command succeeds at once, except those of the named programs.
    Fake {
        /// Programs (by name) whose command fails.
        crashing_programs: Vec<String>,
    },
}

/// The three commands of an instance, rendered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// Where they run.
    pub place: Place,
    /// Is there work to do?
    pub fetch: Option<Command>,
    /// Do it.
    pub apply: Command,
    /// Show people something.
    pub get_info: Option<Command>,
}

/// One rendered command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Name of the program, for messages and for `fake`.
    pub name: String,
    /// The program and its arguments: entrypoint, then cmd. Not empty.
    pub argv: Vec<String>,
    /// Environment, lowest precedence first already merged; without `PVN_*`.
    pub env: Vec<EnvVar>,
    /// Working directory as written; relative to the place's root.
    pub working_directory: Option<String>,
    /// What structured output is expected (`--expect`).
    pub expect: Option<schema::report::StructuredKind>,
    /// Let what the command leaves behind live on (`taskConfig.leaveRunning`).
    pub leave_running: bool,
}

/// One environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVar {
    /// Its key.
    pub key: String,
    /// Its value, or where to find it.
    pub value: EnvValue,
}

/// The value of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnvValue {
    /// As it stands.
    Plain(String),
    /// A secret of the store; `version` 0 is the latest. Opened at the start of each job and never stored.
    Secret {
        /// Its key.
        key: String,
        /// Its version; 0 = the latest.
        version: u64,
    },
    /// A secret that stood in clear in the config, sealed by [`value::Seal`]. Opened at the start of each job.
    Sealed(String),
}
