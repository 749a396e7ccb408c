//! Builds images of tools by buildah, without an engine or a registry, and runs them by runc: the
//! base is made of this machine's busybox, and the archives come from a server here that has them
//! as their vendors do.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use fakes::http::{self, Reply};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tests::{programs, skip};

/// Where images are made and run, and what is handed out to them by HTTP.
pub(super) struct Workshop {
    pub(super) home: tempfile::TempDir,
    /// The wrapper that goes into the images.
    pub(super) wrapper: PathBuf,
    address: String,
}

/// What of a machine a tool of its own needs to be run elsewhere.
const MACHINE: [&str; 3] = ["/usr/lib", "/usr/lib64", "/usr/bin"];

/// What an image says of whoever runs it.
pub(super) struct Config {
    user: u64,
    environment: Vec<String>,
    entrypoint: Vec<String>,
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ok(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    assert!(output.status.success(), "{command:?}: {said}");
    output
}

pub(super) fn write(path: &Path, content: &[u8], mode: u32) {
    std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("it can be made");
    std::fs::write(path, content).expect("a file can be written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

impl Workshop {
    /// One that serves these files, or none and the test counts as skipped.
    pub(super) fn with(test: &str, files: BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let missing = ["buildah", "runc", "busybox", "ldd", "python3", "tar"];
        let missing = missing.into_iter().find(|tool| skip::tool(tool).is_none());
        if let Some(tool) = missing {
            skip::skipped(test, &format!("there is no `{tool}`"));
            return None;
        }
        if !nix::unistd::geteuid().is_root() {
            skip::skipped(test, "building an image and running it without an engine needs root");
            return None;
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("a listener has an address").to_string();
        let files = Arc::new(files);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let files = Arc::clone(&files);
                std::thread::spawn(move || {
                    http::serve(stream, |request| {
                        let found = files.get(request.path.trim_start_matches('/'));
                        Some(found.map_or(Reply::empty(404), |file| Reply::input(file)))
                    });
                });
            }
        });
        let home = tempfile::tempdir().expect("a directory can be made");
        let wrapper = programs::program("pvn-wrapper");
        let workshop = Self { home, wrapper, address };
        workshop.base(test).then_some(workshop)
    }

    fn buildah(&self) -> Command {
        let mut command = Command::new("buildah");
        command.arg("--root").arg(self.home.path().join("storage"));
        command.arg("--runroot").arg(self.home.path().join("run"));
        command.args(["--storage-driver", "vfs"]);
        command
    }

    /// Makes `localhost/base`: busybox, the libraries of our wrapper as it is built for tests, and
    /// the certificates. False, and the test counts as skipped, where no image can be built.
    fn base(&self, test: &str) -> bool {
        let root = self.home.path().join("base");
        write(
            &root.join("bin/busybox"),
            &std::fs::read("/bin/busybox").expect("it is there"),
            0o755,
        );
        let names = ok(Command::new("busybox").arg("--list")).stdout;
        for name in text(&names).lines().filter(|name| *name != "busybox") {
            symlink("busybox", root.join("bin").join(name)).expect("a link can be made");
        }
        let needed = ok(Command::new("ldd").arg(&self.wrapper)).stdout;
        for library in text(&needed).split_whitespace().filter(|word| word.starts_with('/')) {
            let at = library.trim_start_matches("/usr").trim_start_matches('/');
            let bytes = std::fs::read(library).expect("a library is there");
            write(&root.join("usr").join(at), &bytes, 0o755);
        }
        for linked in ["lib", "lib64"] {
            symlink(format!("usr/{linked}"), root.join(linked)).expect("a link can be made");
        }
        write(&root.join("Dockerfile"), b"FROM scratch\nCOPY . /\nRUN chmod 1777 /tmp\n", 0o644);
        std::fs::create_dir(root.join("tmp")).expect("a directory can be made");
        let mut build = self.buildah();
        build
            .args(["bud", "--isolation", "chroot", "--quiet", "--tag", "localhost/base"])
            .arg(&root);
        crate::wrapper::permitted(&mut build, test).is_some()
    }

    /// Builds an image of ours with these arguments, in which `SERVER` is where the files are.
    pub(super) fn tries(&self, name: &str, arguments: &[(&str, &str)]) -> Output {
        let context = self.home.path().join("context");
        let wrapper = std::fs::read(&self.wrapper).expect("it is built");
        write(&context.join("pvn-wrapper"), &wrapper, 0o755);
        let tag = format!("localhost/{name}");
        let mut build = self.buildah();
        build.args(["bud", "--isolation", "chroot", "--quiet", "--tag", &tag]);
        for (key, value) in arguments {
            let value = value.replace("SERVER", &format!("http://{}", self.address));
            build.arg("--build-arg").arg(format!("{key}={value}"));
        }
        let dockerfile = programs::repository().join("images").join(name).join("Dockerfile");
        build.arg("--file").arg(dockerfile).arg(&context);
        build.output().expect("buildah can be started")
    }

    /// The same for one that can be built: where its root is, and what it says.
    pub(super) fn build(&self, name: &str, arguments: &[(&str, &str)]) -> (PathBuf, Config) {
        let built = self.tries(name, arguments);
        assert!(built.status.success(), "{name}: {}", text(&built.stderr));
        let tag = format!("localhost/{name}");
        let inspected = ok(self.buildah().args(["inspect", "--type", "image", &tag])).stdout;
        let said: Value = serde_json::from_slice(&inspected).expect("buildah prints JSON");
        let said = &said["OCIv1"]["config"];
        let user = said["User"].as_str().expect("it says whose it is");
        let user = user.split(':').next().and_then(|user| user.parse().ok());
        let list = |field: &str| -> Vec<String> {
            serde_json::from_value(said[field].clone()).expect("a list of texts")
        };
        let config = Config {
            user: user.expect("by number, so that `runAsNonRoot` can tell"),
            environment: list("Env"),
            entrypoint: list("Entrypoint"),
        };
        let container = text(&ok(self.buildah().args(["from", &tag])).stdout);
        let root = text(&ok(self.buildah().args(["mount", container.trim()])).stdout);
        (PathBuf::from(root.trim()), config)
    }

    /// Runs a command as the image would, with a read-only root, `/tmp` of its own, and these
    /// directories of the machine where they are here.
    pub(super) fn run(
        &self,
        (root, config): &(PathBuf, Config),
        command: &[&str],
        variables: &[String],
        machine: &[PathBuf],
    ) -> Output {
        let mut mounts = vec![
            json!({"destination": "/proc", "type": "proc", "source": "proc"}),
            json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}),
            json!({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]}),
        ];
        mounts.extend(machine.iter().map(|directory| {
            json!({"destination": directory, "type": "bind", "source": directory, "options": ["rbind", "ro"]})
        }));
        let arguments: Vec<&str> =
            config.entrypoint.iter().map(String::as_str).chain(command.iter().copied()).collect();
        let environment = [config.environment.as_slice(), variables].concat();
        let bundle = self.home.path().join("bundle");
        let said = json!({
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": config.user, "gid": config.user}, "args": arguments,
                "env": environment, "cwd": "/", "noNewPrivileges": true,
            },
            "root": {"path": root, "readonly": true},
            "mounts": mounts,
            "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}]},
        });
        write(&bundle.join("config.json"), said.to_string().as_bytes(), 0o644);
        let name = format!("pvn-tool-{}-{:?}", std::process::id(), std::thread::current().id());
        let name = name.replace(['(', ')'], "");
        let mut run = Command::new("runc");
        run.arg("--root").arg(self.home.path().join("runc")).args(["run", "--bundle"]);
        run.arg(&bundle).arg(name).output().expect("runc can be started")
    }
}

