//! Kubeconfigs that cannot be used: what is told of them, and that nothing of what they hold is.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::super::ask::{self, RequestRefusal};
use super::super::blockers::StartBlocker;
use super::super::clusters::Clusters;
use super::*;
use crate::compile::ClusterPlace;

/// Stands wherever a credential may.
const SECRET: &str = "hunter2hunter2";

/// After this time a plugin is run again.
const RENEWED_AGAIN: std::time::Duration = std::time::Duration::from_millis(2_100);

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters:
- name: k
  cluster: {server: 'http://127.0.0.1:1'}
users:
- name: u
  user: {token: hunter2hunter2}
";

const USER: &str = "{token: hunter2hunter2}";

fn place(kubeconfig: &Path) -> ClusterPlace {
    ClusterPlace {
        cluster: "k8s".parse().unwrap(),
        runtime: "web".parse().unwrap(),
        kubeconfig: Some(kubeconfig.display().to_string()),
        context: None,
        wrapper_image: None,
        namespace: "there".to_owned(),
        own_namespace: true,
    }
}

/// A program that is a plugin.
fn plugin(directory: &TempDir, script: &str) -> String {
    let path = directory.path().join("plug-in");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let env = format!("[{{name: PASSWORD, value: {SECRET}}}]");
    format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {}, args: [{SECRET}], \
         env: {env}}}}}",
        path.display()
    )
}

/// Why there is no connection with a kubeconfig that holds this.
async fn why_not(directory: &TempDir, text: &str) -> String {
    let path = directory.path().join("kubeconfig");
    std::fs::write(&path, text).unwrap();
    let why = Clusters::default().get(&place(&path)).await.map(drop).expect_err(text);
    let begin = format!("the kubeconfig {} of runtime `k8s` cannot be used: ", path.display());
    why.strip_prefix(&begin).unwrap_or_else(|| panic!("{why}")).to_owned()
}

/// Checks what is told of the kubeconfig with its changes.
async fn check(changes: &[(&str, &str)], expected: &str) {
    let mut text = KUBECONFIG.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "it holds {from}");
        text = text.replace(from, to);
    }
    let why = why_not(&TempDir::new().unwrap(), &text).await;
    assert!(why.contains(expected) && !why.contains(SECRET), "{changes:?}: {why}");
}

#[tokio::test]
async fn nothing_is_told_of_what_a_wrong_kubeconfig_holds() {
    check(&[("users:", " users:")], "it is no kubeconfig at line 9, column 2").await;
    check(&[("{token: hunter2hunter2}", "[hunter2hunter2]")], "it is no kubeconfig at line ").await;
    check(&[("current-context: c\n", "")], "it says no `current-context`").await;
    check(
        &[("current-context: c", "current-context: hunter2hunter2")],
        "its `current-context` is not among its `contexts`",
    )
    .await;
    check(
        &[("{cluster: k,", "{cluster: hunter2hunter2,")],
        "the cluster of its context is not among its `clusters`",
    )
    .await;
    check(
        &[("'http://127.0.0.1:1'", "'http://u:hunter2hunter2@ /'")],
        "the `server` of its cluster is no URL",
    )
    .await;
    check(
        &[("'http://127.0.0.1:1'", "x, proxy-url: 'http://u:hunter2hunter2@p:1'")],
        "its `proxy-url`, or",
    )
    .await;
    check(
        &[("'http://127.0.0.1:1'", "x, proxy-url: 'x://u:hunter2hunter2@p:1'")],
        "its `proxy-url`, or",
    )
    .await;
    check(
        &[("'http://127.0.0.1:1'", "x, certificate-authority: hunter2hunter2")],
        "the file that its `certificate-authority` names",
    )
    .await;
    check(
        &[(USER, "{tokenFile: hunter2hunter2}")],
        "the file that its `tokenFile` names cannot be read: No such file",
    )
    .await;
    check(
        &[(USER, "{client-key: hunter2hunter2, client-certificate-data: eA==}")],
        "the file that its `client-key` names",
    )
    .await;
    check(
        &[(USER, "{client-key-data: '-hunter2hunter2', client-certificate-data: eA==}")],
        "its `client-key-data` is no base64",
    )
    .await;
    check(
        &[(USER, "{auth-provider: {name: hunter2hunter2}}")],
        "its `auth-provider` gives no token",
    )
    .await;
    check(&[(USER, "{as: \"hunter2hunter2\\n\"}")], "see its `as`").await;
    let directory = TempDir::new().unwrap();
    let why = why_not(&directory, &format!("{SECRET}\n")).await;
    assert!(why.starts_with("it is no kubeconfig") && !why.contains(SECRET), "{why}");
    let why = Clusters::default()
        .get(&place(Path::new("/nowhere/kubeconfig")))
        .await
        .map(drop)
        .unwrap_err();
    assert!(
        why.ends_with("/nowhere/kubeconfig cannot be read: No such file or directory (os error 2)"),
        "{why}"
    );
}

