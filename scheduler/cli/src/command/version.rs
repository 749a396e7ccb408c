//! `pvnctl version`: of this program, and of the scheduler that it speaks to.

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::console::Console;
use crate::discover;
use crate::failure::Failure;

use crate::args::Global;

/// What can be typed.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Of this program alone, without asking a scheduler
    #[arg(long)]
    client: bool,
}

/// Of whom which version.
#[derive(Debug, Serialize)]
struct Versions {
    client: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduler: Option<String>,
}

/// What is used of the scheduler's answer.
#[derive(Debug, Deserialize)]
struct Alive {
    /// Those of before tell none.
    version: Option<String>,
}

/// Prints the versions.
///
/// # Errors
/// No scheduler, after this program's own version.
pub async fn perform(
    arguments: &Arguments,
    global: &Global,
    console: &mut Console,
) -> Result<(), Failure> {
    let own = env!("CARGO_PKG_VERSION");
    let (server, asked) = match arguments.client {
        true => (String::new(), None),
        // Nothing is shown that needs a token, and one that is wrong is in nobody's way.
        false => {
            let client = discover::without_token(global)?;
            (client.server().to_owned(), Some(ask(&client).await))
        }
    };
    let scheduler = asked.as_ref().and_then(|asked| asked.as_ref().ok().cloned());
    let versions = Versions { client: own, scheduler };
    console.print(&versions, |_| {
        let scheduler = versions.scheduler.as_ref();
        let scheduler = scheduler.map(|of| format!("pvn-scheduler {of} at {server}\n"));
        format!("pvnctl {own}\n{}", scheduler.unwrap_or_default())
    })?;
    console.flush()?;
    if let Some(Ok(scheduler)) = &asked
        && scheduler != own
    {
        console.say("client and scheduler have different versions; use the same of both")?;
    }
    asked.transpose().map(drop)
}

async fn ask(client: &Client) -> Result<String, Failure> {
    let alive: Alive = client.get(&["healthz"], &[]).await?;
    Ok(alive.version.unwrap_or_else(|| "of before 0.1.0".to_owned()))
}
