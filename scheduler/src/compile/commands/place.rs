//! Where a runtime's commands run. Called by `commands`.

use config::{CustomRuntime, JobHost, ProxyRuntime};

use super::super::problem::{DocumentField, DocumentKey, Problems};
use super::super::{ClusterPlace, RunTarget as JobPlace, nearest};
use super::Maker;

impl Maker<'_> {
    pub(super) fn job_place(
        &self,
        custom: &CustomRuntime,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<JobPlace> {
        let proxy = &custom.proxy_runtime;
        let place = place.field("proxyRuntime");
        let job_place = self.proxy_place(proxy, &place.field("runtime"), problems)?;
        if proxy.container_orchestration.is_some()
            && !self.options.everything_local
            && matches!(job_place, JobPlace::Local { .. })
        {
            let problem = place
                .field("containerOrchestration")
                .problem("`containerOrchestration` has no effect on a `local` runtime");
            problems.add(problem.help("take it out, or name a Kubernetes runtime"));
        }
        Some(job_place)
    }

    fn proxy_place(
        &self,
        proxy: &ProxyRuntime,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<JobPlace> {
        let name = &proxy.runtime;
        let here = JobPlace::Local { root: None, clean_env: false };
        let Some(runtime) = self.configs.runtime(name) else {
            if self.options.everything_local {
                return Some(here);
            }
            let names = self.configs.runtime_names();
            problems.add(place.problem(format!("unknown runtime `{name}`")).help(nearest::help(
                name.as_str(),
                "runtimes",
                names,
            )));
            return None;
        };
        let role = runtime.role();
        match role.host {
            Some(JobHost::Local(local)) => Some(JobPlace::Local {
                root: local.root.clone(),
                clean_env: local.env == Some(config::LocalEnv::Clean),
            }),
            Some(JobHost::Fake(fake)) => {
                Some(JobPlace::Fake { crashing_programs: fake.crashing_programs.clone() })
            }
            Some(JobHost::Kubernetes(_)) if self.options.everything_local => Some(here),
            Some(JobHost::Kubernetes(kubernetes)) => match &place.document {
                Some(DocumentKey::Runtime(runtime)) => {
                    Some(JobPlace::Cluster(Box::new(ClusterPlace::new(proxy, kubernetes, runtime))))
                }
                _ => None,
            },
            None => {
                let problem = place.problem(format!(
                    "runtime `{name}` is of kind `{}`, which cannot run the jobs of another",
                    role.kind
                ));
                problems
                    .add(problem.help("name `local`, a `fake` runtime or a Kubernetes runtime"));
                None
            }
        }
    }
}
