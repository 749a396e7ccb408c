//! The house rules that no compiler sees: who owns which outside crate, what the engine links, how
//! long a file may get, what no text may say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::programs::repository;

mod columns;

/// Every file that git tracks, relative to the root.
pub(crate) fn tracked(suffix: &str) -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(repository())
        .output()
        .expect("git can be started");
    assert!(output.status.success(), "not a git checkout");
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    names
        .split('\0')
        .filter(|name| name.ends_with(suffix))
        .map(PathBuf::from)
        .filter(|path| repository().join(path).is_file())
        .collect()
}

/// What stands in a file, named from the root.
pub(crate) fn text(path: impl AsRef<Path>) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Program text of our own, without tests.
fn sources() -> Vec<PathBuf> {
    tracked(".rs")
        .into_iter()
        .filter(|path| !path.components().any(|part| part.as_os_str() == "tests"))
        .collect()
}

/// Each outside crate that has an owner, and where it may be named. ARCHITECTURE.md says why.
const OWNERS: &[(&str, &[&str])] = &[
    ("sqlx", &["scheduler/src/store"]),
    ("askama", &["scheduler/pages"]),
    ("axum", &["scheduler/src/http"]),
    ("axum_server", &["scheduler/src/http"]),
    ("tower_http", &["scheduler/src/http"]),
    ("reqwest", &["scheduler/cli/src/client", "scheduler/src/notifications/post"]),
    ("lettre", &["scheduler/src/notifications/smtp", "scheduler/src/notifications/letter"]),
    (
        "rustls",
        &[
            "scheduler/cli/src/client",
            "scheduler/src/http/tls",
            "scheduler/src/notifications/post",
            "scheduler/src/runner/cluster",
        ],
    ),
    ("ureq", &["wrapper/src/deliver"]),
    ("httpdate", &["wrapper/src/deliver"]),
    ("valico", &["schema/src/check", "schema/config/src/schemas"]),
    ("cron", &["schema/src/schedule"]),
    ("aho_corasick", &["schema/src/mask", "schema/config/src/secrets"]),
    ("chrono_tz", &["schema/src/schedule"]),
    ("chacha20poly1305", &["scheduler/src/secrets"]),
    (
        "hmac",
        &[
            "scheduler/src/delivery/token",
            "scheduler/src/notifications/signature",
            "schema/src/report/line",
        ],
    ),
    ("annotate_snippets", &["schema/config/src/diagnostic"]),
    ("notify", &["scheduler/src/dev"]),
    ("tar", &["scheduler/src/offline"]),
    ("http_body_util", &["scheduler/src/runner/cluster"]),
    ("kube", &["scheduler/src/runner/cluster"]),
    ("k8s_openapi", &["scheduler/src/runner/cluster"]),
];

