//! `pvn-wrapper aws-ecs check`: what is missing is told, one thing at a time.

use super::super::{finds, found};
use super::*;

const WELL: &str = "tool ., credentials ., target ., target .";

#[test]
fn a_check_tries_program_credentials_and_cluster_and_changes_nothing() {
    let Some(mut ecs) = Ecs::start("a_check_tries_program_credentials_and_cluster") else { return };
    let run = ecs.step("check", "v1");
    let (short, findings) = found(&run);
    assert_eq!(short, WELL, "{findings:#?}");
    assert!(findings[0].message.starts_with("`aws` is aws-cli/"), "{findings:#?}");
    assert_eq!(findings[1].message, "they are of arn:aws:iam::123456789012:user/pvn");
    let service = "the cluster `prod` answers; its service `web-production` is not there yet";
    assert_eq!(findings[2].message, service);
    assert!(findings[3].message.starts_with("the cluster `prod` is ACTIVE; services: 0"));
    let calls = ["sts:GetCallerIdentity", "ecs:DescribeServices", "ecs:DescribeClusters"];
    assert_eq!(ecs.server.actions(), calls);
    assert!(run.stderr.contains("+ aws ecs describe-clusters --clusters prod --region"));
    assert!(!run.stderr.contains("own-secret"), "{}", run.stderr);
    assert_eq!(ecs.made(), (0, 0));

    ecs.more = vec!["--assume-role-arn", "arn:aws:iam::1:role/pvn"];
    let run = ecs.step("check", "v1");
    let (_, findings) = found(&run);
    assert!(findings[1].message.contains(":assumed-role/pvn/"), "{findings:#?}");
    assert!(!run.stderr.contains("role-secret") && !run.text().contains("role-secret"));
}

#[test]
fn a_check_tells_what_is_missing_one_thing_at_a_time() {
    let Some(mut ecs) = Ecs::start("a_check_tells_what_is_missing_of_ecs") else { return };
    let check = |ecs: &Ecs| ecs.step("check", "v1");
    let no_credentials = "tool ., credentials FAILED, target -";
    ecs.goes_wrong("GetCallerIdentity", Wrong::Code("ExpiredToken", "old"));
    finds(&check(&ecs), no_credentials, "the credentials have expired: renew what the job gets");
    ecs.goes_wrong("GetCallerIdentity", Wrong::Code("InvalidClientTokenId", "bad"));
    finds(&check(&ecs), no_credentials, "AWS does not accept these credentials");
    let mut job = ecs.job("check", "v1");
    job.command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    finds(&job.run(), no_credentials, "there are no credentials: give the job a role");

    // What each fetch does is not allowed; what only this asks, and no job, is not needed.
    ecs.goes_wrong("DescribeServices", Wrong::Code("AccessDeniedException", "no"));
    let refused = "tool ., credentials ., target FAILED";
    finds(&check(&ecs), refused, "`ecs:DescribeServices` is not allowed to these credentials");
    ecs.goes_wrong("DescribeClusters", Wrong::Code("AccessDeniedException", "no"));
    let not_needed = "tool ., credentials ., target ., target -";
    finds(&check(&ecs), not_needed, "no job needs this: `ecs:DescribeClusters` is not allowed");
    ecs.server.world().status = "INACTIVE";
    let stopped = "tool ., credentials ., target ., target FAILED";
    finds(&check(&ecs), stopped, "the cluster `prod` is INACTIVE");
    ecs.cluster = "pord";
    finds(&check(&ecs), refused, "there is no such cluster in this account and region");

    ecs.more = vec!["--assume-role-arn", "arn:aws:iam::1:role/pvn"];
    ecs.goes_wrong("AssumeRole", Wrong::Code("AccessDenied", "no"));
    finds(&check(&ecs), no_credentials, "`sts:AssumeRole` is not allowed");
    ecs.more.clear();
    // Not about who asks.
    let no_region = "tool ., target FAILED, credentials -";
    ecs.more = vec!["--region", "nowhere at all"];
    let run = check(&ecs);
    finds(&run, no_region, "there is no region of this name");
    assert!(found(&run).1[1].remedy.as_ref().unwrap().contains("`region` of the runtime"));
    ecs.more.clear();
    ecs.server.url = "http://127.0.0.1:1".to_owned();
    let run = check(&ecs);
    finds(&run, no_region, "AWS could not be reached, or there is no such region, or its answer");
    assert!(found(&run).1[1].remedy.as_ref().unwrap().contains("`region` of the runtime"));
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/usr/bin/env", bin.path().join("env")).unwrap();
    let run = ecs.job("check", "v1").env("PATH", bin.path()).run();
    finds(&run, "tool FAILED, credentials -, target -", "`aws` was not found");
}
