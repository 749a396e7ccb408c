//! What every Dockerfile of ours keeps to, read without building it: most of them take archives and
//! bases that not every machine can reach.

use tests::programs::repository;

use crate::house::tracked;

/// An instruction, with its lines made one.
struct Instruction {
    word: String,
    rest: String,
}

fn instructions(text: &str) -> Vec<Instruction> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let parts = joined.lines().filter_map(|line| line.trim().split_once(' '));
    parts.map(|(word, rest)| Instruction { word: word.to_owned(), rest: rest.to_owned() }).collect()
}

/// What is wrong with the name of an image that others are built from.
fn base_problem(name: &str, stages: &[&str]) -> Option<String> {
    if name == "scratch" || stages.contains(&name) || name.starts_with("${") {
        return None;
    }
    match name.split_once(':') {
        Some((_, "latest")) => Some(format!("{name} is whatever it is today")),
        Some(_) => None,
        None => Some(format!("{name} has no tag")),
    }
}

/// Everything that is wrong with a Dockerfile.
fn problems(text: &str) -> Vec<String> {
    let all = instructions(text);
    let mut found = Vec::new();
    let begins: Vec<_> = (0..all.len()).filter(|at| all[*at].word == "FROM").collect();
    let Some(last) = begins.last() else { return vec!["it builds on nothing".to_owned()] };
    let stages: Vec<&str> = begins
        .iter()
        .filter_map(|at| all[*at].rest.split_once(" AS "))
        .map(|(_, name)| name)
        .collect();
    let defaults =
        all.iter().filter(|one| one.word == "ARG").filter_map(|one| one.rest.split_once('='));
    let bases = begins.iter().filter_map(|at| all[*at].rest.split(' ').next());
    let bases = bases.chain(defaults.filter(|(name, _)| *name == "BASE").map(|(_, value)| value));
    found.extend(bases.filter_map(|name| base_problem(name, &stages)));

    let shipped = &all[*last..];
    let given =
        |word: &str| shipped.iter().rev().find(|one| one.word == word).map(|one| &*one.rest);
    let user = given("USER").unwrap_or("nobody");
    let numbers: Vec<_> = user.split(':').map(str::parse::<u32>).collect();
    if numbers.len() != 2 || numbers.iter().any(|number| !matches!(number, Ok(1..))) {
        found.push(format!("{user} is no user by number, or it is root"));
    }
    if !given("ENTRYPOINT").is_some_and(|program| program.starts_with("[\"/pvn-")) {
        found.push("its entrypoint is no program of ours, or a shell's".to_owned());
    }
    let copies =
        shipped.iter().filter(|one| one.word == "COPY" && one.rest.contains("pvn-wrapper"));
    if !copies.clone().any(|one| one.rest.ends_with(" /pvn-wrapper") || one.rest.ends_with(" /")) {
        found.push("the wrapper is not at /pvn-wrapper".to_owned());
    }
    // Each stage that gets something from elsewhere has to look at what it got.
    for (begin, end) in begins.iter().zip(begins.iter().skip(1).chain([&all.len()])) {
        let stage = &all[*begin..*end];
        let gets = stage
            .iter()
            .any(|one| one.word == "ADD" || one.word == "RUN" && one.rest.contains("curl "));
        let looks = stage.iter().any(|one| one.word == "RUN" && one.rest.contains("sha256sum -c"));
        if gets && !looks {
            found.push("what it gets from elsewhere has no checksum".to_owned());
        }
    }
    for one in all.iter().filter(|one| one.rest.contains("apt-get install")) {
        if !one.rest.contains("--no-install-recommends") {
            found.push("it installs what is only recommended".to_owned());
        }
    }
    for one in shipped.iter().filter(|one| one.rest.contains("apt-get update")) {
        if !one.rest.contains("rm -rf /var/lib/apt/lists/*") {
            found.push("it ships the lists of packages".to_owned());
        }
    }
    found
}

#[test]
fn every_dockerfile_pins_its_base_checks_what_it_gets_and_is_not_root() {
    let readme =
        std::fs::read_to_string(repository().join("images/README.md")).expect("there is a README");
    let files: Vec<_> =
        tracked("Dockerfile").into_iter().filter(|path| path.starts_with("images")).collect();
    assert!(files.len() >= 6, "{files:?}");
    for path in files {
        let text = std::fs::read_to_string(repository().join(&path)).expect("it can be read");
        assert_eq!(problems(&text), Vec::<String>::new(), "{}", path.display());
        let folder = path.parent().expect("it is in a directory").display().to_string();
        assert!(readme.contains(&folder), "images/README.md says nothing of {folder}");
    }
}

#[test]
fn a_dockerfile_that_breaks_a_rule_is_told_which() {
    let good = "ARG BASE=debian:bookworm-slim\nFROM ${BASE} AS tool\nADD https://a.test/b b\n\
                RUN sha256sum -c sum\nFROM ${BASE}\nCOPY pvn-wrapper /pvn-wrapper\n\
                RUN apt-get update && \\\n apt-get install --no-install-recommends a && \\\n rm \
                -rf /var/lib/apt/lists/*\nUSER 65532:65532\nENTRYPOINT [\"/pvn-wrapper\"]\n";
    assert_eq!(problems(good), Vec::<String>::new());
    for (from, to, told) in [
        ("bookworm-slim", "latest", "whatever it is today"),
        ("debian:bookworm-slim", "debian", "has no tag"),
        ("FROM ${BASE}\n", "FROM debian:latest\n", "whatever it is today"),
        ("USER 65532:65532\n", "", "no user by number"),
        ("USER 65532:65532", "USER pvn", "no user by number"),
        ("USER 65532:65532", "USER 0:0", "or it is root"),
        ("[\"/pvn-wrapper\"]", "/pvn-wrapper", "or a shell's"),
        ("COPY pvn-wrapper /pvn-wrapper", "COPY pvn-wrapper /usr/bin/", "not at /pvn-wrapper"),
        ("RUN sha256sum -c sum\n", "", "no checksum"),
        (" --no-install-recommends", "", "only recommended"),
        ("rm -rf /var/lib/apt/lists/*", "true", "lists of packages"),
    ] {
        let found = problems(&good.replacen(from, to, 1));
        assert!(found.len() == 1 && found[0].contains(told), "{from} -> {to}: {found:?}");
    }
}
