//! What can be typed and many commands share, as types. The top level is in `command`, and the
//! struct of a sub-command beside the code that performs it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::contexts;
use crate::failure::Failure;

/// Where a scheduler of this machine listens unless it is told otherwise.
pub const USUAL_SERVER: &str = "http://127.0.0.1:7780";

/// Options that every command takes.
#[derive(Debug, Args)]
pub struct Global {
    /// Address of the scheduler [default: the context's, else http://127.0.0.1:7780]
    #[arg(
        long,
        global = true,
        env = "PVN_SERVER",
        value_name = "URL",
        help_heading = "Global options"
    )]
    pub server: Option<String>,

    /// Which of the schedulers that you have logged in to, instead of the current one
    #[arg(
        long,
        global = true,
        env = "PVN_CONTEXT",
        add = ArgValueCompleter::new(contexts::candidates),
        value_name = "NAME",
        help_heading = "Global options"
    )]
    pub context: Option<String>,

    /// File that holds the token
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub token_file: Option<PathBuf>,

    /// Certificates (PEM) that alone are trusted to speak for an https scheduler [default: the
    /// system's]
    #[arg(
        long,
        global = true,
        env = "PVN_CA_FILE",
        hide_env = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    pub ca_file: Option<PathBuf>,

    /// How to print data: table, wide (every column, whole ids), name (names and ids alone), json
    /// or yaml
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        hide_possible_values = true,
        default_value = "table",
        value_name = "FORMAT",
        help_heading = "Global options"
    )]
    pub output: OutputFormat,

    /// When to use colour: auto, always or never; NO_COLOR is obeyed
    #[arg(
        long,
        global = true,
        value_enum,
        hide_possible_values = true,
        default_value = "auto",
        value_name = "WHEN",
        help_heading = "Global options"
    )]
    pub color: Colour,
}

impl Global {
    /// As where no flag is given, for whoever asks before the flags are read.
    pub fn of_environment() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            server: set("PVN_SERVER"),
            context: set("PVN_CONTEXT"),
            token_file: None,
            ca_file: set("PVN_CA_FILE").map(PathBuf::from),
            output: OutputFormat::Table,
            color: Colour::Never,
        }
    }
}

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Table,
    /// The same with every column and whole ids.
    Wide,
    /// One name or id a line, for other commands; where there is none as for people.
    Name,
    /// For programs; stable.
    Json,
    /// The same as YAML.
    Yaml,
}

impl OutputFormat {
    /// Whether it is for programs that read values.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How long to wait.
#[derive(Debug, Clone, Args)]
pub struct WaitArguments {
    /// Longest wait, as in 90s, 10m or 1h30m
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub timeout: schema::schedule::Duration,
}

impl WaitArguments {
    /// The longest wait.
    pub fn duration(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.timeout.as_ms().unsigned_abs())
    }
}

/// Parameter values for a release.
#[derive(Debug, Clone, Args)]
pub struct Params {
    /// Value of a parameter for all channels; everything after the first `=` is the value
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Value of a parameter for one channel, which wins there
    #[arg(long = "param-for-channel", value_name = "CHANNEL:NAME=VALUE")]
    pub params_for_channel: Vec<String>,
}

impl Params {
    /// The values for all channels.
    ///
    /// # Errors
    /// A value without `=`, or a name given twice.
    pub fn for_all(&self) -> Result<BTreeMap<String, String>, Failure> {
        parse_params("--param", &self.params)
    }

