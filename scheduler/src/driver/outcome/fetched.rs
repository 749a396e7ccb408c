//! What a fetch saw, what an approval of it is bound to, and whether its yes is in doubt.

use engine::desired::FetchAnswer;
use engine::event::FetchResult;
use schema::id::BlobId;
use schema::output::RuntimeObject;
use schema::report::Report;
use schema::spool::{DESTROYS, EXPLANATION};

use super::super::words::Words;
use super::{JobPurpose, file};
use crate::perform::PLAN;

/// What to say of a fetch whose output is a document that its mode does not read.
const IGNORED_OUTPUT: &str = "fetch printed a FetchOutput, which counts for nothing with \
                              `fetchMode: EXIT_CODE`, where 0 means that there is nothing to do; \
                              set `fetchMode: STRUCTURED_OUTPUT` to have it read";

/// What to say of a fetch that found work and said nothing about it but on stderr.
const ONLY_ERRORS: &str = "2 means that there is work, and is also what shells, make and many \
                           parsers end with for a mistake of their own; if this is one, mend the \
                           fetch, and name another code for work (`workExitCodes: [10]`), so that \
                           a 2 is an error from then on; if there is work, have it print what it \
                           found, or say that 2 is meant (`workExitCodes: [2]`)";

/// What to say of a fetch that found work and of whose output a part is not here.
const CUT_OUTPUT: &str = "what is kept of the fetch's output is not what it printed, so a yes \
                          would be for work that nobody has seen whole, and lasts until the next \
                          fetch only, which asks anew; on a cluster let its Pods reach this \
                          scheduler (`pvnctl runtimes check` of its runtime tries that way), or \
                          let it print less, or all of it on stdout";

/// What a fetch saw and left.
pub(super) fn fetched(
    report: &Report,
    code: i32,
    objects: Option<Result<Vec<RuntimeObject>, String>>,
    words: &Words,
    asked: &JobPurpose<'_>,
) -> FetchResult {
    let output = match &objects {
        Some(Ok(objects)) => Some(digest(objects)),
        _ => words.cut.or(report.stdout_blob_id),
    };
    let (plan, explanation) = (file(report, PLAN), file(report, EXPLANATION));
    let is_by_code = asked.mode == Some(FetchAnswer::ExitCode);
    let is_work = asked.says_work(code);
    let is_cut = is_work && words.cut.is_some() && plan.is_none() && explanation.is_none();
    let is_mute = is_work
        && !asked.has_codes_of_its_own()
        && words.stdout.is_none()
        && words.explanation.is_none()
        && plan.is_none()
        && words.stderr.is_some();
    let doubt = match (is_by_code && words.has_objects, is_mute) {
        _ if is_cut => Some(CUT_OUTPUT.to_owned()),
        (true, _) => Some(IGNORED_OUTPUT.to_owned()),
        (_, true) => Some(ONLY_ERRORS.to_owned()),
        _ => None,
    };
    let destroys_nothing = file(report, DESTROYS) == Some(BlobId::of(b""));
    FetchResult {
        objects,
        plan,
        explanation,
        explanation_text: words.explanation.clone(),
        output,
        destroys_nothing,
        doubt,
        is_cut,
    }
}

/// Of what an approval is bound to: the same work has the same. When things happened is told anew
/// by each fetch.
pub(super) fn digest(objects: &[RuntimeObject]) -> BlobId {
    let lasting: Vec<_> = objects
        .iter()
        .map(|object| RuntimeObject { debug_events: Vec::new(), ..object.clone() })
        .collect();
    BlobId::of(&serde_json::to_vec(&lasting).expect("our own types have JSON forms"))
}
