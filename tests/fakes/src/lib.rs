//! What stands in for others' servers and programs in tests: as much of Amazon ECS, of Cloud Run
//! and of Cloud Build as their real command-line tools ask for, with state that gets on over time
//! and fails as it is told to, and a replay of what `pulumi` does. Used by the tests of the wrapper
//! and of the whole.

pub mod clients;
pub mod cloud_build;
pub mod cloud_run;
pub mod ecs;
pub mod http;
pub mod pulumi;
pub mod terraform_state;
pub mod turnstile;

use std::net::{SocketAddr, TcpListener};

use http::{Reply, Request};

/// Listens at `address` and answers each connection on a thread of its own until the process ends.
///
/// # Panics
///
/// Where nothing can listen at that address.
pub fn listen(
    address: &str,
    answer: impl Fn(&Request) -> Option<Reply> + Clone + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap();
    let bound = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || http::serve(stream, |request| answer(request)));
        }
    });
    bound
}
