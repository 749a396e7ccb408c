//! The variables that every job gets from pvn, and the names that are therefore not the user's;
//! docs/commands.md has them for people. Called by `perform` when a job starts; pure, so ids and
//! names come in.

use engine::desired::FetchAnswer;
use schema::id::{
    ApplicationId, ApplicationName, BlobId, ChannelId, ChannelName, JobId, ServiceId, ServiceName,
};
use schema::status::JobKind;
use schema::time::Timestamp;
pub use schema::wire::is_ours;

/// Which job the variables are for.
#[derive(Debug, Clone, Copy)]
pub struct JobIdentity<'a> {
    pub application: &'a ApplicationName,
    pub application_id: ApplicationId,
    pub service: &'a ServiceName,
    pub service_id: ServiceId,
    pub channel: &'a ChannelName,
    pub channel_id: ChannelId,
    /// The desired version.
    pub version: &'a str,
    pub job: JobId,
    /// Which command.
    pub kind: JobKind,
    /// From 1.
    pub attempt: u32,
    /// The runtime's fetch mode; only a fetch is told.
    pub fetch_mode: Option<FetchAnswer>,
    /// After which instant an answer must have been asked for; no apply has one.
    pub fresh_after: Option<Timestamp>,
    /// The plan of the fetch that found the work; only an apply is told.
    pub plan: Option<BlobId>,
}

impl JobIdentity<'_> {
    /// Every variable that the place of the job does not add by itself (`PVN_API_URL` and
    /// `PVN_TOKEN` in a cluster, what the wrapper needs here), by name.
    pub fn variables(&self) -> Vec<(String, String)> {
        let mut variables = vec![
            ("PVN_APPLICATION", self.application.to_string()),
            ("PVN_APPLICATION_ID", self.application_id.to_string()),
            ("PVN_ATTEMPT", self.attempt.to_string()),
            ("PVN_JOB_ID", self.job.to_string()),
            ("PVN_JOB_KIND", self.kind.to_string()),
            ("PVN_RELEASE_CHANNEL", self.channel.to_string()),
            ("PVN_RELEASE_CHANNEL_ID", self.channel_id.to_string()),
            ("PVN_SERVICE", self.service.to_string()),
            ("PVN_SERVICE_ID", self.service_id.to_string()),
            ("PVN_SERVICE_VERSION", self.version.to_owned()),
        ];
        match (self.kind, self.fetch_mode, self.plan) {
            (JobKind::Fetch, Some(FetchAnswer::ExitCode), _) => {
                variables.push(("PVN_FETCH_MODE", "EXIT_CODE".to_owned()))
            }
            (JobKind::Fetch, Some(FetchAnswer::StructuredOutput), _) => {
                variables.push(("PVN_FETCH_MODE", "STRUCTURED_OUTPUT".to_owned()))
            }
            (JobKind::Apply, _, Some(plan)) => {
                variables.push((schema::wire::PLAN_VARIABLE, plan.to_string()))
            }
            _ => {}
        }
        let fresh_after = self.fresh_after.map(|instant| instant.to_string());
        variables.extend(fresh_after.map(|instant| (schema::wire::FRESH_AFTER_VARIABLE, instant)));
        variables.sort_unstable_by_key(|(key, _)| *key);
        variables.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use schema::wire::OURS;

    use super::*;

    #[test]
    fn every_variable_of_ours_is_in_the_docs() {
        let docs = include_str!("../../../docs/commands.md");
        let missing: Vec<_> =
            OURS.iter().filter(|key| !docs.contains(&format!("`{key}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    fn check(
        kind: JobKind,
        fetch_mode: Option<FetchAnswer>,
        plan: Option<BlobId>,
        expected: &[&str],
    ) {
        let identity = JobIdentity {
            application: &"app".parse().unwrap(),
            application_id: ApplicationId::from_bytes([1; 16]),
            service: &"svc".parse().unwrap(),
            service_id: ServiceId::from_bytes([2; 16]),
            channel: &"staging".parse().unwrap(),
            channel_id: ChannelId::from_bytes([3; 16]),
            version: "svc-7",
            job: JobId::from_bytes([4; 16]),
            kind,
            attempt: 2,
            fetch_mode,
            fresh_after: (kind == JobKind::GetInfo).then(|| Timestamp::from_millis(0)),
            plan,
        };
        let variables = identity.variables();
        assert!(variables.iter().all(|(key, _)| is_ours(key)), "{variables:?}");
        let common = [
            "PVN_APPLICATION=app",
            "PVN_APPLICATION_ID=app-01010101010101010101010101010101",
            "PVN_ATTEMPT=2",
            "PVN_JOB_ID=job-04040404040404040404040404040404",
            "PVN_RELEASE_CHANNEL=staging",
            "PVN_RELEASE_CHANNEL_ID=rch-03030303030303030303030303030303",
            "PVN_SERVICE=svc",
            "PVN_SERVICE_ID=svc-02020202020202020202020202020202",
            "PVN_SERVICE_VERSION=svc-7",
        ];
        let mut expected: Vec<String> =
            common.iter().chain(expected).map(|&text| text.to_owned()).collect();
        expected.sort_unstable();
        let mut found: Vec<String> =
            variables.iter().map(|(key, value)| format!("{key}={value}")).collect();
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn environment_of_every_job() {
        let plan = Some(BlobId::of(b""));
        check(
            JobKind::Fetch,
            Some(FetchAnswer::ExitCode),
            plan,
            &["PVN_JOB_KIND=fetch", "PVN_FETCH_MODE=EXIT_CODE"],
        );
        check(
            JobKind::Fetch,
            Some(FetchAnswer::StructuredOutput),
            None,
            &["PVN_JOB_KIND=fetch", "PVN_FETCH_MODE=STRUCTURED_OUTPUT"],
        );
        check(
            JobKind::GetInfo,
            Some(FetchAnswer::ExitCode),
            plan,
            &["PVN_JOB_KIND=getInfo", "PVN_FRESH_AFTER=1970-01-01T00:00:00.000Z"],
        );
        check(JobKind::Apply, Some(FetchAnswer::ExitCode), None, &["PVN_JOB_KIND=apply"]);
        check(
            JobKind::Apply,
            None,
            plan,
            &[
                "PVN_JOB_KIND=apply",
                "PVN_FETCH_PLAN_BLOB_ID=sha256:\
                 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ],
        );
    }
}
