//! What runs just now and who is asked, below the story on a terminal: as `pvnctl status` and
//! `--wait` show it. Taken away before anything else is said.

use pvnctl::client::Client;
use pvnctl::console::Console;
use pvnctl::failure::Failure;
use pvnctl::live::LiveText;
use pvnctl::under_way;
use schema::api::{Overview, OverviewInstance};
use schema::status::JobStatus;

/// Shortest run that is shown: most commands are over before anybody could read of them.
const SHOWN_FROM_MS: i64 = 1_000;

/// What stands on the terminal.
#[derive(Debug, Default)]
pub(super) struct DevDoing {
    live: LiveText,
}

impl DevDoing {
    /// Asks and shows it. Where it cannot be asked nothing is shown.
    pub(super) async fn draw(
        &mut self,
        client: &Client,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let Some(size) = console.data_size() else { return Ok(()) };
        let Ok(overview) = client.get::<Overview>(&["v1", "status"], &[]).await else {
            return self.clear(console);
        };
        let lasts = |one: &&OverviewInstance| {
            one.job.as_ref().is_some_and(|job| {
                let started = job.started_at.filter(|_| job.status == JobStatus::Running);
                started.is_some_and(|at| overview.at.since_ms(at) >= SHOWN_FROM_MS)
            })
        };
        let paper = console.paper(size.0);
        let text = under_way::beneath(overview.instances.iter().filter(lasts), overview.at, &paper);
        let text = self.live.draw(&text, size);
        console.data(&text)?;
        console.flush()
    }

    /// Takes it away.
    pub(super) fn clear(&mut self, console: &mut Console) -> Result<(), Failure> {
        let up = self.live.take_back(console.data_size());
        console.data(&up)?;
        console.flush()
    }
}
