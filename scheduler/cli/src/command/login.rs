//! `pvnctl login`: tries a token and keeps it.

use clap::Args;
use schema::api::{NewToken, SignInRequest, Token as TokenInfo};

use crate::args::Global;
use crate::client::{Authorities, Client, Token};
use crate::console::Console;
use crate::contexts::{Contexts, SavedContext};
use crate::discover;
use crate::failure::Failure;
use crate::when;

const EXAMPLES: &str = "\
Examples:
  pvnctl login https://pvn.example.com             asks for a token, unseen
  pvnctl login https://pvn.example.com < token     reads it from a file
  pvnctl login 'http://127.0.0.1:7780/sign-in/once?code=…'
                                  the link that the scheduler prints at its start

The token is kept in ~/.config/pvn/contexts.json (XDG_CONFIG_HOME), which only
you can read. PVN_SERVER and PVN_AUTH_TOKEN count more than what is kept.";

/// Longest token that is read; one has 64 characters.
const TOKEN_LIMIT_BYTES: usize = 4096;

/// What stands before the code in a link that signs in once.
const LINK: &str = "/sign-in/once?code=";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Address of the scheduler, or a link that it printed
    #[arg(value_name = "URL")]
    url: String,
    /// Name of the context [default: the server's name and port]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// Finds a token, tries it and keeps it.
///
/// # Errors
/// No token, one that the scheduler does not take, and a file that cannot be written.
pub async fn perform(
    arguments: &Arguments,
    global: &Global,
    console: &mut Console,
) -> Result<(), Failure> {
    let ca_file = global.ca_file.as_deref().map(std::path::absolute).transpose()?;
    let connect = |server: &str, token: Option<Token>| {
        Client::new(server, ca_file.as_deref().map(Authorities::read).transpose()?, token)
    };
    let mut contexts = Contexts::load()?;
    // Before a link is used up that works once.
    Contexts::place()?;
    let (server, code) = parts(&arguments.url);
    let text = match (code, &global.token_file) {
        (Some(code), _) => {
            let request = SignInRequest { code: code.to_owned() };
            let made: NewToken = connect(server, None)?.post(&["v1", "sign-in"], &request).await?;
            made.token
        }
        (None, Some(file)) => discover::token_in(file)?,
        (None, None) => asked(server, console).await?,
    };
    let token = Token { text: text.clone(), origin: "what was given".to_owned() };
    let client = connect(server, Some(token))?;
    let own: TokenInfo = client.get(&["v1", "whoami"], &[]).await?;
    let name = arguments.name.clone().unwrap_or_else(|| name_of(server));
    let saved = SavedContext { server: server.to_owned(), ca_file: ca_file.clone(), token: text };
    contexts.contexts.insert(name.clone(), saved);
    contexts.current = Some(name.clone());
    let path = contexts.save()?;
    let until = own
        .expires_at
        .map_or_else(String::new, |at| format!(", which expires {}", when::until(at, when::now())));
    console.say(&format!(
        "logged in to {server} as {} ({}{until}); the context `{name}` in {} is the current one",
        own.name,
        super::auth::roles(&own),
        path.display()
    ))?;
    if std::env::var_os("PVN_AUTH_TOKEN").is_some() || std::env::var_os("PVN_SERVER").is_some() {
        console.say("PVN_SERVER or PVN_AUTH_TOKEN is set here and counts more than this")?;
    }
    Ok(())
}

/// The server of an address, and the code where it is a link.
fn parts(url: &str) -> (&str, Option<&str>) {
    match url.split_once(LINK) {
        Some((server, code)) => (server, Some(code.split('&').next().unwrap_or(code))),
        None => (url.trim_end_matches('/'), None),
    }
}

/// The server's name and port, as people call it.
fn name_of(server: &str) -> String {
    let name = server.split_once("://").map_or(server, |(_, name)| name);
    name.trim_end_matches('/').replace('/', "-")
}

/// From the person at the terminal, unseen; else from stdin.
async fn asked(server: &str, console: &mut Console) -> Result<String, Failure> {
    let next = "give it when asked, on stdin, with --token-file FILE, or log in with the link that \
                the scheduler prints at its start";
    let text = match console.keyboard() {
        Some(mut keyboard) => {
            console.talk(&format!("token for {server} (it is not shown): "))?;
            let line = keyboard.hidden_line(TOKEN_LIMIT_BYTES).await;
            console.say("")?;
            line.unwrap_or_default()
        }
        None => {
            let bytes = console.read_input(TOKEN_LIMIT_BYTES)?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    discover::word(&text)
        .map_err(|why| Failure::with_next(format!("that is no token: {why}"), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_an_address_with_a_code() {
        assert_eq!(parts("http://h:1/sign-in/once?code=ab12&to=/x"), ("http://h:1", Some("ab12")));
        assert_eq!(parts("https://h/pvn/"), ("https://h/pvn", None));
        assert_eq!(name_of("https://pvn.example:8443/x/"), "pvn.example:8443-x");
    }
}
