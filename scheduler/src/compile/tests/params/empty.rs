//! Values that are there and empty.

use super::super::*;
use super::{FROM_P, STRING, check};

#[test]
fn bad_input_required_and_empty_refuses_the_release_whatever_the_type() {
    for kind in [
        "string: {}",
        "int: {}",
        "dockerImage: {}",
        "secret: {}",
        "commit: {repository: r}",
        "blob: {}",
    ] {
        let definition = format!("[{{name: p, description: the tag, required: true, {kind}}}]");
        let told = "parameter `p` (the tag) is required and its value is empty";
        check(&definition, "[]", "p=", &format!("params.p: {told}"));
        check(&definition, "[]", "p=1 staging:p=", &format!("paramsForChannel.staging.p: {told}"));
    }
    let told = "params.p: parameter `p` is required and its value is empty";
    check("[{name: p, required: true, string: {defaultValue: ''}}]", "[]", "", told);
    check("[{name: p, string: {defaultValue: d}}]", FROM_P, "p=", "<>");
}

#[test]
fn bad_input_required_and_empty_is_refused_of_a_runtimes_parameter_once_rendered() {
    for (kind, value) in [
        ("string: {defaultValue: d}", "string: '{{.Params.p}}'"),
        ("string: {}", "string: ''"),
        ("commit: {repository: r}", "commit: '{{.Params.p}}'"),
        ("blob: {}", "blob: {inlined: '{{.Params.p}}'}"),
    ] {
        let runtime = format!("parameters: [{{name: x, required: true, {kind}}}]");
        let with = format!(
            "  application: app\n  parameters: [{{name: p, string: {{}}}}]\n  customRuntime: \
             {{parameterValues: [{{name: x, {value}}}]}}\n"
        );
        let text = changed(
            SMALL,
            &[
                ("parameters: [{name: x, string: {defaultValue: fallback}}]", runtime.as_str()),
                ("  application: app\n", with.as_str()),
            ],
        );
        let problems = compiled(&text, "staging", "").unwrap_err();
        assert_eq!(
            lines(&problems),
            ["service.customRuntime: parameter `x` is required and its value is empty"],
            "{kind} {value}"
        );
        let help = problems[0].help.as_deref().unwrap_or_default();
        assert!(
            help.contains("runtime `tool` asks for it") && help.contains("leave `required` out"),
            "{help}"
        );
    }
}

#[test]
fn the_help_of_a_required_value_that_is_empty_says_what_to_do() {
    let text = changed(
        SMALL,
        &[(
            "  application: app\n",
            "  application: app\n  parameters: [{name: p, required: true, string: {}}]\n",
        )],
    );
    let help = compiled(&text, "staging", "p=").unwrap_err()[0].help.clone().unwrap_or_default();
    for part in ["is the variable set", "leave `required` out"] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[test]
fn bad_input_an_empty_text_is_no_tag_of_an_image_wherever_it_is_given() {
    let image = "[{name: p, dockerImage: {defaultTag: v1}}]";
    let told = "parameter `p`: an empty text is not a tag of an image";
    check(image, "[]", "p=", &format!("params.p: {told}"));
    check(image, "[]", "p=v1 staging:p=", &format!("paramsForChannel.staging.p: {told}"));
    // A runtime's image, given by a parameter of the service that is empty: by mistake, or because
    // nobody has to give it.
    let given = |parameters: &str, value: &str, params: &str| {
        let with = format!(
            "  application: app\n  parameters: {parameters}\n  customRuntime: {{parameterValues: \
             [{{name: x, {value}: '{{{{.Params.p}}}}'}}]}}\n"
        );
        let text = changed(
            SMALL,
            &[
                ("string: {defaultValue: fallback}", "dockerImage: {}"),
                ("  application: app\n", with.as_str()),
            ],
        );
        compiled(&text, "staging", params)
            .map(|made| made.commands.apply.argv[1].clone())
            .map_err(|problems| lines(&problems).join("\n"))
    };
    for value in ["string", "dockerImageTag"] {
        let told = format!(
            "service.customRuntime.parameterValues[0].{value}: parameter `x` of runtime `tool`: \
             an empty text is not a tag of an image"
        );
        assert_eq!(given(STRING, value, "p="), Err(told), "{value}");
        assert_eq!(given(STRING, value, ""), Ok(String::new()), "{value}");
        assert_eq!(given("[{name: p, dockerImage: {}}]", value, ""), Ok(String::new()), "{value}");
        assert_eq!(
            given("[{name: p, dockerImage: {}}]", value, "p=v7"),
            Ok("v7".to_owned()),
            "{value}"
        );
    }
}

#[test]
fn bad_input_a_value_of_before_that_is_empty_by_what_the_config_says_now() {
    let text = changed(
        SMALL,
        &[(
            "  application: app\n",
            "  application: app\n  parameters: [{name: a, required: true, string: {}}, {name: b, \
             dockerImage: {}}, {name: c, required: true, secret: {}}]\n",
        )],
    );
    let configs = configs(&text);
    let service = configs.services().next().unwrap();
    let channels =
        crate::compile::channels(&configs, configs.application(&service.application).unwrap())
            .unwrap();
    let sealed = StoredValue::Secret(SecretValue::Sealed(Brackets.seal("")));
    let given = [
        ("a", StoredValue::Text(String::new())),
        ("b", StoredValue::Text(String::new())),
        ("c", sealed),
    ];
    let values = Values {
        all: given.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Values::default()
    };
    let release = Release {
        id: ReleaseId::from_bytes([7; 16]),
        version: "svc-1",
        released_at: Timestamp::from_millis(1000),
        values: &values,
    };
    let found =
        sound(compile(&configs, &Options::default(), service, &channels[0], &release, &Brackets))
            .unwrap_err();
    assert_eq!(
        lines(&found),
        [
            "params.a: parameter `a` is required and its value is empty",
            "params.b: parameter `b`: an empty text is not a tag of an image",
            "params.c: parameter `c` is required and its value is empty",
        ]
    );
}
