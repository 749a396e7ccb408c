//! Reading rules about whole documents and files: what is refused, exactly as people see it.

use super::problems;

#[test]
fn a_document_has_exactly_one_top_level_key() {
    let yaml = r#"runtime: {name: r}
application: {name: a}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: exactly one of `runtime`, `application`, `service`; `runtime`, `application` are given
         --> app.pvn.yaml:1:1
          |
        1 | runtime: {name: r}
          | ^^^^^^^^^^^^^^^^^^
        "#);
}

#[test]
fn a_document_of_another_kind_is_told_with_the_known_kinds() {
    let yaml = r#"protection: {name: p}
---
services: {name: s}
---
- service
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: not supported yet: documents of kind `protection`
         --> app.pvn.yaml:1:1
          |
        1 | protection: {name: p}
          | ^^^^^^^^^^ protection
          |
          = help: known here: `runtime`, `application`, `service`

        error: unknown field `services`
         --> app.pvn.yaml:3:1
          |
        3 | services: {name: s}
          | ^^^^^^^^ services
          |
          = help: did you mean `service`?

        error: expected a mapping, found a list
         --> app.pvn.yaml:5:1
          |
        5 | - service
          | ^^^^^^^^^
        "#);
}

#[test]
fn kinds_of_runtime_exclude_each_other() {
    let yaml = r#"runtime:
  name: r
  local: {}
  fake: {}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: at most one of `custom`, `kubernetes`, `local`, `fake`, `terraformRunner`, `pulumiRunner`, `awsEcs`, `googleCloudRun`; `local`, `fake` are given
         --> app.pvn.yaml:1:1
          |
        1 | runtime:
          | ^^^^^^^ runtime
        "#);
}

// each document of a file is told of
#[test]
fn bad_input_malformed_yaml() {
    let yaml = r#"application:
  name: "a
---
application:
  name: a: b
---
application:
	name: a
---
application: [a
---
application: {name: {{.Params.x}}}
---
a: *nothing
---
!!binary aGVsbG8=
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: malformed YAML: while scanning a quoted scalar, found unexpected end of stream
         --> app.pvn.yaml:2:9
          |
        2 |   name: "a
          |         ^

        error: malformed YAML: mapping values are not allowed in this context
         --> app.pvn.yaml:5:10
          |
        5 |   name: a: b
          |          ^
          |
          = help: a text with `: ` or ` #` in it, or with `*`, `&`, `{`, `[`, `@` in front, has to stand in quotes

        error: a tab cannot indent YAML
         --> app.pvn.yaml:8:1
          |
        8 |     name: a
          | ^^^^
          |
          = help: use spaces

        error: malformed YAML: while parsing a flow sequence, expected ',' or ']'
          --> app.pvn.yaml:10:16
           |
        10 | application: [a
           |                ^

        error: a key must be a text
          --> app.pvn.yaml:12:22
           |
        12 | application: {name: {{.Params.x}}}
           |                      ^^^^^^^^^^^
           |
           = help: a template has to stand in quotes, as in `"{{.Params.x}}"`

        error: malformed YAML: while parsing node, found unknown anchor
          --> app.pvn.yaml:14:4
           |
        14 | a: *nothing
           |    ^
           |
           = help: a text with `: ` or ` #` in it, or with `*`, `&`, `{`, `[`, `@` in front, has to stand in quotes

        error: the tag `!!binary` is not supported
          --> app.pvn.yaml:16:1
           |
        16 | !!binary aGVsbG8=
           | ^^^^^^^^^^^^^^^^^
        "#);
}

#[test]
fn bad_input_problems_of_all_documents_are_told_at_once() {
    let yaml = r#"application:
  name: A
---
service:
  name: s
  applicaton: a
---
runtime:
  name: r
  labels: [{label: env}]
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `A` is not allowed here: names are 1 to 63 characters: lower-case letters, digits and `-`, starting with a letter and not ending with `-`
         --> app.pvn.yaml:2:9
          |
        2 |   name: A
          |         ^ application.name

        error: `application` is required and missing
         --> app.pvn.yaml:4:1
          |
        4 | service:
          | ^^^^^^^ service.application

        error: unknown field `applicaton`
         --> app.pvn.yaml:6:3
          |
        6 |   applicaton: a
          |   ^^^^^^^^^^ service.applicaton
          |
          = help: did you mean `application`?

        error: `value` is required and missing
          --> app.pvn.yaml:10:12
           |
        10 |   labels: [{label: env}]
           |            ^^^^^^^^^^^^ runtime.labels[0].value
        "#);
}

#[test]
fn bad_input_two_of_a_kind() {
    let yaml = r#"application: {name: a, releaseChannels: [{name: p, runtimes: [{runtime: r}]}]}
---
service: {name: s, application: a}
---
service: {name: s, application: b}
---
application:
  # the same again
  name: a
  releaseChannels: [{name: p, runtimes: [{runtime: r}]}]
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: application `a` is given twice; the first is at app.pvn.yaml:1
         --> app.pvn.yaml:9:9
          |
        9 |   name: a
          |         ^ application.name
        "#);
}

/// The parser takes the line with the tab for more of the text before it, and complains of that
/// one.
#[test]
fn bad_input_malformed_yaml_a_tab_after_a_plain_text_is_told_where_it_stands() {
    let told = problems("application:\n  name: a\n\treleaseChannels: []\n");
    assert!(told.starts_with("error: a tab cannot indent YAML\n --> app.pvn.yaml:3:1\n"), "{told}");
    assert!(told.contains("= help: use spaces"), "{told}");
}
