//! Targets of notifications: what can be written, and what is said of what cannot.

use super::{documents, problems};
use crate::{Body, NotificationProvider, unmasked_secrets};
use schema::notification::NotificationEvent;

/// The problems of an application with this target.
fn target(text: &str) -> String {
    problems(&format!(
        "application:\n  name: a\n  releaseChannels: [{{name: c, runtimes: [{{runtime: r}}]}}]\n  \
         notifications:\n  - {text}\n"
    ))
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let found = target(text);
    assert!(found.contains(expected), "{found}");
}

#[test]
fn a_target_is_read_in_both_spellings_with_its_events() {
    let text = "application:\n  name: a\n  release_channels: [{name: c, runtimes: [{runtime: \
                r}]}]\n  notifications:\n  - name: n\n    webhook: {url: {raw_secret: \
                \"https://h/x\"}, signing_key: {secret: {key: k}}}\n    events: [CONVERGED]\n  - \
                {name: m, slack: {url: {value: \"https://h/y\"}}}\n";
    let documents = documents(text);
    let Body::Application(application) = documents[0].body() else { panic!("an application") };
    let [webhook, slack] = application.notifications.as_slice() else { panic!("two targets") };
    assert!(matches!(&webhook.provider, NotificationProvider::Webhook(_)));
    assert!(webhook.wants(NotificationEvent::Converged));
    assert!(!webhook.wants(NotificationEvent::Failed));
    assert!(slack.wants(NotificationEvent::Failed));
    assert!(!slack.wants(NotificationEvent::Converged), "nobody asked for it");
}

#[test]
fn what_a_target_cannot_be_is_said_with_what_it_can() {
    let slack = |url: &str| format!("{{name: n, slack: {{url: {url}}}}}");
    check(&slack("{value: hooks.slack.com/x}"), "it does not start with https:// or http://");
    check(&slack("{value: \"https://ann:pw@h/\"}"), "it has a user or a password in it");
    check(&slack("{secret: {key: \"a b\"}}"), "keys of secrets are");
    check(&slack("https://hooks.slack.com/x"), "expected a mapping");
    check("{name: n}", "exactly one of `slack`, `webhook`, `email`");
    check(
        "{name: n, slack: {url: {secret: {key: k}}}, webhook: {url: {secret: {key: k}}}}",
        "exactly one of `slack`, `webhook`, `email`",
    );
    let named = |name: &str, events: &str| {
        format!("{{name: {name}, slack: {{url: {{secret: {{key: k}}}}}}, events: {events}}}")
    };
    check(&named("N", "[FAILED]"), "names are 1 to 63 characters");
    check(&named("n", "[FAILD]"), "did you mean `FAILED`?");
    check(&named("n", "[FAILED, FAILED]"), "an event is named twice");
    check(&named("n", "[]"), "no event is named");
    let twice = format!("{}\n  - {}", named("n", "[FAILED]"), named("n", "[STUCK]"));
    check(&twice, "notification target `n` is given twice");
}

#[test]
fn what_mail_cannot_be_sent_with_is_said_at_its_field() {
    let email = |to: &str, from: &str, server: &str| {
        format!("{{name: n, email: {{to: {to}, from: {from}, server: {{{server}}}}}}}")
    };
    let login = "user: {value: u}, password: {secret: {key: k}}";
    for good in ["host: smtp.example.com", "host: \"::1\", tls: NONE", "host: h, port: 2525"] {
        let text = email("[ann+x@example.com]", "pvn@h", &format!("{good}, {login}"));
        let text = format!(
            "application:\n  name: a\n  releaseChannels: [{{name: c, runtimes: [{{runtime: \
             r}}]}}]\n  notifications:\n  - {text}\n"
        );
        assert_eq!(documents(&text).len(), 1, "{good}");
    }
    let server = |server: &str| email("[a@h]", "b@h", server);
    check(&email("[]", "b@h", "host: h"), "nobody is named");
    check(&email("[ann]", "b@h", "host: h"), "this is no mail address: it has no `@`");
    check(&email("[a@h]", "\"x\\r\\nBcc: e@h\"", "host: h"), "is no name of a mailbox");
    check(&email("[\"a@h>\"]", "b@h", "host: h"), "is no name of a host");
    check(&server("host: \"smtp.example.com:25\""), "no server can be reached by this");
    check(&server("host: h, port: 0"), "no server listens at port 0");
    check(&server("host: h, port: 70000"), "65535");
    check(&server("host: h, tls: SSL"), "STARTTLS");
    check(&server("host: h, user: {value: u}"), "only one of them is given");
    check(&server(&format!("host: h, tls: NONE, {login}")), "in the clear");
    check(&server("host: h, user: {value: u}, password: pw"), "expected a mapping");
}

#[test]
fn no_message_repeats_a_secret() {
    let found = target(
        "{name: n, webhook: {url: {rawSecret: ftp-0SECRET}, signingKey: {rawSecret: k-0SECRET}}}",
    );
    assert!(found.contains("this is no address of a webhook"), "{found}");
    assert!(found.contains("this is no signing key: it does not start with `whsec_`"), "{found}");
    assert!(!found.contains("0SECRET"), "{found}");
}

#[test]
fn what_a_target_is_reached_by_and_is_no_secret_is_a_warning_with_the_way_out() {
    let warned = |target: &str| {
        let text = format!(
            "application:\n  name: a\n  releaseChannels: [{{name: c, runtimes: [{{runtime: \
             r}}]}}]\n  notifications:\n  - {target}\n"
        );
        let told = unmasked_secrets(&documents(&text));
        told.iter().map(|told| (told.path.clone(), told.message.clone())).collect::<Vec<_>>()
    };
    let at = |field: &str| format!("application.notifications[0].{field}.value");
    assert_eq!(
        warned("{name: n, slack: {url: {value: \"https://hooks.slack.com/x\"}}}"),
        [(
            at("slack.url"),
            "this address is no secret here: whoever reads it can write into the channel"
                .to_owned()
        )]
    );
    let key = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";
    assert_eq!(
        warned(&format!(
            "{{name: n, webhook: {{url: {{value: \"https://h/x\"}}, signingKey: {{value: {key}}}}}}}"
        )),
        [(
            at("webhook.signingKey"),
            "this key is no secret here: whoever reads it can sign in pvn's name".to_owned()
        )]
    );
    let server = "server: {host: h, user: {value: u}, password: {value: hunter2-hunter2}}";
    assert_eq!(
        warned(&format!("{{name: n, email: {{to: [a@h], from: b@h, {server}}}}}")),
        [(
            at("email.server.password"),
            "this password is no secret here: whoever reads it can send mail as `user`".to_owned()
        )]
    );
    for fine in [
        "{name: n, slack: {url: {secret: {key: k}}}}",
        "{name: n, slack: {url: {rawSecret: \"https://hooks.slack.com/xyz\"}}}",
        "{name: n, webhook: {url: {value: \"https://h/x\"}}}",
    ] {
        assert_eq!(warned(fine), [], "{fine}");
    }
}
