//! Channel groups, labels and selectors of an application.

use engine::desired::Gate;

use super::*;

const FLEET: &str = "
runtime:
  name: one
  labels: [{label: env, value: production}, {label: tier, value: startup}]
  fake: {}
---
runtime:
  name: two
  labels: [{label: env, value: production}, {label: tier, value: teams}]
  fake: {}
---
runtime:
  name: three
  labels: [{label: env, value: production}, {label: tier, value: free}]
  fake: {}
---
application:
  name: app
  releaseChannels: [{name: staging, group: early, runtimes: [{runtime: one}]}]
  releaseChannelGroups:
  - name: tenants
    runtimeSelector: env=production (tier=startup +tier=teams)
    template:
      labels: [{label: tenant, value: '{{.Builtins.Runtime.Name}}'}]
      constants: [{name: tier, string: {value: '{{.Builtins.Runtime.Labels.tier}}'}}]
      preconditions:
      - releaseChannelStable: {selector: '@group=early'}
      - manualApproval: {name: 'for {{.Builtins.Group}} {{.Builtins.Runtime.Labels.tier}}'}
";

fn channels_of(text: &str) -> Result<Vec<Channel>, Vec<Diagnostic>> {
    let configs = configs(text);
    let application = configs.applications().next().unwrap();
    super::super::channels(&configs, application)
}

/// What is wrong with the fleet's application after these changes.
fn check_problem(changes: &[(&str, &str)], expected: &str) {
    let problems = channels_of(&changed(FLEET, changes)).unwrap_err();
    assert_eq!(lines(&problems), [expected], "{changes:?}");
}

#[test]
fn a_template_names_the_runtime_of_its_channel() {
    let with = |runtimes: &str| {
        [("    template:\n", format!("    template:\n      runtimes: {runtimes}\n"))]
    };
    let connections = |runtimes: &str| -> Vec<_> {
        let changes = with(runtimes);
        let channels = channels_of(&changed(FLEET, &[(changes[0].0, &changes[0].1)])).unwrap();
        channels[1]
            .connections
            .iter()
            .map(|connection| format!("{} {}", connection.name, connection.runtime))
            .collect()
    };
    assert_eq!(
        connections("[{runtime: '{{.Builtins.Runtime.Name}}', type: LONG_LIVED}]"),
        ["one one"]
    );
    assert_eq!(
        connections(
            "[{runtime: '{{.Builtins.Runtime.Name}}', name: \
             'vm-{{.Builtins.Runtime.Labels.tier}}'}]"
        ),
        ["vm-startup one"]
    );
    let changes = with("[{runtime: three}]");
    let problems = channels_of(&changed(FLEET, &[(changes[0].0, &changes[0].1)])).unwrap_err();
    assert!(
        problems[0]
            .message
            .contains("`three` is not the runtime that this channel is made for, `one`"),
        "{:?}",
        lines(&problems)
    );
}

#[test]
fn a_group_makes_one_channel_for_each_runtime() {
    let channels = channels_of(FLEET).unwrap();
    let names: Vec<_> = channels.iter().map(|channel| channel.name.as_str()).collect();
    assert_eq!(names, ["staging", "tenants-one", "tenants-two"]);
    let one = &channels[1];
    assert_eq!(one.group.as_ref().map(|group| group.as_str()), Some("tenants"));
    assert_eq!(
        (
            one.connections.len(),
            one.connections[0].name.as_str(),
            one.connections[0].runtime.as_str()
        ),
        (1, "one", "one")
    );
    assert_eq!(one.labels["tenant"], "one");
    assert_eq!(one.constants, [("tier".to_owned(), "startup".to_owned())]);
    assert_eq!(one.gates[0], Gate::ChannelsStable { channels: vec!["staging".parse().unwrap()] });
    assert!(
        matches!(&channels[2].gates[1], Gate::ManualApproval { name: Some(name), .. } if name == "for tenants teams")
    );
}

#[test]
fn automatic_labels() {
    let mut configs = configs(FLEET);
    configs.set_runtime_id("one".parse().unwrap(), schema::id::RuntimeId::from_bytes([1; 16]));
    configs.set_channel_id(
        "app".parse().unwrap(),
        "staging".parse().unwrap(),
        schema::id::ChannelId::from_bytes([2; 16]),
    );
    let runtime = configs.runtime_labels(&"one".parse().unwrap());
    assert_eq!((runtime["@type"].as_str(), runtime["@name"].as_str()), ("fake", "one"));
    assert_eq!(runtime["@id"], "rtm-01010101010101010101010101010101");
    let channels =
        super::super::channels(&configs, configs.applications().next().unwrap()).unwrap();
    let labels = &channels[0].labels;
    assert_eq!(
        (labels["@name"].as_str(), labels["@group"].as_str(), labels["@application"].as_str()),
        ("staging", "early", "app")
    );
    assert_eq!(
        (labels["@type"].as_str(), labels["@id"].as_str()),
        (Channel::TYPE, "rch-02020202020202020202020202020202")
    );
}

