//! A program that does what the real `pulumi` was seen to do, and the documents that it prints.

use serde_json::{Value, json};

/// The program, a shell script. It does what the files of the directory `$WORLD` say: `preview` and
/// `settled` are what it prints before and after an `up`, and the script has the rest.
pub const PROGRAM: &[u8] = include_bytes!("pulumi/replay.sh");

/// What a backend of one's own says of a lock.
pub const LOCK: &str = "\
error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or \
delete the lock file with `pulumi cancel`.
  file:///state/.pulumi/locks/organization/p/dev/6f1c.json: created by root@vm (pid 4711) at \
2026-11-28T03:00:00Z
";

/// A document as `preview --json --refresh` prints one, of a resource that somebody changed.
pub fn drift() -> Value {
    let urn = "urn:pulumi:dev::p::a:b:Cmd::web";
    let state = json!({
        "urn": urn, "custom": true, "type": "a:b:Cmd",
        "inputs": {"zone": "plain value", "token": "[secret]"},
        "outputs": {"token": {"4dabf18193072939515e22adb298388d":
            "1b47061264138c4ac30d75fd1eb44270", "plaintext": "\"hunter2\""}},
    });
    json!({
        "config": {"p:zone": "plain value"},
        "steps": [
            {"op": "same", "urn": "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev",
                "detailedDiff": null},
            {"op": "refresh", "urn": urn, "oldState": state, "detailedDiff": null},
            {"op": "update", "urn": urn, "oldState": state, "newState": state,
                "diffReasons": ["zone"],
                "detailedDiff": {"zone": {"kind": "update", "inputDiff": false}}},
        ],
        "diagnostics": [{"message": "a word of the program\n", "severity": "info#err"}],
        "duration": 51_731_000,
        "changeSummary": {"same": 1, "update": 1},
    })
}

/// A document of a preview that finds nothing to do.
pub fn settled() -> Value {
    json!({"changeSummary": {"same": 2}, "duration": 7})
}
