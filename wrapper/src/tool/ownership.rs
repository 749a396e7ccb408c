//! Whose a thing in a cloud is: of which service instance, at which version. It stands on the
//! thing itself (tags, annotations), so that a fetch knows ours from what others made. Called by
//! the tools of clouds.

use super::Fault;
use crate::spawn::{Environment, variable};

/// Which service instance this job is of, and the version that it is to have.
#[derive(Debug)]
pub(super) struct Ownership {
    /// Of service and channel: names may be given anew.
    pub(super) id: String,
    pub(super) version: String,
}

impl Ownership {
    /// That of the job.
    pub(super) fn of(environment: &Environment) -> Result<Self, Fault> {
        let get = |name| of_job(environment, name);
        Ok(Self {
            id: format!("{}/{}", get("PVN_SERVICE_ID")?, get("PVN_RELEASE_CHANNEL_ID")?),
            version: get("PVN_SERVICE_VERSION")?,
        })
    }
}

/// A variable that pvn gives each job.
pub(super) fn of_job(environment: &Environment, name: &str) -> Result<String, Fault> {
    variable(environment, name).and_then(|value| value.to_str()).map(str::to_owned).ok_or_else(
        || {
            Fault::usage(format!(
                "{name} is not set: a job of pvn has it; set it to run this by hand"
            ))
        },
    )
}
