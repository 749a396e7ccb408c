//! `pvnctl runtimes check` on a real cluster: nothing is found where all is well, each fault is
//! found alone with its remedy, and nothing is left behind.

use serde_json::{Value, json};
use tests::cluster::{ADDRESS, Account, Cluster};
use tests::scheduler::{Scheduler, Start};
use tests::wait;

use crate::cluster_world::injected;

/// In the order in which they are told.
const CHECKS: [&str; 5] = ["connection", "rights", "namespace", "wrapperImage", "wayBack"];

/// A scheduler with an account of its own, and the custom runtime `r-…` on the cluster `k8s` that
/// injects the wrapper.
struct World<'c> {
    cluster: &'c Cluster,
    account: Account,
    scheduler: Scheduler,
}

impl<'c> World<'c> {
    fn new(cluster: &'c Cluster, arguments: &[&str]) -> Self {
        let mut scheduler = Scheduler::stopped_at(ADDRESS);
        scheduler.run(&Start { arguments, ..Start::default() });
        Self { cluster, account: cluster.new_account(&["cluster-wide"]), scheduler }
    }

    fn runtime(&self) -> String {
        self.account.name("r")
    }

    fn namespace(&self) -> String {
        format!("pvn-proxy-runtime-{}", self.runtime())
    }

    /// With these settings of the cluster beside the usual ones.
    fn apply(&self, settings: &Value) {
        let mut cluster = injected(self.cluster);
        let all = cluster.as_object_mut().expect("it is one");
        all.insert("kubeconfig".to_owned(), json!(self.account.kubeconfig()));
        all.extend(settings.as_object().cloned().unwrap_or_default());
        let apply = json!({"taskConfig": {"program": {"image": "x:1", "entrypoint": ["x"]}}});
        self.scheduler.apply(&format!(
            "runtime: {{name: k8s, kubernetes: {cluster}}}\n---\nruntime: {{name: {}, custom: \
             {{proxyRuntime: {{runtime: k8s}}, apply: {apply}}}}}\n",
            self.runtime()
        ));
    }

    /// What is found: exit code, and the checks.
    fn check(&self, runtime: &str) -> (Option<i32>, Vec<Value>) {
        let output = self.scheduler.pvnctl(["runtimes", "check", runtime, "-o", "json"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "no JSON ({error}): {}\n{}",
                String::from_utf8_lossy(&output.stderr),
                self.scheduler.log()
            )
        });
        assert_eq!(found["ok"], output.status.success(), "{found:#}");
        let checks = found["checks"].as_array().expect("checks is a list").clone();
        let kinds: Vec<_> = checks.iter().map(|check| check["check"].clone()).collect();
        assert_eq!(kinds, CHECKS, "{found:#}");
        (output.status.code(), checks)
    }

    /// Checks until all works: a machine on which much else goes on may need longer for a Pod than
    /// a check does.
    fn works(&self, runtime: &str) -> Vec<Value> {
        let mut last = Vec::new();
        wait::until_within(wait::PATIENCE * 3, "all to work", || {
            let (code, found) = self.check(runtime);
            last = found;
            (code == Some(0)).then_some(())
        });
        assert!(last.iter().all(|check| check["status"] == "OK"), "{last:#?}");
        last
    }

    /// Checks that all works up to this one, which fails with these words in message and remedy,
    /// and that nothing is left.
    fn fails(&self, failing: &str, message: &str, remedy: &str) {
        let (code, found) = self.check(&self.runtime());
        assert_eq!(code, Some(2), "{found:#?}");
        let failed: Vec<_> = found.iter().filter(|check| check["status"] == "FAILED").collect();
        let [check] = failed[..] else { panic!("not one failure: {found:#?}") };
        let has =
            |field: &str, part: &str| check[field].as_str().is_some_and(|text| text.contains(part));
        assert!(
            check["check"] == failing && has("message", message) && has("remedy", remedy),
            "{found:#?}"
        );
        assert!(
            found
                .iter()
                .take_while(|check| check["status"] != "FAILED")
                .all(|check| check["status"] == "OK"),
            "{found:#?}"
        );
        self.leaves_nothing();
    }

    fn leaves_nothing(&self) {
        let left = |kinds: &str| {
            self.cluster
                .kubectl(&["get", kinds, "--namespace", &self.namespace(), "-o", "name"], "")
        };
        assert_eq!(left("jobs"), "");
        // The cluster itself removes what belongs to a Job.
        wait::until("Pods and Secrets to be removed", || {
            left("pods,secrets").is_empty().then_some(())
        });
    }
}

