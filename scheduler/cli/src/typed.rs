//! How `pvnctl` is typed to reach the scheduler that is spoken to: what messages and pages suggest
//! must not act on another one.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use schema::shown::{shell_path, shell_word};

use crate::args::{Global, USUAL_SERVER};

mod addressed;

use addressed::addressed;

/// `pvnctl`, and what stands before it or follows it on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed(String);

/// What is replaced: the beginning of a command in a text.
const QUOTED: &str = "`pvnctl ";

/// The same without the backtick.
const PROGRAM: &str = "pvnctl";

impl Default for Typed {
    fn default() -> Self {
        Self(PROGRAM.to_owned())
    }
}

impl Typed {
    /// With flags for a server, unless it is the usual one, and for files. Flags go on in what the
    /// typed command suggests itself; variables before it would not.
    pub fn reaching(
        server: Option<&str>,
        token_file: Option<&Path>,
        ca_file: Option<&Path>,
    ) -> Self {
        let mut typed = PROGRAM.to_owned();
        typed +=
            &server.map_or_else(String::new, |server| format!(" --server {}", shell_word(server)));
        for (flag, file) in [("--token-file", token_file), ("--ca-file", ca_file)] {
            typed += &file.map_or_else(String::new, |file| format!(" {flag} {}", shell_path(file)));
        }
        Self(typed)
    }

    /// With the flags that were given; what came from a variable stays set where people type.
    /// `environment` is `std::env::var_os`; `current` the server of the context that is used where
    /// nothing is said.
    pub fn with_flags(
        global: &Global,
        environment: fn(&str) -> Option<OsString>,
        current: Option<&str>,
    ) -> Self {
        let set = |name: &str| environment(name).filter(|set| !set.is_empty());
        let usual =
            set("PVN_SERVER").unwrap_or_else(|| current.unwrap_or(USUAL_SERVER).to_owned().into());
        let server = global.server.as_deref().filter(|server| usual != *server);
        let ca_file = global
            .ca_file
            .as_deref()
            .filter(|file| environment("PVN_CA_FILE").is_none_or(|set| set != file.as_os_str()));
        // Whoever copies a command may stand in another directory.
        let [token_file, ca_file] = [global.token_file.as_deref(), ca_file]
            .map(|file| file.and_then(|file| std::path::absolute(file).ok()));
        let mut typed = Self::reaching(server, token_file.as_deref(), ca_file.as_deref());
        let context = global.context.as_deref();
        if let Some(name) = context.filter(|name| set("PVN_CONTEXT").is_none_or(|set| set != *name))
        {
            typed.0 += &format!(" --context {}", shell_word(name));
        }
        typed
    }

    /// A command that begins with `pvnctl`, with what it is about as an address.
    pub fn command(&self, command: &str) -> String {
        let Some(words) = command.strip_prefix(PROGRAM) else { return command.to_owned() };
        match words.strip_prefix(' ').and_then(addressed) {
            Some(words) => format!("{} {words}", self.0),
            None => format!("{}{words}", self.0),
        }
    }

    /// A text with each command in backticks so. One that is so already, or that names no
    /// sub-command, stays.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !text.contains(QUOTED) {
            return Cow::Borrowed(text);
        }
        let mut parts = text.split(QUOTED);
        let mut typed = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            if !part.starts_with(|first: char| first.is_ascii_lowercase()) {
                typed += &format!("{QUOTED}{part}");
                continue;
            }
            // Of a text that was cut the end may be missing.
            let (words, rest) = part.split_at(part.find('`').unwrap_or(part.len()));
            typed += &format!("`{}{rest}", self.command(&format!("{PROGRAM} {words}")));
        }
        Cow::Owned(typed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_a_text_reach_the_same_scheduler_and_what_is_so_already_stays() {
        let typed = Typed("pvnctl --server http://h:1".to_owned());
        let once = typed.text("see `pvnctl jobs list`, or `pvnctl --version` and pvnctl");
        assert_eq!(
            once,
            "see `pvnctl --server http://h:1 jobs list`, or `pvnctl --version` and pvnctl"
        );
        assert_eq!(typed.text(&once), once);
        assert_eq!(typed.command("pvnctl jobs list"), "pvnctl --server http://h:1 jobs list");
        let reaching = Typed::reaching(None, Some(Path::new("d d/t")), None);
        let once = reaching.text("`pvnctl jobs list`");
        assert_eq!(once, "`pvnctl --token-file 'd d/t' jobs list`");
        assert_eq!(reaching.text(&once), once);
        assert_eq!(Typed::default().text("`pvnctl jobs list`"), "`pvnctl jobs list`");
        assert_eq!(
            typed.text("a `b` `pvnctl services retry web --app shop --channel eu`, or not"),
            "a `b` `pvnctl --server http://h:1 services retry shop/web@eu`, or not"
        );
        assert_eq!(
            Typed::default().text("`pvnctl services get web --app shop"),
            "`pvnctl services get shop/web"
        );
    }
}
