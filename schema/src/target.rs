//! Where a job runs: decided together with the job, and kept in its row, so that nobody has to look
//! for it.

use std::fmt;
use std::str::FromStr;

use crate::id::{JobId, ParseError, RuntimeName};
use crate::text_form::written_as_text;

/// Where a job runs. As text `local`, `fake` or `cluster/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobTarget {
    /// A process on the scheduler's own machine.
    Local,
    /// A Job on the Kubernetes cluster that this runtime document stands for.
    Cluster(RuntimeName),
    /// Nowhere: what becomes of it is known at once.
    Fake,
}

/// A job, and where it runs; `None` in rows of before that was kept, and where no row says it: then
/// everybody is asked who may have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedJob {
    /// Which job.
    pub job: JobId,
    /// Where.
    pub target: Option<JobTarget>,
}

const CLUSTER: &str = "cluster/";

impl fmt::Display for JobTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Cluster(runtime) => write!(f, "{CLUSTER}{runtime}"),
            Self::Fake => f.write_str("fake"),
        }
    }
}

impl FromStr for JobTarget {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "local" => Ok(Self::Local),
            "fake" => Ok(Self::Fake),
            other => {
                let runtime = other.strip_prefix(CLUSTER).and_then(|name| name.parse().ok());
                runtime.map(Self::Cluster).ok_or_else(|| ParseError {
                    text: text.to_owned(),
                    what: "where a job runs",
                    rule: "it must be `local`, `fake`, or `cluster/` and the name of a runtime",
                })
            }
        }
    }
}

written_as_text!(JobTarget);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_one_word_and_back() {
        for text in ["local", "fake", "cluster/k8s"] {
            assert_eq!(text.parse::<JobTarget>().unwrap().to_string(), text);
        }
        for wrong in ["", "Local", "cluster/", "cluster/A b", "agent/x"] {
            assert!(wrong.parse::<JobTarget>().is_err(), "{wrong}");
        }
    }
}
