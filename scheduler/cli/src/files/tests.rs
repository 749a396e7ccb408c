//! Real directories, and what is read of them.

use std::path::Path;

use super::*;

const APPLICATION: &str =
    "application: {name: NAME, releaseChannels: [{name: p, runtimes: [{runtime: r}]}]}\n";
const RUNTIME: &str = "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    \
                       apply:\n      kubernetesConfig: {type: KUBERNETES, local: {path: PATH}}\n";
const JOB: &str = "{apiVersion: batch/v1, kind: Job, metadata: {name: j}}";

fn application(name: &str) -> String {
    APPLICATION.replace("NAME", name)
}

struct Directory(tempfile::TempDir);

impl Directory {
    fn with(files: &[(&str, &str)]) -> Self {
        let directory = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = directory.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        directory
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Paths as they are known to people, without the part that differs from run to run.
    fn files(&self, paths: &[&str]) -> String {
        let paths: Vec<_> = paths.iter().map(|path| self.path(path)).collect();
        let files =
            read(&paths).unwrap_or_else(|problems| panic!("{}", self.shown(&problems))).files;
        files.iter().map(|file| self.plain(&file.path)).collect::<Vec<_>>().join(" ")
    }

    fn problems(&self, paths: &[&str]) -> String {
        let paths: Vec<_> = paths.iter().map(|path| self.path(path)).collect();
        self.shown(&read(&paths).expect_err("there are problems"))
    }

    fn shown(&self, problems: &[api::Diagnostic]) -> String {
        self.plain(
            &problems
                .iter()
                .map(|problem| problem.snippet.trim_end())
                .collect::<Vec<_>>()
                .join("\n\n"),
        )
    }

    fn plain(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.path().display()), "")
    }
}

#[test]
fn files_directories_and_all_below_are_read_in_order_and_once() {
    let directory = Directory::with(&[
        ("b.pvn.yaml", &application("b")),
        ("a.pvn.yml", &application("a")),
        ("deep/down/c.pvn.yaml", &application("c")),
        (".git/d.pvn.yaml", "broken: ["),
        ("other.yaml", &application("o")),
    ]);
    assert_eq!(directory.files(&["."]), "./a.pvn.yml ./b.pvn.yaml");
    assert_eq!(directory.files(&["..."]), "a.pvn.yml b.pvn.yaml deep/down/c.pvn.yaml");
    assert_eq!(directory.files(&["deep/...", "b.pvn.yaml"]), "deep/down/c.pvn.yaml b.pvn.yaml");
    assert_eq!(
        directory.files(&["other.yaml"]),
        "other.yaml",
        "a file that is named is read whatever its name"
    );
    assert_eq!(
        directory.files(&["b.pvn.yaml", "...", "./b.pvn.yaml"]),
        "b.pvn.yaml a.pvn.yml deep/down/c.pvn.yaml"
    );
}

#[test]
fn a_path_with_nothing_to_read_is_a_problem() {
    let directory = Directory::with(&[("deep/a.pvn.yaml", "")]);
    let shown = directory.problems(&[".", "missing.pvn.yaml"]);
    assert!(shown.contains("no `*.pvn.yaml` or `*.pvn.yml` file here"), "{shown}");
    assert!(shown.contains("...` takes in the directories below"), "{shown}");
    assert!(shown.contains("cannot read it: no such file or directory"), "{shown}");
    assert!(shown.contains("--> missing.pvn.yaml"), "{shown}");
}

