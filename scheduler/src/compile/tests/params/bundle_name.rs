//! The name of a version, made of parameter values.

use super::super::*;

/// The version's name when `bundleName` is this.
fn check_bundle_name(bundle_name: &str, params: &str, expected: Result<Option<&str>, &str>) {
    let text = changed(
        SMALL,
        &[(
            "  application: app\n",
            &format!(
                "  application: app\n  bundleName: '{bundle_name}'\n  parameters: [{{name: p, \
                 string: {{}}}}]\n"
            ),
        )],
    );
    let configs = configs(&text);
    let service = configs.services().next().unwrap();
    let channels =
        crate::compile::channels(&configs, configs.application(&service.application).unwrap())
            .unwrap();
    let values = sound(crate::compile::values(
        &configs,
        service,
        &channels,
        &request(params),
        None,
        &Brackets,
    ))
    .unwrap();
    let name = crate::compile::bundle_name(&configs, service, &values)
        .map_err(|problems| lines(&problems).join("\n"));
    assert_eq!(
        name.as_ref().map(Option::as_deref).map_err(String::as_str),
        expected,
        "{bundle_name}"
    );
}

#[test]
fn a_bundle_name_names_the_version() {
    let bad = |name: &str| {
        format!(
            "service.bundleName: `{name}` cannot name a version: it must be 1 to 128 bytes \
             without blanks, quotes, `$` and backslashes, and must not begin with `-`, `.` or `/`"
        )
    };
    check_bundle_name("{{.Params.p}}-{{.Builtins.Service.Name}}", "p=v1", Ok(Some("v1-svc")));
    check_bundle_name("{{.Params.p}}", "", Err(&bad("")));
    let digest = format!("sha256:{}", "a".repeat(64));
    for name in ["1.2_rc+build-7", "_tag", "feature/x", "über", &digest] {
        check_bundle_name("{{.Params.p}}", &format!("p={name}"), Ok(Some(name)));
    }
    let long = "v".repeat(129);
    for name in ["../../etc", "/etc", "--help", "a$(id)", "a`id`", "-1", ".hidden", &long] {
        check_bundle_name("{{.Params.p}}", &format!("p={name}"), Err(&bad(name)));
    }
    let undefined = "service.bundleName: undefined name `{{.Builtins.ReleaseChannel.Name}}`";
    check_bundle_name("{{.Builtins.ReleaseChannel.Name}}", "", Err(undefined));
}

#[test]
fn a_required_value_that_is_missing_is_told_as_such_where_the_name_of_the_version_needs_it() {
    let named = |params: &str, definitions: &str| {
        let with = format!(
            "  application: app\n  bundleName: 'site-{{{{.Params.p}}}}'\n  parameters: \
             [{definitions}]\n"
        );
        let configs = configs(&changed(SMALL, &[("  application: app\n", &with)]));
        let service = configs.services().next().unwrap();
        let channels =
            crate::compile::channels(&configs, configs.application(&service.application).unwrap())
                .unwrap();
        let values = sound(crate::compile::values(
            &configs,
            service,
            &channels,
            &request(params),
            None,
            &Brackets,
        ))
        .unwrap();
        crate::compile::bundle_name(&configs, service, &values)
    };
    for params in ["", "staging:p=1"] {
        let told = named(
            params,
            "{name: p, required: true, string: {}}, {name: q, required: true, string: {}}",
        )
        .unwrap_err();
        assert_eq!(
            lines(&told),
            ["params.p: parameter `p` is required and has no value"],
            "{params}"
        );
        let help = told[0].help.as_deref().unwrap_or_default();
        assert!(help.contains("`--param p=…`") && help.contains("`bundleName`"), "{help}");
    }
    assert_eq!(
        named("p=1", "{name: p, required: true, string: {}}").unwrap().as_deref(),
        Some("site-1")
    );
    assert_eq!(
        named("p=1", "{name: p, string: {}}, {name: q, required: true, string: {}}")
            .unwrap()
            .as_deref(),
        Some("site-1")
    );
}
