//! `pvn-scheduler dev DIR`: the daemon and a client in one command. It serves, applies the config
//! files in DIR with everything on this machine, releases every service, and tells what happens as
//! it happens. The client half speaks HTTP like any other; nothing here knows how the daemon
//! decides.
//!
//! A service is released when it has no release in one of its channels, when its config has changed
//! since `dev` last released it, or when other parameters are given. So running `dev` again over
//! the same data goes on where it was.

mod arguments;
mod doing;
mod ending;
mod events;
mod files;
mod found;
mod memory;
mod output;
mod secrets;
mod session;
mod story;
mod watch;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use pvnctl::console::Console;
use pvnctl::failure::Failure;

use crate::daemon::{Daemon, StartError};
use crate::settings::Settings;
use crate::signals::{INTERRUPTED, Stops};
use crate::store::LockError;
pub use arguments::Arguments;

use session::Session;

/// Where `dev` listens when nothing is said and the address is free: where `pvnctl` looks when
/// nothing is said.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7780);

/// Runs until Ctrl-C, or until everything has converged when asked to; returns the exit code.
pub async fn run(arguments: Arguments) -> u8 {
    let mut console = Console::of_process();
    if arguments.until_converged {
        console.go_on_unread();
    }
    let ended = start(&arguments, &mut console).await;
    match ended.and_then(|code| console.flush().map(|()| code)) {
        Ok(code) => code,
        Err(failure) => {
            // When even stderr is closed there is nobody left to tell.
            let _ = console.report(&failure);
            failure.exit_code()
        }
    }
}

async fn start(arguments: &Arguments, console: &mut Console) -> Result<u8, Failure> {
    let mut stops = Stops::take()?;
    let root = arguments.root();
    let wrong = match std::fs::metadata(root) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some(format!("{} is not a directory", root.display())),
        Err(error) => Some(format!("{} cannot be looked into: {error}", root.display())),
    };
    if let Some(wrong) = wrong {
        return Err(Failure::with_next(
            wrong,
            "name a directory that holds *.pvn.yaml files, as in examples/quickstart",
        ));
    }
    let params = pvnctl::args::parse_params("--param", &arguments.params)?;
    let secrets = secrets::read(&arguments.secrets)?;
    // Read before anything is started: a broken config is the first thing to know.
    let configs = files::read(&arguments.dir)?;
    let data_dir = arguments.data_dir.clone().unwrap_or_else(|| root.join(".pvn"));
    let started = tokio::select! {
        () = stops.next() => None,
        started = daemon(arguments, root, &data_dir) => Some(started?),
    };
    let Some(mut daemon) = started else { return interrupted(arguments, console) };
    let session = async {
        let mut session = Session::open(arguments, &daemon, data_dir, params, console).await?;
        session.given.secrets = secrets::set(&secrets, &session.client, console).await?;
        session.live(configs, &mut daemon, console).await
    };
    let ended = tokio::select! {
        () = stops.next() => None,
        ended = session => Some(ended),
    };
    let ended = ended.unwrap_or_else(|| interrupted(arguments, console));
    let stopped = tokio::select! {
        stopped = daemon.stop() => stopped.map_err(|error| {
            Failure::user(format!("{:#}", anyhow::Error::from(error)))
        }),
        () = stops.next() => std::process::exit(INTERRUPTED.into()),
    };
    ended.and_then(|code| stopped.map(|()| code))
}

/// Ctrl-C, at whatever moment.
fn interrupted(arguments: &Arguments, console: &mut Console) -> Result<u8, Failure> {
    console.data("stopping; commands that run go on, and the next start finds them\n")?;
    console.flush()?;
    Ok(if arguments.until_converged { INTERRUPTED } else { 0 })
}

/// Starts the daemon. Without `--listen` a port that is taken is no reason not to start.
async fn daemon(arguments: &Arguments, root: &Path, data_dir: &Path) -> Result<Daemon, Failure> {
    let taken = || std::net::TcpListener::bind(USUAL).is_err();
    let listen = match arguments.listen {
        Some(address) => address,
        None if taken() => SocketAddr::new(USUAL.ip(), 0),
        None => USUAL,
    };
    let settings = Settings {
        listen,
        local_root: Some(root.to_owned()),
        all_local: true,
        holds_applies: true,
        ..Settings::in_directory(data_dir)
    };
    Daemon::start(settings).await.map_err(|error| match error {
        StartError::Lock(LockError::Held { path, pid }) => Failure::with_next(
            format!(
                "the pvn-scheduler with pid {pid} runs already, with the data in {}",
                path.display()
            ),
            "stop that one first, or have it do what this one was to do: `pvnctl services push` \
             takes other values; a second one beside it, with another --data-dir, would apply the \
             same once more",
        ),
        other => Failure::user(format!("{:#}", anyhow::Error::from(other))),
    })
}
