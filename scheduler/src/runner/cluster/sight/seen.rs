//! All that the cluster shows of one job, taken in as it comes. Called by `watch`.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::super::lost_watch::LostWatch;
use super::asked::with_what_was_seen;
use super::counts::had_pods;
use super::job_end::is_over;
use super::taken::run_although_asked;
use super::time;

/// All that the cluster shows of one job.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Sight {
    /// The Job, as it was last seen.
    pub(in super::super) job: Option<Job>,
    /// Whether it is gone.
    pub(in super::super) job_gone: bool,
    /// The newest Pod, as it was last seen.
    pub(in super::super) pod: Option<Pod>,
    /// Pods before that, as they were last seen: tries that are over, or on their way out.
    pub(in super::super) older: Vec<Pod>,
    /// Whether the newest is gone.
    pub(in super::super) pod_gone: bool,
    /// With `pod_gone`: whether nobody saw how it went, so that its last state is not known.
    pub(in super::super) pod_missed: bool,
    /// Whether all Jobs, and all Pods, were listed since somebody looks.
    pub(in super::super) jobs_listed: bool,
    pub(in super::super) pods_listed: bool,
    /// How often the watch of the Pods was lost.
    pub(in super::super) pods_broken: u32,
    /// That the cluster does not show us the Jobs, or the Pods, since it last did.
    pub(in super::super) jobs_lost: Option<LostWatch>,
    pub(in super::super) pods_lost: Option<LostWatch>,
    /// Containers that were seen to run in a Pod, by its uid, that had been asked to end.
    pub(in super::super) outlived: Vec<(Option<String>, String)>,
}

impl Sight {
    /// Whether all that is there was seen once. Before that nothing is known to be absent.
    pub(in super::super) fn is_listed(&self) -> bool {
        self.jobs_listed && self.pods_listed
    }

    /// What keeps us from seeing once all that is there.
    pub(in super::super) fn unlisted(&self) -> Option<&LostWatch> {
        let pods = self.pods_lost.as_ref().filter(|_| !self.pods_listed);
        self.jobs_lost.as_ref().filter(|_| !self.jobs_listed).or(pods)
    }

    /// What keeps us from seeing what happens, although all was listed once.
    pub(in super::super) fn unwatched(&self) -> Option<&LostWatch> {
        self.jobs_lost
            .iter()
            .chain(&self.pods_lost)
            .filter(|lost| lost.is_unlisted)
            .min_by_key(|lost| lost.since)
    }

    /// Whether its Job is over and had a Pod, and there is none.
    pub(in super::super) fn lacks_its_pod(&self) -> bool {
        self.pod.is_none()
            && !self.job_gone
            && self.job.as_ref().is_some_and(|job| is_over(job) && had_pods(job))
    }

    /// Whether its Job makes no other Pod.
    pub(in super::super) fn is_job_over(&self) -> bool {
        self.job_gone || self.job.as_ref().is_some_and(is_over)
    }

    /// Takes in a Pod as it is now.
    pub(in super::super) fn see(&mut self, pod: &Pod) {
        let before = self
            .older
            .iter()
            .chain(&self.pod)
            .find(|before| before.metadata.uid == pod.metadata.uid);
        let pod = &before.map_or_else(|| pod.clone(), |before| with_what_was_seen(pod, before));
        for container in run_although_asked(pod) {
            let outlived = (pod.metadata.uid.clone(), container.to_owned());
            if self.outlived.len() < OUTLIVED_LIMIT && !self.outlived.contains(&outlived) {
                self.outlived.push(outlived);
            }
        }
        let made_at = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(time);
        let is_other = |of: &Pod| of.metadata.name != pod.metadata.name;
        self.older.retain(is_other);
        if self
            .pod
            .as_ref()
            .is_some_and(|newest| is_other(newest) && made_at(newest) > made_at(pod))
        {
            self.older.push(pod.clone());
        } else {
            (self.pod_gone, self.pod_missed) = (false, false);
            self.older.extend(self.pod.replace(pod.clone()).filter(is_other));
        }
        if self.older.len() > OLDER_LIMIT {
            self.older.sort_by_key(|pod| made_at(pod));
            self.older.remove(0);
        }
    }

    /// Whether every container of its Pod has ended.
    pub(in super::super) fn is_pod_over(&self) -> bool {
        self.pod_gone || self.pod.as_ref().is_some_and(is_pod_over)
    }
}

/// Whether every container of a Pod has ended.
pub(in super::super) fn is_pod_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Most Pods of one Job that are remembered beside the newest. What became of those before them its
/// Job's counts say.
pub(super) const OLDER_LIMIT: usize = 8;

/// Most containers that are remembered to have run in a Pod that had been asked to end.
const OUTLIVED_LIMIT: usize = 256;
