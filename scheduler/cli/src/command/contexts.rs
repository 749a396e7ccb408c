//! `pvnctl contexts`: the schedulers that somebody has logged in to.

use clap::Subcommand;
use clap_complete::ArgValueCompleter;
use serde::Serialize;

use crate::client::Listed;
use crate::console::Console;
use crate::contexts::{Contexts, candidates};
use crate::failure::Failure;
use crate::output_name::OutputName;
use crate::table::Table;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List them; tokens are never shown
    #[command(visible_alias = "ls")]
    List,
    /// Use this one from now on
    Use {
        /// Its name
        #[arg(add = ArgValueCompleter::new(candidates))]
        name: String,
    },
    /// Forget this one and its token, which stays valid
    #[command(visible_alias = "rm")]
    Remove {
        /// Its name
        #[arg(add = ArgValueCompleter::new(candidates))]
        name: String,
    },
}

/// One of them, without its token.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownContext {
    name: String,
    server: String,
    current: bool,
}

impl OutputName for ShownContext {
    fn output_name(&self) -> String {
        self.name.clone()
    }
}

/// Does it.
///
/// # Errors
/// No context of this name; a file that cannot be read or written.
pub fn perform(command: &Command, console: &mut Console) -> Result<(), Failure> {
    let mut contexts = Contexts::load()?;
    match command {
        Command::List => list(&contexts, console),
        Command::Use { name } => {
            let server = contexts.named(name)?.server.clone();
            contexts.current = Some(name.clone());
            contexts.save()?;
            console.say(&format!("`{name}` is the current context: {server}"))
        }
        Command::Remove { name } => {
            contexts.named(name)?;
            contexts.contexts.remove(name);
            contexts.current.take_if(|current| current == name);
            contexts.save()?;
            console.say(&format!(
                "`{name}` is forgotten; its token stays valid until it expires or \
                 `pvnctl auth token revoke NAME` ends it"
            ))
        }
    }
}

fn list(contexts: &Contexts, console: &mut Console) -> Result<(), Failure> {
    let shown = contexts.contexts.iter().map(|(name, saved)| ShownContext {
        name: name.clone(),
        server: saved.server.clone(),
        current: contexts.current.as_ref() == Some(name),
    });
    let list = Listed { items: shown.collect::<Vec<_>>(), unreadable: Vec::new() };
    console.print_list(&list, "no contexts; `pvnctl login URL` makes one", |items| {
        let mut table = Table::new(["CURRENT", "NAME", "SERVER"]).first_to_go(&["SERVER"]);
        for one in items {
            let mark = if one.current { "*" } else { "" };
            table.row([mark.into(), one.name.as_str().into(), one.server.as_str().into()]);
        }
        table
    })
}
