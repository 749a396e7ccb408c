//! Rules of a runtime: its commands, and what they run.

use schema::schedule::{CronText, Timezone};

use super::Rules;
use crate::{
    ApplyCommand, CustomRuntime, Exec, FetchCommand, GetInfoCommand, Program, RetryPolicy, Runtime,
    RuntimeKind, Volume,
};

impl Rules<'_> {
    pub(super) fn runtime(&mut self, runtime: &Runtime, at: &str) {
        self.unique(runtime.labels.iter().map(|label| label.label.as_str()), "label", |index| {
            format!("{at}/labels/{index}/label")
        });
        let role = runtime.role();
        let at = format!("{at}/{}", role.kind);
        if let Some(commands) = &role.commands {
            self.custom(commands.custom(), &at);
        }
        if let RuntimeKind::TerraformRunner(runner) | RuntimeKind::PulumiRunner(runner) =
            &runtime.kind
        {
            self.retry(runner.fetch_retry_policy.as_ref(), &format!("{at}/fetchRetryPolicy"));
            self.retry(runner.apply_retry_policy.as_ref(), &format!("{at}/applyRetryPolicy"));
            self.volumes(&runner.volumes, &at);
        }
    }

    fn custom(&mut self, custom: &CustomRuntime, at: &str) {
        if let Some(fetch) = &custom.fetch {
            self.fetch(fetch, &format!("{at}/fetch"));
        }
        self.apply(&custom.apply, &format!("{at}/apply"));
        let why = "nobody can answer in so short a time, and people would be asked again and again";
        self.at_least_a_second(custom.approval_timeout, "approvalTimeout", why, at);
        if let Some(get_info) = &custom.get_info {
            self.get_info(get_info, &format!("{at}/getInfo"));
        }
        self.parameters(&custom.parameters, at);
    }

    fn fetch(&mut self, fetch: &FetchCommand, at: &str) {
        self.command(&fetch.exec, at);
        self.retry(fetch.retry_policy.as_ref(), &format!("{at}/retryPolicy"));
        self.schedule(fetch.poll_schedule.as_ref(), fetch.timezone, at);
    }

    fn get_info(&mut self, get_info: &GetInfoCommand, at: &str) {
        self.command(&get_info.exec, at);
        self.retry(get_info.retry_policy.as_ref(), &format!("{at}/retryPolicy"));
        self.schedule(get_info.poll_schedule.as_ref(), get_info.timezone, at);
    }

    fn schedule(&mut self, schedule: Option<&CronText>, timezone: Option<Timezone>, at: &str) {
        if timezone.is_some() && schedule.is_none() {
            self.add(
                format!("{at}/timezone"),
                "`timezone` is that of `pollSchedule`, which is missing",
            );
        }
    }

    fn apply(&mut self, apply: &ApplyCommand, at: &str) {
        self.command(&apply.exec, at);
        self.retry(apply.retry_policy.as_ref(), &format!("{at}/retryPolicy"));
        let codes: Vec<String> = apply.retryable_exit_codes.iter().map(i32::to_string).collect();
        self.unique(codes.iter().map(String::as_str), "exit code", |index| {
            format!("{at}/retryableExitCodes/{index}")
        });
    }

    fn retry(&mut self, policy: Option<&RetryPolicy>, at: &str) {
        if let Some(RetryPolicy { base_interval: Some(base), max_interval: Some(max), .. }) = policy
            && max < base
        {
            self.add(
                format!("{at}/maxInterval"),
                format!("`maxInterval` {max} is less than `baseInterval` {base}"),
            );
        }
    }

    fn command(&mut self, exec: &Exec, at: &str) {
        match exec {
            Exec::Task(task) => {
                self.program(&task.program, &format!("{at}/taskConfig/program"));
                self.volumes(&task.volumes, &format!("{at}/taskConfig"));
            }
            Exec::Kubernetes(kubernetes) => {
                let at = format!("{at}/kubernetesConfig");
                self.local(kubernetes.local.as_ref(), &at);
                self.job(kubernetes, &at);
            }
        }
    }

    fn program(&mut self, program: &Program, at: &str) {
        if program.image.is_some() && program.image_tag.is_some() {
            self.add(
                format!("{at}/imageTag"),
                "at most one of `image`, `imageTag`; both are given",
            );
            self.help(
                "`image` is the whole reference; with `imageTag` the rest is in \
                 `imageRegistryInfo`",
            );
        } else if program.image_tag.is_some() && program.image_registry_info.is_none() {
            self.add(
                format!("{at}/imageTag"),
                "`imageTag` needs `imageRegistryInfo`: nothing says of which image it is the tag",
            );
        }
    }

    fn volumes(&mut self, volumes: &[Volume], at: &str) {
        self.unique(volumes.iter().map(|volume| volume.name.as_str()), "volume", |index| {
            format!("{at}/volumes/{index}/name")
        });
        let paths = volumes.iter().map(|volume| volume.mount.mount_path.as_str());
        self.unique(paths, "mount path", |index| format!("{at}/volumes/{index}/mount/mountPath"));
    }
}
