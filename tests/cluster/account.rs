//! Accounts of schedulers in the cluster, with exactly the rights that are published: the files of
//! `images/kubernetes/rights` themselves are applied, under names of the account's own. Tests may
//! take rights away from theirs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::layout::Layout;
use super::{Cluster, configs, parts};
use crate::{programs, wait};

/// How long a token is good: longer than any run of the tests.
const TOKEN_FOR: &str = "24h";

/// An account. It lasts as long as the cluster.
#[derive(Debug)]
pub struct Account {
    suffix: String,
    kubeconfig: PathBuf,
    admin: PathBuf,
}

impl Account {
    /// A new one, with the published files and these components of `images/kubernetes` on top.
    pub(super) fn new(layout: &Layout, components: &[&str]) -> std::io::Result<Self> {
        let accounts = layout.state().join("accounts");
        std::fs::create_dir_all(&accounts)?;
        let directory =
            tempfile::Builder::new().prefix("").tempdir_in(accounts.canonicalize()?)?.keep();
        let suffix =
            directory.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_lowercase();
        let account = Self {
            kubeconfig: directory.join("kubeconfig"),
            suffix,
            admin: layout.admin_kubeconfig(),
        };
        let published = published(&directory);
        let components: Vec<String> =
            components.iter().map(|name| format!("'{published}/{name}'")).collect();
        let (namespace, suffix) = (account.namespace(), &account.suffix);
        std::fs::write(
            directory.join("kustomization.yaml"),
            format!(
                "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: \
                 {namespace}\nnameSuffix: '-{suffix}'\nresources: \
                 ['{published}/rights']\ncomponents: [{}]\n",
                components.join(", ")
            ),
        )?;
        account.admin(&["create", "namespace", &namespace]);
        account.admin(&[
            "apply",
            "--server-side",
            "-k",
            directory.to_str().expect("its path is plain"),
        ]);
        let token = account.admin(&[
            "create",
            "token",
            &account.name("pvn"),
            "--namespace",
            &namespace,
            "--duration",
            TOKEN_FOR,
        ]);
        std::fs::write(
            &account.kubeconfig,
            configs::kubeconfig(layout.state(), "pvn", token.trim()),
        )?;
        Ok(account)
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The namespace of the account itself.
    pub fn namespace(&self) -> String {
        format!("pvn-account-{}", self.suffix)
    }

    /// What an object of the published files is called for this account.
    pub fn name(&self, published: &str) -> String {
        format!("{published}-{}", self.suffix)
    }

    /// Binds the role for Jobs to it in one namespace, as the documentation says.
    pub fn bind(&self, namespace: &str) {
        let (role, account) =
            (self.name("pvn-jobs"), format!("{}:{}", self.namespace(), self.name("pvn")));
        self.admin(&[
            "create",
            "rolebinding",
            "pvn-jobs",
            "--clusterrole",
            &role,
            "--serviceaccount",
            &account,
            "--namespace",
            namespace,
        ]);
        self.wait_until_it_may(true, "create", "jobs.batch", namespace);
    }

    /// Takes one right out of one of its roles for as long as the result is held; `resource` as in
    /// `pods/log`.
    #[must_use]
    pub fn without(&self, role: &str, verb: &str, resource: &str) -> TakenAway<'_> {
        let text = self.admin(&["get", "clusterrole", &self.name(role), "-o", "json"]);
        let mut changed: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
        let before = changed["rules"].clone();
        for rule in changed["rules"].as_array_mut().expect("a role has rules") {
            if rule["resources"]
                .as_array()
                .is_some_and(|resources| resources.contains(&resource.into()))
            {
                rule["verbs"]
                    .as_array_mut()
                    .expect("a rule has verbs")
                    .retain(|found| found != verb);
            }
        }
        // A rule without verbs is none.
        changed["rules"]
            .as_array_mut()
            .expect("a role has rules")
            .retain(|rule| rule["verbs"] != serde_json::json!([]));
        assert_ne!(changed["rules"], before, "{role} does not hold {verb} {resource}");
        self.replace(&changed);
        self.wait_until_it_may(false, verb, resource, "default");
        changed["rules"] = before;
        TakenAway { account: self, role: changed }
    }

    /// The cluster's parts learn of roles a moment later.
    pub fn wait_until_it_may(&self, may: bool, verb: &str, resource: &str, namespace: &str) {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        wait::until(
            &format!("{verb} {resource} to be {}", if may { "permitted" } else { "forbidden" }),
            || {
                let output = kubectl(&self.kubeconfig)
                    .args(["auth", "can-i", verb, resource, "--namespace", namespace])
                    .args((!subresource.is_empty()).then(|| format!("--subresource={subresource}")))
                    .output()
                    .expect("kubectl can be started");
                (output.status.success() == may).then_some(())
            },
        );
    }

    fn replace(&self, object: &Value) {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        run(kubectl(&self.admin).args(["replace", "-f", "-"]), &object.to_string());
    }

    fn admin(&self, arguments: &[&str]) -> String {
        run(kubectl(&self.admin).args(arguments), "")
    }
}

/// A right that an account does not have at present.
#[derive(Debug)]
pub struct TakenAway<'a> {
    account: &'a Account,
    role: Value,
}

impl Drop for TakenAway<'_> {
    fn drop(&mut self) {
        // A test that failed has said enough.
        if !std::thread::panicking() {
            self.account.replace(&self.role);
        }
    }
}

impl Cluster {
    /// An account with exactly the published rights in all namespaces, for all schedulers of this
    /// program.
    pub fn account(&self) -> &Account {
        self.account.get_or_init(|| self.new_account(&["cluster-wide"]))
    }

    /// An account of one's own, with the published rights as these components of
    /// `images/kubernetes` change them.
    ///
    /// # Panics
    /// When the published files are not accepted.
    pub fn new_account(&self, components: &[&str]) -> Account {
        let account =
            Account::new(&self.layout, components).expect("an account can be written down");
        if components.contains(&"cluster-wide") {
            account.wait_until_it_may(true, "create", "namespaces", "default");
            account.wait_until_it_may(true, "create", "jobs.batch", "default");
        }
        account
    }

    /// Runs `kubectl` with all rights; returns what it printed.
    ///
    /// # Panics
    /// When it fails.
    pub fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        run(kubectl(&self.kubeconfig()).args(arguments), input)
    }

    /// The same, for what may be refused.
    ///
    /// # Errors
    /// What `kubectl` said.
    pub fn try_kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        try_run(kubectl(&self.kubeconfig()).args(arguments), "")
    }
}

fn kubectl(kubeconfig: &Path) -> Command {
    let mut command = Command::new(parts::kubectl().expect("it is a part of the cluster"));
    command.env("KUBECONFIG", kubeconfig).stdin(Stdio::null());
    command
}

fn run(command: &mut Command, input: &str) -> String {
    try_run(command, input).unwrap_or_else(|said| panic!("{command:?}: {said}"))
}

/// What it printed, or said when it failed.
fn try_run(command: &mut Command, input: &str) -> Result<String, String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl can be started");
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(input.as_bytes()).expect("kubectl reads its input");
    drop(stdin);
    let output = child.wait_with_output().expect("a child can be waited for");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr)) }
}

/// `images/kubernetes` as seen from a directory: kustomize takes relative paths only.
pub fn published(from: &Path) -> String {
    let images = programs::repository().join("images/kubernetes");
    let up = "../".repeat(from.components().count() - 1);
    format!("{up}{}", images.strip_prefix("/").expect("it is absolute").display())
}
