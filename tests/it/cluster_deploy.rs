//! The published manifests on a real cluster: pvn runs in it, deploys by Jobs there, and outlives
//! its own Pod.
//!
//! The image holds the programs of these tests, with the libraries that they need, where
//! `images/scheduler/Dockerfile` puts the static ones. `PVN_SCHEDULER_PROGRAMS` names a directory
//! of `images/build-scheduler.sh` to try those instead.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tests::cluster::{Cluster, Image, ServiceAddress, published};
use tests::programs;
use tests::scheduler::Scheduler;
use tests::wait;

use crate::cluster_world::check_delivered;

/// The user in `images/scheduler/Dockerfile` and in the StatefulSet.
const USER: u32 = 65532;

const PORT: u16 = 7780;

/// What the image of the scheduler holds.
const PROGRAMS: [&str; 3] = ["pvn-scheduler", "pvn-wrapper", "pvnctl"];

/// The authorities of this machine, which `images/build-scheduler.sh` takes too.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// One installation, under names of its own.
struct Installed<'c> {
    cluster: &'c Cluster,
    home: PathBuf,
    /// Ends all its names.
    suffix: String,
    address: ServiceAddress,
}

impl<'c> Installed<'c> {
    /// Applies `images/kubernetes` with a namespace, images, a volume and names that this cluster
    /// has.
    fn new(cluster: &'c Cluster, home: &Path) -> Self {
        let suffix: String = home
            .to_string_lossy()
            .to_lowercase()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .rev()
            .take(8)
            .collect();
        let (namespace, name) = (format!("pvn-in-{suffix}"), format!("pvn-{suffix}"));
        cluster.kubectl(&["create", "namespace", &namespace], "");
        let address = cluster.service(&namespace, &name, PORT, "app.kubernetes.io/name=pvn");
        let installed = Self { cluster, home: home.to_owned(), suffix, address };
        installed.make_images();
        installed.make_volume();
        installed.apply();
        installed
    }

    fn namespace(&self) -> String {
        format!("pvn-in-{}", self.suffix)
    }

    fn pod(&self) -> String {
        format!("pvn-{}-0", self.suffix)
    }

    /// An image of this installation, by what is in it.
    fn image(&self, what: &str) -> String {
        format!("pvn.test/{what}:{}", self.suffix)
    }

    fn make_images(&self) {
        let given = std::env::var_os("PVN_SCHEDULER_PROGRAMS")
            .map(|directory| programs::repository().join(directory));
        let programs = PROGRAMS.map(|name| {
            let (from, to) = (
                given.as_deref().unwrap_or_else(|| programs::directory()).join(name),
                self.home.join(name),
            );
            // What tells lines from addresses is most of a program that was built for tests.
            let stripped = Command::new("strip")
                .arg("-o")
                .args([&to, &from])
                .status()
                .expect("strip comes with the compiler's linker");
            assert!(stripped.success(), "{} cannot be stripped", from.display());
            to
        });
        let [_, wrapper, _] = &programs;
        let scheduler = Image::empty(&self.image("scheduler")).entrypoint(&["/pvn-scheduler"]);
        let scheduler = PROGRAMS
            .iter()
            .zip(&programs)
            .fold(scheduler, |image, (name, from)| image.program(name, from));
        self.cluster.import(&scheduler.file(AUTHORITIES, &Path::new("/").join(AUTHORITIES)));
        self.cluster.import(&Image::empty(&self.image("wrapper")).program("pvn-wrapper", wrapper));
        // The libraries of a wrapper that is not static.
        self.cluster.import(
            &Image::with_tools(&self.image("tools")).program("unused/pvn-wrapper", wrapper),
        );
    }