#[test]
fn a_link_that_leads_nowhere_is_a_problem_and_not_passed_over() {
    let directory = Directory::with(&[("a.pvn.yaml", &application("a")), ("not-ours.yaml", "")]);
    std::os::unix::fs::symlink("gone.yaml", directory.path("not-wanted.yaml")).unwrap();
    assert_eq!(directory.files(&["."]), "./a.pvn.yaml");
    std::os::unix::fs::symlink("../gone.yaml", directory.path("b.pvn.yaml")).unwrap();
    let shown = directory.problems(&["."]);
    assert!(
        shown.contains("cannot read the file: no such file or directory\n--> ./b.pvn.yaml"),
        "{shown}"
    );
    std::fs::write(directory.path("c.pvn.yaml"), "runtime: {naem: x}\n").unwrap();
    let shown = directory.problems(&["."]);
    assert!(
        shown.contains("no such file") && shown.contains("`naem`"),
        "it hides nothing: {shown}"
    );
}

#[test]
fn local_files_are_read_beside_the_config_and_sent_by_the_path_in_it() {
    let directory = Directory::with(&[
        ("one/r.pvn.yaml", &RUNTIME.replace("PATH", "../jobs/apply.yaml")),
        ("jobs/apply.yaml", JOB),
    ]);
    let files = read(&[directory.path("one")]).unwrap().files;
    assert_eq!(files[0].attachments, [("../jobs/apply.yaml".to_owned(), JOB.to_owned())].into());
}

#[test]
fn of_a_directory_the_files_that_the_patterns_take_are_sent() {
    let block = "jobs/, excludePatterns: [old], includePatterns: [\"*.yaml\"]";
    let directory = Directory::with(&[
        ("r.pvn.yaml", &RUNTIME.replace("PATH", block)),
        ("jobs/a/apply.yaml", JOB),
        ("jobs/old/apply.yaml", JOB),
        ("jobs/README.md", "no"),
        ("jobs/.hidden/x.yaml", "no"),
    ]);
    let files = read(&[directory.path("r.pvn.yaml")]).unwrap();
    assert_eq!(files.files[0].attachments.keys().collect::<Vec<_>>(), ["jobs/a/apply.yaml"]);
    assert_eq!(files.documents[0].source().attachments, files.files[0].attachments);
}

#[test]
fn bad_input_missing_file_is_told_where_it_is_asked_for() {
    let directory = Directory::with(&[("r.pvn.yaml", &RUNTIME.replace("PATH", "jobs/apply.yaml"))]);
    assert_eq!(
        directory.problems(&["r.pvn.yaml"]),
        "error: cannot read `jobs/apply.yaml`: no such file or directory
 --> r.pvn.yaml:6:58
  |
6 |       kubernetesConfig: {type: KUBERNETES, local: {path: jobs/apply.yaml}}
  |                                                          ^^^^^^^^^^^^^^^ \
         runtime.custom.apply.kubernetesConfig.local.path
  |
  = help: looked for `jobs/apply.yaml`; local paths are relative to the config file"
    );
}

#[test]
fn an_empty_directory_is_told_where_it_is_asked_for() {
    let directory = Directory::with(&[
        ("r.pvn.yaml", &RUNTIME.replace("PATH", "jobs")),
        ("jobs/README.md", ""),
    ]);
    let shown = directory.problems(&["r.pvn.yaml"]);
    assert!(
        shown.starts_with("error: cannot read `jobs`: no file in this directory is taken"),
        "{shown}"
    );
    assert_eq!(shown.matches("error: ").count(), 1, "told once: {shown}");
}

#[test]
fn bad_input_local_file_over_8_mib_and_not_utf8() {
    let directory = Directory::with(&[
        ("r.pvn.yaml", &RUNTIME.replace("PATH", "big.yaml")),
        ("s.pvn.yaml", &RUNTIME.replace("PATH", "latin.yaml").replace("name: r", "name: s")),
        ("big.yaml", &"#".repeat(FILE_LIMIT_BYTES + 1)),
    ]);
    std::fs::write(directory.path("latin.yaml"), b"# caf\xe9").unwrap();
    let shown = directory.problems(&["r.pvn.yaml", "s.pvn.yaml"]);
    assert!(
        shown.contains(
            "cannot read `big.yaml`: 8388609 bytes are too many; the limit is 8388608 (8 MiB) a \
             file"
        ),
        "{shown}"
    );
    assert!(shown.contains("cannot read `latin.yaml`: not UTF-8 at byte 5"), "{shown}");
}

