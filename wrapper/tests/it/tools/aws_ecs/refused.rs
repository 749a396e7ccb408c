//! What AWS refuses, forgets to answer or is not asked.

use super::*;
use crate::run::until;

#[test]
fn a_number_that_ecs_takes_from_nobody_is_told_before_anything_is_made() {
    let Some(mut ecs) = Ecs::start("a_number_that_ecs_takes_from_nobody") else { return };
    for odd in [json!(-1), json!(1.5), json!(1e3), json!(1e22), json!("-1")] {
        ecs.service_definition.as_mut().unwrap()["desiredCount"] = odd;
        for step in ["fetch", "apply"] {
            let run = ecs.step(step, "v1");
            assert_eq!(run.code, 1, "{step}: {}", run.stderr);
            let why = "the service definition is nothing for ECS: `desiredCount` is ";
            assert!(last_line(&run).contains(why), "{}", run.stderr);
        }
    }
    assert!(ecs.server.actions().is_empty(), "nobody was asked anything");
}

#[test]
fn a_name_that_the_program_would_take_for_a_file_is_refused() {
    let Some(mut ecs) = Ecs::start("a_name_that_the_program_would_take_for_a_file") else { return };
    for name in ["file:///etc/hostname", "fileb:///etc/hostname", "https://example.com/"] {
        ecs.service_definition.as_mut().unwrap()["serviceName"] = name.into();
        for step in ["fetch", "apply", "info"] {
            let run = ecs.step(step, "v1");
            assert_eq!(run.code, 125, "{step} {name}: {}", run.stderr);
            assert!(last_line(&run).contains("is no name"), "{}", run.stderr);
        }
    }
    assert!(ecs.server.actions().is_empty(), "nobody was asked anything");
}

#[test]
fn an_answer_that_is_lost_makes_nothing_twice() {
    let Some(ecs) = Ecs::start("an_answer_that_is_lost_makes_nothing_twice") else { return };
    for operation in ["RegisterTaskDefinition", "CreateService"] {
        ecs.goes_wrong(operation, Wrong::LosesAnswer);
        let run = ecs.step("apply", "v1");
        assert_eq!(run.code, 75, "{}", run.stderr);
        assert!(last_line(&run).contains("its answer was lost"), "{}", run.stderr);
    }
    let log = ecs.apply("v1");
    assert!(log.contains("is as it should be"), "{log}");
    assert_eq!(ecs.made(), (1, 1));
    let deployment = ecs.server.world().revisions[0].1["pvn:deployment"].clone();
    assert_eq!(deployment, "ecs-svc/1", "it is caught up on");
    ecs.goes_wrong("UpdateService", Wrong::LosesAnswer);
    assert_eq!(ecs.step("apply", "v2").code, 75);
    ecs.apply("v2");
    let world = ecs.server.world();
    let count = |action: &str| world.calls.iter().filter(|call| call.action == action).count();
    assert_eq!((count("ecs:UpdateService"), count("ecs:RegisterTaskDefinition")), (1, 2));
}

