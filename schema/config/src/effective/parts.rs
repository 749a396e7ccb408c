//! What the kinds that are built in make their commands of. Called by each of them.

use schema::schedule::Duration;

use crate::params::StringParameter;
use crate::template::Template;
use crate::{ParameterDefinition, ParameterKind, PreRun, Program, RetryPolicy, TaskConfig};

/// Where the wrapper is in an image that has it: `images/wrapper`.
const WRAPPER: &str = "/pvn-wrapper";

/// A shell that almost every image has.
const SHELL: &str = "/bin/sh";

/// The exit code of the wrapper for what may be over by another try.
pub(super) const TRY_AGAIN: i32 = 75;

/// The flags for commands that run first: one an item, so that a problem of it points there.
pub(super) fn pre_run(commands: &[PreRun]) -> Vec<Template> {
    commands.iter().map(|before| format!("--pre-run={}", before.cmd.as_str()).into()).collect()
}

/// So many seconds. `seconds` is written here, so it is a duration.
pub(super) const fn seconds(seconds: i64) -> Duration {
    match Duration::from_ms(seconds * 1000) {
        Some(duration) => duration,
        None => panic!("a default is a duration"),
    }
}

/// A policy as it is written, with the defaults of its kind where it says nothing.
pub(super) fn retry(given: Option<&RetryPolicy>, defaults: (Duration, Duration)) -> RetryPolicy {
    let (base, max) = RetryPolicy::waits(given, defaults);
    RetryPolicy {
        base_interval: Some(base),
        max_interval: Some(max),
        max_attempts: given.and_then(|given| given.max_attempts),
    }
}

/// A parameter that is a text.
pub(super) fn text_parameter(name: &str, description: &str, default: &str) -> ParameterDefinition {
    ParameterDefinition {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        required: false,
        kind: ParameterKind::String(StringParameter {
            default_value: (!default.is_empty()).then(|| default.to_owned()),
        }),
    }
}

/// Where the wrapper is.
pub(super) fn wrapper_parameter() -> ParameterDefinition {
    text_parameter("pvnWrapperPath", "Path of the wrapper in the image", WRAPPER)
}

/// The parameters that say where in an image the commands find what they need.
pub(super) fn of_the_image() -> [ParameterDefinition; 3] {
    [
        text_parameter("image", "The image that holds the tool and what it works on", ""),
        wrapper_parameter(),
        text_parameter("shellPath", "Path of a shell in the image", SHELL),
    ]
}

/// A command of the wrapper for a tool, in the image of the parameters. `cmd` is what stands behind
/// these arguments.
pub(super) fn tool_task(name: &str, arguments: &[&str], cmd: Vec<Template>) -> TaskConfig {
    let program = std::iter::once("{{.Params.pvnWrapperPath}}");
    TaskConfig {
        program: Program {
            name: Some(name.to_owned()),
            image: Some("{{.Params.image}}".into()),
            image_tag: None,
            image_registry_info: None,
            entrypoint: program.chain(arguments.iter().copied()).map(Template::from).collect(),
            cmd,
            env: crate::Env::default(),
            resources: None,
            working_directory: None,
        },
        volumes: Vec::new(),
        ttl: None,
        retry_config: None,
        k8s: None,
        security_context: None,
        leave_running: false,
        stop_grace: None,
    }
}
