//! What can be typed after `dev`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::settings::listen_address;

const EXAMPLES: &str = "\
Examples:
  pvn-scheduler dev examples/quickstart
  pvn-scheduler dev examples/quickstart --watch
  pvn-scheduler dev deploy --param image=v2 --until-converged --timeout 5m
  pvn-scheduler dev deploy --secret db-password=password.txt

Exit codes:
  0  stopped by hand; with --until-converged: everything is CONVERGED
  1  the config is broken, somebody released something else, or another error
  2  with --until-converged: something was told as FAILED
  3  with --until-converged: the timeout came first
  130  with --until-converged: stopped by hand";

/// What can be typed after `dev`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Directory with *.pvn.yaml files; `DIR/...` takes also those below. Commands run in it
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Address to listen on [default: 127.0.0.1:7780, or a free port when that is taken]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pub listen: Option<SocketAddr>,
    /// Where everything is kept [default: DIR/.pvn]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Apply again when files change
    #[arg(long)]
    pub watch: bool,
    /// Value of a parameter, for every service that has it; everything after the first `=` is the
    /// value
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Value of a secret, from a file (less one line end), kept sealed in the data directory;
    /// another value releases every service
    #[arg(long = "secret", value_name = "KEY=FILE")]
    pub secrets: Vec<String>,
    /// End when every service has converged, or as soon as one has FAILED, whatever a fetch finds
    /// after that
    #[arg(long)]
    pub until_converged: bool,
    /// With --until-converged: longest wait, as in 90s or 10m
    #[arg(long, value_name = "DURATION", default_value = "1h", requires = "until_converged")]
    pub timeout: schema::schedule::Duration,
}

impl Arguments {
    /// The directory itself, without the `...` that asks for those below.
    pub(super) fn root(&self) -> &Path {
        if self.dir.ends_with("...") {
            self.dir.parent().unwrap_or(Path::new("."))
        } else {
            &self.dir
        }
    }
}
