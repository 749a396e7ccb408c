//! Every command of the docs, run as it stands there: at the root of a fresh checkout, in the order
//! of its page, with nothing set that the page does not set. What cannot be run here stands in a
//! list with the reason; a new command in neither fails.

use tests::programs::repository;
use tests::reader::Reader;
use tests::skip;

use crate::tutorial;

mod clouds;

use clouds::{BUCKET, CLOUD_RUN, ECS, PULUMI};

/// A block of commands: its page, and how its first line begins.
type Block = (&'static str, &'static str);

/// What is not run here, and why.
const NOT_HERE: &[(Block, &str)] = &[
    (("README.md", "cargo test"), "it is what runs this"),
    (("docs/api.md", "job=\"$PVN_API_URL"), "run by the tests of delivery, as a job"),
    (("docs/kubernetes-benchmark.md", "tests/cluster/build"), "minutes of benchmark"),
    (
        ("docs/kubernetes.md", "kubectl create namespace"),
        "takes a cluster that pulls images; cluster_deploy does the same",
    ),
    (
        ("docs/kubernetes.md", "kubectl create rolebinding"),
        "takes a cluster; cluster_rights tries the rights",
    ),
    (
        ("docs/notifications.md", "echo https://hooks.slack.com"),
        "names an address of Slack; the scheduler's tests of notifications send to servers",
    ),
    (
        ("docs/operating.md", "pvn-scheduler prune"),
        "names the directories of an installation; run by `retention`",
    ),
    (
        ("docs/operating.md", "pvn-scheduler backup"),
        "names the directories of an installation; run by `backup`",
    ),
    (
        ("docs/operating.md", "pvn-scheduler restore"),
        "names the directories of an installation; run by `backup`",
    ),
    (
        ("images/README.md", "images/build-wrapper.sh\ndocker"),
        "takes an engine of images; the image is built by `wrapper`",
    ),
    (
        ("images/README.md", "images/build-wrapper.sh\ncd"),
        "takes what vendors publish; the images are built by `images`",
    ),
    (("images/README.md", "rustup target add"), "takes another target and its linker"),
    (
        ("images/README.md", "images/build-scheduler.sh"),
        "takes an engine of images and a release build of minutes",
    ),
    (("examples/kubernetes/README.md", "kubectl apply"), "takes a cluster; run by cluster_example"),
    (
        ("examples/kubernetes/README.md", "pvnctl get service"),
        "takes a cluster; run by cluster_example",
    ),
    (("examples/kubernetes/README.md", "pvnctl push"), "takes a cluster; run by cluster_example"),
    (("examples/wrapper/README.md", "docker build"), "takes an engine of containers"),
    (
        ("examples/bucket-gcs/README.md", "export BUCKET=example-assets\ntarget"),
        "takes a bucket of Google's; run by `buckets`",
    ),
    (
        ("examples/bucket-gcs/README.md", "export BUCKET=example-assets\necho"),
        "takes a bucket of Google's; run by `buckets`",
    ),
    (
        ("examples/cloud-build/README.md", "target/release/pvn-scheduler"),
        "takes a trigger of Google's; run by `cloud_build`",
    ),
    (
        ("examples/cloud-build/README.md", "gcloud builds triggers run"),
        "takes a trigger of Google's; run by `cloud_build`",
    ),
    (
        ("docs/operating.md", "images/build-packages.sh"),
        "a release build of minutes, and changes the machine; what it makes is tried by `packages`",
    ),
    (("CONTRIBUTING.md", "sudo apt-get"), "changes the machine"),
    (("CONTRIBUTING.md", "images/build-scheduler.sh"), "a release build of minutes"),
    (("CONTRIBUTING.md", "cargo bench"), "benchmarks take minutes each"),
];

