//! The log of a container that delivered nothing: the one thing that says what an image without a wrapper printed, and where a
//! wrapper that reached nobody left its report. Called once a job is over.

use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::LogParams;
use schema::report::Report;
use schema::spool::Stream;
use schema::wire::TOKEN_VARIABLE;

use super::follow::Follower;
use crate::delivery::StreamTaken;
use crate::runner::learned::{self, Learned};

/// Most bytes that are kept of a log: its head. A node keeps no more than 10 MiB of one by itself (`containerLogMaxSize`).
const KEPT_LIMIT_BYTES: usize = 8 << 20;

/// As much of a log's end as may hold a marked line: a report with two streams of 64 KiB in it, and what leaked processes are
/// called.
const END_LIMIT_BYTES: usize = 1 << 20;

/// Lines at the end of a log among which a wrapper's marked line is: it says little afterwards.
const MARKED_LINES: i64 = 20;

/// Piece in which it is read.
const PIECE_BYTES: usize = 256 << 10;

impl Follower {
    /// Adds what the log says. What was printed is kept as standard output: nobody kept the two streams apart.
    pub(super) async fn read_log(&self, pod: &Pod, mut learned: Learned) -> Learned {
        let (head, end) = match self.log(pod).await {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(job = %self.job, %error, "the log of a job on a cluster cannot be read; its end is told without it");
                return learned;
            }
        };
        learned.line = self.in_line(&String::from_utf8_lossy(&end));
        let is_told = learned.line.as_ref().is_some_and(|report| report.stdout_inline.is_some() || report.stderr_inline.is_some());
        if !is_told {
            self.keep(head).await;
        }
        learned
    }

    /// The report that a wrapper wrote into its log because it reaches nobody; it goes on trying, and nobody has to wait for that.
    pub(super) async fn marked_line(&self, pod: &Pod) -> Option<Box<Report>> {
        let params = LogParams { container: Some(self.record.container.clone()), tail_lines: Some(MARKED_LINES), ..LogParams::default() };
        self.cluster.throttle.pass(self.record.is_apply).await;
        // A log that cannot be read now can be when the container has ended.
        let text = self.pods().logs(&pod.name_any(), &params).await.ok()?;
        self.in_line(&text)
    }

    /// Without the job's token no line counts: anybody could have written it.
    fn in_line(&self, log: &str) -> Option<Box<Report>> {
        learned::in_line(log, &self.job, self.record.token.as_deref()?)
    }

    async fn log(&self, pod: &Pod) -> Result<(Vec<u8>, Vec<u8>), String> {
        let params = LogParams { container: Some(self.record.container.clone()), ..LogParams::default() };
        self.cluster.throttle.pass(self.record.is_apply).await;
        let mut stream = std::pin::pin!(self.pods().log_stream(&pod.name_any(), &params).await.map_err(|error| error.to_string())?);
        let (mut head, mut end) = (Vec::new(), Vec::new());
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = stream.read(&mut piece).await.map_err(|error| error.to_string())?;
            if read == 0 {
                return Ok((head, end));
            }
            let room = KEPT_LIMIT_BYTES.saturating_sub(head.len()).min(read);
            head.extend_from_slice(&piece[..room]);
            end.extend_from_slice(&piece[..read]);
            if end.len() > 2 * END_LIMIT_BYTES {
                end.drain(..end.len() - END_LIMIT_BYTES);
            }
        }
    }

    /// Keeps it where the wrapper would have put it.
    async fn keep(&self, log: Vec<u8>) {
        let delivery = &self.inner.delivery;
        let token = self.record.token.as_ref().and_then(|text| delivery.check(text).ok());
        let Some(upload) = token.and_then(|token| delivery.admit(&token)) else { return };
        match upload.append(Stream::Stdout, 0, log).await {
            Ok(StreamTaken::Next(_)) => {}
            Ok(_) => tracing::debug!(job = %self.job, "the log of a job came after its output"),
            Err(error) => tracing::warn!(job = %self.job, %error, "the log of a job could not be kept"),
        }
    }
}

/// The job's token among the variables that reach us.
pub(super) fn token(reach: &[(String, String)]) -> Option<String> {
    reach.iter().find(|(key, _)| key == TOKEN_VARIABLE).map(|(_, text)| text.clone())
}
