//! Flags and environment into one struct. Called by `main` once; nobody else reads either, but
//! `schema::mask` and `spawn`, which read the values of the child's environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use schema::report::StructuredKind;
use schema::wire::{FETCH_MODE_VARIABLE, KILL_AFTER_VARIABLE, KIND_VARIABLE};

pub(crate) use self::declared::{DeclaredInput, DeclaredOutput};
use crate::signals;
use crate::tool::{Scratch, Tool};

mod declared;
mod place;

/// Most bytes that `--max-output` keeps of a stream unless told otherwise: 64 MiB.
pub(crate) const MAX_OUTPUT_BYTES: u64 = 64 << 20;

/// How long delivering is tried unless told otherwise.
pub(crate) const DELIVER_FOR: Duration = Duration::from_secs(15 * 60);

/// Runs a command the way pvn needs it run: signals, output, exit code and report.
#[derive(Debug, Parser)]
#[command(name = "pvn-wrapper", version, max_term_width = 120)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) what: What,
}

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Run a command, pass its output through, keep it, and report how it ended
    Exec(Box<ExecArguments>),
    /// Check a document as the scheduler would: 0 when it is as it should be, 65 when not
    Validate {
        /// Which document it should be
        kind: ExpectedDocument,
        /// The file to check; `-` is standard input
        file: PathBuf,
    },
    /// Deliver what a killed wrapper left in its spool directory
    Resume {
        /// How long to try
        #[arg(
            long, value_name = "D", default_value = "15m", env = "PVN_DELIVERY_TIMEOUT",
            value_parser = positive
        )]
        deliver_for: Duration,
        /// The spool directory
        directory: PathBuf,
    },
    /// Copy this program into a directory, for init containers
    Install {
        /// Made if it is not there
        directory: PathBuf,
    },
    #[command(flatten)]
    Tool(Tool),
}

impl Arguments {
    /// Reads a command line, and the variables that stand in for flags; an empty one, as an image
    /// or a Pod may have, for none.
    pub(crate) fn read(raw: &[OsString]) -> Result<Self, clap::Error> {
        let empty = |arg: &clap::Arg| {
            arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty())
        };
        let without =
            |arg: clap::Arg| if empty(&arg) { arg.env(None::<&'static str>) } else { arg };
        let command = Self::command().mut_subcommands(|command| command.mut_args(without));
        let mut matches = command.try_get_matches_from(raw)?;
        Self::from_arg_matches_mut(&mut matches).and_then(Self::without_doubles)
    }

    /// The arguments, unless two flags claim the same place.
    fn without_doubles(self) -> Result<Self, clap::Error> {
        let doubled = match &self.what {
            What::Exec(options) => options.doubled(),
            _ => None,
        };
        doubled.map_or(Ok(self), |message| {
            Err(Self::command().error(ErrorKind::ArgumentConflict, message))
        })
    }
}

/// What `--expect` and `validate` can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExpectedDocument {
    Fetch,
    GetInfo,
}

impl From<ExpectedDocument> for StructuredKind {
    fn from(kind: ExpectedDocument) -> Self {
        match kind {
            ExpectedDocument::Fetch => Self::Fetch,
            ExpectedDocument::GetInfo => Self::GetInfo,
        }
    }
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct ExecArguments {
    /// Put a file in place before the start: `fetch:NAME` is an output of the fetch that found the
    /// work, or a blob id
    #[arg(long = "in", value_name = "PATH=REF", value_parser = DeclaredInput::parse)]
    pub(crate) inputs: Vec<DeclaredInput>,

    /// Hand over a file that the command leaves
    #[arg(long = "out", value_name = "NAME=PATH", value_parser = DeclaredOutput::parse)]
    pub(crate) outputs: Vec<DeclaredOutput>,

    /// Exit codes after which the outputs must be there
    #[arg(long, value_name = "N,...", default_value = "0", value_parser = ExitCodes::parse)]
    pub(crate) success_exit_codes: ExitCodes,

    /// Check standard output as this document; without it, what the variables of a job ask for
    #[arg(long, value_name = "KIND")]
    pub(crate) expect: Option<ExpectedDocument>,

    /// Stop the command after this long, as in `90s` or `1h30m`
    #[arg(long, value_name = "D", value_parser = positive)]
    pub(crate) timeout: Option<Duration>,

    /// Stop the command when it has written nothing for this long
    #[arg(long, value_name = "D", value_parser = positive)]
    pub(crate) idle_timeout: Option<Duration>,

    /// Time between asking the command to stop and killing it
    #[arg(
        long, value_name = "D", default_value = "10s", env = KILL_AFTER_VARIABLE,
        value_parser = length
    )]
    pub(crate) kill_after: Duration,

    /// Who gets the signals that the wrapper gets
    #[arg(long, value_name = "WHO", default_value = "child")]
    pub(crate) signal_scope: SignalScope,

    /// What TERM becomes on its way to the command
    #[arg(long, value_name = "NAME", default_value = "TERM", value_parser = signals::parse)]
    pub(crate) stop_signal: signals::Number,

    /// Let what the command leaves behind live on, unless it was stopped or killed
    #[arg(long)]
    pub(crate) leave_running: bool,

    /// Time for what the command leaves behind to end by itself
    #[arg(long, value_name = "D", default_value = "2s", value_parser = length)]
    pub(crate) drain: Duration,

    /// Most bytes kept of each stream: beyond, its head and its tail
    #[arg(long, value_name = "BYTES", default_value_t = MAX_OUTPUT_BYTES)]
    pub(crate) max_output: u64,

    /// How long to try to deliver the report
    #[arg(
        long, value_name = "D", default_value = "15m", env = "PVN_DELIVERY_TIMEOUT",
        value_parser = positive
    )]
    pub(crate) deliver_for: Duration,

    /// Where to keep output and report until they are delivered
    #[arg(long, value_name = "DIR", env = "PVN_SPOOL_DIR")]
    pub(crate) spool: Option<PathBuf>,

    /// Write the report to this file too; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// The spool directory of a local job of the scheduler, which this run claims and reports to
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) job: Option<PathBuf>,

    /// The job's own timeout, beside the one that its command line may give
    #[arg(long, value_name = "D", hide = true, value_parser = positive)]
    pub(crate) job_timeout: Option<Duration>,

    /// The directory that a tool's files are handed over from, to be kept until they are
    #[arg(skip)]
    pub(crate) scratch: Option<Scratch>,

    /// What a tool may write where the run starts, to be kept from others that do
    #[arg(skip)]
    pub(crate) guards: Vec<PathBuf>,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignalScope {
    /// The command alone, as the kernel would have done without us
    Child,
    /// Its whole process group
    Group,
}

