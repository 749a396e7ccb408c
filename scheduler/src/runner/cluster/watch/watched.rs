//! What the watches of Jobs and of Pods have in common, and in what they differ. Called by `watch`.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::super::lost_watch::LostWatch;
use super::super::own::OwnObjects;
use super::super::sight::Sight;

/// What the two watches have in common: which objects are there, and what a job's sight makes of
/// one.
pub(super) trait Watched: kube::Resource<DynamicType = ()> + Clone + Send + 'static {
    fn is_of(&self, own: &OwnObjects) -> bool;
    fn seen(sight: &mut Sight, object: &Self);
    /// `is_missed`: it was there, and is not any more; how it went nobody saw.
    fn gone(sight: &mut Sight, name: &str, is_missed: bool);
    fn listed(sight: &mut Sight);
    /// Where it stands that the watch is lost.
    fn lost(sight: &mut Sight) -> &mut Option<LostWatch>;
    /// Something may have happened that no event tells.
    fn broken(sight: &mut Sight);
    /// As roles call it.
    const RESOURCE: &str;
}

impl Watched for Job {
    fn is_of(&self, own: &OwnObjects) -> bool {
        own.is_job(self)
    }

    fn seen(sight: &mut Sight, object: &Self) {
        sight.job = Some(object.clone());
        sight.job_gone = false;
    }

    fn gone(sight: &mut Sight, name: &str, _is_missed: bool) {
        sight.job_gone |= sight.job.as_ref().is_some_and(|job| job.name_any() == name);
    }

    fn listed(sight: &mut Sight) {
        (sight.jobs_listed, sight.jobs_lost) = (true, None);
    }

    fn lost(sight: &mut Sight) -> &mut Option<LostWatch> {
        &mut sight.jobs_lost
    }

    fn broken(_sight: &mut Sight) {}

    const RESOURCE: &str = "jobs.batch";
}

impl Watched for Pod {
    fn is_of(&self, own: &OwnObjects) -> bool {
        own.has_pod(self)
    }

    fn seen(sight: &mut Sight, object: &Self) {
        sight.see(object);
    }

    fn gone(sight: &mut Sight, name: &str, is_missed: bool) {
        if !sight.pod_gone && sight.pod.as_ref().is_some_and(|pod| pod.name_any() == name) {
            (sight.pod_gone, sight.pod_missed) = (true, is_missed);
        }
    }

    fn listed(sight: &mut Sight) {
        (sight.pods_listed, sight.pods_lost) = (true, None);
    }

    fn lost(sight: &mut Sight) -> &mut Option<LostWatch> {
        &mut sight.pods_lost
    }

    fn broken(sight: &mut Sight) {
        sight.pods_broken += 1;
    }

    const RESOURCE: &str = "pods";
}
