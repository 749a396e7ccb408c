//! `pvnctl init`: a directory that works, to start from.

mod kinds;

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use schema::id::{ApplicationName, ChannelName};
use schema::shown::shell_path;

use crate::console::Console;
use crate::failure::Failure;
pub use kinds::InitKind;

const EXAMPLES: &str = "\
Examples:
  pvnctl init                                  asks what it is for
  pvnctl init deploy/db --kind sql
  pvnctl init infra --kind terraform --channels staging,production --approval

Try what it wrote with `pvn-scheduler dev DIR`, then change it: fetch.sh looks,
apply.sh does it. Where there are several channels, each waits until the one
before it has converged. No file is ever overwritten.";

/// Where the config goes; the rest is named by its kind.
const CONFIG: &str = "pvn.pvn.yaml";

/// What is made by trying it out is no part of anybody's repository.
const IGNORED: &str = ".gitignore";

/// Longest answer to a question.
const ANSWER_LIMIT_BYTES: usize = 256;

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Where to; made where it is not there
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// What it is for [default: asks on a terminal]
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Option<InitKind>,
    /// Name of the runtime, the application and the service [default: the directory's]
    #[arg(long, value_name = "NAME")]
    name: Option<ApplicationName>,
    /// Release channels, the first to be released first
    #[arg(long, value_name = "CHANNEL", value_delimiter = ',')]
    #[arg(default_values = ["staging", "production"])]
    channels: Vec<ChannelName>,
    /// Have a person approve every apply in the last channel
    #[arg(long)]
    approval: bool,
}

/// Writes the files, all or none.
///
/// # Errors
/// A file that is there already, no name, nobody to ask, a disk that does not take them.
pub fn perform(arguments: &Arguments, console: &mut Console) -> Result<(), Failure> {
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => name_of(&arguments.dir)?,
    };
    twice(&arguments.channels)?;
    let kind = match arguments.kind {
        Some(kind) => kind,
        None => asked(console)?,
    };
    let mut files = vec![(CONFIG, kind.runtime().replace("@name@", name.as_str()))];
    files[0].1 += &application(&name, &arguments.channels, arguments.approval);
    files.extend(
        kind.files().iter().map(|(path, text)| (*path, text.replace("@name@", name.as_str()))),
    );
    // Of a repository that has one its owner knows what belongs in it.
    if !arguments.dir.join(IGNORED).exists() {
        files.push((IGNORED, "/out/\n/.pvn/\n".to_owned()));
    }
    let there: Vec<_> = files
        .iter()
        .map(|(path, _)| arguments.dir.join(path))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| path.display().to_string())
        .collect();
    if !there.is_empty() {
        return Err(Failure::with_next(
            format!("there already, and nothing was written: {}", there.join(", ")),
            "name an empty directory, or one that is not there yet",
        ));
    }
    for (path, text) in &files {
        let path = arguments.dir.join(path);
        write(&path, text).map_err(|error| {
            Failure::with_next(
                format!("cannot write {}: {error}", path.display()),
                "remove what was written, and name a directory that can be written to",
            )
        })?;
        console.say(&format!("wrote {}", path.display()))?;
    }
    let dir = shell_path(&arguments.dir);
    let needs = kind.needs().map_or_else(String::new, |needs| format!(" (it needs {needs})"));
    console.say(&format!(
        "\ntry it{needs}:    pvn-scheduler dev {dir}\ncheck the files: pvnctl \
         validate {dir}\ntry the commands: pvnctl contract-test {dir}"
    ))
}

/// The name of the directory, where it can be a name of ours.
fn name_of(dir: &Path) -> Result<ApplicationName, Failure> {
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let name = whole.components().next_back().map(|last| last.as_os_str().to_string_lossy());
    let name = name.unwrap_or_default().to_ascii_lowercase().replace(['_', '.', ' '], "-");
    name.parse().map_err(|_| {
        Failure::with_next(
            format!("`{name}`, the directory's name, cannot be that of a service"),
            "give one with --name: lower-case letters, digits and hyphens, a letter first",
        )
    })
}

fn twice(channels: &[ChannelName]) -> Result<(), Failure> {
    let seen = |at: usize| channels[..at].contains(&channels[at]);
    match (0..channels.len()).find(|at| seen(*at)) {
        Some(at) => Err(Failure::user(format!("--channels names `{}` twice", channels[at]))),
        None => Ok(()),
    }
}

/// Asks the person at the terminal.
fn asked(console: &mut Console) -> Result<InitKind, Failure> {
    let kinds = InitKind::ALL;
    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    let unclear = |what: String| {
        Failure::with_next(what, format!("name it with --kind: {}", names.join(", ")))
    };
    if !console.can_ask() {
        return Err(unclear("what is it for? There is no terminal to ask on".to_owned()));
    }
    console.say("What is it for?")?;
    for (at, kind) in kinds.iter().enumerate() {
        console.say(&format!("  {}  {:<10} {}", at + 1, kind.name(), kind.about()))?;
    }
    let answer = console.ask_for("Number or name:", ANSWER_LIMIT_BYTES)?;
    let answer = answer
        .filter(|answer| !answer.is_empty())
        .ok_or_else(|| unclear("nothing was chosen, and nothing was written".to_owned()))?;
    let by_number = answer.parse::<usize>().ok().and_then(|at| kinds.get(at.checked_sub(1)?));
    let by_name = kinds.iter().find(|kind| kind.name() == answer);
    by_number.or(by_name).copied().ok_or_else(|| unclear(format!("`{answer}` is none of these")))
}

/// The application: channels one after the other.
fn application(name: &ApplicationName, channels: &[ChannelName], approval: bool) -> String {
    let mut text = format!("---\napplication:\n  name: {name}\n  releaseChannels:\n");
    for (at, channel) in channels.iter().enumerate() {
        text += &format!("  - name: {channel}\n    runtimes: [{{runtime: {name}}}]\n");
        let before = at.checked_sub(1).map(|before| &channels[before]);
        let is_approved = approval && at + 1 == channels.len();
        if before.is_none() && !is_approved {
            continue;
        }
        text += "    preconditions:\n";
        text += &before.map_or_else(String::new, |before| {
            format!("    - releaseChannelStable: {{releaseChannel: {before}}}\n")
        });
        if is_approved {
            text += "    - manualApproval: {name: review, everyAction: true}\n";
        }
    }
    text
}

/// A new file, with its directories; what is a script can be run.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
    file.write_all(text.as_bytes())?;
    if text.starts_with("#!") {
        let mode = file.metadata()?.permissions().mode();
        // For whoever may read it, as `chmod +x` does.
        file.set_permissions(Permissions::from_mode(mode | (mode & 0o444) >> 2))?;
    }
    Ok(())
}
