//! `fakes ecs|cloud-run|pulumi COMMAND…`: starts what stands in for a cloud, and becomes a command
//! whose tools find it and nobody else. It ends with that command. What another shell needs to find
//! it lies in a file to be read there: `. "${TMPDIR:-/tmp}/pvn-fakes/ecs"`.

use std::ffi::OsString;
use std::fs::{DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use fakes::clients;
use fakes::cloud_run::CloudRunServer;
use fakes::ecs::EcsServer;
use fakes::pulumi;
use serde_json::json;

const USAGE: &str = "usage: fakes ecs|cloud-run|pulumi COMMAND [ARGUMENT]...";

/// The word that makes this process the server of another one of this program.
const SERVE: &str = "--serve";

/// How often a server looks whether whom it serves is still there.
const LOOK_EVERY: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next().and_then(|word| word.into_string().ok());
    let done = match (first.as_deref(), arguments.next()) {
        (Some(SERVE), Some(cloud)) => serve(&cloud),
        (Some(cloud @ ("ecs" | "cloud-run" | "pulumi")), Some(program)) => {
            run(cloud, &program, arguments)
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody may read it.
            let _ = writeln!(io::stderr(), "fakes: {error}");
            ExitCode::from(2)
        }
    }
}

/// Becomes the command, beside a server for it.
fn run(
    cloud: &str,
    program: &OsString,
    arguments: impl Iterator<Item = OsString>,
) -> io::Result<()> {
    let place = own_place()?;
    let variables = match cloud {
        "ecs" => of_ecs(&served(cloud)?),
        "cloud-run" => of_cloud_run(&served(cloud)?, &place)?,
        _ => of_pulumi(&place)?,
    };
    let exports = variables.iter().map(|(key, value)| format!("export {key}='{value}'\n"));
    std::fs::write(place.join(cloud), exports.collect::<String>())?;
    let error = Command::new(program).args(arguments).envs(variables).exec();
    Err(io::Error::new(error.kind(), format!("{}: {error}", program.display())))
}

/// Starts the server of a cloud, and gives where it listens once it does.
fn served(cloud: &str) -> io::Result<String> {
    let mut server = Command::new(std::env::current_exe()?)
        .args([SERVE, cloud])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("it is piped")).read_line(&mut line)?;
    match line.trim() {
        "" => Err(io::Error::other(format!("what stands in for {cloud} did not start"))),
        address => Ok(address.to_owned()),
    }
}

/// Says where it listens, and serves until whoever started this is gone.
fn serve(cloud: &OsString) -> io::Result<()> {
    let client = parent_id();
    let _server: Box<dyn std::any::Any> = match cloud.to_str() {
        Some("ecs") => {
            let server = EcsServer::start();
            say(&server.url)?;
            Box::new(server)
        }
        Some("cloud-run") => {
            let server = CloudRunServer::start();
            say(&server.address.port().to_string())?;
            Box::new(server)
        }
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, USAGE)),
    };
    while parent_id() == client {
        std::thread::park_timeout(LOOK_EVERY);
    }
    Ok(())
}

/// The line that another process waits for.
fn say(address: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{address}")?;
    stdout.flush()
}

/// A directory of our user's alone.
fn own_place() -> io::Result<PathBuf> {
    let place = std::env::temp_dir().join("pvn-fakes");
    DirBuilder::new().recursive(true).mode(0o700).create(&place)?;
    let is_ours =
        std::fs::symlink_metadata(&place)?.uid() == std::fs::metadata("/proc/self")?.uid();
    match is_ours {
        true => Ok(place),
        false => Err(io::Error::other(format!("{} is another user's", place.display()))),
    }
}

/// What `aws` needs to find the server, and nothing that this machine or its owner has.
fn of_ecs(url: &str) -> Variables {
    let own = [
        ("AWS_DEFAULT_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "nobody"),
        ("AWS_SECRET_ACCESS_KEY", "nothing"),
    ];
    let all = clients::of_ecs(url).into_iter().chain(own);
    all.map(|(name, value)| (name, value.to_owned())).collect()
}

/// The same for `gcloud`, which reaches it as its proxy.
fn of_cloud_run(port: &str, place: &Path) -> io::Result<Variables> {
    let (config, token) = (place.join("gcloud"), place.join("token"));
    DirBuilder::new().recursive(true).mode(0o700).create(&config)?;
    std::fs::write(&token, "nobody")?;
    let found = clients::of_cloud_run(port).map(|(name, value)| (name, value.to_owned()));
    let own = [
        ("CLOUDSDK_CONFIG", path(&config)),
        ("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", path(&token)),
        ("CLOUDSDK_CORE_DISABLE_PROMPTS", "1".into()),
        ("CLOUDSDK_RUN_REGION", "europe-west1".into()),
        ("CLOUDSDK_CORE_PROJECT", "example-project".into()),
    ];
    Ok([&found[..], &own].concat())
}

/// A `pulumi` on PATH that replays what the real one does with a stack that somebody has changed.
fn of_pulumi(place: &Path) -> io::Result<Variables> {
    let (programs, world) = (place.join("bin"), place.join("world"));
    for directory in [&programs, &world] {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let program = programs.join("pulumi");
    std::fs::write(&program, pulumi::PROGRAM)?;
    std::fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    for (name, content) in [
        ("preview", pulumi::drift().to_string()),
        ("drift", pulumi::drift().to_string()),
        ("settled", pulumi::settled().to_string()),
        ("outputs", json!({"url": "https://queues.example.com"}).to_string()),
        ("history", json!([]).to_string()),
    ] {
        std::fs::write(world.join(name), content)?;
    }
    let others = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
    Ok(vec![("PATH", format!("{}:{others}", path(&programs))), ("WORLD", path(&world))])
}

/// Variables, by name.
type Variables = Vec<(&'static str, String)>;

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