/// What is run, by the tests below.
const HERE: &[Block] = &[
    FIRST_RUN,
    ASK,
    CHECK,
    WRAPPER,
    PRODVANA,
    WRAPPER_ALONE,
    BUCKET[0],
    BUCKET[1],
    CLOUD_RUN[0],
    CLOUD_RUN[1],
    ECS[0],
    ECS[1],
    PULUMI[0],
    PULUMI[1],
    PULUMI[2],
    CHANNELS[0],
    CHANNELS[1],
    QUICKSTART[0],
    QUICKSTART[1],
    QUICKSTART[2],
    STATIC[0],
    STATIC[1],
    STRUCTURED[0],
    STRUCTURED[1],
    TERRAFORM[0],
    TERRAFORM[1],
    TERRAFORM[2],
    TERRAFORM_RUNNER[0],
    TERRAFORM_RUNNER[1],
    TERRAFORM_RUNNER[2],
];
const FIRST_RUN: Block = ("README.md", "cargo build");
const ASK: Block = ("docs/api.md", "curl");
const CHECK: Block = ("docs/pvnctl.md", "pvnctl runtimes check");
const WRAPPER: Block = ("docs/wrapper.md", "pvn-wrapper exec");
const PRODVANA: Block = ("examples/prodvana/README.md", "target/release/pvnctl configs validate");
const WRAPPER_ALONE: Block = ("examples/wrapper/README.md", "./docker.sh");
const CHANNELS: [Block; 2] = [
    ("examples/channels/README.md", "target/release/pvn-scheduler"),
    ("examples/channels/README.md", "export"),
];
const QUICKSTART: [Block; 3] = [
    ("examples/quickstart/README.md", "target/release/pvn-scheduler dev examples/quickstart\n"),
    ("examples/quickstart/README.md", "echo oops"),
    (
        "examples/quickstart/README.md",
        "target/release/pvn-scheduler dev examples/quickstart --param",
    ),
];
const STATIC: [Block; 2] = [
    (
        "examples/static-assets/README.md",
        "target/release/pvn-scheduler dev examples/static-assets\n",
    ),
    (
        "examples/static-assets/README.md",
        "target/release/pvn-scheduler dev examples/static-assets --param",
    ),
];
const STRUCTURED: [Block; 2] = [
    ("examples/structured/README.md", "target/release/pvn-scheduler"),
    ("examples/structured/README.md", "kill"),
];
const TERRAFORM: [Block; 3] = [
    ("examples/terraform/README.md", "target/release/pvn-scheduler"),
    ("examples/terraform/README.md", "export"),
    ("examples/terraform/README.md", "echo 'somebody"),
];
const TERRAFORM_RUNNER: [Block; 3] = [
    ("examples/terraform-runner/README.md", "target/release/pvn-scheduler"),
    ("examples/terraform-runner/README.md", "export"),
    ("examples/terraform-runner/README.md", "echo 'somebody"),
];

/// All pages that people read, as paths below the checkout.
fn pages() -> Vec<String> {
    let below = |directory: &str, name: &str| {
        let entries =
            std::fs::read_dir(repository().join(directory)).expect("the checkout has it").flatten();
        let paths = entries
            .map(|entry| format!("{directory}/{}{name}", entry.file_name().to_string_lossy()));
        paths.filter(|path| repository().join(path).is_file()).collect::<Vec<_>>()
    };
    let fixed = ["README.md", "CONTRIBUTING.md", "images/README.md"].map(str::to_owned);
    let mut pages = [fixed.to_vec(), below("docs", ""), below("examples", "/README.md")].concat();
    pages.retain(|page| page.ends_with(".md"));
    pages.sort();
    pages
}

/// The blocks of commands of a page.
fn blocks(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(repository().join(page)).expect("a page can be read");
    let after_open = text.split("```sh\n").skip(1);
    after_open
        .map(|rest| rest.split("```").next().expect("a block has an end").to_owned())
        .collect()
}

/// The text of a block.
fn text(block: Block) -> String {
    let found: Vec<_> =
        blocks(block.0).into_iter().filter(|text| text.starts_with(block.1)).collect();
    assert_eq!(found.len(), 1, "{block:?} names one block");
    found.into_iter().next().expect("there is one")
}

/// The same to run in the background, with what it prints in the file `log`.
fn background(block: Block) -> String {
    format!("{{ {}; }} >log 2>&1 &\nrunning=$!\n", text(block).trim_end())
}

#[test]
fn every_command_of_the_docs_is_run_or_has_a_reason_not_to_be() {
    let known: Vec<Block> =
        HERE.iter().copied().chain(NOT_HERE.iter().map(|(block, _)| *block)).collect();
    for page in pages().into_iter().filter(|page| page != tutorial::PAGE) {
        for text in blocks(&page) {
            let named =
                known.iter().filter(|(of, begins)| *of == page && text.starts_with(begins)).count();
            assert_eq!(
                named, 1,
                "{page}: add this to what is run, or to what is not with the reason:\n{text}"
            );
        }
    }
    known.into_iter().for_each(|block| drop(text(block)));
}

/// Runs a script of blocks and what a reader would wait for between them.
fn check(test: &str, script: &str) -> Option<String> {
    Some(Reader::checkout(test)?.succeeds(script))
}

/// Until the log of what runs in the background says this.
fn says(what: &str) -> String {
    format!("until_it 'grep -q \"{what}\" log'\n")
}

/// Ends what runs in the background as Ctrl-C does; that is an ordinary end.
const INTERRUPT: &str = "interrupt_it pvn-scheduler\nwait \"$running\"\n";

/// The same on a terminal, where somebody says yes to what is asked.
fn agreed(block: Block) -> String {
    format!(
        "cat >agreed.sh <<'END'\nset -e\n{}END\necho y | script --quiet --return --command 'sh \
         agreed.sh' /dev/null\n",
        text(block)
    )
}

