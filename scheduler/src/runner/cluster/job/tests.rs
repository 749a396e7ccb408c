//! Jobs and their Secrets, as they are sent.

use super::*;
use crate::compile::{ClusterPlace, Command, EnvValue, EnvVar};

fn spec(job: Value) -> (JobSpec, ClusterJob) {
    let cluster = ClusterJob {
        place: ClusterPlace {
            cluster: "k8s".parse().unwrap(),
            runtime: "web".parse().unwrap(),
            kubeconfig: None,
            context: None,
            wrapper_image: None,
            namespace: "there".to_owned(),
            own_namespace: true,
        },
        application: "app".parse().unwrap(),
        service: "a-service-with-a-long-name".parse().unwrap(),
        channel: "staging".parse().unwrap(),
    };
    let command = Command { job: Some(Box::new(job)), ..Command::new("info", &[]) };
    let spec = JobSpec {
        env: vec![("PVN_JOB_KIND".to_owned(), "getInfo".to_owned())],
        timeout_ms: Some(60_000),
        ..JobSpec::new(JobId::from_bytes([0xab; 16]), JobKind::GetInfo, command)
    };
    (spec, cluster)
}

fn minimal() -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {"containers": [
        {"name": "info", "image": "x:1", "command": ["show"], "args": ["--all"]},
    ]}}}})
}

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn reach() -> Vec<(String, String)> {
    vec![
        ("PVN_API_URL".to_owned(), "http://pvn:7780".to_owned()),
        ("PVN_TOKEN".to_owned(), "pvnj1.x".to_owned()),
    ]
}

#[test]
fn what_the_file_leaves_open_is_ours() {
    let (spec, cluster) = spec(minimal());
    let objects = objects(&spec, &cluster, &reach(), None, NOW).unwrap();
    let labels = json!({
        "pvn.dev/job": "job-abababababababababababababababab", "pvn.dev/kind": "getInfo", "pvn.dev/application": "app",
        "pvn.dev/service": "a-service-with-a-long-name", "pvn.dev/channel": "staging", "pvn.dev/runtime": "web",
    });
    let name = "a-service-with-a-info-abababababababababababababababab";
    let expected = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "there", "labels": labels},
        "spec": {
            "suspend": true, "backoffLimit": 0, "podReplacementPolicy": "Failed", "ttlSecondsAfterFinished": 3600, "activeDeadlineSeconds": 120,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"restartPolicy": "Never", "containers": [{
                    "name": "info", "image": "x:1", "command": ["show"], "args": ["--all"],
                    "env": [
                        {"name": "PVN_API_URL", "valueFrom": {"secretKeyRef": {"name": name, "key": "PVN_API_URL"}}},
                        {"name": "PVN_ENDED_BY", "value": "121000"},
                        {"name": "PVN_JOB_KIND", "value": "getInfo"},
                        {"name": "PVN_KILL_AFTER", "value": "25000ms"},
                        {"name": "PVN_TOKEN", "valueFrom": {"secretKeyRef": {"name": name, "key": "PVN_TOKEN"}}},
                    ],
                }]},
            },
        },
    });
    assert_eq!(objects.job, expected);
    assert!(!objects.held && !objects.tries_again);
    assert!(name.len() + "-abcde".len() <= 63, "a Pod's name is a label too");
}