#[test]
fn what_passes_ends_with_75_and_what_does_not_says_what_to_do() {
    let Some(mut ecs) = Ecs::start("what_passes_ends_with_75") else { return };
    let denied = "User: arn:aws:iam::1:user/x is not authorized to perform: iam:PassRole on \
                  resource: arn:aws:iam::1:role/y";
    let describe = "DescribeServices";
    for (operation, wrong, code, why) in [
        (describe, Wrong::Code("ThrottlingException", "Rate exceeded"), 75, "AWS throttles"),
        (describe, Wrong::Code("ServerException", "oh"), 75, "AWS itself failed"),
        (describe, Wrong::Status(503), 75, "AWS itself failed"),
        (describe, Wrong::Code("ExpiredTokenException", "old"), 1, "the credentials have expired"),
        (describe, Wrong::Code("AccessDeniedException", "no"), 1, "`ecs:DescribeServices` is not"),
        ("RegisterTaskDefinition", Wrong::Code("ClientException", "bad"), 1, "was refused"),
        ("CreateService", Wrong::Code("AccessDeniedException", denied), 1, "`iam:PassRole` is not"),
        ("CreateService", Wrong::Code("InvalidParameterException", "bad"), 1, "bad"),
    ] {
        ecs.goes_wrong(operation, wrong.clone());
        let run = ecs.step("apply", "v1");
        assert_eq!(run.code, code, "{wrong:?}: {}", run.stderr);
        assert!(last_line(&run).contains(why), "{wrong:?}: {}", run.stderr);
    }
    assert_eq!(ecs.made(), (1, 0), "what was registered is found again");
    ecs.task_definition["oddField"] = true.into();
    let run = ecs.step("apply", "v2");
    assert_eq!(run.code, 1);
    assert!(last_line(&run).contains("a newer one may know the field"), "{}", run.stderr);
    assert!(last_line(&run).contains("oddField"), "{}", run.stderr);
    ecs.cluster = "pord";
    let run = ecs.step("fetch", "v1");
    assert_eq!(run.code, 1);
    assert!(last_line(&run).contains("there is no such cluster"), "{}", run.stderr);
    ecs.server.url = "http://127.0.0.1:1".to_owned();
    let run = ecs.step("fetch", "v1");
    assert_eq!(run.code, 75);
    assert!(last_line(&run).contains("AWS could not be reached"), "{}", run.stderr);
}

#[test]
fn a_stop_ends_the_tool_and_the_next_try_goes_on_from_there() {
    let Some(ecs) = Ecs::start("a_stop_ends_the_tool") else { return };
    ecs.goes_wrong("RegisterTaskDefinition", Wrong::Hangs);
    let running = ecs.job("apply", "v1").with_default_signals().spawn();
    until("the task definition is registered", || (ecs.made() == (1, 0)).then_some(()));
    running.signal(15);
    let run = running.wait();
    assert_eq!(run.code, 143, "{}", run.stderr);
    let why = "`aws ecs register-task-definition` was asked to stop, and did";
    assert!(last_line(&run).contains(why), "{}", run.stderr);
    ecs.apply("v1");
    assert_eq!(ecs.made(), (1, 1));
}

#[test]
fn a_tag_that_is_refused_stops_nothing() {
    let Some(ecs) = Ecs::start("a_tag_that_is_refused_stops_nothing") else { return };
    ecs.goes_wrong("TagResource", Wrong::Code("AccessDeniedException", "no"));
    let run = ecs.step("apply", "v1");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("`ecs:TagResource` is not allowed"), "{}", run.stderr);
}

#[test]
fn a_service_that_is_deleted_is_made_anew_when_it_is_gone() {
    let Some(ecs) = Ecs::start("a_service_that_is_deleted_is_made_anew") else { return };
    ecs.deploy("v1");
    ecs.set("status", "DRAINING".into());
    let seen = ecs.fetch("v1");
    assert_eq!(seen.status, ObjectStatus::Pending);
    assert!(seen.message.starts_with("the service is being deleted"), "{}", seen.message);
    let run = ecs.step("apply", "v1");
    assert_eq!(run.code, 75);
    assert!(last_line(&run).contains("is being deleted (DRAINING)"), "{}", run.stderr);
    ecs.set("status", "INACTIVE".into());
    assert_eq!(ecs.fetch_all("v1"), []);
    ecs.deploy("v1");
    assert_eq!(ecs.made(), (1, 1));
}

#[test]
fn a_task_definition_that_is_out_of_use_is_registered_anew() {
    let Some(mut ecs) = Ecs::start("a_task_definition_that_is_out_of_use") else { return };
    ecs.deploy("v1");
    for (count, status) in [(1, "INACTIVE"), (2, "DELETE_IN_PROGRESS"), (3, "LATER")] {
        ecs.server.world().retire(&format!("web:{count}"), status);
        ecs.service_definition = Some(json!({"desiredCount": 3 + count}));
        let log = ecs.apply("v1");
        let words = format!("web:{count} becomes web:{}", count + 1);
        assert!(log.contains(&words), "{status}: {log}");
        assert_eq!(ecs.made(), (count + 1, 1));
    }
}

