//! The wrapper without a scheduler: the example of it, and its image.

use std::path::Path;
use std::process::{Command, Output};

use schema::id::BlobId;
use schema::report::Report;
use tests::{programs, skip};

/// Runs a script of the example with our programs on the PATH.
fn example(script: &str) -> String {
    let script = programs::repository().join("examples/wrapper").join(script);
    let output = Command::new(script)
        .env("PATH", programs::path_after(programs::directory()))
        .output()
        .expect("the script can be started");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("planning"), "{stderr}");
    String::from_utf8(output.stdout).expect("text")
}

fn report(line: &str) -> Report {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("no report: {error}: {line}"))
}

#[test]
fn the_example_in_docker_style_prints_the_report() {
    let said = example("docker.sh");
    let [output, line] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    let report = report(line);
    assert_eq!(
        (output, report.exit_code, report.stdout_bytes),
        ("1 to add, 0 to change", Some(0), 22)
    );
    let plan = BlobId::of(b"1 to add, 0 to change\n");
    assert_eq!(
        (report.files[0].name.as_str(), report.files[0].content_blob_id),
        ("plan", Some(plan))
    );
}

#[test]
fn the_example_in_job_style_leaves_a_termination_message() {
    let said = example("job.sh");
    let [_, line, message] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    let message = message.strip_prefix("termination message: ").expect("the script says so");
    assert_eq!(report(line), report(message), "small enough to be told whole");
}

#[test]
fn the_files_of_the_example_run_what_its_scripts_run() {
    let text = |name: &str| {
        std::fs::read_to_string(programs::repository().join("examples/wrapper").join(name))
            .expect("the example has it")
    };
    let dockerfile = text("Dockerfile").replace(['"', '[', ']', ','], "");
    assert!(
        dockerfile
            .contains("pvn-wrapper exec --report - --out plan=/tmp/plan.txt --timeout 10m --"),
        "{dockerfile}"
    );
    assert!(text("docker.sh").contains(
        "pvn-wrapper exec --report - --out plan=\"$work/plan.txt\" --timeout 10m -- ./task.sh"
    ));
    let job = text("job.yaml").replace(['"', '[', ']', ','], "");
    assert!(
        job.contains("args: install /pvn")
            && job.contains("/pvn/pvn-wrapper exec --report - --out plan=/pvn/plan.txt --"),
        "{job}"
    );
    assert!(text("job.sh").contains(
        "\"$pvn/pvn-wrapper\" exec --report - --out plan=\"$pvn/plan.txt\" -- ./task.sh"
    ));
}

/// Runs a tool; `None`, counted as skipped, when it may not do here what it must.
pub(crate) fn permitted(command: &mut Command, test: &str) -> Option<Output> {
    let output = command.output().expect("the tool can be started");
    if output.status.success() {
        return Some(output);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let forbidden = [
        "not permitted",
        "ermission denied",
        "read-only file system",
        "cgroup",
        "unshare",
        "newuidmap",
        "/proc",
    ];
    assert!(forbidden.iter().any(|why| said.contains(why)), "{command:?}: {said}");
    skip::skipped(test, said.lines().last().unwrap_or("no reason given"));
    None
}

#[test]
fn the_image_of_the_wrapper_is_built_and_runs_with_nothing_else_in_it() {
    let test = "the_image_of_the_wrapper_is_built_and_runs_with_nothing_else_in_it";
    let (Some(buildah), Some(runc)) = (skip::tool("buildah"), skip::tool("runc")) else {
        return skip::skipped(test, "there is no `buildah` or no `runc`");
    };
    if !nix::unistd::geteuid().is_root() {
        return skip::skipped(
            test,
            "building an image and running it without an engine needs root",
        );
    }
    let built = Command::new(programs::repository().join("images/build-wrapper.sh"))
        .output()
        .expect("the script can be started");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let said = String::from_utf8(built.stdout).expect("text");
    let program =
        programs::repository().join(said.split(':').next().expect("it begins with the path"));

    let work = tempfile::tempdir().expect("a directory");
    let root = work.path().join("root");
    let mut build = Command::new(buildah);
    build
        .arg("--root")
        .arg(work.path().join("storage"))
        .arg("--runroot")
        .arg(work.path().join("run"))
        .args(["--storage-driver", "vfs", "bud"]);
    build
        .args(["--isolation", "chroot", "--quiet", "--output"])
        .arg(format!("type=local,dest={}", root.display()));
    build
        .arg("--file")
        .arg(programs::repository().join("images/wrapper/Dockerfile"))
        .arg(program.parent().expect("it is in a directory"));
    if permitted(&mut build, test).is_none() {
        return;
    }
    let held: Vec<_> = std::fs::read_dir(&root)
        .expect("the root of the image")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(held, ["pvn-wrapper"], "from scratch");

    // Its own program is the one thing that it can run.
    let arguments = ["/pvn-wrapper", "exec", "--report", "-", "--", "/pvn-wrapper", "--version"];
    let Some(output) = run(&runc, work.path(), &arguments, test) else { return };
    let said = String::from_utf8(output.stdout).expect("text");
    let [version, line] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(version.starts_with("pvn-wrapper "), "{said}");
    let report = report(line);
    assert_eq!((report.exit_code, report.lost_bytes), (Some(0), 0));

    let tools = work.path().join("tools");
    std::fs::create_dir(&tools).expect("a directory");
    if run(&runc, work.path(), &["/pvn-wrapper", "install", "/tools"], test).is_some() {
        let output = Command::new(tools.join("pvn-wrapper"))
            .arg("--version")
            .output()
            .expect("what was installed runs");
        assert!(output.status.success());
    }
}

/// Runs the container whose root is `root` in `bundle`, as its first process, with `tools` of the
/// bundle at `/tools`.
fn run(runc: &Path, bundle: &Path, arguments: &[&str], test: &str) -> Option<Output> {
    let tools = bundle.join("tools");
    let mut mounts =
        vec![serde_json::json!({ "destination": "/proc", "type": "proc", "source": "proc" })];
    if tools.exists() {
        mounts.push(serde_json::json!({ "destination": "/tools", "type": "bind", "source": tools, "options": ["rbind", "rw"] }));
    }
    let config = serde_json::json!({
        "ociVersion": "1.0.2",
        "process": { "user": { "uid": 0, "gid": 0 }, "args": arguments, "env": ["PATH=/"], "cwd": "/", "noNewPrivileges": true },
        "root": { "path": "root", "readonly": false },
        "mounts": mounts,
        "linux": { "namespaces": [{ "type": "pid" }, { "type": "mount" }, { "type": "ipc" }] },
    });
    std::fs::write(bundle.join("config.json"), config.to_string()).expect("a file can be written");
    let name = format!("pvn-test-{}", std::process::id());
    let mut command = Command::new(runc);
    command.arg("--root").arg(bundle.join("runc")).args(["run", "--bundle"]).arg(bundle).arg(name);
    permitted(&mut command, test)
}
