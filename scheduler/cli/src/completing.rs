//! Names of the scheduler's for the completion of a shell. They come from a file of the last
//! answer, so that a key press waits for nobody; one that has become old is made anew behind the
//! shell's back.
//!
//! What always holds: nothing is printed and nothing fails. Where names cannot be had there are
//! none.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap_complete::CompletionCandidate;
use schema::api::{ApplicationSummary, Runtime, ServiceSummary};

use crate::args::Global;
use crate::client::Client;
use crate::discover;
use crate::failure::Failure;

/// From when on what is kept is made anew: names seldom change while somebody types.
const FRESH_FOR: Duration = Duration::from_secs(60);

/// Longest wait for a scheduler where nothing is kept yet.
const FIRST_WITHIN: Duration = Duration::from_millis(1500);

/// Longest wait of whoever makes it anew: nobody waits for that.
const ANEW_WITHIN: Duration = Duration::from_secs(20);

/// Most services whose names are kept: more help nobody, and are read at each key press.
const MOST_SERVICES: usize = 20_000;

/// Most candidates that are told: a terminal shows no more.
const MOST_TOLD: usize = 200;

/// The argument by which this program is told to make the names anew. Of no command: nobody types
/// it.
pub const REFRESH: &str = "--refresh-names";

/// Services, `shop/web`.
pub fn services(begun: &OsStr) -> Vec<CompletionCandidate> {
    told("service", begun)
}

/// Services in a channel, `shop/web@eu`.
pub fn instances(begun: &OsStr) -> Vec<CompletionCandidate> {
    // First the services: with many channels each, nobody sees the end of a list of all.
    let is_far = begun.to_string_lossy().contains(['@', '/']);
    let mut told_first = if is_far { Vec::new() } else { told("service", begun) };
    told_first.extend(told("instance", begun));
    told_first.truncate(MOST_TOLD);
    told_first
}

pub fn applications(begun: &OsStr) -> Vec<CompletionCandidate> {
    told("application", begun)
}

pub fn channels(begun: &OsStr) -> Vec<CompletionCandidate> {
    told("channel", begun)
}

pub fn runtimes(begun: &OsStr) -> Vec<CompletionCandidate> {
    told("runtime", begun)
}

/// The names of a kind that begin so. A service is found by its own name, too.
fn told(kind: &str, begun: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy();
    let text = kept().unwrap_or_default();
    names(&text, kind, &begun).map(CompletionCandidate::new).take(MOST_TOLD).collect()
}

fn names<'a>(text: &'a str, kind: &str, begun: &str) -> impl Iterator<Item = &'a str> {
    let of_kind = move |line: &'a str| line.split_once('\t').filter(|(of, _)| *of == kind);
    text.lines()
        .filter_map(of_kind)
        .map(|(_, name)| name)
        .filter(move |name| name.starts_with(begun))
}

/// What is kept of the scheduler that is meant by what the environment says.
fn kept() -> Option<String> {
    let client = discover::client(&Global::of_environment()).ok()?;
    let path = path_for(client.server(), |name| std::env::var_os(name))?;
    let Ok(text) = fs::read_to_string(&path) else {
        return refreshed(&client, &path, FIRST_WITHIN);
    };
    let age = fs::metadata(&path).and_then(|about| about.modified()).ok()?.elapsed();
    // Of tomorrow it is too where the clock was set.
    if age.is_ok_and(|age| age > FRESH_FOR) {
        anew();
    }
    Some(text)
}

/// Where it is kept.
fn path_for(server: &str, environment: fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(set("HOME")?.join(".cache")))?;
    let file: String =
        server.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '_' }).collect();
    Some(cache.join("pvn").join(format!("names-{file}")))
}

/// Has another process make it anew, which outlives the key press.
fn anew() {
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = Command::new(program);
    command.arg(REFRESH).env_remove("COMPLETE").process_group(0);
    let _unstarted =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

/// Makes it anew: what a process does that was started for it.
pub fn refresh() {
    let Ok(client) = discover::client(&Global::of_environment()) else { return };
    if let Some(path) = path_for(client.server(), |name| std::env::var_os(name)) {
        refreshed(&client, &path, ANEW_WITHIN);
    }
}

fn refreshed(client: &Client, path: &Path, within: Duration) -> Option<String> {
    let directory = path.parent()?;
    DirBuilder::new().recursive(true).mode(0o700).create(directory).ok()?;
    // Whoever presses the key meanwhile asks for no other.
    if let Ok(file) = File::options().append(true).open(path) {
        let _unmarked = mark(&file);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let asked = runtime.block_on(async { tokio::time::timeout(within, ask(client)).await });
    let text = asked.ok()?.ok()?;
    let mut file = tempfile::NamedTempFile::new_in(directory).ok()?;
    file.write_all(text.as_bytes()).ok()?;
    file.persist(path).ok()?;
    Some(text)
}

/// Lets it look as if it were made just now.
fn mark(file: &File) -> std::io::Result<()> {
    let made = file.metadata()?.modified()?;
    let age = made.elapsed().map_err(std::io::Error::other)?;
    file.set_modified(made + age)
}

/// A line for each name: its kind, a tab, the name.
async fn ask(client: &Client) -> Result<String, Failure> {
    let services =
        client.list::<ServiceSummary>(&["v1", "services"], &[], Some(MOST_SERVICES)).await?.items;
    let applications =
        client.list::<ApplicationSummary>(&["v1", "applications"], &[], None).await?.items;
    let runtimes = client.list::<Runtime>(&["v1", "runtimes"], &[], None).await?.items;
    let mut lines = BTreeSet::new();
    for one in &services {
        let name = format!("{}/{}", one.application, one.name);
        for channel in &one.channels {
            lines.insert(format!("channel\t{}\n", channel.channel));
            lines.insert(format!("instance\t{name}@{}\n", channel.channel));
        }
        lines.insert(format!("service\t{name}\n"));
    }
    lines.extend(applications.iter().map(|one| format!("application\t{}\n", one.name)));
    lines.extend(runtimes.iter().map(|one| format!("runtime\t{}\n", one.name)));
    Ok(lines.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_their_kind_that_begin_so() {
        let text = "instance\tshop/web@eu\nservice\tshop/db\nservice\tshop/web\nbroken\n";
        let found = |kind: &str, begun: &str| names(text, kind, begun).collect::<Vec<_>>();
        assert_eq!(found("service", ""), ["shop/db", "shop/web"]);
        assert_eq!(found("service", "shop/w"), ["shop/web"]);
        assert_eq!(found("instance", "shop/web@"), ["shop/web@eu"]);
        assert!(found("service", "web").is_empty());
    }

    #[test]
    fn what_is_kept_of_one_server_is_not_taken_for_another() {
        let at = |server: &str| {
            path_for(server, |name| (name == "HOME").then(|| "/home/a".into()))
                .map(|path| path.display().to_string())
        };
        assert_eq!(
            at("https://pvn.example:1").as_deref(),
            Some("/home/a/.cache/pvn/names-https___pvn_example_1")
        );
        assert_ne!(at("https://pvn.example:1"), at("https://pvn.example:2"));
    }
}
