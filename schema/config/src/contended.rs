//! Services of a cloud, and states of Terraform and stacks of Pulumi, that several instances would
//! each make their own of, in turn and for ever: a release to one channel is then in the other's
//! service, whatever approvals that one asks for.
//! Told as warnings by `configs apply` and `validate`.

use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::estate::{Estate, instance, listed};
use crate::yaml::{self, NodeKind};
use crate::{
    Document, Env, GoogleCloudRunService, IacRunner, LocalFiles, PerReleaseChannel, ReleaseChannel,
    Runtime, RuntimeKind, Service, SpecFile,
};

/// How variables begin that only the configuration of Terraform reads.
const OF_CONFIGURATIONS: &str = "TF_VAR_";

/// How variables begin that say where Pulumi keeps its stacks.
const OF_PULUMI: &str = "PULUMI_";

/// How variables begin that say which account a command works in.
const OF_ACCOUNTS: [&str; 3] = ["AWS_", "CLOUDSDK_", "GOOGLE_"];

/// A service of a cloud, as far as documents say which one it is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CloudService {
    /// For people.
    name: String,
    /// Its place, for people.
    place: String,
    /// With whose rights it is reached: another account has another service of that name.
    account: String,
    /// The field that names it.
    field: &'static str,
    /// The way out.
    remedy: &'static str,
}

/// One warning for each service of a cloud that more than one instance names. What a template comes
/// to may well be another one for each.
pub(super) fn contended_services(estate: &Estate<'_>) -> Vec<Diagnostic> {
    // Each with the first document that names it.
    let mut named: BTreeMap<CloudService, (&Document, Vec<String>)> = BTreeMap::new();
    for (document, service) in &estate.services {
        let Some(application) = estate.applications.get(&service.application) else { continue };
        for (channel, runtime) in estate.of_channels(service, application) {
            let Some(runtime) = estate.runtimes.get(runtime) else { continue };
            if let Some(found) = named_by(document, service, channel, runtime.runtime) {
                let (_, instances) = named.entry(found).or_insert((document, Vec::new()));
                instances.push(instance(service, &channel.name));
            }
        }
    }
    let contended = named.into_iter().filter(|(_, (_, instances))| instances.len() > 1);
    contended
        .map(|(service, (document, instances))| {
            let message = format!(
                "{} {} is that of {}: each makes its own of it again and again, and a release of \
                 one is in the other's, whatever that one waits for",
                service.name,
                service.place,
                listed(&instances)
            );
            document.problem(service.field, message).help(service.remedy)
        })
        .collect()
}

/// The service that an instance names.
fn named_by(
    document: &Document,
    service: &Service,
    channel: &ReleaseChannel,
    runtime: &Runtime,
) -> Option<CloudService> {
    let own = service.per_release_channel.iter().find(|own| own.release_channel == channel.name);
    match &runtime.kind {
        RuntimeKind::AwsEcs(cluster) => {
            let blocks = [own.and_then(|own| own.aws_ecs.as_deref()), service.aws_ecs.as_deref()];
            let given =
                blocks.into_iter().find_map(|block| block?.ecs_service_name_override.as_ref());
            let definition =
                blocks.into_iter().flatten().find_map(|block| block.service_definition.as_ref());
            let defined = || match definition? {
                SpecFile::Inlined(text) => name_in(text, "/serviceName"),
                SpecFile::Local(local) => name_in(file(document, local)?, "/serviceName"),
            };
            let given = given.map(|given| given.as_str().to_owned()).or_else(defined);
            let name =
                constant(given.unwrap_or_else(|| format!("{}-{}", service.name, channel.name)))?;
            Some(CloudService {
                name: format!("the ECS service `{name}`"),
                place: format!("of the cluster `{}` in {}", cluster.ecs_cluster, cluster.region),
                account: account(service, own, &cluster.env, &cluster.credentials),
                field: "/service/awsEcs",
                remedy: "give each a name of its own: `ecsServiceNameOverride`, which may stand in \
                         `perReleaseChannel` and be a template",
            })
        }
        RuntimeKind::GoogleCloudRun(place) => {
            let blocks = [
                own.and_then(|own| own.google_cloud_run.as_deref()),
                service.google_cloud_run.as_deref(),
            ];
            let is_given =
                |block: &&GoogleCloudRunService| block.inlined.is_some() || block.local.is_some();
            let block = blocks.into_iter().flatten().find(is_given)?;
            let of_file = || file(document, block.local.as_ref()?);
            let written = block.inlined.as_deref().or_else(of_file)?;
            let name = constant(name_in(written, "/metadata/name")?)?;
            Some(CloudService {
                name: format!("the Cloud Run service `{name}`"),
                place: format!("of the project `{}` in {}", place.project, place.region),
                account: account(service, own, &place.env, &place.service_account_json),
                field: "/service/googleCloudRun",
                remedy: "give each a name of its own: a template in the document's \
                         `metadata.name`, or another document in `perReleaseChannel`",
            })
        }
        RuntimeKind::TerraformRunner(runner) => terraform(service, own, runner),
        RuntimeKind::PulumiRunner(runner) => pulumi(service, own, runner),
        _ => None,
    }
}