/// `--success-exit-codes N,...`: one value, so that a later one stands in for an earlier one.
#[derive(Debug, Clone)]
pub(crate) struct ExitCodes(Vec<u8>);

impl ExitCodes {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let code = |code: &str| {
            code.trim().parse().map_err(|_| {
                format!("`{code}` is not an exit code; write numbers from 0 to 255, as in `0,2`")
            })
        };
        text.split(',').map(code).collect::<Result<_, _>>().map(Self)
    }

    /// The one after which everything must be there unless something else is said.
    pub(crate) fn zero() -> Self {
        Self::of(&[0])
    }

    pub(crate) fn of(codes: &[u8]) -> Self {
        Self(codes.to_owned())
    }

    /// Whether this code is one of them.
    pub(crate) fn has(&self, code: i32) -> bool {
        self.0.iter().any(|fine| i32::from(*fine) == code)
    }
}

/// A duration that must not be zero.
pub(crate) fn positive(text: &str) -> Result<Duration, String> {
    let duration: schema::schedule::Duration =
        text.parse().map_err(|error: schema::schedule::DurationError| error.to_string())?;
    Ok(Duration::from_millis(duration.as_ms().unsigned_abs()))
}

/// A duration that may be zero.
fn length(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s" | "0ms" | "0m" | "0h") {
        Ok(Duration::ZERO)
    } else {
        positive(text)
    }
}

impl ExecArguments {
    /// What claims the same place twice, if anything does: one output of two files, or one file
    /// with two contents.
    pub(crate) fn doubled(&self) -> Option<String> {
        let output =
            self.outputs.iter().enumerate().find(|(index, output)| {
                self.outputs[..*index].iter().any(|o| o.name == output.name)
            });
        // A single one is compared with nothing, and costs no look at the disk.
        let places: Vec<PathBuf> = if self.inputs.len() > 1 {
            self.inputs.iter().map(|input| place::of(&input.path)).collect()
        } else {
            Vec::new()
        };
        let input = self
            .inputs
            .iter()
            .zip(&places)
            .enumerate()
            .find(|(index, (_, place))| places[..*index].contains(place));
        let output = output.map(|(_, output)| {
            format!(
                "the output `{}` is declared twice; give each `--out` a name of its own",
                output.name
            )
        });
        output.or_else(|| {
            input.map(|(_, (input, _))| {
                format!(
                    "two inputs go to {}; give each `--in` a path of its own",
                    input.path.display()
                )
            })
        })
    }

    /// Which document standard output has to be: what the flag says, else what the variables of a
    /// job do. These count for the wrapper `of_the_job` alone: one within its command sees them
    /// too, and what that prints may be a part of the document.
    pub(crate) fn expected(
        &self,
        environment: &[(OsString, OsString)],
        of_the_job: bool,
    ) -> Option<StructuredKind> {
        let variable = |name: &str| {
            environment.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.to_str())
        };
        let of_variables = || match (variable(KIND_VARIABLE)?, variable(FETCH_MODE_VARIABLE)) {
            ("fetch", Some("STRUCTURED_OUTPUT")) => Some(StructuredKind::Fetch),
            ("getInfo", _) => Some(StructuredKind::GetInfo),
            _ => None,
        };
        self.expect
            .map(StructuredKind::from)
            .or_else(|| if of_the_job { of_variables() } else { None })
    }

    /// The files that no other run may use meanwhile: inputs, outputs, and what a tool may write.
    pub(crate) fn declared(&self) -> impl Iterator<Item = &Path> {
        let inputs = self.inputs.iter().map(|input| input.path.as_path());
        let outputs = self.outputs.iter().map(|output| output.path.as_path());
        inputs.chain(outputs).chain(self.guards.iter().map(PathBuf::as_path))
    }

    /// The sooner of the two timeouts.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        [self.timeout, self.job_timeout].into_iter().flatten().min()
    }
}

/// How long to deliver when the arguments could not be read.
pub(crate) fn delivery_timeout(environment: &[(OsString, OsString)]) -> Duration {
    let given = environment
        .iter()
        .find(|(key, _)| key == "PVN_DELIVERY_TIMEOUT")
        .and_then(|(_, value)| value.to_str());
    given.and_then(|given| positive(given).ok()).unwrap_or(DELIVER_FOR)
}

/// The value after `--job` in raw arguments that clap refused: a usage error of a local job is
/// reported too.
pub(crate) fn job_of(arguments: &[OsString]) -> Option<PathBuf> {
    let at = arguments
        .iter()
        .take_while(|argument| argument.as_os_str() != OsStr::from_bytes(b"--"))
        .position(|argument| argument == "--job")?;
    arguments.get(at + 1).map(PathBuf::from)
}