#[test]
fn a_check_finds_nothing_where_all_is_well_with_the_published_rights() {
    let Some(cluster) =
        Cluster::get("a_check_finds_nothing_where_all_is_well_with_the_published_rights")
    else {
        return;
    };
    let world = World::new(&cluster, &[]);
    world.apply(&json!({}));
    for asked in [world.runtime().as_str(), "k8s"] {
        let found = world.works(asked);
        let is_of_it =
            |check: &Value| check["runtime"] == world.runtime() && check["remedy"].is_null();
        assert!(found.iter().all(is_of_it), "{found:#?}");
    }
    world.leaves_nothing();
    let table = world.scheduler.pvnctl(["runtimes", "check", &world.runtime()]).stdout;
    let table = String::from_utf8_lossy(&table);
    assert!(table.contains("CHECK") && table.contains("wayBack"), "{table}");
    let seen = cluster.creations(&world.namespace());
    assert!(
        seen.len() >= 3 && seen.values().all(|times| *times == 1),
        "each check made one Job: {seen:?}"
    );
}

#[test]
fn a_check_names_a_right_that_is_missing_and_makes_nothing() {
    let Some(cluster) = Cluster::get("a_check_names_a_right_that_is_missing_and_makes_nothing")
    else {
        return;
    };
    let world = World::new(&cluster, &[]);
    world.apply(&json!({}));
    let _missing = world.account.without("pvn-jobs", "deletecollection", "pods");
    let right = format!("may not `deletecollection` pods in the namespace `{}`", world.namespace());
    world.fails("rights", &right, "images/kubernetes/rights");
    assert!(cluster.creations(&world.namespace()).is_empty());
}

#[test]
fn a_check_tells_of_an_absent_wrapper_image_in_the_clusters_words() {
    let Some(cluster) =
        Cluster::get("a_check_tells_of_an_absent_wrapper_image_in_the_clusters_words")
    else {
        return;
    };
    let world = World::new(&cluster, &[]);
    world.apply(&json!({"wrapper": {"inject": true, "image": "pvn.test/absent:1"}}));
    world.fails(
        "wrapperImage",
        "no Pod with `pvn.test/absent:1` runs: ErrImagePull: ",
        "kubernetes.wrapper.image",
    );
}

#[test]
fn a_check_tells_where_pods_cannot_reach_the_scheduler_and_why() {
    let Some(cluster) = Cluster::get("a_check_tells_where_pods_cannot_reach_the_scheduler_and_why")
    else {
        return;
    };
    let url = format!("http://{ADDRESS}:9");
    let world = World::new(&cluster, &["--advertise-url", &url]);
    world.apply(&json!({}));
    world.fails(
        "wayBack",
        &format!("a Pod does not reach this scheduler at {url}: "),
        "--advertise-url",
    );
}

#[test]
fn a_check_tells_of_a_cluster_that_cannot_be_used() {
    let Some(cluster) = Cluster::get("a_check_tells_of_a_cluster_that_cannot_be_used") else {
        return;
    };
    let world = World::new(&cluster, &[]);
    let kubeconfig = std::fs::read_to_string(world.account.kubeconfig()).expect("it is there");
    let changed = |from: &str, to: &str| {
        let path = world.scheduler.home().join("kubeconfig");
        let text = kubeconfig.replace(from, to);
        assert_ne!(text, kubeconfig, "it holds {from}");
        std::fs::write(&path, text).expect("a file can be written");
        json!({"kubeconfig": path})
    };
    world.apply(&json!({"kubeconfig": "/nowhere/kubeconfig"}));
    world.fails("connection", "/nowhere/kubeconfig", "kubernetes.kubeconfig");
    world.apply(&changed("{token: ", "{token: wrong"));
    world.fails(
        "connection",
        "Unauthorized; the credentials of the kubeconfig are not accepted",
        "credentials that this cluster accepts",
    );
}