    fn make_volume(&self) {
        let data = self.data();
        std::fs::create_dir(&data).expect("a directory can be made");
        chown(&data, Some(USER), Some(USER)).expect("root may give it away");
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self.namespace()},
            "spec": {
                "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": data},
                "claimRef": {"namespace": self.namespace(), "name": format!("data-{}", self.pod())},
            },
        });
        self.cluster.kubectl(&["create", "-f", "-"], &volume.to_string());
    }

    /// Where its volume is on this machine.
    fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// As the documentation tells people to: a kustomization of one's own. Only DNS is set for each
    /// Pod here.
    fn apply(&self) {
        let overlay = self.home.join("overlay");
        std::fs::create_dir(&overlay).expect("a directory can be made");
        let base = published(&overlay);
        let advertised = json!({"name": "PVN_ADVERTISE_URL", "value": self.url()});
        let mut pod = self.address.resolver();
        pod["containers"] = json!([{"name": "scheduler", "env": [advertised]}]);
        let patch = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "pvn"}, "spec": {"template": {"spec": pod}},
        });
        let kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
            "namespace": self.namespace(), "nameSuffix": format!("-{}", self.suffix),
            "resources": [base], "components": [format!("{base}/namespace"), format!("{base}/cluster-wide")],
            "images": [{"name": "pvn-scheduler", "newName": "pvn.test/scheduler", "newTag": self.suffix}],
            "patches": [{"patch": patch.to_string()}],
        });
        std::fs::write(overlay.join("kustomization.yaml"), kustomization.to_string())
            .expect("a file can be written");
        let overlay = overlay.to_str().expect("its path is plain");
        self.cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", overlay], "");
    }

    /// How Pods reach it: as the published manifest says it, but for the Service's own name.
    fn url(&self) -> String {
        format!("http://pvn-{}.{}.svc:{PORT}", self.suffix, self.namespace())
    }

    /// Waits until its Pod is ready; returns the Pod's uid.
    fn ready(&self) -> String {
        let pod = format!("pod/{}", self.pod());
        for condition in ["create", "condition=Ready"] {
            self.kubectl(&["wait", &pod, "--for", condition, "--timeout", "180s"]);
        }
        self.kubectl(&["get", &pod, "-o", "jsonpath={.metadata.uid}"])
    }

    /// `pvnctl` in its Pod.
    fn pvnctl_inside(&self, arguments: &[&str]) -> String {
        self.kubectl(&[&["exec", &self.pod(), "--", "/pvnctl"], arguments].concat())
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.cluster.kubectl(&[&["--namespace", &self.namespace()], arguments].concat(), "")
    }

    /// A service `s` whose apply notes that it ran in a directory that this machine sees, and then
    /// waits for `go` there.
    fn configs(&self, runtime: &str, shared: &Path) -> String {
        let script = "echo $PVN_JOB_ID >> ledger; echo out; echo err >&2; while [ ! -e go ]; do \
                      sleep 0.1; done; echo done";
        let mut pod = self.address.resolver();
        pod["volumes"] = json!([{"name": "shared", "hostPath": {"path": shared}}]);
        pod["containers"] = json!([{
            "name": "script", "image": self.image("tools"), "command": ["sh", "-c", script], "workingDir": shared,
            "volumeMounts": [{"name": "shared", "mountPath": shared}],
        }]);
        let job =
            json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pod}}});
        let apply = json!({"kubernetesConfig": {"type": "KUBERNETES", "inlined": job.to_string()}});
        // No kubeconfig: its own cluster.
        let here = json!({"wrapper": {"inject": true, "image": self.image("wrapper")}});
        format!(
            "runtime: {{name: here, kubernetes: {here}}}\n---\nruntime: {{name: {runtime}, \
             custom: {{proxyRuntime: {{runtime: here}}, apply: {apply}}}}}\n---\napplication: \
             {{name: app, releaseChannels: [{{name: c, runtimes: [{{runtime: \
             {runtime}}}]}}]}}\n---\nservice: {{name: s, application: app}}\n"
        )
    }
}

