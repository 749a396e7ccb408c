//! The end of the private directories of instances that are deleted for good. Called by the driver
//! through [`LocalRunner`], and when a job has ended that put it off.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use schema::id::{InstanceId, JobId};

use super::{LocalInner, LocalRunner};
use crate::runner::Instance;

impl LocalRunner {
    /// Removes the private directory of an instance that is deleted for good. While a job runs here
    /// that nobody knows and that may use it, that is put off until the job has ended.
    pub async fn forget_instance(&self, instance: Instance) {
        if self.inner.strays.put_off(&instance) {
            tracing::info!(
                instance = instance.name,
                "a job runs that the database does not know; what the deleted instance keeps \
                 stays until that has ended"
            );
            return;
        }
        self.inner.remove_instance(instance).await;
    }

    /// Removes the private directories of all instances but these; none while a job runs here that
    /// is not among the known ones: whose directory it uses nobody can say.
    pub async fn retain_instances(&self, kept: HashSet<InstanceId>, known: &[JobId]) {
        for job in self.left_over(known).await {
            // One that cannot be looked at may run.
            if self.inner.may_be_there(job).await.unwrap_or(true) {
                tracing::warn!(
                    %job,
                    "a job runs that the database does not know; what instances keep that it does \
                     not know neither stays until the next start"
                );
                return;
            }
        }
        let inner = self.inner.clone();
        remove_instances(move || inner.instances.retain(&kept, |job| inner.has_directory(job)))
            .await;
    }
}

impl LocalInner {
    pub(super) async fn remove_instance(self: &Arc<Self>, instance: Instance) {
        let inner = self.clone();
        remove_instances(move || {
            inner.instances.forget_applies(&instance, |job| inner.has_directory(job))?;
            inner.instances.remove(instance.id)
        })
        .await;
    }
}

pub(super) async fn remove_instances(remove: impl FnOnce() -> io::Result<()> + Send + 'static) {
    // It does not panic; and when the runtime ends, the next start removes what is left.
    if let Ok(Err(error)) = tokio::task::spawn_blocking(remove).await {
        tracing::warn!(
            %error,
            "failed to remove the private directory of a deleted instance; it takes up space until \
             somebody does"
        );
    }
}
