//! Putting values into templates. What a template says `config::template` knows since its document
//! was read; here are the names that exist at a place, their values, and the text that comes of it.
//! Called by `check` (names only) and by everything that renders.

use std::collections::{BTreeMap, BTreeSet};

use config::template::{Template, TemplatePart, mixed_secret, undefined};

use super::value::SecretValue;

pub(super) use config::template::TemplateError;

/// Longest text that rendering may make: 8 MiB, as long as a config file may be. A value put in
/// many times grows fast.
pub(super) const RENDERED_LIMIT_BYTES: usize = 8 << 20;

/// A value by which a name is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Put in as it is.
    Text(String),
    /// Known at apply time only as "there will be one": the text stands in for it.
    Unknown,
    /// A secret: it may stand alone as the value of an environment variable or of a secret
    /// parameter, nowhere else.
    Secret(SecretValue),
}

/// The names that a template may use, and their values.
#[derive(Debug, Clone, Default)]
pub(super) struct TemplateScope {
    values: BTreeMap<String, Value>,
    /// Names under these prefixes may or may not exist; nobody can say yet.
    open: Vec<&'static str>,
    /// Names whose value nobody gave, and nobody has to.
    unfilled: BTreeSet<String>,
}

/// A rendered text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rendered {
    Text(String),
    /// The text depends on a value that is not known yet.
    Unknown,
    /// The template was the name of a secret and nothing else.
    Secret(SecretValue),
}

impl TemplateScope {
    /// Adds a name with its root (`Params.x`); a later value takes the place of an earlier one.
    pub(super) fn insert(&mut self, name: impl Into<String>, value: Value) {
        self.values.insert(name.into(), value);
    }

    /// Adds a name with a text.
    pub(super) fn insert_text(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.insert(name, Value::Text(text.into()));
    }

    /// Says that any name under `prefix` (`Constants.`) may exist.
    pub(super) fn leave_open(&mut self, prefix: &'static str) {
        self.open.push(prefix);
    }

    /// Says that a name is empty because nobody gave it a value.
    pub(super) fn leave_unfilled(&mut self, name: impl Into<String>) {
        self.unfilled.insert(name.into());
    }

    /// Whether a template is the name of a value that nobody gave, and nothing else.
    pub(super) fn is_unfilled(&self, text: &Template) -> bool {
        text.only_name().is_some_and(|name| self.unfilled.contains(name))
    }

    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        static UNKNOWN: Value = Value::Unknown;
        self.values
            .get(name)
            .or_else(|| self.open.iter().any(|prefix| name.starts_with(prefix)).then_some(&UNKNOWN))
    }
}

/// Puts the values into a text, once.
///
/// # Errors
/// Every malformed tag; else every name that the scope does not have, a secret with text around it,
/// and a text over [`RENDERED_LIMIT_BYTES`].
pub(super) fn render(
    template: &Template,
    scope: &TemplateScope,
) -> Result<Rendered, Vec<TemplateError>> {
    let mut text = String::new();
    let mut errors = Vec::new();
    let mut known = true;
    for part in template.parts().map_err(<[_]>::to_vec)? {
        let (piece, tag, at) = match part {
            TemplatePart::Text(piece) => (piece, "", 0),
            TemplatePart::Name(name) => match scope.get(name.name) {
                Some(Value::Text(piece)) => (piece.as_str(), name.tag, name.at),
                Some(Value::Unknown) => {
                    known = false;
                    continue;
                }
                Some(Value::Secret(secret)) => {
                    if template.only_name().is_some() {
                        return Ok(Rendered::Secret(secret.clone()));
                    }
                    errors.push(mixed_secret(name));
                    continue;
                }
                None => {
                    errors.push(undefined(name, scope.values.keys().map(String::as_str)));
                    continue;
                }
            },
        };
        if text.len() + piece.len() > RENDERED_LIMIT_BYTES {
            errors.push(too_long(tag, at));
            break;
        }
        text.push_str(piece);
    }
    match (errors.is_empty(), known) {
        (false, _) => Err(errors),
        (true, true) => Ok(Rendered::Text(text)),
        (true, false) => Ok(Rendered::Unknown),
    }
}

