//! What stands beside every look at services while the scheduler itself starts nothing: each of
//! them says how it stood when that began.

use serde_json::Value;

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::one_line;

/// How the scheduler begins its own sentence.
const BEGINS: &str = "nothing new is started ";

/// Says on stderr that nothing is started at present, and why. Where that cannot be asked the look
/// itself has told what there is to tell.
pub(crate) async fn note(client: &Client, console: &mut Console) -> Result<(), Failure> {
    let Err(Failure::Refused(problem)) = client.get::<Value>(&["readyz"], &[]).await else {
        return Ok(());
    };
    if problem.status != 503 {
        return Ok(());
    }
    let why = problem.detail.strip_prefix(BEGINS).unwrap_or(&problem.detail);
    console.say(&format!("note: the scheduler starts nothing at present: {}", one_line(why)))
}
