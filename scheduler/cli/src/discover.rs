//! Finds the server and the token: flags, then environment, then what was kept by `pvnctl login`,
//! then the data directory of a scheduler on this machine.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::args::{Global, USUAL_SERVER};
use crate::client::{Authorities, Client, Token, is_local};
use crate::contexts::{Contexts, SavedContext};
use crate::failure::Failure;

/// Name of the file in the data directory in which the scheduler leaves its first admin token.
pub const TOKEN_FILE: &str = "admin-token";

/// Longest token file; a token is 64 characters.
const TOKEN_LIMIT_BYTES: u64 = 4096;

/// A client for the server and with the token that arguments, environment and contexts name.
///
/// # Errors
/// A malformed address, a context that is not there, or a file that was named and cannot be used.
pub fn client(global: &Global) -> Result<Client, Failure> {
    let environment = Environment {
        // One that is set and empty is a secret that somebody did not get: the token of another is
        // none for them.
        token: std::env::var("PVN_AUTH_TOKEN").ok(),
        data_dir: std::env::var_os("PVN_DATA_DIR").filter(|dir| !dir.is_empty()),
    };
    let reached = reached(global)?;
    let token = token(&reached, global.token_file.as_deref(), environment)?;
    Client::new(&reached.server, reached.authorities(global)?, token)
}

/// A client that shows nobody a token, for what is open to all.
///
/// # Errors
/// A malformed address, a context that is not there, or authorities that cannot be used.
pub fn without_token(global: &Global) -> Result<Client, Failure> {
    let reached = reached(global)?;
    Client::new(&reached.server, reached.authorities(global)?, None)
}

/// Which scheduler is meant, and what was kept for it.
struct ReachedServer {
    server: String,
    saved: Option<SavedContext>,
}

impl ReachedServer {
    fn authorities(&self, global: &Global) -> Result<Option<Authorities>, Failure> {
        let saved = self.saved.as_ref().and_then(|saved| saved.ca_file.as_deref());
        global.ca_file.as_deref().or(saved).map(Authorities::read).transpose()
    }
}

fn reached(global: &Global) -> Result<ReachedServer, Failure> {
    // Whoever says everything needs nothing that was kept, nor that it can be read.
    let has_token = global.token_file.is_some() || std::env::var_os("PVN_AUTH_TOKEN").is_some();
    let says_all = global.server.is_some() && global.context.is_none() && has_token;
    let contexts = match Contexts::load() {
        Err(_) if says_all => Contexts::default(),
        loaded => loaded?,
    };
    choose(global.server.as_deref(), global.context.as_deref(), &contexts)
}

/// An address that is given says which server, and a context only brings what was kept for that
/// one.
fn choose(
    server: Option<&str>,
    context: Option<&str>,
    contexts: &Contexts,
) -> Result<ReachedServer, Failure> {
    let named = context.map(|name| contexts.named(name)).transpose()?;
    let saved = match (server, named) {
        (Some(server), _) => contexts.for_server(server),
        (None, Some(named)) => Some(named),
        (None, None) => contexts.current().map(|(_, current)| current),
    };
    let server = server.or_else(|| saved.map(|saved| saved.server.as_str()));
    Ok(ReachedServer { server: server.unwrap_or(USUAL_SERVER).to_owned(), saved: saved.cloned() })
}

struct Environment {
    token: Option<String>,
    data_dir: Option<OsString>,
}

/// The token to use, if one is found. The file in the default data directory is only sent to this
/// machine: a token that nobody named must not reach a stranger.
fn token(
    reached: &ReachedServer,
    file: Option<&Path>,
    environment: Environment,
) -> Result<Option<Token>, Failure> {
    if let Some(path) = file {
        return token_in(path).map(|text| found(text, path.display().to_string()));
    }
    if let Some(text) = environment.token {
        let token = word(&text).map_err(|why| {
            Failure::with_next(
                format!("cannot use PVN_AUTH_TOKEN: {why}"),
                "set it to the token alone, or unset it",
            )
        })?;
        return Ok(found(token, "PVN_AUTH_TOKEN".to_owned()));
    }
    if environment.data_dir.is_none()
        && let Some(saved) = &reached.saved
    {
        return Ok(found(
            word(&saved.token).map_err(|why| {
                Failure::with_next(
                    format!("cannot use the token that is kept for {}: {why}", saved.server),
                    format!("`pvnctl login {}` once more", saved.server),
                )
            })?,
            format!("`pvnctl login {}`", saved.server),
        ));
    }
    if environment.data_dir.is_none() && !is_local(&reached.server) {
        return Ok(None);
    }
    let path = environment
        .data_dir
        .map_or_else(|| PathBuf::from("pvn-data"), PathBuf::from)
        .join(TOKEN_FILE);
    let cannot = |why: String| {
        Failure::with_next(
            format!("cannot read the token file {}: {why}", path.display()),
            "run as the user that runs the scheduler, or give a token with --token-file or \
             PVN_AUTH_TOKEN",
        )
    };
    match path.try_exists() {
        Ok(false) => Ok(None),
        Ok(true) => read(&path).map(|text| found(text, path.display().to_string())).map_err(cannot),
        Err(error) => Err(cannot(error.to_string())),
    }
}

/// The token in a file that somebody named.
///
/// # Errors
/// A file that cannot be read, or that holds no token.
pub fn token_in(path: &Path) -> Result<String, Failure> {
    read(path).map_err(|why| {
        Failure::with_next(
            format!("cannot read the token file {}: {why}", path.display()),
            "name a file that holds nothing but the token",
        )
    })
}

