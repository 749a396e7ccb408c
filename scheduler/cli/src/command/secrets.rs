//! `pvnctl secrets`: values for commands that nobody sees again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Subcommand;
use schema::api::{Secret, SecretRequest, SecretVersion};

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::Table;
use crate::when;

/// Longest value: the server's body limit of 1 MiB less base64 and some words.
pub const VALUE_LIMIT_BYTES: usize = 512 << 10;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set a secret's next version; the value is read from stdin
    #[command(after_help = "Examples:\n  pvnctl secrets set db-password < password.txt\n  printf \
                            %s \"$TOKEN\" | pvnctl secrets set api-token")]
    Set {
        /// Its key
        key: String,
        /// Keep the line end with which the value ends; without this one is taken off
        #[arg(long)]
        keep_line_end: bool,
        /// Make no new version where the latest has this value already
        #[arg(long)]
        if_changed: bool,
    },
    /// List keys and versions; values are never shown
    #[command(visible_alias = "ls")]
    List,
    /// Delete all versions of a secret
    Delete {
        /// Its key
        key: String,
    },
}

/// Does it.
///
/// # Errors
/// What the server says.
pub async fn perform(
    command: Command,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    match command {
        Command::Set { key, keep_line_end, if_changed } => {
            if console.can_ask() {
                console.say(
                    "type the value, then a line end and Ctrl-D; it shows on this terminal, so a \
                     file or pipe is better",
                )?;
            }
            let mut value = console.read_input(VALUE_LIMIT_BYTES)?;
            if !keep_line_end {
                take_line_end_off(&mut value);
            }
            if value.is_empty() {
                return Err(Failure::with_next(
                    format!("the value of secret `{key}` is empty"),
                    "give it on stdin, as in `printf %s VALUE | pvnctl secrets set KEY`",
                ));
            }
            let set = set(&key, &value, if_changed, client, console).await?;
            console.print(&set, |_| format!("{} is now at version {}\n", set.key, set.version))
        }
        Command::List => {
            let secrets = client.list::<Secret>(&["v1", "secrets"], &[], None).await?;
            console.print_list(&secrets, "no secrets; set one with `pvnctl secrets set KEY`", table)
        }
        Command::Delete { key } => {
            client.delete(&["v1", "secrets", &key]).await?;
            console.say(&format!("deleted secret {key}"))
        }
    }
}

/// Sets it, and tells what is probably not meant of it.
///
/// # Errors
/// What the server says.
pub async fn set(
    key: &str,
    value: &[u8],
    if_changed: bool,
    client: &Client,
    console: &mut Console,
) -> Result<SecretVersion, Failure> {
    let request = SecretRequest { value: STANDARD.encode(value), if_changed };
    let set: SecretVersion = client.put(&["v1", "secrets", key], &request).await?;
    if let Some(warning) = &set.warning {
        console.say(&format!("warning: {warning}"))?;
    }
    Ok(set)
}

/// Takes off the line end with which most files and `echo` end.
pub fn take_line_end_off(value: &mut Vec<u8>) {
    if value.pop_if(|last| *last == b'\n').is_some() {
        value.pop_if(|last| *last == b'\r');
    }
}

fn table(secrets: &[Secret]) -> Table {
    let now = when::now();
    let mut table = Table::new(["KEY", "VERSIONS", "SET"]).first_to_go(&["SET", "VERSIONS"]);
    for secret in secrets {
        let versions: Vec<_> = secret.versions.iter().map(ToString::to_string).collect();
        table.row([
            secret.key.as_str().into(),
            versions.join(", ").into(),
            format!("{} ago", when::ago(secret.created_at, now)).into(),
        ]);
    }
    table
}
