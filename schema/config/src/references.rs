//! What documents say about each other, as far as the other document is among those given, and what
//! their templates and selectors say: for `pvnctl configs validate`, which asks no server. What
//! needs all documents in force (what a selector matches, what a template comes to) is the
//! compiler's.

mod values;

use std::collections::{BTreeMap, BTreeSet};

use schema::check::{nearest, quoted};
use schema::id::{ApplicationName, RuntimeName};

use crate::diagnostic::Diagnostic;
use crate::precondition::StableChannels;
use crate::texts;
use crate::{
    Application, Body, Document, Exec, JobHost, NotHere, PerReleaseChannel, Runtime,
    RuntimeCommand, RuntimeRole, Service, not_here, untaken_blocks,
};

/// The runtime that every scheduler has.
const BUILT_IN_RUNTIME: &str = "local";

/// Most names that a message lists.
const LISTED_NAMES: usize = 24;

/// Every reference among the documents that leads nowhere, every cycle of channels, and values for
/// parameters that a runtime does not have, and malformed templates and selectors. A document that
/// is not there is not missed: the scheduler may have it.
pub fn check_references(documents: &[Document]) -> Vec<Diagnostic> {
    let mut given = GivenDocuments::default();
    for document in documents {
        match document.body() {
            Body::Runtime(runtime) => drop(given.runtimes.insert(&runtime.name, runtime)),
            Body::Application(application) => {
                given.applications.insert(&application.name, application);
            }
            Body::Service(_) => {}
        }
    }
    let mut problems = Vec::new();
    for document in documents {
        let mut found = match document.body() {
            Body::Runtime(runtime) => given.check_runtime(document, runtime),
            Body::Application(application) => check_application(document, application),
            Body::Service(service) => given.check_service(document, service),
        };
        found.extend(texts::check(document));
        found.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
        problems.extend(found);
    }
    problems
}

#[derive(Default)]
struct GivenDocuments<'a> {
    runtimes: BTreeMap<&'a RuntimeName, &'a Runtime>,
    applications: BTreeMap<&'a ApplicationName, &'a Application>,
}

impl GivenDocuments<'_> {
    /// A name that is taken, a place that runs no jobs, and what the commands of a runtime ask for
    /// and cannot have on the scheduler's machine, where it is known that they run there.
    fn check_runtime(&self, document: &Document, runtime: &Runtime) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let role = runtime.role();
        if runtime.name.as_str() == BUILT_IN_RUNTIME
            && !matches!(role.host, Some(JobHost::Local(_)))
        {
            let message =
                format!("runtime `{BUILT_IN_RUNTIME}` is built in and runs processes here");
            let help =
                "choose another name; `local: {root: DIR}` may change where its commands run";
            problems.push(document.problem("/runtime/name", message).help(help));
        }
        let Some(commands) = role.commands else { return problems };
        let custom = commands.custom();
        let proxy = &custom.proxy_runtime.runtime;
        let of_proxy = self.runtimes.get(proxy).map(|runtime| runtime.role());
        if let Some(RuntimeRole { kind, commands: Some(_), .. }) = of_proxy {
            let message = format!(
                "runtime `{proxy}` is of kind `{kind}`, which cannot run the jobs of another"
            );
            let help = "name `local`, a `fake` runtime or a Kubernetes runtime";
            problems.push(
                document.problem(&commands.pointer("proxyRuntime/runtime"), message).help(help),
            );
            return problems;
        }
        let is_here = match of_proxy {
            Some(role) => matches!(role.host, Some(JobHost::Local(_))),
            None => proxy.as_str() == BUILT_IN_RUNTIME,
        };
        if !is_here {
            return problems;
        }
        for RuntimeCommand { name, exec, .. } in custom.commands() {
            let Exec::Task(task) = exec else { continue };
            let told = not_here(task, false).into_iter().map(|NotHere { field, message, help }| {
                document
                    .problem(
                        &commands.pointer(&format!("{name}/taskConfig/{}", field.join("/"))),
                        message,
                    )
                    .help(help)
            });
            problems.extend(told);
        }
        problems
    }
}

