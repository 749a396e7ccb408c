//! The real `pulumi`, with a backend of files and a program in YAML that only has outputs.

use std::process::Command;

use serde_json::Value;

use crate::run::{Run, Wrapper};
use crate::skipped;

const PROJECT: &str = "\
name: p
runtime: yaml
outputs:
  zone: here
";

#[test]
fn the_real_pulumi_previews_a_stack_brings_it_up_and_tells_of_it() {
    let runs = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    if !runs(Command::new("pulumi").arg("version")) {
        skipped(
            "the_real_pulumi_previews_a_stack_brings_it_up_and_tells_of_it",
            "pulumi is not on PATH",
        );
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("Pulumi.yaml"), PROJECT).unwrap();
    let backend = format!("file://{}", directory.path().display());
    let environment = [
        ("PULUMI_BACKEND_URL", backend.as_str()),
        ("PULUMI_CONFIG_PASSPHRASE", ""),
        ("PULUMI_SKIP_UPDATE_CHECK", "true"),
        ("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true"),
    ];
    let init = Command::new("pulumi")
        .args(["stack", "init", "dev"])
        .current_dir(directory.path())
        .envs(environment)
        .output()
        .unwrap();
    assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));

    let run = |step: &str, stack: &str| -> Run {
        let wrapper = Wrapper::new(&[], &["pvn-wrapper", "pulumi", step, "--stack", stack]);
        let mut wrapper =
            environment.into_iter().fold(wrapper, |wrapper, (key, value)| wrapper.env(key, value));
        wrapper.command.current_dir(directory.path());
        wrapper.run()
    };
    let preview = run("preview", "dev");
    assert_eq!(preview.code, 2, "{}", preview.stderr);
    assert!(preview.text().starts_with("Preview: 1 to create\n"), "{}", preview.text());
    assert_eq!(run("up", "dev").code, 0);
    let preview = run("preview", "dev");
    assert_eq!(preview.text(), "Preview: no changes, 1 unchanged\n", "{}", preview.stderr);
    let info: Value = serde_json::from_slice(&run("info", "dev").stdout).unwrap();
    assert_eq!(info["outputs"][2]["text"], "here", "{info}");
    let none = run("preview", "none");
    assert!(none.code == 1 && none.stderr.contains("there is no stack `none`"), "{}", none.stderr);
}