/// The state that an instance of Terraform works on.
fn terraform(
    service: &Service,
    own: Option<&PerReleaseChannel>,
    runner: &IacRunner,
) -> Option<CloudService> {
    let blocks = [own.and_then(|own| own.terraform.as_deref()), service.terraform.as_deref()];
    let said = || blocks.into_iter().flatten();
    let path = said().find_map(|block| block.path.as_ref());
    let image = said().find_map(|block| block.image.as_ref());
    let more = said().map(|block| &block.extra_init_args).find(|more| !more.is_empty());
    let mut backend = BTreeMap::new();
    for block in said().collect::<Vec<_>>().into_iter().rev() {
        backend.extend(&block.backend_config);
    }
    said().next()?;
    let is_of_it = |name: &str| !name.starts_with(OF_CONFIGURATIONS);
    Some(CloudService {
        name: format!("the Terraform state of `{}`", path.map_or(".", |path| path.as_str())),
        place: "with this `backendConfig`".to_owned(),
        account: of_runner(service, own, runner, &(path, image, more, backend), is_of_it)?,
        field: "/service/terraform",
        remedy: "give each a state of its own: a template in `backendConfig`, such as `key: \
                 {{.Builtins.ReleaseChannel.Name}}.tfstate`, or another `path`",
    })
}

/// The stack that an instance of Pulumi works on.
fn pulumi(
    service: &Service,
    own: Option<&PerReleaseChannel>,
    runner: &IacRunner,
) -> Option<CloudService> {
    let blocks = [own.and_then(|own| own.pulumi.as_deref()), service.pulumi.as_deref()];
    let said = || blocks.into_iter().flatten();
    let stack = said().find_map(|block| block.stack.as_ref())?;
    let path = said().find_map(|block| block.path.as_ref());
    let image = said().find_map(|block| block.image.as_ref());
    Some(CloudService {
        name: format!("the Pulumi stack `{}`", stack.as_str()),
        place: format!("of `{}`", path.map_or(".", |path| path.as_str())),
        account: of_runner(service, own, runner, &(stack, path, image), |name| {
            name.starts_with(OF_PULUMI) || is_of_account(name)
        })?,
        field: "/service/pulumi",
        remedy: "give each a stack of its own: a template in `stack`, or another one in \
                 `perReleaseChannel`",
    })
}

/// All that tells one state from another, in one text. `None` where that is open: by a template, or
/// by what `preRun` does.
fn of_runner(
    service: &Service,
    own: Option<&PerReleaseChannel>,
    runner: &IacRunner,
    said: &impl std::fmt::Debug,
    is_of_it: impl Fn(&str) -> bool,
) -> Option<String> {
    if !runner.pre_run.is_empty() {
        return None;
    }
    let place = (said, &runner.proxy_runtime);
    constant(variables(service, own, &runner.env, &place, is_of_it))
}

/// Variables and credentials that say where a name is looked up, in one text.
fn account(
    service: &Service,
    own: Option<&PerReleaseChannel>,
    of_runtime: &Env,
    credentials: &impl std::fmt::Debug,
) -> String {
    variables(service, own, of_runtime, credentials, is_of_account)
}

fn is_of_account(name: &str) -> bool {
    OF_ACCOUNTS.iter().any(|begin| name.starts_with(begin))
}

/// The variables that are meant, with what else there is, in one text.
fn variables(
    service: &Service,
    own: Option<&PerReleaseChannel>,
    of_runtime: &Env,
    more: &impl std::fmt::Debug,
    is_meant: impl Fn(&str) -> bool,
) -> String {
    let envs = [Some(of_runtime), Some(&service.env), own.map(|own| &own.env)];
    let variables: BTreeMap<_, _> =
        envs.into_iter().flatten().flatten().filter(|(name, _)| is_meant(name)).collect();
    format!("{more:?} {variables:?}")
}

/// A text, unless it is a template.
fn constant(text: String) -> Option<String> {
    (!text.contains("{{")).then_some(text)
}

/// The text of a definition's one file.
fn file<'a>(document: &'a Document, local: &'a LocalFiles) -> Option<&'a str> {
    match document.attached(local, None)[..] {
        [(_, text)] => Some(text),
        _ => None,
    }
}

/// The name that a definition gives.
fn name_in(text: &str, pointer: &str) -> Option<String> {
    let tree = yaml::parse(text).ok()??;
    let (node, _, found) = tree.nearest(pointer);
    match &node.kind {
        NodeKind::Scalar { text, .. } if found => Some(text.clone()),
        _ => None,
    }
}
