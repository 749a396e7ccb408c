//! Parameters of services and runtimes, constants and builtins.

mod bundle_name;
mod empty;

use super::*;

/// What the runtime's `x` is when the service has these parameters, gives these values, and the
/// release has these.
fn check(parameters: &str, values: &str, params: &str, expected: &str) {
    let text = changed(
        SMALL,
        &[(
            "  application: app\n",
            &format!(
                "  application: app\n  parameters: {parameters}\n  customRuntime: \
                 {{parameterValues: {values}}}\n"
            ),
        )],
    );
    let found = match compiled(&text, "staging", params) {
        Ok(instance) => instance.commands.apply.argv[1].clone(),
        Err(problems) => lines(&problems).join("\n"),
    };
    assert_eq!(found, expected, "{parameters} {values} {params}");
}

const STRING: &str = "[{name: p, string: {}}]";
const FROM_P: &str = "[{name: x, string: '<{{.Params.p}}>'}]";

#[test]
fn a_release_fills_the_service_and_the_service_fills_the_runtime() {
    check(STRING, FROM_P, "p=1", "<1>");
    check("[{name: p, string: {defaultValue: d}}]", FROM_P, "", "<d>");
    check("[{name: p, string: {defaultValue: d}}]", FROM_P, "p=1", "<1>");
    check("[{name: p, int: {defaultValue: 3}}]", FROM_P, "", "<3>");
    check("[{name: p, int: {}}]", FROM_P, "p=-7", "<-7>");
    check("[{name: p, commit: {repository: r}}]", FROM_P, "p=abc", "<abc>");
    check("[{name: p, blob: {}}]", FROM_P, "p=text", "<text>");
    check(
        "[{name: my-param, string: {}}]",
        "[{name: x, string: '{{.Params.my-param}}'}]",
        "my-param=1",
        "1",
    );
}

#[test]
fn no_value_no_default_not_required_is_empty_or_zero() {
    check(STRING, FROM_P, "", "<>");
    check("[{name: p, int: {}}]", FROM_P, "", "<0>");
    check("[{name: p, dockerImage: {}}]", FROM_P, "", "<>");
    check("[{name: p, commit: {repository: r}}]", FROM_P, "", "<>");
    check("[]", "[]", "", "fallback");
}

#[test]
fn required_and_missing_refuses_the_release() {
    let expected = "params.p: parameter `p` is required and has no value";
    check("[{name: p, required: true, string: {}}]", FROM_P, "", expected);
    check("[{name: p, required: true, string: {defaultValue: d}}]", FROM_P, "", "<d>");
    let described = "[{name: p, description: the tag, required: true, string: {}}]";
    check(described, FROM_P, "", "params.p: parameter `p` (the tag) is required and has no value");
}

#[test]
fn a_value_of_another_type_is_refused() {
    check(
        "[{name: p, int: {}}]",
        FROM_P,
        "p=abc",
        "params.p: parameter `p`: `abc` is not a whole number of 64 bits",
    );
    check(
        "[{name: p, int: {}}]",
        FROM_P,
        "p=1.5",
        "params.p: parameter `p`: `1.5` is not a whole number of 64 bits",
    );
    check(
        STRING,
        FROM_P,
        "p=a\0b",
        "params.p: parameter `p`: the value holds a NUL character, which no command can be given",
    );
    let image = "[{name: p, dockerImage: {}}]";
    assert!(
        lines(
            &compiled(
                &changed(
                    SMALL,
                    &[(
                        "  application: app\n",
                        &format!("  application: app\n  parameters: {image}\n")
                    )]
                ),
                "staging",
                "p=a/b"
            )
            .unwrap_err()
        )[0]
        .contains("`a/b` is not a tag of an image")
    );
}

#[test]
fn an_image_is_its_full_reference_and_its_tag() {
    let image = "[{name: p, dockerImage: {defaultTag: v1, imageRegistryInfo: {containerRegistry: \
                 ghcr.io, imageRepository: o/n}}}]";
    let both = "[{name: x, string: '{{.Params.p}} {{ .Params.p.Tag }}'}]";
    check(image, both, "", "ghcr.io/o/n:v1 v1");
    check(image, both, "p=v2", "ghcr.io/o/n:v2 v2");
    let digest = format!("sha256:{}", "a".repeat(64));
    check(image, both, &format!("p={digest}"), &format!("ghcr.io/o/n@{digest} {digest}"));
}