#[test]
fn the_first_run_of_the_readme() {
    // The build is what the reader waits for; here it is done.
    let run =
        format!("cargo() {{ :; }}\n{}{}{INTERRUPT}", background(FIRST_RUN), says("CONVERGED"));
    check("the_first_run_of_the_readme", &run);
}

#[test]
fn the_quickstart() {
    let [start, break_it, again] = QUICKSTART;
    let script = format!(
        "{}{}{}until_it 'cmp -s examples/quickstart/site/index.html \
         examples/quickstart/wanted/index.html && [ -e examples/quickstart/site/robots.txt \
         ]'\n{INTERRUPT}{}until_it 'grep -q \"good morning\" \
         examples/quickstart/site/greeting.txt'\n{INTERRUPT}",
        background(start),
        says("CONVERGED"),
        text(break_it),
        background(again)
    );
    check("the_quickstart", &script);
}

#[test]
fn the_example_of_channels() {
    let script = format!(
        "{}until_it 'PVN_DATA_DIR=examples/channels/.pvn target/release/pvnctl services get \
         frontend --app shop 2>/dev/null | grep -q WAITING_MANUAL'\n{}until_it '[ -e \
         examples/channels/deployed/production ]'\n",
        background(CHANNELS[0]),
        agreed(CHANNELS[1])
    );
    check("the_example_of_channels", &script);
}

#[test]
fn the_example_of_static_assets() {
    let folder = "examples/static-assets/public/revision.txt";
    let script = format!(
        "{}until_it 'grep -q first {folder}'\n{INTERRUPT}{}until_it 'grep -q second \
         {folder}'\n{INTERRUPT}",
        background(STATIC[0]),
        background(STATIC[1])
    );
    check("the_example_of_static_assets", &script);
}

#[test]
fn the_example_of_structured_output() {
    let script = format!(
        "{}{}first=$(cat examples/structured/run/here/web.1)\n{}until_it '[ \"$(cat \
         examples/structured/run/here/web.1)\" != \"$first\" ]'\n",
        background(STRUCTURED[0]),
        says("CONVERGED"),
        text(STRUCTURED[1])
    );
    check("the_example_of_structured_output", &script);
}

/// The commands of an example of Terraform; after drift people are asked once more than these
/// times.
fn of_terraform(test: &str, blocks: [Block; 3], asked: usize) {
    if skip::tool("terraform").or_else(|| skip::tool("tofu")).is_none() {
        return skip::skipped(test, "neither terraform nor tofu is on PATH");
    }
    let waits = says("services approve");
    let script = format!(
        "{}{waits}{}{}{}until_it '[ \"$(grep -c \"services approve\" log)\" -gt {asked} ]'\n",
        background(blocks[0]),
        agreed(blocks[1]),
        says("CONVERGED"),
        text(blocks[2]),
    );
    check(test, &script);
}

#[test]
fn the_example_of_terraform() {
    of_terraform("the_example_of_terraform", TERRAFORM, 1);
}

#[test]
fn the_example_of_terraform_as_a_built_in_runtime() {
    of_terraform("the_example_of_terraform_as_a_built_in_runtime", TERRAFORM_RUNNER, 2);
}

#[test]
fn the_commands_of_the_pages_about_the_api_and_the_client() {
    let test = "the_commands_of_the_pages_about_the_api_and_the_client";
    if skip::tool("curl").is_none() {
        return skip::skipped(test, "there is no `curl`");
    }
    let config = "runtime: {name: my-tool, custom: {proxyRuntime: {runtime: local}, apply: \
                  {taskConfig: {program: {cmd: [\"true\"]}}}}}";
    let script = format!(
        "PATH=$PWD/target/release:$PATH\npvn-scheduler serve >log 2>&1 &\nuntil_it 'pvnctl \
         runtimes list >/dev/null 2>&1'\necho '{config}' >tool.pvn.yaml\npvnctl configs apply \
         --no-prompt tool.pvn.yaml\n{}{}",
        text(ASK),
        text(CHECK)
    );
    if let Some(said) = check(test, &script) {
        assert!(said.contains("\"items\""), "{said}");
    }
}

#[test]
fn the_commands_of_the_pages_about_the_wrapper_and_the_format() {
    let test = "the_commands_of_the_pages_about_the_wrapper_and_the_format";
    let script = format!(
        "PATH=$PWD/target/release:$PATH\nset +e\n{}set -e\n{}cd examples/wrapper\n{}",
        text(WRAPPER),
        text(PRODVANA),
        text(WRAPPER_ALONE)
    );
    if let Some(said) = check(test, &script) {
        assert!(said.contains("ended with 3"), "{said}");
    }
}
