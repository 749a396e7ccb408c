//! Where the jobs of a runtime run, for whoever checks that.

use config::{JobHost, LocalEnv, Runtime};
use schema::id::RuntimeName;
use schema::log_kind::LogKind;

use super::super::calls::Plan;
use super::super::checks::CheckedRuntime;
use super::super::{Caller, Refusal};
use super::snapshot::Concerned;
use super::{Planner, entry};
use crate::compile::{Configs, RunTarget, cluster_places};

impl Planner {
    /// What of a runtime can be checked. Noted in the log where it has places on clusters, because
    /// a check makes a Job there.
    pub(super) async fn places(
        &self,
        runtime: &str,
        caller: &Caller,
    ) -> Result<CheckedRuntime, Refusal> {
        let found = self.store.find_runtime(runtime).await?;
        let row = found.ok_or_else(|| {
            Refusal::NotFound(format!(
                "there is no runtime `{runtime}`; `pvnctl runtimes list` shows those there are"
            ))
        })?;
        let estate = self.estate(&Concerned::runtimes_only()).await?;
        let everything_local = self.options.everything_local;
        let checked = checked(&estate.configs, &row.name, everything_local);
        if !checked.places.is_empty() {
            let message = format!("{} checks runtime {}", caller.who, row.name);
            let entries = vec![entry(
                LogKind::RuntimeChecked,
                caller,
                message,
                serde_json::json!({"runtime": row.name}),
            )];
            self.commit(Plan { entries, ..Plan::default() }).await?;
        }
        Ok(checked)
    }
}

fn checked(configs: &Configs, name: &RuntimeName, everything_local: bool) -> CheckedRuntime {
    let role = configs.runtime(name).map(Runtime::role);
    let commands = role.as_ref().and_then(|role| role.commands.as_ref());
    let host = role.as_ref().and_then(|role| role.host);
    let here = match (commands, host) {
        (Some(commands), _) => {
            let proxy = &commands.custom().proxy_runtime.runtime;
            local(configs.runtime(proxy).and_then(|proxy| proxy.role().host), everything_local)
        }
        (None, Some(JobHost::Local(_))) => local(host, everything_local),
        (None, _) => None,
    };
    // Jobs on a runtime of this machine are those of the runtimes that name it.
    let stands_on = |runtime: &&Runtime| {
        let commands = runtime.role().commands;
        commands.is_some_and(|commands| commands.custom().proxy_runtime.runtime == *name)
    };
    let serving = match host {
        Some(JobHost::Local(_)) => {
            configs.runtimes().filter(stands_on).map(|runtime| runtime.name.clone()).collect()
        }
        Some(_) => Vec::new(),
        None => vec![name.clone()],
    };
    CheckedRuntime {
        name: name.clone(),
        places: if everything_local { Vec::new() } else { cluster_places(configs, name) },
        here,
        serving,
        has_tool: commands.is_some_and(|commands| !commands.is_as_written()),
    }
}

/// Where on this machine jobs on such a runtime start.
fn local(host: Option<JobHost<'_>>, everything_local: bool) -> Option<RunTarget> {
    match host {
        Some(JobHost::Local(local)) => Some(RunTarget::Local {
            root: local.root.clone(),
            clean_env: local.env == Some(LocalEnv::Clean),
        }),
        Some(JobHost::Fake(_)) => None,
        _ if everything_local => Some(RunTarget::Local { root: None, clean_env: false }),
        _ => None,
    }
}
