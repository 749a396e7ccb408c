//! What is allowed and does nothing.

use super::documents;
use crate::ineffective;

fn told(text: &str) -> Vec<String> {
    ineffective(&documents(text))
        .iter()
        .map(|warning| format!("{}: {}", warning.path, warning.message))
        .collect()
}

#[test]
fn a_variable_that_pvn_sets_itself_has_no_effect_wherever_it_is_written() {
    let text = "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    apply: \
                {env: {PVN_SERVICE: {value: y}, PVN_MINE: {value: y}, PVN_SECRET_KEYS: {value: \
                A}}, taskConfig: {program: {cmd: [x], env: {PVN_HIDDEN_0: {value: \
                z}}}}}\n---\napplication:\n  name: a\n  releaseChannels: [{name: c, policy: \
                {defaultEnv: {PVN_TOKEN: {value: z}}}, runtimes: [{runtime: r}]}]\n---\nservice: \
                {name: s, application: a, env: {env: {value: PVN_TOKEN}, PVN_JOB_ID: {value: \
                x}}}\n";
    let set = |path: &str, name: &str| {
        format!("{path}.{name}: pvn sets `{name}` itself, so what stands here has no effect")
    };
    assert_eq!(
        told(text),
        [
            set("runtime.custom.apply.env", "PVN_SERVICE"),
            set("runtime.custom.apply.taskConfig.program.env", "PVN_HIDDEN_0"),
            set("application.releaseChannels[0].policy.defaultEnv", "PVN_TOKEN"),
            set("service.env", "PVN_JOB_ID"),
        ]
    );
}

#[test]
fn a_window_that_opens_again_before_it_has_shut_keeps_nothing_out() {
    let window = |schedule: &str, duration: &str| {
        told(&format!(
            "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: local}}\n    apply: \
             {{window: {{schedule: '{schedule}', duration: {duration}}}, taskConfig: {{program: \
             {{cmd: [x]}}}}}}\n"
        ))
    };
    let said = "runtime.custom.apply.window: this window opens again before it has shut, so it is \
                open for as long as it comes";
    for (schedule, duration) in
        [("* * * 9-17 * *", "8h"), ("0 * * * *", "2h"), ("0 0 * * *", "24h"), ("* * * * *", "1m")]
    {
        assert_eq!(window(schedule, duration), [said], "{schedule} {duration}");
    }
    for (schedule, duration) in [
        ("0 9 * * 1-5", "8h"),
        ("0 9-17 * * *", "2h"),
        ("0 0 * * 1-5", "24h"),
        ("0 * * * *", "59m"),
        ("0 0 1 1 *", "240h"),
    ] {
        assert!(window(schedule, duration).is_empty(), "{schedule} {duration}");
    }
}

#[test]
fn a_question_about_what_is_destroyed_where_nothing_tells_it_is_one_about_everything() {
    let runtime = |fetch: &str| {
        format!(
            "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: local}}\n{fetch}    apply: \
             {{taskConfig: {{program: {{cmd: [a]}}}}}}\n    requireApprovalForDestroy: true\n"
        )
    };
    let told_without = told(&runtime(""));
    assert_eq!(told_without.len(), 1);
    assert_eq!(
        told_without[0].split(": ").next(),
        Some("runtime.custom.requireApprovalForDestroy")
    );
    let fetch = "    fetch: {taskConfig: {program: {cmd: [b]}}}\n";
    assert!(told(&runtime(fetch)).is_empty());
}