#[test]
fn unknown_parameter_names_the_nearest() {
    check(STRING, "[]", "q=1", "params.q: service `svc` has no parameter `q`");
    check(STRING, "[]", "prod:p=1", "paramsForChannel.prod: unknown release channel `prod`");
    let text = changed(
        SMALL,
        &[(
            "  application: app\n",
            "  application: app\n  parameters: [{name: colour, string: {}}]\n",
        )],
    );
    let problems = compiled(&text, "staging", "color=1").unwrap_err();
    assert_eq!(problems[0].help.as_deref(), Some("the parameters are `colour`"));
}

#[test]
fn values_for_one_channel_win() {
    check(STRING, FROM_P, "p=1 staging:p=2", "<2>");
}

#[test]
fn a_runtime_takes_only_what_it_declares() {
    let undeclared =
        "service.customRuntime.parameterValues[0].name: runtime `tool` has no parameter `y`";
    check("[]", "[{name: y, string: a}]", "", undeclared);
    check("[]", "[{name: x, int: 5}]", "", "5");
    let wrong = "service.customRuntime.parameterValues[0]: parameter `x` of runtime `tool` is of \
                 type string, not secret";
    check("[]", "[{name: x, secret: {rawSecret: s}}]", "", wrong);
    let wrong = "service.customRuntime.parameterValues[0]: parameter `x` of runtime `tool` is of \
                 type string, not commit";
    check("[]", "[{name: x, commit: c}]", "", wrong);
}

#[test]
fn a_value_is_inserted_verbatim_and_never_rendered_again() {
    check(STRING, FROM_P, "p={{.Params.x}}", "<{{.Params.x}}>");
    check(STRING, FROM_P, "p={{", "<{{>");
}

#[test]
fn builtins_and_constants_are_seen_on_both_sides() {
    let names = "{{.Builtins.Application.Name}} {{.Builtins.Service.Name}} \
                 {{.Builtins.ReleaseChannel.Name}} {{.Builtins.Runtime.Name}} \
                 {{.Builtins.Runtime.Labels.env}} {{.Builtins.Service.Version}} {{.Constants.c}}";
    let constants = (
        "  application: app\n",
        "  application: app\n  constants: [{name: c, string: {value: k}}]\n",
    );
    let text = changed(SMALL, &[("{{.Params.x}}", names), constants]);
    assert_eq!(
        compiled(&text, "staging", "").unwrap().commands.apply.argv[1],
        "app svc staging tool test svc-1 k"
    );
}

#[test]
fn constants_of_the_service_win_over_the_channels_and_those_for_one_channel_over_both() {
    let channel = (
        "{name: staging,",
        "{name: staging, constants: [{name: a, string: {value: 1}}, {name: b, string: {value: \
         1}}, {name: c, string: {value: 1}}],",
    );
    let service = (
        "  application: app\n",
        "  application: app
  constants: [{name: b, string: {value: 2}}, {name: c, string: {value: 2}}]
  perReleaseChannel: [{releaseChannel: staging, constants: [{name: c, string: {value: 3}}]}]\n",
    );
    let text = changed(
        SMALL,
        &[("{{.Params.x}}", "{{.Constants.a}}{{.Constants.b}}{{.Constants.c}}"), channel, service],
    );
    assert_eq!(compiled(&text, "staging", "").unwrap().commands.apply.argv[1], "123");
}

/// The runtime's `x` and `y` when the service says `top` and, for the channel, `own`.
fn check_merge(top: &str, own: &str, expected: &str) {
    let text = changed(
        SMALL,
        &[
            ("'{{.Params.x}}'", "'{{.Params.x}}{{.Params.y}}'"),
            ("parameters: [", "parameters: [{name: y, string: {defaultValue: Y}}, "),
            ("fallback", "X"),
            (
                "  application: app\n",
                &format!(
                    "  application: app\n  customRuntime: {top}\n  perReleaseChannel: \
                     [{{releaseChannel: staging, customRuntime: {own}}}]\n"
                ),
            ),
        ],
    );
    assert_eq!(
        compiled(&text, "staging", "").unwrap().commands.apply.argv[1],
        expected,
        "{top} {own}"
    );
}

#[test]
fn per_release_channel_values_are_joined_by_name() {
    let both = "{parameterValues: [{name: x, string: a}, {name: y, string: b}]}";
    check_merge(both, "{}", "ab");
    check_merge(both, "{parameterValues: [{name: y, string: c}]}", "ac");
    check_merge(
        "{parameterValues: [{name: x, string: a}]}",
        "{parameterValues: [{name: y, string: c}]}",
        "ac",
    );
    check_merge(
        both,
        "{parameterValues: [{name: y, string: c}], clearOnPerReleaseChannelMerge: true}",
        "Xc",
    );
    check_merge(both, "{clearOnPerReleaseChannelMerge: true}", "XY");
}

