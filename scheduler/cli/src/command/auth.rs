//! `pvnctl auth token`: who may use the API.

use clap::{Subcommand, ValueEnum};
use schema::api::{NewToken, Token, TokenRequest};
use schema::schedule::Duration;
use schema::status::Role;

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{Cell, Table, Tone, one_line};
use crate::when;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Say whose token is used, what it may do, and where it was found
    Whoami,
}

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token; its value is printed once and never again
    Create {
        /// Its name, which approvals and the audit log show
        name: String,
        /// What it may do: viewer reads, approver also approves and rejects, admin does everything
        #[arg(long, value_enum, hide_possible_values = true)]
        role: KnownRole,
        /// How long it is valid, as in 720h [default: until revoked]
        #[arg(long, alias = "expires", value_name = "DURATION")]
        valid_for: Option<Duration>,
    },
    /// List tokens; values are never shown
    #[command(visible_alias = "ls")]
    List,
    /// End a token at once
    Revoke {
        /// Its name
        name: String,
    },
}

/// The roles.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum KnownRole {
    /// Read.
    Viewer,
    /// Also approve and reject.
    Approver,
    /// Everything.
    Admin,
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
    let command = match command {
        Command::Token(command) => command,
        Command::Whoami => return whoami(client, console).await,
    };
    match command {
        TokenCommand::Create { name, role, valid_for } => {
            let role = match role {
                KnownRole::Viewer => Role::Viewer,
                KnownRole::Approver => Role::Approver,
                KnownRole::Admin => Role::Admin,
            };
            let valid_for_seconds = valid_for
                .map(|duration| u64::try_from(duration.as_ms()).unwrap_or(0).div_ceil(1000));
            let made: NewToken = client
                .post(&["v1", "tokens"], &TokenRequest { name, role, valid_for_seconds })
                .await?;
            // The bare value, so that `> file` is all it takes.
            let printed = console
                .print(&made, |_| format!("{}\n", made.token))
                .and_then(|()| console.flush());
            let name = &made.name;
            let lost = || {
                format!(
                    "token `{name}` is made all the same, and its value is lost: `pvnctl auth \
                     token revoke {name}`, and make one of another name"
                )
            };
            printed.map_err(|failure| failure.after(lost))
        }
        TokenCommand::List => {
            let tokens = client.list::<Token>(&["v1", "tokens"], &[], None).await?;
            console.print_list(&tokens, "no tokens", table)
        }
        TokenCommand::Revoke { name } => {
            client.delete(&["v1", "tokens", &name]).await?;
            console.say(&format!("revoked token {name}"))
        }
    }
}

async fn whoami(client: &Client, console: &mut Console) -> Result<(), Failure> {
    let own: Token = client.get(&["v1", "whoami"], &[]).await?;
    let now = when::now();
    let until = own
        .expires_at
        .map_or_else(|| "until revoked".to_owned(), |at| format!("ends {}", when::until(at, now)));
    let origin = client.token_origin().unwrap_or_default();
    console.print_one(&own, |_| {
        format!(
            "{} ({}) at {}\ntoken from {origin}, valid: {until}\n",
            one_line(&own.name),
            own.role,
            client.server()
        )
    })
}

fn table(tokens: &[Token]) -> Table {
    let now = when::now();
    let mut table = Table::new(["NAME", "ROLE", "CREATED", "VALID"]);
    for token in tokens {
        let valid = match (token.revoked_at, token.expires_at) {
            (Some(at), _) => {
                Cell::toned(format!("revoked {} ago", when::ago(at, now)), Tone::Faint)
            }
            (None, Some(at)) if at <= now => {
                Cell::toned(format!("expired {} ago", when::ago(at, now)), Tone::Faint)
            }
            (None, Some(at)) => format!("ends {}", when::until(at, now)).into(),
            (None, None) => "until revoked".into(),
        };
        table.row([
            token.name.as_str().into(),
            token.role.as_str().into(),
            format!("{} ago", when::ago(token.created_at, now)).into(),
            valid,
        ]);
    }
    table
}
