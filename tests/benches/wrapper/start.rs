//! Start and exit of `true`, over executing it directly, beside other inits: runs interleaved one
//! by one, so that whatever else the machine does hits all alike.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tests::skip::tool;

use crate::{Bench, ms, percentile};

/// Rounds, each with one run of everything.
const ROUNDS: usize = 1000;

/// Other inits, and how they are told to hand signals on to the whole group, which costs them
/// nothing at the start.
const PEERS: &[(&str, &[&str])] =
    &[("tini-static", &["-g", "--"]), ("dumb-init", &["--"]), ("catatonit", &["-g", "--"])];

struct Contestant {
    name: String,
    command: Vec<String>,
    took: Vec<Duration>,
}

pub(crate) fn table(bench: &Bench) {
    let command = tool("true").expect("there is a program `true`").display().to_string();
    let contestant = |name: &str, start: &[&str]| Contestant {
        name: name.to_owned(),
        command: start.iter().map(|word| (*word).to_owned()).chain([command.clone()]).collect(),
        took: Vec::with_capacity(ROUNDS),
    };
    let wrapper = bench.wrapper.display().to_string();
    let report = bench.path("report.json").display().to_string();
    let mut all = vec![
        contestant("`true`, executed directly", &[]),
        contestant("pvn-wrapper exec", &[&wrapper, "exec", "--"]),
        contestant(
            "pvn-wrapper exec --job DIR (as the daemon runs it)",
            &[&wrapper, "exec", "--job", "DIR", "--"],
        ),
        contestant(
            "pvn-wrapper exec --report FILE (synced)",
            &[&wrapper, "exec", "--report", &report, "--"],
        ),
    ];
    let mut absent = Vec::new();
    for (peer, flags) in PEERS {
        match tool(peer) {
            Some(path) => {
                let path = path.display().to_string();
                let start: Vec<&str> =
                    [path.as_str()].into_iter().chain(flags.iter().copied()).collect();
                all.push(contestant(peer, &start));
            }
            None => absent.push(*peer),
        }
    }
    for round in 0..ROUNDS {
        for contestant in &mut all {
            let spool = bench.path(&format!("job-{round}"));
            let is_job = contestant.command.iter().any(|word| word == "DIR");
            if is_job {
                std::fs::create_dir(&spool).expect("a spool directory can be made");
            }
            let took = once(&contestant.command, &spool);
            contestant.took.push(took);
            if is_job {
                assert!(spool.join("report.json").exists(), "the job left no report");
                std::fs::remove_dir_all(&spool).expect("the spool directory goes away");
            }
        }
    }
    let direct = percentile(&mut all[0].took, 0.5);
    println!(
        "{:<58}{:>8}{:>8}{:>10}{:>8}   goal: p50 under +0.50 ms, ahead of the others",
        "start and exit, ms", "p50", "p99", "over", "ratio"
    );
    for contestant in &mut all {
        let (p50, p99) =
            (percentile(&mut contestant.took, 0.5), percentile(&mut contestant.took, 0.99));
        let over = ms(p50) - ms(direct);
        println!(
            "{:<58}{:>8.3}{:>8.3}{over:>+10.3}{:>8.2}",
            contestant.name,
            ms(p50),
            ms(p99),
            ms(p50) / ms(direct)
        );
    }
    for peer in absent {
        println!("{peer:<58}skipped: it is not installed");
    }
}

fn once(words: &[String], spool: &Path) -> Duration {
    let mut command = Command::new(&words[0]);
    for word in &words[1..] {
        if word == "DIR" {
            command.arg(spool)
        } else {
            command.arg(word)
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().unwrap_or_else(|error| panic!("{}: {error}", words[0]));
    let took = start.elapsed();
    assert!(status.success(), "{words:?}: {status}");
    took
}