#[test]
fn a_pod_is_never_gone_before_its_end_can_be_seen() {
    for (given, expected) in [(json!(0), json!(1)), (json!(1), json!(1)), (json!(600), json!(600))]
    {
        let mut file = minimal();
        file["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = given;
        let (spec, cluster) = spec(file);
        let objects = objects(&spec, &cluster, &reach(), None, NOW).unwrap();
        assert_eq!(
            objects.job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"],
            expected
        );
    }
}

#[test]
fn a_command_has_the_grace_of_its_pod_but_for_what_its_wrapper_needs() {
    let told = |grace: Value, own: Option<&str>, of_config: Option<&str>| {
        let mut file = minimal();
        file["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = grace;
        if let Some(own) = own {
            file["spec"]["template"]["spec"]["containers"][0]["env"] =
                json!([{"name": "PVN_KILL_AFTER", "value": own}]);
        }
        let (mut spec, cluster) = spec(file);
        spec.env.extend(of_config.map(|value| ("PVN_KILL_AFTER".to_owned(), value.to_owned())));
        let objects = objects(&spec, &cluster, &reach(), None, NOW).unwrap();
        let env = objects.job["spec"]["template"]["spec"]["containers"][0]["env"]
            .as_array()
            .unwrap()
            .clone();
        let given: Vec<_> = env.iter().filter(|entry| entry["name"] == "PVN_KILL_AFTER").collect();
        assert_eq!(given.len(), 1, "{env:?}");
        given[0]["value"].as_str().unwrap().to_owned()
    };
    for (grace, expected) in [
        (json!(0), "500ms"),
        (json!(8), "4000ms"),
        (json!(30), "25000ms"),
        (json!(600), "595000ms"),
        (json!(null), "25000ms"),
    ] {
        assert_eq!(told(grace.clone(), None, None), expected, "{grace}");
    }
    assert_eq!(told(json!(600), Some("1m"), None), "1m");
    assert_eq!(told(json!(600), None, Some("2m")), "2m");
}

#[test]
fn what_the_file_says_stays() {
    let mut file = minimal();
    file["metadata"] = json!({"generateName": "x-", "name": "mine", "labels": {"team": "a"}});
    file["spec"]["suspend"] = json!(true);
    file["spec"]["ttlSecondsAfterFinished"] = json!(5);
    file["spec"]["activeDeadlineSeconds"] = json!(6);
    file["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "A", "value": "$(B)"}, {"name": "PVN_TOKEN", "value": "stolen"}]);
    let (mut spec, cluster) = spec(file);
    spec.env
        .extend([("A".to_owned(), "ours".to_owned()), ("B".to_owned(), "costs $(5)".to_owned())]);
    let objects = objects(&spec, &cluster, &reach(), None, NOW).unwrap();
    assert!(objects.held && !objects.tries_again);
    let body = &objects.job["spec"];
    assert_eq!(
        (&body["ttlSecondsAfterFinished"], &body["activeDeadlineSeconds"]),
        (&json!(5), &json!(6))
    );
    assert_eq!(objects.job["metadata"]["labels"]["team"], "a");
    assert!(objects.job["metadata"]["generateName"].is_null());
    let env = body["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    let value = |name: &str| {
        env.iter()
            .filter(|entry| entry["name"] == name)
            .map(|entry| entry["value"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(value("A"), [json!("$(B)")], "the file's own, which refers to ours");
    assert_eq!(value("B"), [json!("costs $$(5)")], "and ours as it is");
    assert_eq!(value("PVN_TOKEN"), [Value::Null], "nobody else sets what is ours");
}

#[test]
fn a_cluster_that_is_older_than_a_field_of_ours_gets_the_job_without_it() {
    let said = ".spec.podReplacementPolicy: field not declared in schema";
    let (own, cluster) = spec(minimal());
    let ours = objects(&own, &cluster, &reach(), None, NOW).unwrap();
    let mut expected = ours.job.clone();
    expected["spec"].as_object_mut().unwrap().remove("podReplacementPolicy");
    assert_eq!(ours.without_what_is_unknown(said), Some(expected));
    assert_eq!(ours.without_what_is_unknown("denied"), None);
    let mut file = minimal();
    file["spec"]["podReplacementPolicy"] = json!("TerminatingOrFailed");
    let (own, cluster) = spec(file);
    let theirs = objects(&own, &cluster, &reach(), None, NOW).unwrap();
    assert_eq!(theirs.job["spec"]["podReplacementPolicy"], "TerminatingOrFailed");
    assert_eq!(
        theirs.without_what_is_unknown(said),
        None,
        "whoever asks for it hears that it is not there"
    );
}

#[test]
fn nothing_secret_stands_in_the_job() {
    let (mut spec, cluster) = spec(minimal());
    spec.env.push(("PASSWORD".to_owned(), "hunter2".to_owned()));
    spec.secret_keys.push("PASSWORD".to_owned());
    spec.hidden.push("hunter2-of-the-fetch".into());
    let value = EnvValue::KubernetesSecret { name: "theirs".to_owned(), key: "k".to_owned() };
    spec.command.env.push(EnvVar { key: "OTHER".to_owned(), value });
    let objects = objects(&spec, &cluster, &reach(), None, NOW).unwrap();
    let text = objects.job.to_string();
    assert!(!text.contains("hunter2") && !text.contains("pvnj1.x"), "{text}");
    assert!(
        text.contains(
            r#"{"name":"OTHER","valueFrom":{"secretKeyRef":{"name":"theirs","key":"k"}}}"#
        ),
        "{text}"
    );
    assert!(
        text.contains(r#"{"name":"PVN_SECRET_KEYS","value":"PASSWORD,PVN_HIDDEN_0,OTHER"}"#),
        "{text}"
    );
    let secret = objects.secret("uid-1").unwrap();
    assert_eq!(secret["data"]["PASSWORD"], "aHVudGVyMg==");
    assert_eq!(
        secret["data"]["PVN_HIDDEN_0"], "aHVudGVyMi1vZi10aGUtZmV0Y2g=",
        "for its wrapper to mask"
    );
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "uid-1");
    assert!(secret["data"]["OTHER"].is_null());
}

#[test]
fn what_applies_left_live_is_handed_over_only_where_a_wrapper_takes_it_away_from_the_command() {
    let handed = |command: Value, wrapper_image: Option<&str>| {
        let mut file = minimal();
        file["spec"]["template"]["spec"]["containers"][0]["command"] = command;
        let (mut spec, mut cluster) = spec(file);
        cluster.place.wrapper_image = wrapper_image.map(str::to_owned);
        spec.cluster = Some(cluster.clone());
        spec.former.push("hunter2-before".into());
        let objects = objects(&spec, &cluster, &[], None, NOW).unwrap();
        assert!(!objects.job.to_string().contains("hunter2"));
        let is_named = objects.job.to_string().contains("PVN_HIDDEN_0");
        let value = objects.secret("uid-1").map(|secret| secret["data"]["PVN_HIDDEN_0"].clone());
        assert_eq!(is_named, value.as_ref().is_some_and(|value| value == "aHVudGVyMi1iZWZvcmU="));
        is_named
    };
    assert!(handed(json!(["show"]), Some("wrapper:2")));
    assert!(handed(json!(["/pvn-wrapper", "exec", "--", "show"]), None));
    assert!(!handed(json!(["show"]), None));
    assert!(!handed(json!([]), None), "what the image starts nobody knows");
}

#[test]
fn an_injected_wrapper_runs_the_command_and_comes_from_its_image() {
    let mut file = minimal();
    file["spec"]["template"]["spec"]["containers"][0]["securityContext"] =
        json!({"runAsUser": 1000, "runAsNonRoot": true});
    let (mut spec, mut cluster) = spec(file);
    cluster.place.wrapper_image = Some("wrapper:2".to_owned());
    spec.command.expect = Some(schema::report::StructuredKind::GetInfo);
    let objects = objects(&spec, &cluster, &reach(), None, NOW).unwrap();
    let pod = &objects.job["spec"]["template"]["spec"];
    assert_eq!(
        pod["initContainers"],
        json!([{
            "name": "pvn-wrapper", "image": "wrapper:2", "command": ["/pvn-wrapper", "install", "/pvn"],
            "volumeMounts": [{"name": "pvn-wrapper", "mountPath": "/pvn"}], "securityContext": {"runAsUser": 1000, "runAsNonRoot": true},
        }])
    );
    let main = &pod["containers"][0];
    assert_eq!(main["command"], json!(["/pvn/pvn-wrapper", "exec"]));
    assert_eq!(
        main["args"],
        json!(["--job-timeout=60000ms", "--expect=get-info", "--", "show", "--all"])
    );
    assert_eq!(pod["volumes"], json!([{"name": "pvn-wrapper", "emptyDir": {}}]));
}

#[test]
fn an_injected_wrapper_is_brought_by_nobody_who_may_not_be_root() {
    let user = |container: Value, pod: Value| {
        let mut file = minimal();
        file["spec"]["template"]["spec"]["containers"][0]["securityContext"] = container;
        file["spec"]["template"]["spec"]["securityContext"] = pod;
        let (spec, mut cluster) = spec(file);
        cluster.place.wrapper_image = Some("wrapper:2".to_owned());
        let objects = objects(&spec, &cluster, &reach(), None, NOW).unwrap();
        objects.job["spec"]["template"]["spec"]["initContainers"][0]["securityContext"]["runAsUser"]
            .clone()
    };
    // Its image may have no user, as the command's has.
    assert_eq!(user(json!({"runAsNonRoot": true}), Value::Null), 65532);
    assert_eq!(user(Value::Null, json!({"runAsNonRoot": true})), 65532);
    assert_eq!(user(json!({"runAsNonRoot": true, "runAsUser": 7}), Value::Null), 7);
    assert_eq!(
        user(Value::Null, json!({"runAsNonRoot": true, "runAsUser": 7})),
        Value::Null,
        "that of the Pod"
    );
    assert_eq!(user(json!({"runAsNonRoot": false}), json!({"runAsNonRoot": true})), Value::Null);
    assert_eq!(user(Value::Null, Value::Null), Value::Null);
}

#[test]
fn what_kubernetes_may_try_again_delivers_nothing() {
    let ignore =
        json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    for (field, value) in [
        ("backoffLimit", json!(1)),
        ("backoffLimit", Value::Null),
        ("podFailurePolicy", ignore),
        ("backoffLimitPerIndex", json!(0)),
        ("completionMode", json!("Indexed")),
    ] {
        let mut file = minimal();
        file["spec"][field] = value;
        let (spec, cluster) = spec(file);
        let objects = objects(&spec, &cluster, &reach(), None, NOW).unwrap();
        assert!(objects.tries_again && objects.secret("u").is_none(), "{field}");
        let text = objects.job.to_string();
        assert!(!text.contains("PVN_API_URL") && !text.contains("PVN_TOKEN"), "{field}: {text}");
    }
    let mut file = minimal();
    file["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    let (spec, cluster) = spec(file);
    assert!(objects(&spec, &cluster, &reach(), None, NOW).unwrap().tries_again);
}

#[test]
fn what_a_job_file_takes_from_a_secret_or_calls_one_is_masked() {
    let mut file = minimal();
    file["spec"]["template"]["spec"]["containers"][0]["env"] = json!([
        {"name": "THEIRS", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "OPEN", "valueFrom": {"fieldRef": {"fieldPath": "a"}}},
        {"name": "PVN_SECRET_KEYS", "value": "CALLED, THEIRS"},
        {"name": "PVN_SPOOL_DIR", "value": "/spool"},
    ]);
    let (mut spec, cluster) = spec(file.clone());
    spec.secret_keys.push("OURS".to_owned());
    spec.env.push(("OURS".to_owned(), "x".to_owned()));
    let objects = objects(&spec, &cluster, &reach(), None, NOW).unwrap();
    let env = objects.job["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    let value = |name: &str| {
        env.iter()
            .filter(|entry| entry["name"] == name)
            .map(|entry| entry["value"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(value("PVN_SECRET_KEYS"), ["OURS,THEIRS,CALLED"]);
    assert_eq!(value("PVN_SPOOL_DIR"), ["/spool"]);
    file["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "PVN_SECRET_KEYS", "valueFrom": {}}]);
    let (spec, cluster) = self::spec(file);
    assert!(
        super::objects(&spec, &cluster, &reach(), None, NOW)
            .unwrap_err()
            .contains("PVN_SECRET_KEYS")
    );
}

#[test]
fn a_job_that_is_none_is_told() {
    let check = |change: fn(&mut Value), expected: &str| {
        let mut file = minimal();
        change(&mut file);
        let (spec, cluster) = spec(file);
        let why = objects(&spec, &cluster, &reach(), None, NOW).unwrap_err();
        assert!(why.contains(expected), "{why}");
    };
    check(|file| file["spec"]["template"]["spec"]["containers"] = json!([]), "no container `info`");
    check(|file| file["spec"]["template"]["spec"]["containers"] = Value::Null, "no containers");
    check(|file| file["spec"] = json!("x"), "`spec` of the Job is no mapping");
    check(
        |file| file["spec"]["template"]["spec"]["containers"][0]["env"] = json!({}),
        "`env` of the Job is no list",
    );
}

#[test]
fn given_authorities_are_a_file_for_the_wrapper_unless_the_job_names_others() {
    let variable = |objects: &Objects| {
        let env =
            objects.job["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
        let named: Vec<_> = env
            .iter()
            .filter(|entry| entry["name"] == "PVN_CA_FILE")
            .map(|entry| entry["value"].clone())
            .collect();
        named
    };
    let (mut spec, cluster) = spec(minimal());
    let given = objects(&spec, &cluster, &reach(), Some("-----BEGIN"), NOW).unwrap();
    assert_eq!(variable(&given), ["/pvn-authorities/ca.pem"]);
    let pod = &given.job["spec"]["template"]["spec"];
    let items = json!([{"key": "ca.pem", "path": "ca.pem"}]);
    assert_eq!(
        pod["volumes"],
        json!([{"name": "pvn-authorities", "secret": {"secretName": given.name, "items": items}}])
    );
    let mount =
        json!([{"name": "pvn-authorities", "mountPath": "/pvn-authorities", "readOnly": true}]);
    assert_eq!(pod["containers"][0]["volumeMounts"], mount);
    assert_eq!(given.secret("u").unwrap()["data"]["ca.pem"], STANDARD.encode("-----BEGIN"));

    assert_eq!(
        variable(&objects(&spec, &cluster, &reach(), None, NOW).unwrap()),
        Vec::<Value>::new()
    );
    spec.env.push(("PVN_CA_FILE".to_owned(), "/own.pem".to_owned()));
    assert_eq!(
        variable(&objects(&spec, &cluster, &reach(), Some("-----BEGIN"), NOW).unwrap()),
        ["/own.pem"]
    );
}