fn unknown(
    document: &Document,
    pointer: &str,
    what: &str,
    name: &str,
    known: &[&str],
) -> Diagnostic {
    let problem = document.problem(pointer, format!("unknown {what} `{name}`"));
    match nearest(name, known) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => problem.help("there is none"),
        None if known.len() > LISTED_NAMES => problem,
        None => problem.help(format!("there are: {}", quoted(known))),
    }
}

/// The names of an application's channels. Those that a group makes are known only with all
/// runtimes.
fn has_channel(application: &Application, name: &str) -> bool {
    let is_of_group = |group: &crate::ChannelGroup| {
        let has_own_name = group.template.as_ref().is_some_and(|template| template.name.is_some());
        has_own_name
            || name.strip_prefix(group.name.as_str()).is_some_and(|rest| rest.starts_with('-'))
    };
    application.release_channels.iter().any(|channel| channel.name.as_str() == name)
        || application.release_channel_groups.iter().any(is_of_group)
}

fn channel_names(application: &Application) -> Vec<&str> {
    application.release_channels.iter().map(|channel| channel.name.as_str()).collect()
}

fn check_application(document: &Document, application: &Application) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let mut after: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    for (index, channel) in application.release_channels.iter().enumerate() {
        for (number, precondition) in channel.preconditions.iter().enumerate() {
            let Some((field, StableChannels::ReleaseChannel(name))) = precondition.channels()
            else {
                continue;
            };
            let pointer = format!(
                "/application/releaseChannels/{index}/preconditions/{number}/{}/{field}",
                precondition.field()
            );
            if !has_channel(application, name) {
                problems.push(unknown(
                    document,
                    &pointer,
                    "release channel",
                    name,
                    &channel_names(application),
                ));
            }
            after.entry(channel.name.as_str()).or_default().push((name, pointer));
        }
    }
    problems.extend(cycles(&after).into_iter().map(|(pointer, path)| {
        document
            .problem(&pointer, format!("release channels wait for each other: {path}"))
            .help("take out one of these preconditions")
    }));
    problems
}

/// One problem for each cycle: where it closes, and the way around.
fn cycles(after: &BTreeMap<&str, Vec<(&str, String)>>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut done = BTreeSet::new();
    for start in after.keys() {
        // The way from `start` to here, each step with the number of its next precondition. A stack
        // of its own: names are the user's.
        let mut way: Vec<(&str, usize)> = vec![(start, 0)];
        while let Some((name, next)) = way.last_mut() {
            let name = *name;
            let Some((before, pointer)) =
                after.get(name).filter(|_| !done.contains(name)).and_then(|all| all.get(*next))
            else {
                done.insert(name);
                way.pop();
                continue;
            };
            *next += 1;
            if let Some(from) = way.iter().position(|(name, _)| name == before) {
                let mut path: Vec<String> =
                    way[from..].iter().map(|(name, _)| format!("`{name}`")).collect();
                path.push(format!("`{before}`"));
                found.push((pointer.clone(), path.join(" after ")));
            } else {
                way.push((before, 0));
            }
        }
    }
    found
}