#[test]
fn every_outside_crate_is_named_by_its_owner_alone() {
    let mut strays = Vec::new();
    for path in sources() {
        let code = text(&path);
        for (name, owners) in OWNERS {
            let at_home = owners
                .iter()
                .any(|owner| path.to_str().is_some_and(|path| path.starts_with(owner)));
            let named = code.lines().any(|line| {
                let line = line.trim_start();
                !line.starts_with("//")
                    && (line.contains(&format!("{name}::")) && word_starts(line, name))
            });
            if named && !at_home {
                strays.push(format!("{}: {name} belongs to {owners:?}", path.display()));
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

/// Names that several files give to types of theirs, and why that is no private language.
const TYPES_OF_ONE_NAME: &[(&str, &str)] = &[
    ("Arguments", "what can be typed after a command: each has its own, and says so by its module"),
    ("Command", "the sub-commands of one command, as clap has them, and what an instance runs"),
    ("Cli", "what can be typed of each program"),
    ("Which", "the variable parts of one route's path"),
];

#[test]
fn a_type_has_a_name_of_its_own_in_the_whole_workspace() {
    let mut files: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for path in sources()
        .into_iter()
        .filter(|path| !path.ends_with("tests.rs") && !path.starts_with("wrapper/fuzz"))
    {
        for line in text(&path).lines() {
            let line = line.trim_start();
            let line = ["pub(super) ", "pub(crate) ", "pub "]
                .iter()
                .find_map(|public| line.strip_prefix(public))
                .unwrap_or(line);
            let named = ["struct ", "enum ", "trait "]
                .iter()
                .find_map(|kind| line.strip_prefix(kind))
                .unwrap_or_default();
            let name: String =
                named.chars().take_while(|letter| letter.is_alphanumeric()).collect();
            if name.starts_with(|first: char| first.is_ascii_uppercase()) {
                files.entry(name).or_default().insert(path.clone());
            }
        }
    }
    assert!(files.len() > 500, "types are found: {}", files.len());
    let is_known = |name: &String| TYPES_OF_ONE_NAME.iter().any(|(known, _)| known == name);
    let twice: Vec<_> =
        files.iter().filter(|(name, files)| files.len() > 1 && !is_known(name)).collect();
    assert!(twice.is_empty(), "types of one name in several files: {twice:#?}");
}

/// Whether `name::` stands in `line` as a word of its own, not as the end of a longer path or name.
fn word_starts(line: &str, name: &str) -> bool {
    line.match_indices(&format!("{name}::")).any(|(at, _)| {
        line[..at]
            .chars()
            .next_back()
            .is_none_or(|before| !before.is_alphanumeric() && before != '_' && before != ':')
    })
}

/// All that hangs below the engine but for what runs while it is built: data, digests, and the
/// schedules of `cron`, which turns on the clock of `chrono` (clippy forbids calling it). No
/// checker, no parser of YAML, nothing that acts.
const BELOW_THE_ENGINE: &[&str] = &[
    "aho_corasick",
    "base64",
    "block_buffer",
    "cfg_if",
    "chrono",
    "chrono_tz",
    "cmov",
    "const_oid",
    "cpufeatures",
    "cron",
    "crypto_common",
    "ctutils",
    "digest",
    "dyn_clone",
    "engine",
    "equivalent",
    "foldhash",
    "hashbrown",
    "hmac",
    "hybrid_array",
    "iana_time_zone",
    "indexmap",
    "itoa",
    "memchr",
    "num_traits",
    "once_cell",
    "phf",
    "phf_shared",
    "ref_cast",
    "schema",
    "schemars",
    "serde",
    "serde_core",
    "serde_json",
    "sha2",
    "siphasher",
    "thiserror",
    "typenum",
    "winnow",
    "zmij",
];

#[test]
fn the_engine_links_nothing_that_acts() {
    // Proc macros, and what only they use, are of the build and not of the program.
    let linked = linked("engine", &["-e", "normal,no-proc-macro"]);
    let allowed: BTreeSet<_> = BELOW_THE_ENGINE.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(linked, allowed, "what hangs below the engine is another set than this test names");
}

#[test]
fn neither_wrapper_nor_engine_compiles_the_language_of_configs() {
    for package in ["engine", "pvn-wrapper"] {
        let linked = linked(package, &["-e", "normal"]);
        let config: Vec<_> = ["config", "saphyr_parser", "globset"]
            .into_iter()
            .filter(|name| linked.contains(*name))
            .collect();
        assert!(linked.len() > 10 && config.is_empty(), "{package}: {config:?}");
    }
}

/// The libraries below a package, as `use` names them.
fn linked(package: &str, edges: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "-p",
            package,
            "--prefix",
            "none",
            "--no-dedupe",
            "--format",
            "{lib}",
        ])
        .args(edges)
        .current_dir(repository())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    names.lines().filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The one file that may be unsafe; its module doc says why. The compiler forbids it in every other
/// crate and denies it here.
const UNSAFE: &str = "wrapper/src/raw.rs";

#[test]
fn one_file_is_unsafe_and_says_why() {
    // However rustfmt breaks the attribute.
    let says = |path: &PathBuf, what: &str| {
        text(path).split_whitespace().collect::<String>().contains(what)
    };
    let excepted: Vec<_> =
        sources().into_iter().filter(|path| says(path, "#![expect(unsafe_code")).collect();
    assert_eq!(excepted, [PathBuf::from(UNSAFE)]);
    let elsewhere: Vec<_> = sources()
        .into_iter()
        .filter(|path| {
            path != Path::new(UNSAFE)
                && (says(path, "(unsafe_code")
                    || text(path).lines().any(|line| line.trim_start().starts_with("unsafe ")))
        })
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

/// Lines from which on a file has to say why it is not two.
const LONG_FILE_LINES: usize = 400;

#[test]
fn no_file_makes_you_scroll() {
    let long: Vec<_> = tracked(".rs")
        .into_iter()
        .map(|path| (text(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > LONG_FILE_LINES)
        .map(|(lines, path)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "longer than {LONG_FILE_LINES} lines:\n{}", long.join("\n"));
}

/// Columns of a comment line: those that `rustfmt.toml` gives to code, for rustfmt leaves comments
/// as they are.
const COMMENT_COLUMNS: usize = 100;

/// The comment lines that are wider, by their numbers. What is fenced is drawn, and the row of a
/// table is one line.
fn wide_comments(text: &str) -> Vec<usize> {
    let mut wide = Vec::new();
    let (mut is_fenced, mut is_open) = (false, false);
    for (number, line) in (1..).zip(text.lines()) {
        let comment = line.trim_start();
        let is_block = is_open || comment.starts_with("/*");
        if !is_block && !comment.starts_with("//") {
            is_fenced = false;
            continue;
        }
        is_open = is_block && !comment.contains("*/");
        let said = comment.trim_start_matches(['/', '*', '!']).trim_start();
        if said.starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && !said.starts_with('|') && line.chars().count() > COMMENT_COLUMNS {
            wide.push(number);
        }
    }
    wide
}

#[test]
fn no_comment_makes_you_scroll_sideways() {
    let wide: Vec<_> = tracked(".rs")
        .into_iter()
        .flat_map(|path| {
            let wide = wide_comments(&text(&path));
            wide.into_iter().map(move |line| format!("{}:{line}", path.display()))
        })
        .collect();
    assert!(wide.is_empty(), "wider than {COMMENT_COLUMNS} columns:\n{}", wide.join("\n"));
}

#[test]
fn a_comment_that_is_too_wide_is_found_whatever_its_mark() {
    let (narrow, wide) = ("ü".repeat(COMMENT_COLUMNS - 5), "x".repeat(COMMENT_COLUMNS + 1));
    let text = format!(
        "//! {narrow}\n//! {wide}\n/// | {wide} |\n    // {wide}\n/* {wide} */\nlet {wide};\n/**\n{wide}\n*/\n\
         /// ```text\n/// {wide}\n/// ```\n/// {wide}\n"
    );
    assert_eq!(wide_comments(&text), [2, 4, 5, 8, 13]);
}

#[test]
fn every_module_says_what_it_is_for() {
    let silent: Vec<_> =
        tracked(".rs").into_iter().filter(|path| !text(path).starts_with("//!")).collect();
    assert!(silent.is_empty(), "without a module doc: {silent:?}");
}

#[test]
fn nothing_is_left_for_later() {
    // Spelled in halves, so that this file does not name them itself.
    let words =
        [["TO", "DO"], ["FIX", "ME"], ["todo", "!("], ["unimple", "mented!("], ["#[ig", "nore"]]
            .map(|halves| halves.concat());
    let mut left = Vec::new();
    for suffix in [".rs", ".md", ".toml", ".yaml", ".sh"] {
        for path in tracked(suffix) {
            let found = text(&path);
            left.extend(
                words
                    .iter()
                    .filter(|word| found.contains(word.as_str()))
                    .map(|word| format!("{}: {word}", path.display())),
            );
        }
    }
    assert!(left.is_empty(), "{}", left.join("\n"));
}
