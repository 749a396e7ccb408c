//! All problems of all documents in force, in one go: run when configs are applied, before anything
//! is stored. What a single document says wrongly about itself the reader has told already.

use std::collections::{BTreeMap, BTreeSet};

use config::{CustomRuntime, JobHost, Runtime, RuntimeRole, Service, builtins, untaken_blocks};
use schema::id::ApplicationName;

use super::channels::{self, Channel};
use super::commands::{Maker, render_text};
use super::configs::{BUILT_IN_RUNTIME, Configs};
use super::instance::ServiceInChannel;
use super::parameters;
use super::problem::{DocumentField, DocumentKey, Problems};
use super::template::{TemplateScope, Value};
use super::value::Seal;
use super::{Options, nearest};

/// Checking has no use for sealed texts.
pub(super) struct NoSeal;

impl Seal for NoSeal {
    fn seal(&self, _: &str) -> String {
        String::new()
    }
}

/// Every problem. With `changed`, services that neither changed nor depend on anything that did are
/// taken as checked.
pub(super) fn check(
    configs: &Configs,
    options: &Options,
    changed: Option<&BTreeSet<DocumentKey>>,
) -> Problems {
    let only_services = changed
        .is_some_and(|changed| changed.iter().all(|key| matches!(key, DocumentKey::Service(..))));
    let wanted =
        |key: &DocumentKey| !only_services || changed.is_some_and(|changed| changed.contains(key));
    let mut problems = Problems::default();
    let mut channels: BTreeMap<ApplicationName, Vec<Channel>> = BTreeMap::new();
    for runtime in configs.runtimes() {
        check_runtime(configs, options, runtime, &mut problems);
    }
    for application in configs.applications() {
        let found = channels::resolve(configs, application, &mut problems);
        channels.insert(application.name.clone(), found);
    }
    for service in configs.services() {
        let key = DocumentKey::Service(service.application.clone(), service.name.clone());
        if wanted(&key) {
            check_service(
                configs,
                options,
                service,
                channels.get(&service.application).map(Vec::as_slice),
                &mut problems,
            );
        }
    }
    problems
}

fn check_runtime(configs: &Configs, options: &Options, runtime: &Runtime, problems: &mut Problems) {
    let place = DocumentField::of(DocumentKey::Runtime(runtime.name.clone()));
    let RuntimeRole { kind, commands, host } = runtime.role();
    if runtime.name.as_str() == BUILT_IN_RUNTIME && !matches!(host, Some(JobHost::Local(_))) {
        let problem = place
            .field("name")
            .problem(format!("runtime `{BUILT_IN_RUNTIME}` is built in and runs processes here"));
        problems.add(
            problem.help(
                "choose another name; `local: {root: DIR}` may change where its commands run",
            ),
        );
    }
    if let Some(commands) = commands {
        check_commands(configs, options, runtime, commands.custom(), &place.field(kind), problems);
    }
}

/// What can be said of a runtime's commands before any service uses them.
fn check_commands(
    configs: &Configs,
    options: &Options,
    runtime: &Runtime,
    custom: &CustomRuntime,
    place: &DocumentField,
    problems: &mut Problems,
) {
    parameters::check_definitions(&custom.parameters, &place.field("parameters"), problems);
    let mut scope = TemplateScope::default();
    parameters::insert_unknown(&mut scope, &custom.parameters);
    scope.leave_open(builtins::CONSTANTS);
    for name in builtins::OF_A_RELEASE {
        scope.insert(name, Value::Unknown);
    }
    channels::add_runtime_builtins(
        &mut scope,
        &runtime.name,
        &configs.runtime_labels(&runtime.name),
    );
    Maker { configs, options, seal: &NoSeal, scope: &scope, layers: &[] }
        .commands(custom, place, problems);
    if let Some(text) = &custom.apply_id {
        render_text(text, &scope, &place.field("applyId"), problems);
    }
}

fn check_service(
    configs: &Configs,
    options: &Options,
    service: &Service,
    channels: Option<&[Channel]>,
    problems: &mut Problems,
) {
    let key = DocumentKey::Service(service.application.clone(), service.name.clone());
    let place = DocumentField::of(key.clone());
    parameters::check_definitions(&service.parameters, &place.field("parameters"), problems);
    check_unsupported(service, &place, problems);
    check_bundle_name(service, &place, problems);
    let Some(channels) = channels else {
        let problem = place
            .field("application")
            .problem(format!("unknown application `{}`", service.application));
        return problems.add(problem.help(nearest::help(
            service.application.as_str(),
            "applications",
            configs.application_names(),
        )));
    };
    check_own_entries(service, channels, &place, problems);
    for channel in channels {
        problems.set_subject(key.clone(), format!("for {key} in channel `{}`", channel.name));
        ServiceInChannel { configs, options, seal: &NoSeal, service, channel, release: None }
            .compile(problems);
    }
    problems.clear_subject();
}

fn check_unsupported(service: &Service, place: &DocumentField, problems: &mut Problems) {
    for block in untaken_blocks(service) {
        let place = match block.channel {
            Some(index) => place.field("perReleaseChannel").item(index).field(block.field),
            None => place.field(block.field),
        };
        problems.add(place.problem(block.message()).help(block.help()));
    }
}

fn check_bundle_name(service: &Service, place: &DocumentField, problems: &mut Problems) {
    let Some(text) = &service.bundle_name else { return };
    let mut scope = super::release::bundle_scope(service);
    parameters::insert_unknown(&mut scope, &service.parameters);
    render_text(text, &scope, &place.field("bundleName"), problems);
}

fn check_own_entries(
    service: &Service,
    channels: &[Channel],
    place: &DocumentField,
    problems: &mut Problems,
) {
    for (index, own) in service.per_release_channel.iter().enumerate() {
        let place = place.field("perReleaseChannel").item(index);
        let name = &own.release_channel;
        if !channels.iter().any(|channel| channel.name == *name) {
            let names = channels.iter().map(|channel| channel.name.as_str());
            let problem =
                place.field("releaseChannel").problem(format!("unknown release channel `{name}`"));
            problems.add(problem.help(nearest::help(name.as_str(), "channels", names)));
        }
    }
}