#[test]
fn a_template_may_name_its_channels() {
    let named = changed(
        FLEET,
        &[("    template:\n", "    template:\n      name: 'for-{{.Builtins.Runtime.Name}}'\n")],
    );
    assert_eq!(channels_of(&named).unwrap()[1].name.as_str(), "for-one");
    check_problem(
        &[("    template:\n", "    template:\n      name: same\n")],
        "application.releaseChannelGroups[0]: two release channels are called `same`",
    );
}

#[test]
fn bad_input_selector_that_matches_nothing() {
    let expected = "application.releaseChannelGroups[0].runtimeSelector: the selector \
                    `env=nowhere` of group `tenants` matches no runtime";
    check_problem(&[("env=production (tier=startup +tier=teams)", "env=nowhere")], expected);
    let allowed =
        [("env=production (tier=startup +tier=teams)", "env=nowhere\n    allowEmpty: true")];
    assert_eq!(channels_of(&changed(FLEET, &allowed)).unwrap().len(), 1);
    let unknown = channels_of(&changed(
        FLEET,
        &[("env=production (tier=startup +tier=teams)", "envv=production")],
    ))
    .unwrap_err();
    assert!(
        unknown[0]
            .help
            .as_deref()
            .unwrap()
            .starts_with("no runtime has a label `envv`; the labels are `env`"),
        "{unknown:?}"
    );

    let place = "application.releaseChannelGroups[0].template.preconditions[0].\
                 releaseChannelStable.selector";
    check_problem(
        &[("@group=early", "@group=late")],
        &format!(
            "{place}: the selector `@group=late` matches no release channel of the application"
        ),
    );
    assert!(
        channels_of(&changed(FLEET, &[("'@group=early'", "'@group=late', allowEmpty: true")]))
            .is_ok()
    );
}

#[test]
fn a_malformed_selector_is_told_at_its_place() {
    let problems = channels_of(&changed(
        FLEET,
        &[("env=production (tier=startup +tier=teams)", "env=production (tier=startup")],
    ))
    .unwrap_err();
    assert!(lines(&problems)[0].starts_with(
        "application.releaseChannelGroups[0].runtimeSelector: malformed selector: `(` without its \
         `)`"
    ));
}

#[test]
fn bad_input_reference_to_nothing() {
    check_problem(
        &[("runtime: one", "runtime: won")],
        "application.releaseChannels[0].runtimes[0].runtime: unknown runtime `won`",
    );
    let place = "application.releaseChannelGroups[0].template.preconditions[0].\
                 releaseChannelStable.releaseChannel";
    check_problem(
        &[("selector: '@group=early'", "releaseChannel: stagin")],
        &format!("{place}: unknown release channel `stagin`"),
    );
    check_problem(
        &[("{{.Builtins.Runtime.Labels.tier}}'}}", "{{.Builtins.Runtime.Labels.tear}}'}}")],
        "application.releaseChannelGroups[0].template.constants[0].string.value: undefined name \
         `{{.Builtins.Runtime.Labels.tear}}`",
    );
}

#[test]
fn bad_input_cycle_is_named_in_order() {
    let changes = [(
        "group: early,",
        "group: early, preconditions: [{releaseChannelStable: {releaseChannel: tenants-two}}],",
    )];
    check_problem(
        &changes,
        "application.releaseChannels[0].preconditions: release channels wait for each other \
         without end: `staging` waits for `tenants-two` waits for `staging`",
    );
    let own = [(
        "group: early,",
        "group: early, preconditions: [{releaseChannelStable: {releaseChannel: staging}}],",
    )];
    check_problem(
        &own,
        "application.releaseChannels[0].preconditions: release channels wait for each other \
         without end: `staging` waits for `staging`",
    );
}

#[test]
fn bad_input_two_of_a_kind() {
    check_problem(
        &[("name: staging, group", "name: tenants-one, group")],
        "application.releaseChannelGroups[0]: two release channels are called `tenants-one`",
    );
}