/// What makes a zip; unlike `-m zipfile` it does not compress, which takes long for a whole tool.
const ZIP: &str = "import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as made:
    for path in sys.argv[2:]:
        made.write(path)
";

/// An archive of these files, as `zip` or `tar.gz`.
pub(super) fn archive(kind: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
    let home = tempfile::tempdir().expect("a directory can be made");
    let (tree, made) = (home.path().join("tree"), home.path().join("made"));
    for (path, content) in files {
        write(&tree.join(path), content, 0o755);
    }
    let mut pack = if kind == "zip" { Command::new("python3") } else { Command::new("tar") };
    if kind == "zip" {
        pack.args(["-c", ZIP])
    } else {
        pack.arg("-czf")
    };
    ok(pack.arg(&made).args(files.iter().map(|(path, _)| path)).current_dir(&tree));
    std::fs::read(made).expect("it was made")
}

pub(super) fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A program that is this one of the machine, and what of the machine it needs.
pub(super) fn stand_in(tool: &Path) -> (Vec<u8>, Vec<PathBuf>) {
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", tool.display());
    // The first two names of its path: all of what was installed with it.
    let own: PathBuf = tool.components().take(3).collect();
    let own = (!MACHINE.iter().any(|known| own.starts_with(known))).then_some(own);
    (script.into_bytes(), MACHINE.iter().map(PathBuf::from).chain(own).collect())
}
