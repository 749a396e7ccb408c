//! A change of configs that somebody is shown and says yes to.

use schema::api::{ConfigsRequest, ConfigsResult};

use crate::client::Client;
use crate::console::Console;
use crate::diff;
use crate::failure::Failure;

/// Stores what somebody was shown and said yes to, and nothing else: where other people applied
/// something meanwhile, it is shown and asked again.
///
/// # Errors
/// What the server says, and the exit code of somebody who says no.
pub(in crate::command) async fn as_shown(
    request: &ConfigsRequest,
    client: &Client,
    console: &mut Console,
) -> Result<ConfigsResult, Failure> {
    loop {
        let shown = ask(request, client, console).await?;
        let request = ConfigsRequest { basis: shown.basis.clone(), ..request.clone() };
        match client.post::<ConfigsResult>(&["v1", "configs"], &request).await {
            Ok(result) => {
                // The config's warnings were shown, and not yet what the releases are warned of.
                let new: Vec<_> = result
                    .warnings
                    .iter()
                    .filter(|warning| !shown.warnings.contains(warning))
                    .cloned()
                    .collect();
                console.warn(&new)?;
                return Ok(result);
            }
            Err(Failure::Refused(problem)) if problem.status == 409 && request.basis.is_some() => {
                console.say(&problem.detail)?
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Shows what would change and asks whether to go on; without changes there is nothing to ask. What
/// was shown, when it is to go on.
async fn ask(
    request: &ConfigsRequest,
    client: &Client,
    console: &mut Console,
) -> Result<ConfigsResult, Failure> {
    let deletes = !request.delete.is_empty();
    if !console.can_ask() {
        let what = if deletes { "delete" } else { "apply" };
        return Err(Failure::with_next(
            format!("refusing to {what}: there is no terminal to ask on"),
            format!("give --no-prompt to {what} without asking, or --dry-run to only look"),
        ));
    }
    let look = ConfigsRequest { dry_run: true, push: false, ..request.clone() };
    let result: ConfigsResult = client.ask(&["v1", "configs"], &[], &look).await?;
    console.talk(&diff::render(&result, console.colours_stderr()))?;
    // Below the diff, which may be long: right above the question.
    console.warn(&result.warnings)?;
    console.say(&diff::summary(&result, false))?;
    let question = match (diff::changes(&result), request.push) {
        (0, false) => return Ok(result),
        (0, true) => "Make the releases?",
        (_, false) if deletes => "Delete this?",
        (_, false) => "Apply these changes?",
        (_, true) => "Apply these changes and make the releases?",
    };
    if console.ask(question)? {
        return Ok(result);
    }
    console.say("nothing was changed")?;
    Err(Failure::Ended(1))
}
