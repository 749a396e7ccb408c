//! Calls `aws`, for all others here: the one place that knows its global arguments, its environment
//! and how it answers. Called by `fetch`, `apply`, `info`, `check` and `revision`.

use std::ffi::OsString;

use serde_json::Value;

use super::super::Fault;
use super::super::call::{Output, ToolCaller};
use super::error;
use super::service::text;

/// How long one attempt may wait for a connection and for an answer, seconds. The CLI's own minute
/// is for uploads; three attempts of it would be longer than most jobs may run.
const CONNECT_SECONDS: &str = "10";
const ANSWER_SECONDS: &str = "30";

/// How often the CLI itself tries. Source: the default of its retry mode `standard`.
const ATTEMPTS: &str = "3";

/// The argument whose value is a file, which we have written.
pub(super) const INPUT: &str = "--cli-input-json";

/// The program, with whatever credentials it finds.
pub(super) struct Aws {
    caller: ToolCaller,
    region: Option<String>,
    /// The role and the session's name, until the first call assumes it.
    role: Option<(String, String)>,
}

impl Aws {
    pub(super) fn new(
        region: Option<&str>,
        role: Option<&str>,
        session: &str,
    ) -> Result<Self, Fault> {
        let mut aws = Self::with_own_credentials(region)?;
        aws.role = role.map(|role| (role.to_owned(), session.to_owned()));
        Ok(aws)
    }

    /// As whoever the CLI finds, before any role is assumed.
    pub(super) fn with_own_credentials(region: Option<&str>) -> Result<Self, Fault> {
        let mut caller = ToolCaller::new()?;
        caller.default("AWS_PAGER", "");
        caller.default("AWS_CLI_AUTO_PROMPT", "off");
        // The old one waits for 8 s where nobody listens, and does not know all that passes.
        caller.default("AWS_RETRY_MODE", "standard");
        caller.default("AWS_MAX_ATTEMPTS", ATTEMPTS);
        Ok(Self { caller, region: region.map(str::to_owned), role: None })
    }

    /// All calls from now on are the role's. Its credentials are in their environment alone.
    pub(super) fn assume(&mut self, role: &str, session: &str) -> Result<(), Fault> {
        let arguments = ["--role-arn", role, "--role-session-name", session];
        let answer = self.call("sts", "assume-role", &arguments)?;
        let credentials = &answer["Credentials"];
        let of = |field| Some(text(credentials, field)).filter(|value| !value.is_empty());
        let (Some(key), Some(secret), Some(token)) =
            (of("AccessKeyId"), of("SecretAccessKey"), of("SessionToken"))
        else {
            return Err(Fault::failed("`aws sts assume-role` answered without credentials"));
        };
        self.caller.set("AWS_ACCESS_KEY_ID", key);
        self.caller.set("AWS_SECRET_ACCESS_KEY", secret);
        self.caller.set("AWS_SESSION_TOKEN", token);
        // An older name for it, which is looked for first.
        self.caller.set("AWS_SECURITY_TOKEN", token);
        if let Some(end) = of("Expiration") {
            self.caller.set("AWS_CREDENTIAL_EXPIRATION", end);
        }
        Ok(())
    }

    /// Whose the credentials are: its ARN.
    pub(super) fn who(&mut self) -> Result<String, Fault> {
        let answer = self.call("sts", "get-caller-identity", &[])?;
        match text(&answer, "Arn") {
            "" => Err(Fault::failed("`aws sts get-caller-identity` answered without an ARN")),
            arn => Ok(arn.to_owned()),
        }
    }

    /// What it says of its own version: `aws-cli/2.17.9 Python/3.11.9 …`.
    pub(super) fn version(&mut self) -> Result<String, Fault> {
        let ended = self.caller.call(&["aws".into(), "--version".into()], Output::Kept)?;
        if ended.code != 0 {
            return Err(error::fault("aws --version", &ended));
        }
        // Where it runs on Python 2 it says so on standard error.
        let said = [String::from_utf8_lossy(&ended.answer), ended.words.as_str().into()].concat();
        Ok(said.split_whitespace().next().unwrap_or_default().to_owned())
    }

    /// Whether a stop was asked for.
    pub(super) fn is_stopped(&self) -> bool {
        self.caller.is_stopped()
    }

    /// Calls an operation of ECS that may be called twice.
    pub(super) fn ecs(&mut self, operation: &str, arguments: &[&str]) -> Result<Value, Fault> {
        if let Some((role, session)) = self.role.take() {
            self.assume(&role, &session)?;
        }
        self.call("ecs", operation, arguments)
    }

    /// Calls an operation of ECS of which each call makes something: the CLI does not try it again
    /// by itself when its answer is lost, for we look before we do.
    pub(super) fn ecs_once(&mut self, operation: &str, arguments: &[&str]) -> Result<Value, Fault> {
        self.caller.set("AWS_MAX_ATTEMPTS", "1");
        let answer = self.ecs(operation, arguments);
        let attempts = std::env::var_os("AWS_MAX_ATTEMPTS");
        self.caller.set("AWS_MAX_ATTEMPTS", attempts.unwrap_or_else(|| ATTEMPTS.into()));
        answer
    }

    fn call(&mut self, service: &str, operation: &str, words: &[&str]) -> Result<Value, Fault> {
        // The CLI reads what such an argument names, and sends that in its place.
        let ours = words.iter().position(|word| *word == INPUT).map(|at| at + 1);
        let given = words.iter().enumerate().filter(|(at, _)| Some(*at) != ours);
        let given = given.map(|(_, word)| *word).chain(self.region.as_deref());
        if let Some(word) = given.into_iter().find(|word| is_read(word)) {
            return Err(Fault::usage(format!(
                "`{word}` is no name: the `aws` program would read what it names"
            )));
        }
        let mut command: Vec<OsString> = vec!["aws".into(), service.into(), operation.into()];
        command.extend(words.iter().map(OsString::from));
        if let Some(region) = &self.region {
            command.extend(["--region".into(), region.into()]);
        }
        let global = [
            ["--output", "json"],
            ["--cli-connect-timeout", CONNECT_SECONDS],
            ["--cli-read-timeout", ANSWER_SECONDS],
        ];
        command.extend(global.as_flattened().iter().map(OsString::from));
        let ended = self.caller.call(&command, Output::Kept)?;
        let call = format!("aws {service} {operation}");
        if ended.code != 0 {
            return Err(if self.caller.is_stopped() {
                ended.stopped(&call)
            } else {
                error::fault(&call, &ended)
            });
        }
        // Some operations answer nothing at all.
        if ended.answer.trim_ascii().is_empty() {
            return Ok(Value::Null);
        }
        ended.json(&call)
    }
}

/// Whether the CLI takes an argument for the place of its value: `file://`, `fileb://`, and in
/// older versions `http://` and `https://`.
fn is_read(word: &str) -> bool {
    ["file://", "fileb://", "http://", "https://"].iter().any(|prefix| word.starts_with(prefix))
}