#[tokio::test]
async fn of_a_plugin_that_fails_its_program_and_how_it_ended_is_told() {
    let of = async |script: &str| {
        let directory = TempDir::new().unwrap();
        let text = KUBECONFIG.replace(USER, &plugin(&directory, script));
        let why = why_not(&directory, &text).await;
        assert!(!why.contains(SECRET), "{script}: {why}");
        why
    };
    let failed = of("echo $PASSWORD; echo $PASSWORD >&2; exit 3").await;
    assert!(
        failed.starts_with(
            "the plugin `plug-in` of its `exec` ended with exit status: 3; run it by hand"
        ),
        "{failed}"
    );
    let talked = of("echo \"{status: {token: $PASSWORD\"").await;
    assert!(
        talked.starts_with("the plugin `plug-in` of its `exec` printed no ExecCredential"),
        "{talked}"
    );
    let nothing = of("echo '{\"kind\": \"ExecCredential\", \"apiVersion\": \
                      \"client.authentication.k8s.io/v1\"}'")
    .await;
    assert!(
        nothing.starts_with("the plugin `plug-in` of its `exec` printed no `status`"),
        "{nothing}"
    );
    let bare = of("echo '{\"status\": {\"clientCertificateData\": \"c\"}}'").await;
    assert!(
        bare.ends_with("printed a `status` with neither a token nor a certificate and its key"),
        "{bare}"
    );
    let timeless =
        of("echo '{\"status\": {\"token\": \"t\", \"expirationTimestamp\": \"soon\"}}'").await;
    assert!(timeless.ends_with("printed an end of its token that is no time"), "{timeless}");
    check(
        &[(USER, "{auth-provider: {name: gcp, config: {cmd-path: /bin/true}}}")],
        "its `auth-provider` gives no token",
    )
    .await;
    check(
        &[(USER, "{exec: {command: '/nowhere/x --password=hunter2hunter2'}}")],
        "the plugin `x` of its `exec` cannot be started: No ",
    )
    .await;
}

#[tokio::test]
async fn a_token_that_no_request_can_carry_is_an_error_and_no_panic_of_ours() {
    check(
        &[("{token: hunter2hunter2}", "\n    token: |\n      hunter2hunter2")],
        "its token holds a line break",
    )
    .await;
    let directory = TempDir::new().unwrap();
    let said = "{\"kind\": \"ExecCredential\", \"apiVersion\": \
                \"client.authentication.k8s.io/v1\", \"status\": {\"token\": \
                \"a\\nhunter2hunter2\"}}";
    let text = KUBECONFIG.replace(USER, &plugin(&directory, &format!("printf '%s' '{said}'")));
    assert_eq!(why_not(&directory, &text).await, TOKEN);
}

