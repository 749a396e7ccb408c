//! Work that blocks on the disk, on threads beside the async ones. Called by `delivery` and
//! `runner::local`, each with a limit of its own.

use tokio::sync::Semaphore;

/// Runs no more than so many at once; the others wait for their turn.
#[derive(Debug)]
pub(crate) struct Blocking {
    turns: Semaphore,
}

impl Blocking {
    pub(crate) fn new(limit: usize) -> Self {
        Self { turns: Semaphore::new(limit) }
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let _turn = self.turns.acquire().await.expect("never closed");
        tokio::task::spawn_blocking(run)
            .await
            .expect("it does not panic, and the runtime is not shut down before its tasks")
    }
}