#[test]
fn p5_p6_pvn_runs_in_the_cluster_that_it_deploys_to_and_outlives_its_own_pod() {
    let Some(cluster) =
        Cluster::get("p5_p6_pvn_runs_in_the_cluster_that_it_deploys_to_and_outlives_its_own_pod")
    else {
        return;
    };
    let home =
        tempfile::Builder::new().prefix("pvn-test-in-").tempdir().expect("a directory can be made");
    let path = home.path().canonicalize().expect("it is there");
    // The volume in it has an owner of its own.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let pvn = Installed::new(&cluster, &path);
    let first = pvn.ready();
    let url = pvn.url();
    pvn.pvnctl_inside(&["--server", &url, "--token-file", "/data/admin-token", "runtimes", "list"]);
    let created =
        pvn.pvnctl_inside(&["auth", "token", "create", "me", "--role", "admin", "-o", "json"]);
    let created: Value = serde_json::from_str(&created).expect("pvnctl prints JSON");
    let scheduler = Scheduler::elsewhere(
        &pvn.address.url(),
        created["token"].as_str().expect("it prints the token"),
    );

    let shared = path.join("shared");
    std::fs::create_dir(&shared).expect("a directory can be made");
    let runtime = format!("in-{}", pvn.suffix);
    scheduler.apply(&pvn.configs(&runtime, &shared));
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
    let ledger = shared.join("ledger");
    wait::until_within(wait::PATIENCE * 2, "the apply to run", || ledger.exists().then_some(()));

    pvn.kubectl(&["delete", "pod", &pvn.pod()]);
    let second = pvn.ready();
    assert_ne!(first, second, "the Pod is another one");
    std::fs::write(shared.join("go"), "").expect("a file can be written");
    wait::until("the scheduler to answer at its Service", || {
        scheduler.pvnctl(["services", "get", "s", "--app", "app"]).status.success().then_some(())
    });
    scheduler.channel_becomes("s", "c", "CONVERGED");

    let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--service", "s"]);
    let job = jobs[0]["id"].as_str().expect("a job has an id");
    assert_eq!(
        (jobs.as_array().map(Vec::len), &jobs[0]["status"]),
        (Some(1), &json!("SUCCEEDED")),
        "nothing lost, nothing doubled"
    );
    let output = scheduler.pvnctl(["jobs", "logs", job]);
    assert_eq!(
        (output.stdout, output.stderr),
        (b"out\ndone\n".to_vec(), b"err\n".to_vec()),
        "over HTTP, streams apart"
    );
    let runs = std::fs::read_to_string(ledger).expect("the ledger can be read");
    assert_eq!(runs.lines().count(), 1, "it ran once: {runs}");
    let jobs_in = format!("pvn-proxy-runtime-{runtime}");
    let creations = cluster.creations(&jobs_in);
    assert_eq!(creations.values().copied().collect::<Vec<_>>(), [1], "{creations:?}");
    check_delivered(&cluster, &jobs_in);
}

#[test]
fn the_image_and_the_manifests_agree_on_user_programs_port_and_version() {
    let text = |path: &str| {
        std::fs::read_to_string(programs::repository().join("images").join(path))
            .expect("it is in the checkout")
    };
    let check = |path: &str, expected: &str| {
        assert!(text(path).contains(expected), "{path} does not say {expected}")
    };
    check("scheduler/Dockerfile", &format!("USER {USER}:{USER}\n"));
    check("kubernetes/stateful-set.yaml", &format!("runAsUser: {USER}\n"));
    check("scheduler/Dockerfile", "ENTRYPOINT [\"/pvn-scheduler\"]\n");
    check("kubernetes/stateful-set.yaml", "args: [serve]\n");
    check("scheduler/Dockerfile", &format!("COPY {} /\n", PROGRAMS.join(" ")));
    check("scheduler/Dockerfile", "COPY ca-certificates.crt /etc/ssl/certs/\n");
    check("scheduler/Dockerfile", &format!("EXPOSE {PORT}\n"));
    check("kubernetes/stateful-set.yaml", &format!("value: '0.0.0.0:{PORT}'"));
    check("kubernetes/service.yaml", &format!("port: {PORT}, targetPort: http"));
    check(
        "kubernetes/stateful-set.yaml",
        &format!("value: 'http://pvn.$(POD_NAMESPACE).svc:{PORT}'"),
    );
    check("kubernetes/kustomization.yaml", &format!("newTag: {}\n", env!("CARGO_PKG_VERSION")));
}
