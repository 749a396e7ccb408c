//! What is allowed in configs and does nothing of its own: variables that pvn sets itself, windows
//! that never shut, and a question about what is destroyed where nobody tells that. Told as
//! warnings by `configs apply` and `validate`.

use schema::time::Timestamp;
use schema::wire::{SECRET_KEYS_VARIABLE, SPOOL_VARIABLE, is_ours};

use crate::diagnostic::Diagnostic;
use crate::yaml::{self, Visited, YamlNode, YamlStep};
use crate::{Body, Document, Window};

/// The fields that hold environment.
const ENVIRONMENTS: [&str; 2] = ["env", "defaultEnv"];

/// How many times in a row a window has to open before it has shut to be told: more than a month's
/// days.
const OPENINGS: usize = 64;

/// One warning for each of them.
pub fn ineffective<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for document in documents {
        let found = &document.noticed.variables_of_pvn;
        warnings.extend(found.iter().map(|(pointer, name)| {
            let message = format!("pvn sets `{name}` itself, so what stands here has no effect");
            document.problem(pointer, message).help("give the variable another name")
        }));
        let Body::Runtime(runtime) = document.body() else { continue };
        let Some(commands) = runtime.role().commands else { continue };
        if commands.custom().apply.window.as_ref().is_some_and(never_shuts) {
            let message =
                "this window opens again before it has shut, so it is open for as long as it comes";
            let help = "`schedule` says when it opens, once for each `duration`: as in `0 9 * * \
                        1-5`, with `8h`";
            warnings.push(document.problem(&commands.pointer("apply/window"), message).help(help));
        }
        let custom = commands.custom();
        if custom.require_approval_for_destroy && custom.fetch.is_none() {
            let message = "without `fetch` nothing tells what an apply destroys, so people are \
                           asked before every one, as with `requireApprovalBeforeApply`";
            let help = "give it a `fetch` that hands over an output `plan-destroys`";
            let pointer = commands.pointer("requireApprovalForDestroy");
            warnings.push(document.problem(&pointer, message).help(help));
        }
    }
    warnings
}

/// Asked of UTC, as [`ever_comes`](schema::schedule::Schedule::ever_comes): a change of the clock
/// changes nothing about it.
fn never_shuts(window: &Window) -> bool {
    let schedule = window.schedule.in_zone(None);
    let mut opens = schedule.next_after(Timestamp::from_millis(0));
    for _ in 0..OPENINGS {
        let Some(opened) = opens else { return false };
        let Some(again) = schedule.next_after(opened) else { return false };
        if again.as_millis() - opened.as_millis() > window.duration.as_ms() {
            return false;
        }
        opens = Some(again);
    }
    true
}

/// The pointers to variables that are pvn's, and their names.
pub(crate) fn variables_of_pvn(tree: &YamlNode) -> Vec<(String, String)> {
    let mut found = Vec::new();
    tree.visit(&mut Vec::new(), &mut |steps, visited| {
        if let (Visited::Entry(variable), [.., YamlStep::Entry(environment), _]) = (visited, steps)
            && ENVIRONMENTS.contains(&environment.key.as_str())
            // The first is joined with what pvn says, the second a config may set on a cluster.
            && is_ours(&variable.key)
            && ![SECRET_KEYS_VARIABLE, SPOOL_VARIABLE].contains(&variable.key.as_str())
        {
            found.push((yaml::pointer(steps), variable.key.clone()));
        }
        true
    });
    found
}