    /// The values for one channel each.
    ///
    /// # Errors
    /// A value without `:` or `=`, or a name given twice.
    pub fn by_channel(&self) -> Result<BTreeMap<String, BTreeMap<String, String>>, Failure> {
        let mut channels: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for text in &self.params_for_channel {
            let wrong = || {
                Failure::with_next(
                    format!("--param-for-channel `{text}` names no channel"),
                    "write it as CHANNEL:NAME=VALUE",
                )
            };
            let (channel, param) = text.split_once(':').ok_or_else(wrong)?;
            if channel.is_empty() || channel.contains('=') {
                return Err(wrong());
            }
            channels.entry(channel.to_owned()).or_default().push(param.to_owned());
        }
        channels
            .into_iter()
            .map(|(channel, params)| Ok((channel, parse_params("--param-for-channel", &params)?)))
            .collect()
    }
}

/// One of several names with commas between them; people put blanks there, too.
///
/// # Errors
/// Never: which names there are the server knows.
pub fn listed_name(text: &str) -> Result<String, Infallible> {
    Ok(text.trim().to_owned())
}

/// How many entries of a list are wanted: none would be no list, and says nothing of what is there.
///
/// # Errors
/// No whole number from 1 on.
pub fn limit(text: &str) -> Result<usize, &'static str> {
    let wanted = text.parse().ok().filter(|limit| *limit > 0);
    wanted.ok_or("it is a whole number from 1 on; leave it out for the usual number")
}

/// Reads `NAME=VALUE` texts; only the first `=` splits.
///
/// # Errors
/// A text without `=` or without a name, or a name given twice.
pub fn parse_params(flag: &str, texts: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut values = BTreeMap::new();
    for text in texts {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::with_next(
                format!("{flag} `{text}` has no name and value"),
                "write it as NAME=VALUE; an empty value is `NAME=`",
            ));
        };
        if values.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::user(format!("{flag} gives `{name}` twice")));
        }
    }
    Ok(values)
}

/// The command without the variables that are set and empty: for people and Pods that is how a
/// variable is unset, and clap would take it for a value. `value` is `std::env::var_os`.
pub fn without_empty_variables(
    command: clap::Command,
    value: fn(&OsStr) -> Option<OsString>,
) -> clap::Command {
    let empty =
        move |arg: &Arg| arg.get_env().and_then(value).is_some_and(|value| value.is_empty());
    command
        .mut_args(move |arg| if empty(&arg) { arg.env(None::<&'static str>) } else { arg })
        .mut_subcommands(move |command| without_empty_variables(command, value))
}

/// The command as where no variable is set: what is wrong with what was typed is told without what
/// nobody typed, such as a `--server` that a variable gives.
pub fn without_variables(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| arg.env(None::<&'static str>)).mut_subcommands(without_variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str], expected: Result<&[(&str, &str)], &str>) {
        let texts: Vec<_> = texts.iter().map(ToString::to_string).collect();
        match (parse_params("--param", &texts), expected) {
            (Ok(found), Ok(expected)) => {
                let expected: BTreeMap<_, _> = expected
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.to_string()))
                    .collect();
                assert_eq!(found, expected);
            }
            (Err(failure), Err(part)) => assert!(failure.to_string().contains(part), "{failure}"),
            (found, _) => panic!("{texts:?} gave {found:?}"),
        }
    }

    #[test]
    fn a_parameter_splits_at_the_first_equals_sign_only() {
        check(&["a=b=c==", "x="], Ok(&[("a", "b=c=="), ("x", "")]));
        check(&["url=http://h/?q=1,2"], Ok(&[("url", "http://h/?q=1,2")]));
        check(&["a"], Err("`a` has no name and value"));
        check(&["=b"], Err("has no name"));
        check(&["a=1", "a=2"], Err("gives `a` twice"));
    }

    #[test]
    fn a_parameter_for_a_channel_names_it_before_the_first_colon() {
        let params =
            |text: &str| Params { params: vec![], params_for_channel: vec![text.to_owned()] };
        let found = params("eu:url=http://h:80").by_channel().unwrap();
        assert_eq!(found["eu"]["url"], "http://h:80");
        for wrong in ["url=http://h", "x", ":a=b"] {
            assert!(params(wrong).by_channel().is_err(), "{wrong}");
        }
    }
}
