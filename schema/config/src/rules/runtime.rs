//! Rules of a runtime: its commands, and what they run.

use super::Rules;
use crate::{CustomRuntime, Exec, FetchMode, Program, RetryPolicy, Runtime, RuntimeKind, Volume};

impl Rules<'_> {
    pub(super) fn runtime(&mut self, runtime: &Runtime, at: &str) {
        self.unique(runtime.labels.iter().map(|label| label.label.as_str()), "label", |index| {
            format!("{at}/labels/{index}/label")
        });
        let role = runtime.role();
        let at = format!("{at}/{}", role.kind);
        // What is made from another block is told of that one, once.
        if let Some(commands) = role.commands.as_ref().filter(|commands| commands.is_as_written()) {
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
        for command in custom.commands() {
            let at = format!("{at}/{}", command.name);
            self.command(command.exec, &at);
            self.retry(command.retry_policy, &format!("{at}/retryPolicy"));
            if command.timezone.is_some() && command.poll_schedule.is_none() {
                self.add(
                    format!("{at}/timezone"),
                    "`timezone` is that of `pollSchedule`, which is missing",
                );
            }
        }
        self.exit_codes(
            &custom.apply.retryable_exit_codes,
            &format!("{at}/apply/retryableExitCodes"),
        );
        if let Some(fetch) = &custom.fetch {
            let at = format!("{at}/fetch/workExitCodes");
            self.exit_codes(&fetch.work_exit_codes, &at);
            if !fetch.work_exit_codes.is_empty() && fetch.fetch_mode == FetchMode::StructuredOutput
            {
                self.add(
                    at,
                    "`workExitCodes` goes with `fetchMode: EXIT_CODE`: with STRUCTURED_OUTPUT \
                     every code but 0 is an error, and work is what is printed",
                );
            }
        }
        let why = "nobody can answer in so short a time, and people would be asked again and again";
        self.at_least_a_second(custom.approval_timeout, "approvalTimeout", why, at);
        self.parameters(&custom.parameters, at);
    }

    fn exit_codes(&mut self, codes: &[i32], at: &str) {
        let codes: Vec<String> = codes.iter().map(i32::to_string).collect();
        self.unique(codes.iter().map(String::as_str), "exit code", |index| format!("{at}/{index}"));
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
