//! Who imports whom, within a crate: no circles between its rooms, and in the scheduler no arrow
//! but those of ARCHITECTURE.md. A room is a module at the top of a crate with all that is below
//! it; a parent and its children are one room, but for the runners, which know the ways of delivery
//! that the words of `runner` are for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::house::{text, tracked};

/// Crates whose rooms are looked at, by the directory of their sources.
const CRATES: &[&str] = &[
    "schema/src",
    "schema/config/src",
    "wrapper/src",
    "scheduler/engine/src",
    "scheduler/cli/src",
    "scheduler/pages/src",
    "scheduler/src",
];

/// Modules below the top that are rooms of their own.
const OWN_ROOMS: &[&str] = &["runner::cluster", "runner::local", "runner::registry"];

/// For each room those that it imports from.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The modules above a file, its own name last. `root`: the directory of its crate's sources.
fn module(root: &str, file: &Path) -> Vec<String> {
    let path = file.strip_prefix(root).expect("it is below its crate").with_extension("");
    path.iter().map(|part| part.to_string_lossy().into_owned()).collect()
}

fn room(module: &[String]) -> String {
    let own =
        OWN_ROOMS.iter().find(|own| module.join("::").split("::").take(2).eq(own.split("::")));
    own.map_or_else(|| module[0].clone(), |own| (*own).to_owned())
}

/// What is imported from a crate's own modules: `crate::a::b`, `super::b`, and each part of
/// `crate::{…}`.
fn imports(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    // What only tests import is no arrow.
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let is_word = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
    let path_of = |rest: &str| -> Vec<String> {
        let end = rest.find(|byte: char| !is_word(byte) && byte != ':').unwrap_or(rest.len());
        rest[..end].split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let is_whole = !code[..at].ends_with(|byte| is_word(byte) || byte == ':');
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            _ if !is_whole => {}
            Some(list) => found.extend(top_level(list).map(|part| path_of(part.trim()))),
            None => found.push(path_of(rest)),
        }
    }
    for (at, _) in code.match_indices("super::") {
        if code[..at].ends_with(|byte| is_word(byte) || byte == ':') {
            continue;
        }
        let path = path_of(&code[at..]);
        let up = path.iter().take_while(|part| *part == "super").count();
        let base = &module[..module.len().saturating_sub(up)];
        found.push(base.iter().chain(&path[up..]).cloned().collect());
    }
    found
}

/// The parts of `{a, b::{c, d}}` behind its first brace.
fn top_level(list: &str) -> impl Iterator<Item = &str> {
    let nesting = |byte| match byte {
        '{' => 1,
        '}' => -1,
        _ => 0,
    };
    let mut depth = 0;
    let end = list.find(|byte| {
        depth += nesting(byte);
        depth < 0
    });
    let mut depth = 0;
    list[..end.unwrap_or(list.len())].split(move |byte| {
        depth += nesting(byte);
        byte == ',' && depth == 0
    })
}

fn arrows(sources_of: &str) -> Arrows {
    let files: Vec<_> =
        tracked(".rs").into_iter().filter(|path| path.starts_with(sources_of)).collect();
    let modules: BTreeSet<Vec<String>> =
        files.iter().map(|file| module(sources_of, file)).collect();
    let mut arrows = Arrows::new();
    for file in &files {
        let own = module(sources_of, file);
        // What builds the crate imports everything, and tests may.
        if ["lib", "main", "bin"].contains(&own[0].as_str())
            || own.iter().any(|part| part == "tests")
        {
            continue;
        }
        let to = arrows.entry(room(&own)).or_default();
        for mut path in imports(&text(file), &own) {
            while !path.is_empty() && !modules.contains(&path) {
                path.pop();
            }
            if !path.is_empty() && room(&path) != room(&own) {
                to.insert(room(&path));
            }
        }
    }
    // Who declares a room is its parent, and names it for others.
    arrows.iter_mut().for_each(|(from, to)| to.retain(|to| !to.starts_with(&format!("{from}::"))));
    arrows
}

/// What is left when all rooms are taken away that import nothing that is left.
fn circles(arrows: &Arrows) -> Vec<String> {
    let mut left = arrows.clone();
    loop {
        let done: BTreeSet<String> = left
            .iter()
            .filter(|(_, to)| to.iter().all(|to| !left.contains_key(to)))
            .map(|(from, _)| from.clone())
            .collect();
        if done.is_empty() {
            return left
                .iter()
                .map(|(from, to)| {
                    format!(
                        "{from} -> {}",
                        to.iter()
                            .filter(|to| left.contains_key(*to))
                            .cloned()
                            .collect::<Vec<_>>()
                            .join(", ")
                    )
                })
                .collect();
        }
        left.retain(|from, _| !done.contains(from));
    }
}

#[test]
fn no_crate_has_circles_between_its_rooms() {
    for of in CRATES {
        let arrows = arrows(of);
        assert!(arrows.len() > 5, "{of}: rooms are found: {arrows:?}");
        let circles = circles(&arrows);
        assert!(circles.is_empty(), "{of}: in a circle, or above one:\n{}", circles.join("\n"));
    }
}

#[test]
fn a_circle_is_found() {
    let arrows = |list: &[(&str, &[&str])]| -> Arrows {
        list.iter()
            .map(|(from, to)| ((*from).to_owned(), to.iter().map(|to| (*to).to_owned()).collect()))
            .collect()
    };
    assert_eq!(circles(&arrows(&[("a", &["b"]), ("b", &["c"]), ("c", &[])])), [""; 0]);
    assert_eq!(
        circles(&arrows(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &[])])),
        ["a -> b", "b -> c", "c -> b"]
    );
    let own = ["driver".to_owned(), "run".to_owned()];
    let text = "use crate::{store::{a, b}, clock};\nuse super::super::room::x;\n// crate::dev\nfn \
                f() { mycrate::not(); crate::blobs::put() }\n";
    let found: Vec<String> = imports(text, &own).iter().map(|path| path.join("::")).collect();
    assert_eq!(
        found,
        ["store::", "clock", "blobs::put", "room::x"]
            .map(|path| path.trim_end_matches("::").to_owned())
    );
}

#[test]
fn the_arrows_of_the_scheduler_are_those_of_the_map() {
    let map = text("ARCHITECTURE.md");
    let (_, table) = map.split_once("| room | imports from |").expect("the map has the table");
    let words = |cell: &str| -> BTreeSet<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let drawn: Arrows = rows
        .map(|line| {
            let (from, to) = line[1..].split_once('|').expect("a row has two cells");
            (words(from).pop_first().expect("a row has a room"), words(to))
        })
        .collect();
    let seen: Arrows =
        arrows("scheduler/src").into_iter().filter(|(_, to)| !to.is_empty()).collect();
    let row = |(from, to): (&String, &BTreeSet<String>)| {
        format!(
            "| `{from}` | {} |\n",
            to.iter().map(|to| format!("`{to}`")).collect::<Vec<_>>().join(", ")
        )
    };
    let expected: String = seen.iter().map(row).collect();
    assert!(
        drawn == seen,
        "ARCHITECTURE.md draws other arrows than the code has; an arrow that is wanted goes into \
         its table:\n{expected}"
    );
}
