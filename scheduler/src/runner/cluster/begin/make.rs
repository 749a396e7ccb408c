//! What is made on a cluster for a job: its Job, its Secret, and a namespace of ours. Called by
//! `begin`.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::super::ask::RequestRefusal;
use super::super::changed;
use super::super::follow::{FIELD_MANAGER, JobFollower};
use super::super::job::Objects;
use super::super::leave::May;
use super::super::unstarted::{later, never, told};
use crate::compile::ClusterPlace;
use crate::runner::ClusterJob;
use crate::runner::evidence::Never;

/// What the cluster answers to whoever makes what is there.
const ALREADY_EXISTS: u16 = 409;

impl JobFollower {
    /// The uid of the Job, suspended, with everything that it needs.
    pub(super) async fn make(
        &mut self,
        wanted: &ClusterJob,
        objects: &Objects,
        tried_before: bool,
        deadline: Instant,
    ) -> Result<String, Never> {
        if self.record.is_apply
            && let Err(why) = self.is_alone(tried_before, deadline).await
        {
            self.is_unmade = !tried_before;
            return Err(why);
        }
        let (uid, is_job_older) = self.make_job(wanted, objects, tried_before, deadline).await?;
        self.make_secret(objects, &uid, tried_before && !is_job_older, deadline).await?;
        self.teller.tell(None);
        Ok(uid)
    }

    /// The uid of the Job, and whether an earlier try made it. Makes the namespace too if that is
    /// ours to make.
    async fn make_job(
        &mut self,
        wanted: &ClusterJob,
        objects: &Objects,
        tried_before: bool,
        deadline: Instant,
    ) -> Result<(String, bool), Never> {
        let (jobs, name) = (self.jobs(), &objects.name);
        // It is suspended: what would run otherwise than it was asked for is taken away before it
        // does.
        let uid = |job: Job| match changed::runs_more(&job, objects.tries_again) {
            Some(what) => Err(never(changed::refusal(&what))),
            None => job.uid().ok_or_else(|| later("the cluster gave its Job no uid".to_owned())),
        };
        if tried_before {
            let found = self
                .ask_until(deadline, May::Always, "looking for its Job", || jobs.get_opt(name))
                .await;
            if let Some(found) = found.map_err(|(refused, _)| told(refused))? {
                return Ok((uid(found)?, true));
            }
        }
        // Not by force: a request that a gateway held until the Job was let go would suspend it
        // again, which ends what runs. Letting it go is a change by another way than this, so the
        // cluster answers with a conflict.
        let params = PatchParams::apply(FIELD_MANAGER).validation_strict();
        let apply = async || match jobs.patch(name, &params, &Patch::Apply(&objects.job)).await {
            Err(kube::Error::Api(status)) => match objects.without_what_is_unknown(&status.message)
            {
                Some(job) => jobs.patch(name, &params, &Patch::Apply(&job)).await,
                None => Err(kube::Error::Api(status)),
            },
            made => made,
        };
        let make = async || {
            self.ask_until(deadline, May::WhileOurs(&self.inner), "making its Job", apply).await
        };
        let made = match make().await {
            Err((RequestRefusal::NotFound(_), _)) if wanted.place.own_namespace => {
                self.make_namespace(wanted, deadline).await?;
                make().await
            }
            Err((RequestRefusal::NotFound(why), _)) => {
                return Err(never(format!("{why}; {}", absent_remedy(&wanted.place.namespace))));
            }
            made => made,
        };
        match made {
            Ok(job) => Ok((uid(job)?, false)),
            Err((refused, is_doubtful)) => {
                self.is_unmade = !is_doubtful && !tried_before;
                Err(told(refused))
            }
        }
    }

    async fn make_namespace(&self, wanted: &ClusterJob, deadline: Instant) -> Result<(), Never> {
        let namespaces: Api<Namespace> = Api::all(self.cluster.client.clone());
        let made = self.ask_until(deadline, May::Always, "making its namespace", || {
            apply_namespace(&namespaces, &wanted.place, false)
        });
        made.await.map(drop).map_err(|(refused, _)| told(refused))
    }

    /// Only made, never changed: whoever may change a Secret may read it. One that is there already
    /// was made by an earlier request, for it is named after the job; but beside a Job that had
    /// to be made anew it may belong to the one before, and go with it.
    async fn make_secret(
        &self,
        objects: &Objects,
        uid: &str,
        is_made_anew: bool,
        deadline: Instant,
    ) -> Result<(), Never> {
        let Some(secret) = objects.secret(uid) else { return Ok(()) };
        let secrets: Api<Secret> =
            Api::namespaced(self.cluster.client.clone(), &self.record.place.namespace);
        // The error would show what is in it.
        let secret: Secret = serde_json::from_value(secret)
            .map_err(|_| never("its Secret cannot be made".to_owned()))?;
        let params =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let create = || {
            let made = secrets.create(&params, &secret);
            async move {
                match made.await {
                    Err(kube::Error::Api(status))
                        if status.code == ALREADY_EXISTS && !is_made_anew =>
                    {
                        Ok(())
                    }
                    made => made.map(drop),
                }
            }
        };
        self.ask_until(deadline, May::Always, "making its Secret", create)
            .await
            .map_err(|(refused, _)| told(refused))
    }
}

/// Makes a namespace of ours, or finds it. With `is_dry_run` the cluster only says what it would
/// say.
pub(in super::super) async fn apply_namespace(
    namespaces: &Api<Namespace>,
    place: &ClusterPlace,
    is_dry_run: bool,
) -> kube::Result<Namespace> {
    let labels =
        json!({"app.kubernetes.io/managed-by": "pvn", "pvn.dev/runtime": place.runtime.as_str()});
    let metadata = json!({"name": place.namespace, "labels": labels});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let params = PatchParams { dry_run: is_dry_run, ..PatchParams::apply(FIELD_MANAGER).force() };
    namespaces.patch(&place.namespace, &params, &Patch::Apply(&namespace)).await
}

/// What to do about a given namespace that is not there.
pub(in super::super) fn absent_remedy(namespace: &str) -> String {
    format!(
        "create the namespace `{namespace}`, or leave `containerOrchestration` out and pvn makes \
         one"
    )
}
