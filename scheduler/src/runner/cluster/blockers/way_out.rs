//! What would end the wait of a job that does not start: which of these it is, and the words for
//! it. The cluster says why it waits by a reason, which is text; why we ourselves make it wait, or
//! cannot see it, is known without.

/// What would end a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum WaitEnd {
    ImageCanBePulled,
    ImageIsOnNode,
    ImageNameIsLegal,
    UserIsNumber,
    ConfigIsThere,
    VolumeCanBeMounted,
    NodeHasRoom,
    SchedulingGatesGone,
    Resumed,
    OlderJobsGone,
    OtherPodsEnd,
    NamedThingIsMade,
    PolicyAdmits,
    PodCanBeMade,
    ClusterTakesIt,
    RightGiven,
    CredentialsAccepted,
    ClusterAnswers,
    StopTaken,
    DeletionTaken,
    InitContainerEnds,
    NextTry,
    NodeStartsPods,
    NodeStartsContainer,
}

impl WaitEnd {
    /// What ends a wait for which the cluster gives this reason, as the status of a Pod or as an
    /// event; `why` is all that it says.
    pub(super) fn of(reason: &str, why: &str) -> Self {
        match reason {
            "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" | "ImageInspectError" => {
                Self::ImageCanBePulled
            }
            "ErrImageNeverPull" => Self::ImageIsOnNode,
            "InvalidImageName" => Self::ImageNameIsLegal,
            "CreateContainerConfigError"
                if ["runAsNonRoot", "non-root", "run as root"]
                    .iter()
                    .any(|words| why.contains(words)) =>
            {
                Self::UserIsNumber
            }
            "CreateContainerConfigError" => Self::ConfigIsThere,
            "FailedMount" | "FailedAttachVolume" | "FailedMapVolume" => Self::VolumeCanBeMounted,
            "Unschedulable" => Self::NodeHasRoom,
            "SchedulingGated" => Self::SchedulingGatesGone,
            "Suspended" => Self::Resumed,
            "FailedCreate" => Self::quota(why).unwrap_or_else(|| {
                if why.contains("not found") {
                    Self::NamedThingIsMade
                } else if why.contains("forbidden") || why.contains("denied") {
                    Self::PolicyAdmits
                } else {
                    Self::PodCanBeMade
                }
            }),
            "CrashLoopBackOff" => Self::NextTry,
            "FailedCreatePodSandBox" | "FailedKillPod" | "NetworkNotReady" => Self::NodeStartsPods,
            _ => Self::NodeStartsContainer,
        }
    }

    /// What ends a wait for which the cluster names a quota.
    pub(super) fn quota(why: &str) -> Option<Self> {
        // Of how many there may be, be they over or not.
        let of_a_number = ["count/", "secrets="].iter().any(|counted| why.contains(counted));
        why.contains("exceeded quota").then_some(if of_a_number {
            Self::OlderJobsGone
        } else {
            Self::OtherPodsEnd
        })
    }

    /// As the end of "it ends when …"; `may_cancel`: it is for somebody to cancel the job, where
    /// that is a way out.
    pub(super) fn words(self, may_cancel: bool) -> String {
        let or_cancelled = if may_cancel && self.or_by_cancelling() {
            ", or when somebody cancels the job"
        } else {
            ""
        };
        format!("{}{or_cancelled}", self.own_words())
    }

    /// Whether to cancel the job is named as a way out too: the cluster does not let us look, and
    /// whoever could help may be long in doing so.
    pub(super) fn or_by_cancelling(self) -> bool {
        matches!(self, Self::RightGiven | Self::CredentialsAccepted | Self::ClusterAnswers)
    }

    /// Whether another try may find it otherwise: room on a node, say, but not the name of an
    /// image.
    pub(super) fn is_of_the_surroundings(self) -> bool {
        match self {
            Self::NodeHasRoom
            | Self::SchedulingGatesGone
            | Self::Resumed
            | Self::OlderJobsGone
            | Self::OtherPodsEnd
            | Self::PodCanBeMade
            | Self::ClusterTakesIt
            | Self::RightGiven
            | Self::CredentialsAccepted
            | Self::ClusterAnswers
            | Self::StopTaken
            | Self::DeletionTaken
            | Self::NodeStartsPods => true,
            Self::ImageCanBePulled
            | Self::ImageIsOnNode
            | Self::ImageNameIsLegal
            | Self::UserIsNumber
            | Self::ConfigIsThere
            | Self::VolumeCanBeMounted
            | Self::NamedThingIsMade
            | Self::PolicyAdmits
            | Self::InitContainerEnds
            | Self::NextTry
            | Self::NodeStartsContainer => false,
        }
    }

    fn own_words(self) -> &'static str {
        match self {
            Self::ImageCanBePulled => {
                "the image can be pulled: look at its name, the registry and the pull secret"
            }
            Self::ImageIsOnNode => "the image is on the node, from which alone it may be taken",
            Self::ImageNameIsLegal => "a release with a legal image name takes its place",
            Self::UserIsNumber => {
                "its image has a user by number, or `runAsUser` in its `securityContext` says one"
            }
            Self::ConfigIsThere => "the Secret or ConfigMap that it names is there, with that key",
            Self::VolumeCanBeMounted => "the volume can be mounted: make what it names",
            Self::NodeHasRoom => "a node has room for it",
            Self::SchedulingGatesGone => "its scheduling gates are removed",
            Self::Resumed => "somebody resumes its Job",
            Self::OlderJobsGone => {
                "older Jobs are removed, which their Secrets go with, or the quota is raised"
            }
            Self::OtherPodsEnd => "other Pods end or the quota is raised",
            Self::NamedThingIsMade => "what it names is made",
            Self::PolicyAdmits => "the namespace's policy admits its Pod",
            Self::PodCanBeMade => "its Pod can be made",
            Self::ClusterTakesIt => "the cluster answers and takes it",
            Self::RightGiven => "the scheduler's account has this right",
            Self::CredentialsAccepted => {
                "the kubeconfig gives credentials that the cluster accepts"
            }
            Self::ClusterAnswers => "the cluster answers",
            Self::StopTaken => {
                "the cluster takes the stop, which is tried again every 5 s, or it ends by itself"
            }
            Self::DeletionTaken => {
                "the cluster takes the deletion of its Job, which is tried again every 3 s, or its \
                 gates are open again"
            }
            Self::InitContainerEnds => "it has ended",
            Self::NextTry => "its next try starts",
            Self::NodeStartsPods => "its node can start Pods again",
            Self::NodeStartsContainer => "its node can start its container",
        }
    }
}