impl GivenDocuments<'_> {
    /// Whether a service can stand on the runtime, as far as one can know.
    fn may_run_commands(&self, name: &RuntimeName) -> bool {
        let host = self.runtimes.get(name).and_then(|runtime| runtime.role().host);
        name.as_str() != BUILT_IN_RUNTIME
            && !matches!(host, Some(JobHost::Kubernetes(_) | JobHost::Local(_)))
    }

    fn check_service(&self, document: &Document, service: &Service) -> Vec<Diagnostic> {
        let untaken = untaken_blocks(service).into_iter();
        let mut problems: Vec<_> = untaken
            .map(|block| document.problem(&block.pointer(), block.message()).help(block.help()))
            .collect();
        let Some(application) = self.applications.get(&service.application) else {
            return problems;
        };
        for (index, own) in service.per_release_channel.iter().enumerate() {
            if !has_channel(application, own.release_channel.as_str()) {
                let pointer = format!("/service/perReleaseChannel/{index}/releaseChannel");
                let known = channel_names(application);
                problems.push(unknown(
                    document,
                    &pointer,
                    "release channel",
                    own.release_channel.as_str(),
                    &known,
                ));
            }
        }
        for channel in &application.release_channels {
            let own = service
                .per_release_channel
                .iter()
                .position(|own| own.release_channel == channel.name);
            let own = own.and_then(|index| Some((index, service.per_release_channel.get(index)?)));
            self.check_channel(document, service, channel, own, &mut problems);
        }
        let mut told = BTreeSet::new();
        problems.retain(|problem| told.insert((problem.path.clone(), problem.message.clone())));
        problems
    }

    fn check_channel(
        &self,
        document: &Document,
        service: &Service,
        channel: &crate::ReleaseChannel,
        own: Option<(usize, &PerReleaseChannel)>,
        problems: &mut Vec<Diagnostic>,
    ) {
        let runtime = self.runtime_in(document, service, channel, own, problems);
        let Some(runtime) = runtime.and_then(|entry| self.runtimes.get(&entry.runtime)) else {
            return;
        };
        if let Some(commands) = runtime.role().commands {
            let given = values::ServiceValues { document, service, channel, own };
            given.check(runtime.name.as_str(), &commands, problems);
        }
    }

    /// The entry of the channel that the service runs on there; `None` where nobody can tell, which
    /// is a problem unless what would tell is not among these files.
    fn runtime_in<'c>(
        &self,
        document: &Document,
        service: &Service,
        channel: &'c crate::ReleaseChannel,
        own: Option<(usize, &PerReleaseChannel)>,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<&'c crate::ChannelRuntime> {
        let wanted = own
            .and_then(|(index, own)| {
                Some((
                    own.runtime_connection.as_ref()?,
                    format!("/service/perReleaseChannel/{index}/runtimeConnection"),
                ))
            })
            .or_else(|| {
                Some((
                    service.runtime_connection.as_ref()?,
                    "/service/runtimeConnection".to_owned(),
                ))
            });
        let name_of = |entry: &crate::ChannelRuntime| {
            entry.name.as_ref().map_or(entry.runtime.as_str(), |name| name.as_str()).to_owned()
        };
        let names: Vec<String> = channel.runtimes.iter().map(name_of).collect();
        match (&wanted, channel.runtimes.as_slice()) {
            (Some((wanted, pointer)), runtimes) => {
                let found = runtimes.iter().find(|entry| name_of(entry) == wanted.as_str());
                if found.is_none() {
                    let known: Vec<&str> = names.iter().map(String::as_str).collect();
                    let what = format!("runtime connection in channel `{}`:", channel.name);
                    problems.push(unknown(document, pointer, &what, wanted.as_str(), &known));
                }
                found
            }
            (None, [only]) => Some(only),
            (None, runtimes) => {
                let fitting: Vec<_> =
                    runtimes.iter().filter(|entry| self.may_run_commands(&entry.runtime)).collect();
                if fitting.len() > 1
                    && fitting.iter().all(|entry| self.runtimes.contains_key(&entry.runtime))
                {
                    let message = format!(
                        "release channel `{}` has {} runtimes and the service names none",
                        channel.name,
                        names.len()
                    );
                    let known: Vec<&str> = names.iter().map(String::as_str).collect();
                    let help = format!("set `runtimeConnection` to one of {}", quoted(&known));
                    problems.push(document.problem("/service", message).help(help));
                }
                match fitting.as_slice() {
                    [only] => Some(*only),
                    _ => None,
                }
            }
        }
    }
}
