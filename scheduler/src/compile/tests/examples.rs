//! The documents in `examples/`: whole files as people copy them.

use std::path::{Path, PathBuf};

use super::*;

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// All documents of an example, local files taken along as the client does.
fn read(name: &str) -> Configs {
    let directory = directory(name);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&directory).unwrap().flatten() {
        let path = entry.file_name().into_string().unwrap();
        if path.ends_with(".pvn.yaml") {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let references = config::references(&path, &text);
            let attach = |path: String| {
                (path.clone(), std::fs::read_to_string(directory.join(path)).unwrap())
            };
            let attachments =
                references.into_iter().map(|(reference, _)| attach(reference.path)).collect();
            files.push(ConfigFile { path, text, attachments });
        }
    }
    let mut configs = Configs::default();
    for document in config::read(&files)
        .unwrap_or_else(|problems| panic!("{name}: {}", problems[0].render(false)))
    {
        configs.put(document);
    }
    configs
}

#[test]
fn the_examples_that_run_compile_on_this_machine() {
    for name in
        ["quickstart", "terraform", "terraform-runner", "structured", "static-assets", "channels"]
    {
        let configs = read(name);
        assert_eq!(super::super::check(&configs, &Options::default(), None), [], "{name}");
        for application in configs.applications() {
            for channel in super::super::channels(&configs, application).unwrap() {
                compiled_with(
                    &configs,
                    &Options { everything_local: true },
                    channel.name.as_str(),
                    "",
                )
                .unwrap();
            }
        }
    }
}

#[test]
fn all_of_prodvanas_format_is_taken() {
    let problems = super::super::check(&read("prodvana"), &Options::default(), None);
    assert_eq!(problems, []);
}