/// The environment of apply when it gets `TOKEN` from the secret parameter `s` of the runtime.
fn check_secret(value: &str, params: &str, expected: Result<&str, &str>) {
    let text = changed(
        SMALL,
        &[
            ("parameters: [", "parameters: [{name: s, required: true, secret: {}}, "),
            ("apply: {", "apply: {env: {TOKEN: {value: '{{.Params.s}}'}}, "),
            (
                "  application: app\n",
                &format!(
                    "  application: app\n  parameters: [{{name: p, secret: {{}}}}]\n  \
                     customRuntime: {{parameterValues: [{{name: s, {value}}}]}}\n"
                ),
            ),
        ],
    );
    let found = compiled(&text, "staging", params)
        .map(|instance| env(&instance.commands.apply))
        .map_err(|problems| lines(&problems).join("\n"));
    assert_eq!(found.as_deref().map_err(String::as_str), expected, "{value} {params}");
}

#[test]
fn secrets_go_by_reference_or_sealed_and_never_in_clear() {
    check_secret("secret: {secretRef: {key: k, version: 3}}", "", Ok("TOKEN=secret(k@3)"));
    check_secret("secret: {secretRef: {key: k}}", "", Ok("TOKEN=secret(k@0)"));
    check_secret("secret: {rawSecret: hush}", "", Ok("TOKEN=[hush]"));
    check_secret("string: '{{.Params.p}}'", "p=hush", Ok("TOKEN=[hush]"));
    check_secret("secret: {rawSecret: '{{.Params.p}}'}", "p=hush", Ok("TOKEN=[hush]"));
    let empty = "service.customRuntime: parameter `s` is required and its value is empty";
    for value in [
        "string: '{{.Params.p}}'",
        "secret: {rawSecret: '{{.Params.p}}'}",
        "secret: {rawSecret: ''}",
    ] {
        check_secret(value, "", Err(empty));
    }
    check_secret("string: '{{.Params.p}}'", "p=", Err(empty));
    let nul = "service.customRuntime.parameterValues[0].secret.rawSecret: a NUL character, which \
               no program can be given";
    check_secret(r#"secret: {rawSecret: "hush\0hush"}"#, "", Err(nul));
    let clear = "service.customRuntime.parameterValues[0].string: parameter `s` is a secret, and \
                 its value stands here in clear";
    check_secret("string: hush", "", Err(clear));
}

#[test]
fn a_secret_in_an_argument_is_refused() {
    let text = changed(SMALL, &[("string: {defaultValue: fallback}", "secret: {}")]);
    let expected = "runtime.custom.apply.taskConfig.program.cmd[1]: `{{.Params.x}}` is a secret, \
                    and anybody can read this text while the command runs";
    assert_eq!(lines(&check(&configs(&text), &Options::default(), None)), [expected]);
    fn check(
        configs: &Configs,
        options: &Options,
        changed: Option<&BTreeSet<DocumentKey>>,
    ) -> Vec<Diagnostic> {
        super::super::check(configs, options, changed)
    }
}

#[test]
fn values_not_given_are_kept_as_long_as_their_parameter_is() {
    let text = changed(
        SMALL,
        &[(
            "  application: app\n",
            "  application: app\n  parameters: [{name: a, string: {}}, {name: b, int: {}}]\n",
        )],
    );
    let configs = configs(&text);
    let service = configs.services().next().unwrap();
    let channels =
        super::super::channels(&configs, configs.application(&service.application).unwrap())
            .unwrap();
    let goes_to = channels.iter().map(|channel| channel.name.clone()).collect();
    let values = |text: &str, earlier: Option<&Values>| {
        let earlier = earlier.map(|values| Earlier { values, goes_to: &goes_to });
        sound(super::super::values(
            &configs,
            service,
            &channels,
            &request(text),
            earlier,
            &Brackets,
        ))
    };
    let mut first = values("a=1 b=2 staging:a=3", None).unwrap();
    first.all.insert("gone".to_owned(), StoredValue::Text("x".to_owned()));
    assert_eq!(values("b=5", Some(&first)).unwrap(), values("a=1 b=5 staging:a=3", None).unwrap());
}