#[test]
fn bad_input_config_file_over_8_mib_and_not_utf8() {
    let directory = Directory::with(&[("big.pvn.yaml", &"#".repeat(FILE_LIMIT_BYTES + 1))]);
    std::fs::write(directory.path("latin.pvn.yaml"), b"# caf\xe9").unwrap();
    assert_eq!(
        directory.problems(&["..."]),
        "error: 8388609 bytes are too many; the limit is 8388608 (8 MiB) a file\n--> \
         big.pvn.yaml\n\nerror: not UTF-8 at byte 5\n--> latin.pvn.yaml\n = help: save the file \
         as UTF-8 text"
    );
}

#[test]
fn problems_of_all_files_are_told_at_once() {
    let directory = Directory::with(&[
        ("a.pvn.yaml", "application: {name: A}\n"),
        ("b.pvn.yaml", "service: [\n"),
        ("c.pvn.yaml", &RUNTIME.replace("PATH", "missing.yaml").replace("name: r", "nam: r")),
    ]);
    let shown = directory.problems(&["..."]);
    let places: Vec<_> =
        shown.lines().filter_map(|line| line.trim().strip_prefix("--> ")).collect();
    assert_eq!(
        places,
        [
            "c.pvn.yaml:6:58",
            "a.pvn.yaml:1:21",
            "b.pvn.yaml:1:11",
            "c.pvn.yaml:1:1",
            "c.pvn.yaml:2:3"
        ],
        "{shown}"
    );
}

#[test]
fn validate_holds_the_given_documents_against_each_other() {
    let directory = Directory::with(&[(
        "a.pvn.yaml",
        "application: {name: a, releaseChannels: [{name: staging, runtimes: [{runtime: \
         r}]}]}\n---\nservice: {name: s, application: a, perReleaseChannel: [{releaseChannel: \
         stagin}]}\n---\nservice: {name: s, application: elsewhere, perReleaseChannel: \
         [{releaseChannel: any}]}\n",
    )]);
    let problems = validate(&[directory.path("a.pvn.yaml")]).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(
        (problems[0].line, problems[0].message.as_str()),
        (3, "unknown release channel `stagin`")
    );
    assert!(read(&[directory.path("a.pvn.yaml")]).is_ok(), "only the server knows them all");
}

#[test]
fn the_order_of_paths_is_that_of_the_names() {
    assert!(Path::new("a/b") < Path::new("a/c"));
    let directory =
        Directory::with(&[("z/a.pvn.yaml", &application("a")), ("b.pvn.yaml", &application("b"))]);
    assert_eq!(directory.files(&["..."]), "b.pvn.yaml z/a.pvn.yaml");
}

#[test]
fn bad_input_files_without_any_document() {
    let directory = Directory::with(&[
        ("a.pvn.yaml", ""),
        ("b.pvn.yaml", "# later\n---\n"),
        ("c/c.pvn.yaml", &application("c")),
    ]);
    let expected = "there is no config document here, only comments or nothing at all";
    assert!(directory.problems(&["."]).contains(expected), "{}", directory.problems(&["."]));
    assert!(directory.problems(&["b.pvn.yaml"]).contains(expected));
    assert_eq!(
        directory.files(&["..."]),
        "a.pvn.yaml b.pvn.yaml c/c.pvn.yaml",
        "beside others an empty one is no problem"
    );
}

#[test]
fn a_pipe_that_nobody_writes_into_is_refused_and_not_waited_for() {
    let directory = Directory::with(&[]);
    let made =
        std::process::Command::new("mkfifo").arg(directory.path("pipe.pvn.yaml")).status().unwrap();
    assert!(made.success());
    assert!(
        directory
            .problems(&["pipe.pvn.yaml"])
            .contains("it is a pipe or a device and no regular file")
    );
}
