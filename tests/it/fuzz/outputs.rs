//! Arbitrary outputs of fetch and getInfo, from commands that print a file when there is one and
//! something good otherwise.

use std::path::Path;

use tests::dice::{self, Dice};
use tests::files::task;
use tests::poison;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

use super::{BATCHES, all_converged, is_well, restart};

/// Instances of each kind of runtime; each gets an output of its own in each batch.
const SERVICES: usize = 4;

const LOOK: &str = r#"
echo x >> looked/$PVN_SERVICE
if [ -e poison/$PVN_SERVICE.look ]; then cat poison/$PVN_SERVICE.look; exit; fi
printf '{"objects": [{"name": "a", "objectType": "T", "status": "SUCCEEDED", "versions": [{"version": "%s", "active": true}]}]}' "$PVN_SERVICE_VERSION"
"#;

const INFO: &str = r#"
if [ -e poison/$PVN_SERVICE.info ]; then cat poison/$PVN_SERVICE.info; exit; fi
echo '{"outputs": []}'
"#;

/// A fetch whose exit code decides, and whose words are shown to people.
const SPEAK: &str = r#"
echo x >> looked/$PVN_SERVICE
if [ -e poison/$PVN_SERVICE.look ]; then cat poison/$PVN_SERVICE.look; cat poison/$PVN_SERVICE.look >&2; exit $(cat poison/$PVN_SERVICE.code); fi
"#;

fn configs() -> String {
    let polls = "      pollInterval: 0.2s\n      steadyStatePollInterval: 0.2s\n      \
                 retryPolicy: {baseInterval: 0.2s, maxInterval: 0.2s}\n";
    let runtime = |name: &str, mode: &str, fetch: &str| {
        format!(
            "runtime:\n  name: {name}\n  custom:\n    proxyRuntime: {{runtime: local}}\n    fetch:\n      fetchMode: {mode}\n{polls}{}    apply:\n{}    \
             getInfo:\n      pollInterval: 0.3s\n      retryPolicy: {{baseInterval: 0.3s, maxInterval: 0.3s}}\n{}    convergenceGracePeriod: 0.5s\n---\n",
            task("look", fetch),
            task("do", "true"),
            task("info", INFO),
        )
    };
    let mut yaml =
        runtime("structured", "STRUCTURED_OUTPUT", LOOK) + &runtime("speaking", "EXIT_CODE", SPEAK);
    yaml += "application:\n  name: app\n  releaseChannels:\n  - {name: c0, runtimes: [{runtime: \
             structured}, {runtime: speaking}]}\n";
    for (kind, runtime) in [("s", "structured"), ("w", "speaking")] {
        for service in 0..SERVICES {
            yaml += &format!(
                "---\nservice: {{name: {kind}{service}, application: app, runtimeConnection: \
                 {runtime}}}\n"
            );
        }
    }
    yaml
}

/// Looks that a service has begun so far.
fn looked(home: &Path, service: &str) -> usize {
    std::fs::read_to_string(home.join("looked").join(service))
        .map_or(0, |text| text.lines().count())
}

/// Gives each command a file to print, whole from the first byte on; returns what it was for a
/// message.
fn poison(home: &Path, dice: &mut Dice) -> Vec<(String, String)> {
    let mut given = Vec::new();
    let mut put = |name: String, bytes: &[u8]| {
        let path = home.join("poison").join(&name);
        let draft = home.join("draft");
        std::fs::write(&draft, bytes).expect("a file can be written");
        std::fs::rename(draft, path).expect("a file can be renamed");
        let shown: String = String::from_utf8_lossy(bytes).chars().take(2000).collect();
        given.push((name, shown));
    };
    for service in 0..SERVICES {
        put(format!("s{service}.look"), poison::fetch_output(dice).as_bytes());
        put(format!("s{service}.info"), poison::info_output(dice).as_bytes());
        // Before the words, which the command goes by.
        put(format!("w{service}.code"), dice.pick(&["0", "2", "1", "255", "65"]).as_bytes());
        put(format!("w{service}.look"), &poison::words(dice));
        put(format!("w{service}.info"), poison::info_output(dice).as_bytes());
    }
    given
}

#[test]
fn arbitrary_outputs_end_no_daemon_and_good_ones_converge_again() {
    let (batches, seed) =
        (dice::number("PVN_FUZZ_BATCHES", BATCHES), dice::number("PVN_FUZZ_SEED", 1));
    let mut scheduler = Scheduler::stopped();
    let home = scheduler.home().to_owned();
    for directory in ["poison", "looked"] {
        std::fs::create_dir(home.join(directory)).expect("a directory can be made");
    }
    scheduler.run(&Start::default());
    let path = home.join("fuzz.pvn.yaml");
    std::fs::write(&path, configs()).expect("a file can be written");
    scheduler.ok(&[
        "configs",
        "apply",
        "--no-prompt",
        "--push",
        path.to_str().expect("the path is UTF-8"),
    ]);
    let names: Vec<String> = ["s", "w"]
        .iter()
        .flat_map(|kind| (0..SERVICES).map(move |service| format!("{kind}{service}")))
        .collect();
    for batch in 0..batches {
        let given = poison(&home, &mut Dice::new(seed.wrapping_mul(1_000_003).wrapping_add(batch)));
        let input = || format!("batch {batch} of PVN_FUZZ_SEED={seed}: {given:#?}");
        // The second look after the change began when the end of the first one was stored.
        let before: Vec<usize> = names.iter().map(|name| looked(&home, name)).collect();
        for (name, before) in names.iter().zip(&before) {
            wait::within(wait::PATIENCE, || {
                (looked(&home, name) >= before + 3 || scheduler.exited().is_some()).then_some(())
            })
            .unwrap_or_else(|| {
                panic!("{name} is looked at no more after {}\n{}", input(), scheduler.log())
            });
        }
        is_well(&mut scheduler, &input);
        restart(&mut scheduler, batch % 2 == 0);
        is_well(&mut scheduler, &input);
    }
    for entry in std::fs::read_dir(home.join("poison")).expect("a directory can be read").flatten()
    {
        std::fs::remove_file(entry.path()).expect("a file can be removed");
    }
    wait::until("everything to converge once the outputs are good", || {
        all_converged(&scheduler).then_some(())
    });
}