fn found(text: String, origin: String) -> Option<Token> {
    Some(Token { text, origin })
}

fn read(path: &Path) -> Result<String, String> {
    // Not by its size: that of a device says nothing.
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(TOKEN_LIMIT_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > TOKEN_LIMIT_BYTES {
        return Err(format!("it has more than {TOKEN_LIMIT_BYTES} bytes, which is no token"));
    }
    word(&String::from_utf8_lossy(&bytes))
}

/// A token as it can be sent.
///
/// # Errors
/// What is wrong with the text.
pub fn word(text: &str) -> Result<String, String> {
    let token = text.trim();
    if token.is_empty() || !token.chars().all(|character| character.is_ascii_graphic()) {
        return Err("it does not hold a single word of ASCII".to_owned());
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: &str = "http://127.0.0.1:7780";

    fn at(server: &str) -> ReachedServer {
        ReachedServer { server: server.to_owned(), saved: None }
    }

    fn check(
        server: &str,
        file: Option<&Path>,
        token_variable: Option<&str>,
        data_dir: Option<&Path>,
        expected: Option<&str>,
    ) {
        let environment = Environment {
            token: token_variable.map(str::to_owned),
            data_dir: data_dir.map(|dir| dir.as_os_str().to_owned()),
        };
        assert_eq!(
            token(&at(server), file, environment).unwrap().map(|token| token.text).as_deref(),
            expected
        );
    }

    #[test]
    fn the_token_comes_from_the_flag_then_the_variable_then_the_data_directory() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(TOKEN_FILE), "from-dir\n").unwrap();
        let file = dir.path().join("mine");
        std::fs::write(&file, "from-file\n").unwrap();
        check(LOCAL, Some(&file), Some("from-variable"), Some(dir.path()), Some("from-file"));
        check(LOCAL, None, Some("from-variable"), Some(dir.path()), Some("from-variable"));
        check(LOCAL, None, None, Some(dir.path()), Some("from-dir"));
        check("http://far.example", None, None, Some(dir.path()), Some("from-dir"));
        check("http://far.example", None, None, None, None);
    }

    #[test]
    fn what_cannot_be_a_token_is_said_before_it_is_sent() {
        let with = |token: &str| Environment { token: Some(token.to_owned()), data_dir: None };
        for text in ["abc\ndef", " ", "", "é"] {
            let failure = token(&at(LOCAL), None, with(text)).unwrap_err().to_string();
            assert!(
                failure.contains("PVN_AUTH_TOKEN") && failure.contains("single word"),
                "{failure}"
            );
        }
        assert_eq!(token(&at(LOCAL), None, with(" abc\n")).unwrap().unwrap().text, "abc");
        let endless =
            token(&at(LOCAL), Some(Path::new("/dev/zero")), with("x")).unwrap_err().to_string();
        assert!(endless.contains("/dev/zero") && endless.contains("no token"), "{endless}");
    }

    #[test]
    fn a_data_directory_that_cannot_be_looked_into_is_named_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        // What lies in a file cannot be looked for, whoever asks; of a directory of another user
        // the system says so, too.
        let environment =
            Environment { token: None, data_dir: Some(file.clone().into_os_string()) };
        let failure = token(&at(LOCAL), None, environment).unwrap_err();
        assert!(
            failure.to_string().starts_with(&format!(
                "cannot read the token file {}/admin-token: ",
                file.display()
            )),
            "{failure}"
        );
    }

    #[test]
    fn a_token_file_that_is_named_must_be_readable() {
        let environment = || Environment { token: None, data_dir: None };
        let failure =
            token(&at(LOCAL), Some(Path::new("/nowhere/token")), environment()).unwrap_err();
        assert!(
            failure.to_string().starts_with("cannot read the token file /nowhere/token: "),
            "{failure}"
        );
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("two");
        std::fs::write(&file, "two words").unwrap();
        assert!(token(&at(LOCAL), Some(&file), environment()).is_err());
    }

    #[test]
    fn what_was_kept_counts_where_nothing_else_is_said_and_for_its_own_server_alone() {
        let kept = |server: &str, token: &str| SavedContext {
            server: server.to_owned(),
            ca_file: None,
            token: token.to_owned(),
        };
        let contexts = Contexts {
            current: Some("prod".to_owned()),
            contexts: [
                ("prod".to_owned(), kept("https://pvn.example", "of-prod")),
                ("test".to_owned(), kept("https://test.example", "of-test")),
            ]
            .into(),
        };
        let nothing = || Environment { token: None, data_dir: None };
        for (server, context, expected) in [
            (None, None, ("https://pvn.example", Some("of-prod"))),
            (None, Some("test"), ("https://test.example", Some("of-test"))),
            (Some("https://test.example"), None, ("https://test.example", Some("of-test"))),
            (Some("https://far.example"), None, ("https://far.example", None)),
            (Some("https://far.example"), Some("test"), ("https://far.example", None)),
        ] {
            let reached = choose(server, context, &contexts).unwrap();
            let token = token(&reached, None, nothing()).unwrap();
            let token = token.as_ref().map(|token| token.text.as_str());
            assert_eq!((reached.server.as_str(), token), expected, "{server:?} {context:?}");
        }
        let reached = choose(None, None, &contexts).unwrap();
        let variable = Environment { token: Some("mine".to_owned()), data_dir: None };
        assert_eq!(token(&reached, None, variable).unwrap().unwrap().text, "mine");
        assert!(choose(None, Some("other"), &contexts).is_err());
        assert_eq!(choose(None, None, &Contexts::default()).unwrap().server, LOCAL);
    }
}
