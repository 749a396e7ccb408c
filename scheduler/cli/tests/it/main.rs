//! The client in process, against a tiny server that answers what it is told to.

#![expect(
    clippy::unwrap_used,
    reason = "clippy knows test functions, not the helpers that they share"
)]

mod addresses;
mod approving;
mod arguments;
mod configs;
mod empty;
mod errors;
mod ill;
mod looking;
mod narrow;
mod output;
mod previews;
mod server;
mod suggestions;
mod waiting;

use pvnctl::console::{Console, Remembered};
use server::Server;

/// What a run of `pvnctl` left. The texts are without the flag that names the server in the
/// commands that they suggest.
struct Ran {
    code: u8,
    stdout: String,
    stderr: String,
    stdout_bytes: Vec<u8>,
    stderr_bytes: Vec<u8>,
}

/// Runs `pvnctl` with these words, `input` on stdin; with a width there is a terminal and a person
/// at it.
fn run_with(server: Option<&Server>, words: &[&str], input: &[u8], width: Option<u16>) -> Ran {
    let (mut console, out, err) = Console::remembering(input, width);
    let address = server.map_or_else(|| "http://127.0.0.1:1".to_owned(), Server::url);
    let words: Vec<_> =
        ["pvnctl", "--server", &address].iter().chain(words).map(Into::into).collect();
    let code = pvnctl::run(words, &mut console);
    let text =
        |of: &Remembered| of.text().replace(&format!("pvnctl --server {address} "), "pvnctl ");
    Ran {
        code,
        stdout: text(&out),
        stderr: text(&err),
        stdout_bytes: out.bytes(),
        stderr_bytes: err.bytes(),
    }
}

/// Runs `pvnctl` with these words against `server`.
fn run(server: &Server, words: &[&str]) -> Ran {
    run_with(Some(server), words, b"", None)
}