fn too_long(tag: &str, at: usize) -> TemplateError {
    TemplateError {
        at,
        tag: tag.to_owned(),
        message: format!(
            "the text is over {} MiB when its values are put in",
            RENDERED_LIMIT_BYTES >> 20
        ),
        help: Some("pass large values as a file, not as text".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scope() -> TemplateScope {
        let mut scope = TemplateScope::default();
        for (name, text) in [
            ("Params.x", "1"),
            ("Params.my-param", "dashed"),
            ("Params.image", "registry/app:v1"),
            ("Params.image.Tag", "v1"),
            ("Params.tricky", "{{.Params.x}} {{"),
            ("Constants.region", "eu"),
            ("Builtins.ReleaseChannel.Name", "staging"),
            ("Builtins.Runtime.Labels.env", "test"),
        ] {
            scope.insert_text(name, text);
        }
        scope.insert(
            "Params.token",
            Value::Secret(SecretValue::Stored { key: "token".to_owned(), version: 0 }),
        );
        scope
    }

    fn render(text: &str, scope: &TemplateScope) -> Result<Rendered, Vec<TemplateError>> {
        super::render(&text.into(), scope)
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(render(text, &scope()), Ok(Rendered::Text(expected.to_owned())), "{text}");
    }

    fn check_error(text: &str, at: usize, expected: &str) {
        let errors = render(text, &scope()).expect_err(text);
        assert_eq!((errors[0].at, errors[0].message.as_str()), (at, expected), "{text}");
    }

    #[test]
    fn names_are_replaced_by_their_values() {
        check("", "");
        check("plain { } }} text", "plain { } }} text");
        check("{{.Params.x}}", "1");
        check("a{{ .Params.x }}b{{.Params.x}}", "a1b1");
        check("{{.Params.my-param}}", "dashed");
        check("{{.Params.image}} {{ .Params.image.Tag }}", "registry/app:v1 v1");
        check(
            "{{.Constants.region}}/{{.Builtins.ReleaseChannel.Name}}/{{.Builtins.Runtime.Labels.\
             env}}",
            "eu/staging/test",
        );
        check("ä{{.Params.x}}ö", "ä1ö");
    }

    #[test]
    fn quoted_braces_are_braces() {
        check(r#"{{"{{"}}.Params.x}}"#, "{{.Params.x}}");
        check(r#"{{ "{{" }}"#, "{{");
    }

    #[test]
    fn a_value_with_braces_stays_as_it_is() {
        check("{{.Params.tricky}}{{.Params.x}}", "{{.Params.x}} {{1");
    }

    #[test]
    fn bad_input_template_error_undefined_name_lists_the_names_nearest_first() {
        check_error("ab {{.Params.imag}}", 3, "undefined name `{{.Params.imag}}`");
        check_error("{{.Params.x.Tag}}", 0, "undefined name `{{.Params.x.Tag}}`");
        check_error("{{.Other.x}}", 0, "undefined name `{{.Other.x}}`");
        let help = render("{{.Params.imag}}", &scope()).unwrap_err()[0].help.clone().unwrap();
        assert!(help.starts_with("the names that exist here: `{{.Params.image}}`"), "{help}");
        assert!(help.contains("`{{.Constants.region}}`"), "{help}");
    }

    #[test]
    fn bad_input_template_error_malformed_tags() {
        check_error("x {{.Params.x", 2, "`{{.Params.x` is never closed");
        check_error("{{.Params.x}", 0, "`{{.Params.x}` is never closed");
        check_error("{{}}", 0, "`{{}}` holds no name");
        check_error("{{ . }}", 0, "`{{ . }}` is not a template that pvn knows");
        check_error("{{.Params.}}", 0, "`{{.Params.}}` is not a template that pvn knows");
        check_error("{{.Params..x}}", 0, "`{{.Params..x}}` is not a template that pvn knows");
        check_error("{{Params.x}}", 0, "`{{Params.x}}` has no dot in front of its name");
        check_error("{{{.Params.x}}}", 0, "`{{{.Params.x}}` is not a template that pvn knows");
        check_error("{{ {{.Params.x}}", 0, "`{{ {{.Params.x}}` is not a template that pvn knows");
    }

    #[test]
    fn bad_input_template_error_other_go_constructs() {
        for text in [
            "{{if .Params.x}}",
            "{{- .Params.x }}",
            "{{ .Params.x -}}",
            "{{ .Params.x | upper }}",
            "{{ .Params.x .Params.x }}",
            "{{/* note */}}",
            "{{$x}}",
            "{{end}}",
            "{{ printf \"%s\" .Params.x }}",
            "{{(.Params.x)}}",
            "{{\"text\"}}",
            "{{`{{`}}",
            "{{template \"x\"}}",
            "{{.Params.x:=1}}",
        ] {
            check_error(text, 0, &format!("`{text}` is not a template that pvn knows"));
        }
    }

    #[test]
    fn all_mistakes_of_a_text_are_told_at_once() {
        let errors = render("{{if}} {{.Params.x}} {{}} {{", &scope()).unwrap_err();
        assert_eq!(errors.iter().map(|error| error.at).collect::<Vec<_>>(), [0, 21, 26]);
        assert_eq!(render("{{.A}}{{.B}}", &scope()).unwrap_err().len(), 2);
    }

    #[test]
    fn a_secret_stands_alone_or_not_at_all() {
        assert!(matches!(render("{{.Params.token}}", &scope()), Ok(Rendered::Secret(_))));
        check_error(
            "Bearer {{.Params.token}}",
            7,
            "`{{.Params.token}}` is a secret and stands in the middle of other text",
        );
    }

    #[test]
    fn what_is_not_known_yet_makes_the_text_unknown() {
        let mut scope = scope();
        scope.insert("Params.later", Value::Unknown);
        scope.leave_open("Constants.");
        assert_eq!(render("a{{.Params.later}}", &scope), Ok(Rendered::Unknown));
        assert_eq!(render("{{.Constants.any}}", &scope), Ok(Rendered::Unknown));
        assert!(render("{{.Params.any}}", &scope).is_err());
    }

    #[test]
    fn a_rendered_text_has_a_limit() {
        let mut scope = TemplateScope::default();
        scope.insert_text("Params.big", "x".repeat(RENDERED_LIMIT_BYTES / 2));
        assert!(render("{{.Params.big}}{{.Params.big}}", &scope).is_ok());
        let errors = render("{{.Params.big}}{{.Params.big}} {{.Params.big}}", &scope).unwrap_err();
        assert_eq!(errors[0].message, "the text is over 8 MiB when its values are put in");
    }

    proptest! {
        #[test]
        fn rendering_never_panics(text in "([a-z.{}\" ]|\\{\\{|\\}\\}|\\{\\{\\.Params\\.x\\}\\}|\\PC){0,40}") {
            let _ = render(&text, &scope());
        }

        #[test]
        fn rendering_is_never_done_twice(before in "[^{]{0,8}", value in "\\PC{0,12}|\\{\\{\\.Params\\.x\\}\\}", after in "[^{]{0,8}") {
            let mut scope = TemplateScope::default();
            scope.insert_text("Params.v", value.clone());
            scope.insert_text("Params.x", "never");
            let text = format!("{before}{{{{.Params.v}}}}{after}");
            prop_assert_eq!(render(&text, &scope), Ok(Rendered::Text(format!("{before}{value}{after}"))));
        }

        #[test]
        fn text_without_opening_braces_stays_as_it_is(text in "[^{]{0,60}") {
            prop_assert_eq!(render(&text, &TemplateScope::default()), Ok(Rendered::Text(text)));
        }
    }
}
