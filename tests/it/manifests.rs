//! What is published for a cluster, as far as a file tells it without one.

use serde_json::{Value, json};
use tests::programs;

fn published(name: &str) -> Value {
    let path = programs::repository().join("images/kubernetes").join(name);
    let text = std::fs::read_to_string(path).expect("it is there");
    config::yaml::parse(&text).expect("it is YAML").expect("it holds an object").to_json()
}

#[test]
fn the_network_policy_lets_jobs_of_every_namespace_in_and_the_scheduler_out_to_whatever_its_settings_name()
 {
    let policy = published("network-policy.yaml");
    let jobs = json!({
        "namespaceSelector": {},
        "podSelector": {"matchExpressions": [{"key": "pvn.dev/job", "operator": "Exists"}]},
    });
    let lets_in = policy["spec"]["ingress"][0]["from"].as_array().expect("it lets somebody in");
    assert!(lets_in.contains(&jobs), "{policy}");
    // Clusters, webhooks and databases may be anywhere.
    assert_eq!(
        (&policy["spec"]["policyTypes"], &policy["spec"]["egress"]),
        (&json!(["Ingress"]), &Value::Null)
    );
    let set = published("stateful-set.yaml");
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    for (key, value) in
        policy["spec"]["podSelector"]["matchLabels"].as_object().expect("it selects by labels")
    {
        assert_eq!(&labels[key], value, "the policy is for the scheduler's own Pod");
    }
}
