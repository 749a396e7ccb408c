//! The plugin of a kubeconfig (`exec`), which gives its credentials: run here and not by kube,
//! which would wait for it without end, and run it once for each client. Called by `clusters`,
//! which asks again before what it gave has ended.
//!
//! What always holds: a plugin and what it started in its process group are gone after [`WITHIN`];
//! nothing is told of its arguments, its environment and what it printed, but how it ended. Source
//! of what it is told and answers: `client.authentication.k8s.io/v1`.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, ExecConfig};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use schema::time::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::faults::PROVIDER;

/// Longest run of a plugin. Those of the clouds ask a server or two, and try again: the AWS command
/// line waits up to a minute for one answer.
#[cfg(not(test))]
const WITHIN: Duration = Duration::from_secs(60);
/// Shorter where a test waits for it.
#[cfg(test)]
const WITHIN: Duration = Duration::from_secs(2);

/// Longest answer that is read: a chain of certificates and a key have some 10 KB.
const ANSWER_LIMIT_BYTES: u64 = 1 << 20;

/// What a plugin prints, but for what nobody here needs.
#[derive(Deserialize)]
struct ExecCredential {
    status: Option<ExecCredentialStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredentialStatus {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

/// Has the plugin of a user give the credentials, if that is where they come from, and puts them in
/// its place. Returns when they end, if they do.
///
/// # Errors
/// Why there are none, for people.
pub(super) async fn credentials(user: &mut AuthInfo) -> Result<Option<Timestamp>, String> {
    // It would be run by kube, without limit. kubectl knows it no more.
    if user.auth_provider.as_ref().is_some_and(|provider| provider.config.contains_key("cmd-path"))
    {
        return Err(PROVIDER.to_owned());
    }
    // As kube has it, the others come first.
    let has_others =
        user.auth_provider.is_some() || user.token.is_some() || user.token_file.is_some();
    let has_password = user.username.is_some() && user.password.is_some();
    let Some(exec) = user.exec.take().filter(|_| !has_others && !has_password) else {
        return Ok(None);
    };
    let Some(command) = exec.command.as_deref() else {
        return Err("its `exec` has no `command`".to_owned());
    };
    let plugin = name(command);
    let given = match run(command, &exec).await {
        Ok(answer) => read(&answer),
        Err(why) => Err(why),
    };
    let given = given.map_err(|why| format!("{plugin} {why}"))?;
    let ends = given.expiration_timestamp.as_deref().map(|text| {
        let read = chrono::DateTime::parse_from_rfc3339(text);
        read.map(|at| Timestamp::from_millis(at.timestamp_millis()))
            .map_err(|_not_shown| format!("{plugin} printed an end of its token that is no time"))
    });
    let ends = ends.transpose()?;
    take(user, &given)?;
    Ok(ends)
}

/// Puts what was given where a kubeconfig without a plugin has it.
fn take(user: &mut AuthInfo, given: &ExecCredentialStatus) -> Result<(), String> {
    let broken = |_not_shown| "its user cannot be written".to_owned();
    let mut plain = serde_json::to_value(&*user).map_err(broken)?;
    if let Some(token) = &given.token {
        plain["token"] = token.as_str().into();
    }
    if let (Some(certificate), Some(key)) = (&given.client_certificate_data, &given.client_key_data)
    {
        plain["client-certificate-data"] = STANDARD.encode(certificate).into();
        plain["client-key-data"] = STANDARD.encode(key).into();
    }
    *user = serde_json::from_value(plain).map_err(broken)?;
    Ok(())
}

fn read(answer: &[u8]) -> Result<ExecCredentialStatus, String> {
    let answer: ExecCredential = serde_json::from_slice(answer).map_err(|_not_shown| {
        "printed no ExecCredential; run it by hand to see what it says".to_owned()
    })?;
    let given = answer.status.ok_or("printed no `status`, where the credentials are")?;
    if given.token.is_none()
        && (given.client_certificate_data.is_none() || given.client_key_data.is_none())
    {
        return Err(
            "printed a `status` with neither a token nor a certificate and its key".to_owned()
        );
    }
    Ok(given)
}

/// What it prints on stdout. The error goes on from its name.
async fn run(command: &str, exec: &ExecConfig) -> Result<Vec<u8>, String> {
    let cluster = exec.cluster.as_ref().filter(|_| exec.provide_cluster_info);
    let info = json!({
        "apiVersion": exec.api_version, "kind": "ExecCredential", "spec": {"interactive": false, "cluster": cluster},
    });
    let set = exec
        .env
        .iter()
        .flatten()
        .filter_map(|variable| Some((variable.get("name")?, variable.get("value")?)));
    // Nobody can answer it here, and what it prints for people would be in our log.
    let mut child = Command::new(command)
        .args(exec.args.iter().flatten())
        .envs(set)
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            format!(
                "cannot be started: {error}; install it where the scheduler finds it, on its own \
                 PATH"
            )
        })?;
    let group = child.id().and_then(|id| Some(Pid::from_raw(id.try_into().ok()?)));
    let stdout = child.stdout.take().expect("it is piped");
    let ended =
        tokio::time::timeout(WITHIN, async { tokio::join!(up_to_limit(stdout), child.wait()) })
            .await;
    if let Some(group) = group.filter(|_| ended.is_err()) {
        // Not there any more is as good.
        let _gone = killpg(group, Signal::SIGKILL);
    }
    match ended {
        Ok((Ok(answer), Ok(status))) if status.success() => Ok(answer),
        Ok((_, Ok(status))) => Err(ended_with(status)),
        Ok((_, Err(error))) => Err(format!("cannot be waited for: {error}")),
        Err(_) => Err(format!(
            "did not end within {} s and was killed; run it by hand, as the user and in the \
             environment of the scheduler",
            WITHIN.as_secs()
        )),
    }
}

fn ended_with(status: ExitStatus) -> String {
    format!(
        "ended with {status}; run it by hand, as the user and in the environment of the scheduler"
    )
}

/// Reads to the end, and keeps no more than what an answer may have.
async fn up_to_limit(mut stdout: impl AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    (&mut stdout).take(ANSWER_LIMIT_BYTES).read_to_end(&mut answer).await?;
    tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await?;
    Ok(answer)
}

/// What the plugin is called. Some write a whole command line there, whose rest is not told.
fn name(command: &str) -> String {
    let path = command.split_whitespace().next().map(Path::new);
    let program = path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    format!("the plugin `{}` of its `exec`", program.unwrap_or_default())
}
