//! Finds the server and the token: flags, then environment, then the data directory of a scheduler
//! on this machine.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::args::Global;
use crate::client::{Authorities, Client, Token, is_local};
use crate::failure::Failure;

/// Name of the file in the data directory in which the scheduler leaves its first admin token.
pub const TOKEN_FILE: &str = "admin-token";

/// Longest token file; a token is 64 characters.
const TOKEN_LIMIT_BYTES: u64 = 4096;

/// A client for the server and with the token that arguments and environment name.
///
/// # Errors
/// A malformed address, or a file that was named and cannot be used.
pub fn client(global: &Global) -> Result<Client, Failure> {
    let environment = Environment {
        // One that is set and empty is a secret that somebody did not get: the token of another is
        // none for them.
        token: std::env::var("PVN_AUTH_TOKEN").ok(),
        data_dir: std::env::var_os("PVN_DATA_DIR").filter(|dir| !dir.is_empty()),
    };
    let authorities = global.ca_file.as_deref().map(Authorities::read).transpose()?;
    Client::new(
        &global.server,
        authorities,
        token(&global.server, global.token_file.as_deref(), environment)?,
    )
}

/// A client that shows nobody a token, for what is open to all.
///
/// # Errors
/// A malformed address, or authorities that cannot be used.
pub fn without_token(global: &Global) -> Result<Client, Failure> {
    let authorities = global.ca_file.as_deref().map(Authorities::read).transpose()?;
    Client::new(&global.server, authorities, None)
}

struct Environment {
    token: Option<String>,
    data_dir: Option<OsString>,
}

/// The token to use, if one is found. The file in the default data directory is only sent to this
/// machine: a token that nobody named must not reach a stranger.
fn token(
    server: &str,
    file: Option<&Path>,
    environment: Environment,
) -> Result<Option<Token>, Failure> {
    if let Some(path) = file {
        return read(path).map(|text| found(text, path.display().to_string())).map_err(|why| {
            Failure::with_next(
                format!("cannot read the token file {}: {why}", path.display()),
                "name a file that holds nothing but the token",
            )
        });
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
    if environment.data_dir.is_none() && !is_local(server) {
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
fn word(text: &str) -> Result<String, String> {
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
            token(server, file, environment).unwrap().map(|token| token.text).as_deref(),
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
            let failure = token(LOCAL, None, with(text)).unwrap_err().to_string();
            assert!(
                failure.contains("PVN_AUTH_TOKEN") && failure.contains("single word"),
                "{failure}"
            );
        }
        assert_eq!(token(LOCAL, None, with(" abc\n")).unwrap().unwrap().text, "abc");
        let endless =
            token(LOCAL, Some(Path::new("/dev/zero")), with("x")).unwrap_err().to_string();
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
        let failure = token(LOCAL, None, environment).unwrap_err();
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
        let failure = token(LOCAL, Some(Path::new("/nowhere/token")), environment()).unwrap_err();
        assert!(
            failure.to_string().starts_with("cannot read the token file /nowhere/token: "),
            "{failure}"
        );
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("two");
        std::fs::write(&file, "two words").unwrap();
        assert!(token(LOCAL, Some(&file), environment()).is_err());
    }
}