#[tokio::test]
async fn a_plugin_that_hangs_is_killed_with_what_it_started_and_those_who_wait_for_it_hear_the_same()
 {
    let directory = TempDir::new().unwrap();
    let runs = directory.path().join("runs");
    // What it leaves keeps its stdout open.
    let script = format!("echo $$ >> {}\nsleep 1000 & sleep 1000", runs.display());
    let path = directory.path().join("kubeconfig");
    std::fs::write(&path, KUBECONFIG.replace(USER, &plugin(&directory, &script))).unwrap();
    let hangs = Clusters::default().get(&place(&path)).await.map(drop).unwrap_err();
    assert!(
        hangs.contains(
            "the plugin `plug-in` of its `exec` did not end within 2 s and was killed; run it by \
             hand"
        ),
        "{hangs}"
    );
    let groups = std::fs::read_to_string(&runs).unwrap();
    for group in groups.lines() {
        let group = nix::unistd::Pid::from_raw(group.parse().unwrap());
        let is_gone = || nix::sys::signal::killpg(group, None).is_err();
        for _ in 0..500 {
            if is_gone() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(is_gone(), "{group} is still there");
    }

    let gives =
        "{\"status\": {\"token\": \"t\", \"expirationTimestamp\": \"2020-01-01T00:00:00Z\"}}";
    let script =
        format!("echo x >> {0}\ntest -e {0}-hang && sleep 1000\necho '{gives}'", runs.display());
    std::fs::write(&runs, "").unwrap();
    std::fs::write(&path, KUBECONFIG.replace(USER, &plugin(&directory, &script))).unwrap();
    let cluster = Clusters::default().get(&place(&path)).await.unwrap();
    assert_eq!(std::fs::read_to_string(&runs).unwrap(), "x\n", "once for both clients");
    std::fs::write(directory.path().join("runs-hang"), "").unwrap();
    tokio::time::sleep(RENEWED_AGAIN).await;
    let asks = (0..8).map(|_| async {
        ask::refused("asking", &cluster.client.apiserver_version().await.unwrap_err())
    });
    for refused in futures::future::join_all(asks).await {
        assert!(
            matches!(&refused, RequestRefusal::Unauthorized(why) if why.contains("did not end within 2 s")),
            "{refused:?}"
        );
    }
    assert_eq!(std::fs::read_to_string(&runs).unwrap(), "x\nx\n", "once for all who waited");
}

#[tokio::test]
async fn a_plugin_that_fails_later_is_told_in_the_same_words_and_nothing_was_sent() {
    let directory = TempDir::new().unwrap();
    let said = "{\"kind\": \"ExecCredential\", \"apiVersion\": \
                \"client.authentication.k8s.io/v1\", \"status\": {\"token\": \"hunter2hunter2\", \
                \"expirationTimestamp\": \"2020-01-01T00:00:00Z\"}}";
    let broken = directory.path().join("broken");
    let script = format!("test -e {} && echo $PASSWORD && exit 3\necho '{said}'", broken.display());
    let path = directory.path().join("kubeconfig");
    std::fs::write(&path, KUBECONFIG.replace(USER, &plugin(&directory, &script))).unwrap();
    let cluster = Clusters::default().get(&place(&path)).await.unwrap();
    let refused =
        async || ask::refused("asking", &cluster.client.apiserver_version().await.unwrap_err());
    let away = refused().await;
    assert!(
        matches!(&away, RequestRefusal::Unreached(why) if why.contains("Connection refused") && !why.contains(SECRET)),
        "{away:?}"
    );
    std::fs::write(broken, "").unwrap();
    tokio::time::sleep(RENEWED_AGAIN).await;
    let expected = format!(
        "asking: the kubeconfig {} of runtime `k8s` cannot be used: the plugin `plug-in` of its \
         `exec` ended with exit status: 3; run it by hand, as the user and in the environment of \
         the scheduler",
        path.display()
    );
    assert_eq!(refused().await, RequestRefusal::Unauthorized(expected));
}

#[test]
fn a_watch_that_is_forbidden_tells_the_right_that_it_lacks_and_what_gives_it() {
    let status = |code, message: &str| {
        Box::new(kube::core::Status {
            code,
            message: message.to_owned(),
            ..kube::core::Status::default()
        })
    };
    let of = |error: &watcher::Error| refusal(error, "pods");
    let forbidden =
        watcher::Error::InitialListFailed(kube::Error::Api(status(403, "pods is forbidden")));
    let place = ClusterPlace { own_namespace: false, ..place(Path::new("/k")) };
    let wait = StartBlocker::unlisted(&of_lost(&forbidden, "pods"), &place);
    let expected = "the scheduler's account may not `list` pods in the namespace `there` (pods is \
                    forbidden), so nobody knows what became of its Pod; what its wrapper reports \
                    is kept until then; bind the ClusterRole of images/kubernetes/rights to it: ";
    assert!(
        wait.is_unseen && wait.why.starts_with(expected) && wait.why.contains("--namespace there`"),
        "{}",
        wait.why
    );
    assert_eq!(
        wait.ends_when(),
        "the scheduler's account has this right, or when somebody cancels the job"
    );
    let late = of(&watcher::Error::WatchError(status(403, "no")));
    assert_eq!(
        late,
        Some(WatchRefusal::Forbidden { verb: "watch", resource: "pods", said: "no".to_owned() })
    );
    assert!(matches!(
        of(&watcher::Error::WatchStartFailed(kube::Error::Api(status(401, "")))),
        Some(WatchRefusal::Unauthorized(_))
    ));
    assert_eq!(of(&watcher::Error::WatchFailed(kube::Error::Api(status(410, "too old")))), None);
}