#[test]
fn what_ecs_wants_as_numbers_may_come_from_parameters() {
    let Some(mut ecs) = Ecs::start("what_ecs_wants_as_numbers_may_come_from_parameters") else {
        return;
    };
    let container = &mut ecs.task_definition["containerDefinitions"][0];
    container["healthCheck"] = json!({"command": ["CMD", "true"], "interval": "30"});
    container["ulimits"] = json!([{"name": "nofile", "softLimit": "65536", "hardLimit": "-1"}]);
    container["linuxParameters"] = json!({"tmpfs": [{"containerPath": "/t", "size": "64"}]});
    container["restartPolicy"] = json!({"enabled": true, "ignoredExitCodes": ["0", "143"]});
    ecs.task_definition["ephemeralStorage"] = json!({"sizeInGiB": "21"});
    let service = ecs.service_definition.as_mut().unwrap();
    service["healthCheckGracePeriodSeconds"] = "30".into();
    service["deploymentConfiguration"] = json!({"maximumPercent": "150"});
    ecs.deploy("v1");
    let registered = ecs.server.world().revisions[0].0.clone();
    let container = &registered["containerDefinitions"][0];
    assert_eq!(container["healthCheck"]["interval"], 30);
    assert_eq!(container["restartPolicy"]["ignoredExitCodes"], json!([0, 143]));
    ecs.settle("v1");
    ecs.task_definition["containerDefinitions"][0]["ulimits"][0]["softLimit"] = "many".into();
    ecs.server.actions();
    let run = ecs.step("apply", "v2");
    assert_eq!((run.code, ecs.server.actions()), (1, Vec::new()));
    let why = "`containerDefinitions[0].ulimits[0].softLimit` is \"many\", and must be";
    assert!(last_line(&run).contains(why), "{}", last_line(&run));
}

#[test]
fn a_service_without_tasks_settles_too() {
    let Some(mut ecs) = Ecs::start("a_service_without_tasks_settles_too") else { return };
    ecs.service_definition = Some(json!({"desiredCount": 0}));
    ecs.apply("v1");
    ecs.settle("v1");
}

#[test]
fn the_calls_are_of_the_role_that_is_assumed_and_its_secrets_are_not_shown() {
    let Some(mut ecs) = Ecs::start("the_calls_are_of_the_role") else { return };
    ecs.more = vec!["--assume-role-arn", "arn:aws:iam::123456789012:role/deploy"];
    let run = ecs.step("apply", "v1");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let shown = format!("{}{}", run.text(), run.stderr);
    for secret in ["role-secret", "role-token", "own-secret", "ASIAROLE"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let calls = ecs.server.world().calls.clone();
    assert_eq!((calls[0].action.as_str(), calls[0].key.as_str()), ("sts:AssumeRole", "AKIAOWN"));
    let asked = calls[0].body.as_str().unwrap();
    assert!(asked.contains("RoleSessionName=pvn-web-production"), "{asked}");
    assert!(calls.len() > 3 && calls[1..].iter().all(|call| call.key == "ASIAROLE"), "{calls:#?}");
    ecs.goes_wrong("AssumeRole", Wrong::Code("ExpiredToken", "old"));
    let run = ecs.step("fetch", "v1");
    assert_eq!(run.code, 1);
    assert!(last_line(&run).contains("the credentials have expired"), "{}", run.stderr);
}

#[test]
fn what_is_not_given_is_named() {
    let Some(ecs) = Ecs::start("what_is_not_given_is_named") else { return };
    let base = ["pvn-wrapper", "aws-ecs", "apply"];
    for (more, code, why) in [
        (&["--service-name", "web"][..], 125, "there is no task definition: give it"),
        (&["--task-definition", "{}"][..], 125, "the service has no name: give it"),
        (&["--task-definition", "{", "--service-name", "a"][..], 1, "is no JSON object"),
        (&["--task-definition", "no.json", "--service-name", "a"][..], 1, "`no.json` cannot be"),
        (&["--task-definition", "{}", "--service-name", "a"][..], 125, "PVN_SERVICE_ID is not set"),
    ] {
        let command: Vec<&str> = base.iter().chain(more).copied().collect();
        let run = Wrapper::new(&[], &command).run();
        assert_eq!(run.code, code, "{}", run.stderr);
        assert!(last_line(&run).contains(why), "{}", run.stderr);
    }
    assert!(ecs.server.actions().is_empty());
}
