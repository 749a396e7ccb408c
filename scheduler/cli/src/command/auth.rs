//! `pvnctl auth token`: who may use the API.

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use schema::access::{Capability, RoleSet, TokenRights};
use schema::api::{NewToken, Token, TokenRequest};
use schema::schedule::Duration;
use schema::status::Role;

use crate::args::listed_name;
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

const EXAMPLES: &str = "\
Examples:
  pvnctl auth token create ci --role deployer --app shop --channel staging
  pvnctl auth token create ann --role approver,operator --valid-for 720h

  viewer    reads, compares configs, runs fetch and getInfo dry
  deployer  also releases and rolls back
  approver  reads, approves and rejects
  operator  reads, pauses, observes, resumes, retries, cancels, fetches now,
            acknowledges
  break-glass
            reads, and lets a release start outside its apply window
  admin     does everything: configs, secrets, tokens, and all of the above

A token may have several roles. --app and --channel limit what it may change;
it reads everywhere.";

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token; its value is printed once and never again
    #[command(after_help = EXAMPLES)]
    Create {
        /// Its name, which approvals and the audit log show
        name: String,
        /// What it may do; several are separated by commas, or given one by one
        #[arg(long, required = true, value_delimiter = ',', value_parser = known_role())]
        role: Vec<Role>,
        /// Let it change only these applications, separated by commas [default: all]
        #[arg(
            long = "app", alias = "application", value_name = "APPLICATIONS",
            value_delimiter = ',', value_parser = listed_name
        )]
        applications: Option<Vec<String>>,
        /// Let it change only channels of these names, separated by commas [default: all]
        #[arg(
            long = "channel", alias = "channels", value_name = "CHANNELS", value_delimiter = ',',
            value_parser = listed_name
        )]
        channels: Option<Vec<String>>,
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

/// Reads a role.
fn known_role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.iter().map(|role| role.as_str()))
        .try_map(|text| text.parse::<Role>())
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
        TokenCommand::Create { name, role, applications, channels, valid_for } => {
            let valid_for_seconds = valid_for
                .map(|duration| u64::try_from(duration.as_ms()).unwrap_or(0).div_ceil(1000));
            // One alone is said as it always was, which older schedulers understand, too.
            let role_alone = RoleSet::new(role.iter().copied()).and_then(|roles| roles.only());
            let roles = if role_alone.is_some() { Vec::new() } else { role };
            let request = TokenRequest {
                name,
                role: role_alone,
                valid_for_seconds,
                roles,
                applications,
                channels,
            };
            let made: NewToken = client.post(&["v1", "tokens"], &request).await?;
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
            "{} ({}) at {}\ntoken from {origin}, valid: {until}\n{}\n",
            one_line(&own.name),
            roles(&own),
            client.server(),
            may(&own)
        )
    })
}

/// The token's roles.
pub(super) fn roles(token: &Token) -> String {
    token.rights().map_or_else(|| "no role".to_owned(), |rights| rights.roles.to_string())
}

/// What it may do, and where.
fn may(token: &Token) -> String {
    let rights = token.rights();
    let may = |one: &&Capability| rights.as_ref().is_some_and(|rights| rights.may(**one));
    let all: Vec<&str> = Capability::ALL.iter().filter(may).map(|one| one.as_str()).collect();
    format!("may: {}; may change: {}", all.join(", "), changes(token))
}

/// What it may change: nothing, where it only reads.
fn changes(token: &Token) -> String {
    let only_reads = [Capability::Read, Capability::DryRun];
    let changing = |rights: &TokenRights| {
        Capability::ALL.iter().any(|one| !only_reads.contains(one) && rights.may(*one))
    };
    match token.rights().filter(changing) {
        Some(rights) => rights.scope.in_words(),
        None => "nothing".to_owned(),
    }
}

fn table(tokens: &[Token]) -> Table {
    let now = when::now();
    let mut table = Table::new(["NAME", "ROLES", "MAY CHANGE", "CREATED", "VALID"])
        .first_to_go(&["CREATED", "VALID"]);
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
            roles(token).replace(',', ", ").into(),
            changes(token).into(),
            format!("{} ago", when::ago(token.created_at, now)).into(),
            valid,
        ]);
    }
    table
}
