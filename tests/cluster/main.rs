//! `pvn-test-cluster up|down|keep`: the cluster of the tests, for people and for the tests
//! themselves.

use std::process::ExitCode;

use tests::cluster::{self, Cluster};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people")]
fn main() -> ExitCode {
    let order = std::env::args().nth(1).unwrap_or_default();
    let done = match order.as_str() {
        "up" => Cluster::for_people().map(|cluster| println!("{}", cluster.kubeconfig().display())),
        "down" => cluster::end().map(|jobs| println!("{jobs} jobs had a Job, each one")),
        "keep" => cluster::keep(),
        _ => Err("usage: pvn-test-cluster up|down|keep".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
