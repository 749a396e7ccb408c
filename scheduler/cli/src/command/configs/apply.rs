//! `pvnctl configs apply`.

use clap::Args;
use schema::api::{ConfigsRequest, ConfigsResult};

use super::confirm::as_shown;
use super::{Paths, diff as dry_run};
use crate::args::{WaitArguments, parse_params};
use crate::client::Client;
use crate::console::Console;
use crate::diagnostics;
use crate::diff;
use crate::failure::Failure;
use crate::files;
use crate::short;
use crate::wait::{self, Goal};

const EXAMPLES: &str = "\
Examples:
  pvnctl configs apply deploy/                     every *.pvn.yaml in deploy
  pvnctl configs apply deploy/... --dry-run        also those below; change nothing
  pvnctl configs apply app.pvn.yaml --no-prompt --push --param image=v2 --wait
  pvnctl configs apply deploy/... --prune          and delete services that are not there any more

Without a terminal there is nobody to ask: give --no-prompt, or it refuses.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("timeout", |timeout| timeout.requires("wait")))]
pub struct Arguments {
    /// Which files.
    #[command(flatten)]
    paths: Paths,
    /// Show what would change, and change nothing
    #[arg(long, short = 'n', conflicts_with_all = ["push", "wait"])]
    dry_run: bool,
    /// With --dry-run: end with 2 when something would change
    #[arg(long, requires = "dry_run")]
    exit_code: bool,
    /// Do not ask
    #[arg(long, alias = "yes", short_alias = 'y')]
    no_prompt: bool,
    /// Also delete the services that these files leave out, of each application whose document is
    /// among them
    #[arg(long)]
    prune: bool,
    /// Also make a release of every service in the files
    #[arg(long)]
    push: bool,
    /// With --push: value of a parameter; everything after the first `=` is the value
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE", requires = "push")]
    params: Vec<String>,
    /// With --push: wait until the releases have converged
    #[arg(long, short, requires = "push")]
    wait: bool,
    /// How long.
    #[command(flatten)]
    patience: WaitArguments,
}

/// Shows, asks, stores, releases, waits.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    if arguments.wait || arguments.exit_code {
        console.go_on_unread();
    }
    let params = parse_params("--param", &arguments.params)?;
    let files = files::read(&arguments.paths.paths).map_err(Failure::Config)?.files;
    let (push, prune) = (arguments.push, arguments.prune);
    let request = ConfigsRequest { files, push, prune, params, ..ConfigsRequest::default() };
    if arguments.dry_run {
        return dry_run::show(request, arguments.exit_code, client, console).await;
    }
    let result = if arguments.no_prompt {
        let result: ConfigsResult = client.post(&["v1", "configs"], &request).await?;
        console.warn(&result.warnings)?;
        console.talk(&diff::render(&result, console.colours_stderr()))?;
        result
    } else {
        as_shown(&request, client, console).await?
    };
    let told = console.print(&result, |_| done(&result)).and_then(|()| console.flush());
    told.map_err(|failure| failure.after(|| all_the_same(&result)))?;
    if result.pushed.is_empty()
        && result
            .documents
            .iter()
            .any(|document| document.kind == "service" && document.change != "unchanged")
    {
        console.say(
            "a service's config takes effect with its next release: `pvnctl push \
             SERVICE`, or `--push` here",
        )?;
    }
    if arguments.push && !result.documents.iter().any(|document| document.kind == "service") {
        console.say("there is no service in these files, so nothing was released")?;
    }
    for line in diagnostics::left_out(&result.left_out) {
        console.say(&line)?;
    }
    if arguments.wait {
        wait::until_converged(client, goals(&result), arguments.patience.duration(), console)
            .await?;
    }
    // What was asked for is not all done, which a script has to learn.
    if result.left_out.is_empty() { Ok(()) } else { Err(Failure::Ended(1)) }
}

/// What was done, where that could not be printed.
fn all_the_same(result: &ConfigsResult) -> String {
    let of = |pushed: &schema::api::PushedService| {
        format!("{} of {}/{}", pushed.version, pushed.application, pushed.service)
    };
    match result.pushed.as_slice() {
        [] => "it is applied all the same".to_owned(),
        [one] => format!("it is applied all the same, and {} is released", of(one)),
        [first, rest @ ..] => format!(
            "it is applied all the same, and {} and {} more are released",
            of(first),
            rest.len()
        ),
    }
}

fn done(result: &ConfigsResult) -> String {
    let mut text = format!("applied: {}\n", diff::summary(result, true));
    for pushed in &result.pushed {
        text += &format!(
            "released {} of {}/{} as {}\n",
            pushed.version,
            pushed.application,
            pushed.service,
            short::id(&pushed.release.to_string())
        );
    }
    text
}

/// What a push of configs leads to.
pub(super) fn goals(result: &ConfigsResult) -> Vec<Goal> {
    let made = result.pushed.iter();
    made.map(|made| {
        Goal::of_made(
            made.application.to_string(),
            made.service.to_string(),
            made.release,
            &made.version,
        )
    })
    .collect()
}
