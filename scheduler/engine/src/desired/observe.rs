//! How the state of the world comes to be known: asked for by fetch, told by a watch, or not at
//! all.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Cadence, FetchAnswer, RetryPolicy};
use crate::limits::{SHORTEST_FRESHNESS, USUAL_WORK_EXIT_CODE};

/// How it becomes known how the world is.
///
/// Stored under the key `fetch`, as versions before [`Observe::Watch`] wrote it: a [`PollPolicy`],
/// or `null` for [`Observe::Never`]. A watch is `{"watch": …}` there, which such a version refuses
/// for that one instance instead of applying blindly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Observe {
    /// A fetch is run again and again.
    Poll(PollPolicy),
    /// Somebody tells by itself; no job is ever started to look.
    Watch(WatchPolicy),
    /// Nobody looks: a release is work until its apply has succeeded.
    #[default]
    Never,
}

/// When a fetch is run, and what its end means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollPolicy {
    /// What the answer means.
    pub mode: FetchAnswer,
    /// When it is due.
    pub cadence: Cadence,
    /// Back-off after errors; `None` = the poll interval.
    pub retry: Option<RetryPolicy>,
    /// Longest run.
    #[serde(rename = "timeout_ms", with = "crate::millis")]
    pub timeout: Duration,
    /// How long its place lets it end once it was asked to; `None` = no longer than usual.
    #[serde(
        rename = "stop_grace_ms",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::millis::maybe"
    )]
    pub stop_grace: Option<Duration>,
    /// With which codes it says that there is work, in mode EXIT_CODE.
    #[serde(default, skip_serializing_if = "WorkExitCodes::are_usual")]
    pub work: WorkExitCodes,
}

/// The exit codes with which a fetch in mode EXIT_CODE says that there is work: those of the
/// config, else [`USUAL_WORK_EXIT_CODE`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkExitCodes(Vec<i32>);

impl WorkExitCodes {
    /// Those that a config names; none names the usual one. Each is 1 to 255.
    pub fn chosen(codes: &[i32]) -> Self {
        let mut codes = codes.to_vec();
        codes.sort_unstable();
        codes.dedup();
        Self(codes)
    }

    /// Whether a fetch that ends with this code says that there is work.
    pub fn says_work(&self, code: i32) -> bool {
        match self.are_usual() {
            true => code == USUAL_WORK_EXIT_CODE,
            false => self.0.contains(&code),
        }
    }

    /// Whether nobody has chosen them: then a mistake may have ended the fetch as well.
    pub fn are_usual(&self) -> bool {
        self.0.is_empty()
    }

    /// As the subject of a sentence, with its verb: "10 and 11 mean".
    pub(crate) fn that_mean(&self) -> String {
        let codes: Vec<String> = self.0.iter().map(i32::to_string).collect();
        match &codes[..] {
            [] => format!("{USUAL_WORK_EXIT_CODE} means"),
            [one] => format!("{one} means"),
            [others @ .., last] => format!("{} and {last} mean", others.join(", ")),
        }
    }
}

/// What is expected of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchPolicy {
    /// For how long what it told counts: a watch that was silent for so long is told as an error,
    /// and nothing is applied on its word. A watch tells the same again in time. Less than a
    /// second counts as one.
    #[serde(rename = "fresh_for_ms", with = "crate::millis")]
    pub fresh_for: Duration,
}

impl WatchPolicy {
    /// For how long what such a watch tells counts: never so short that it could not be heard of in
    /// between.
    pub(crate) fn counts_for(&self) -> Duration {
        self.fresh_for.max(SHORTEST_FRESHNESS)
    }
}

impl Observe {
    /// How to poll, if that is how.
    pub fn poll(&self) -> Option<&PollPolicy> {
        match self {
            Self::Poll(policy) => Some(policy),
            Self::Watch(_) | Self::Never => None,
        }
    }

    /// What is expected of the watch, if there is one.
    pub fn watch(&self) -> Option<&WatchPolicy> {
        match self {
            Self::Watch(policy) => Some(policy),
            Self::Poll(_) | Self::Never => None,
        }
    }

    /// Whether the state of the world becomes known at all.
    pub fn looks(&self) -> bool {
        match self {
            Self::Poll(_) | Self::Watch(_) => true,
            Self::Never => false,
        }
    }

    /// Who tells, in the middle of a sentence.
    pub(crate) fn who_looks(&self) -> &'static str {
        match self {
            Self::Watch(_) => "the watch",
            Self::Poll(_) | Self::Never => "fetch",
        }
    }
}

impl Serialize for Observe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Poll(policy) => policy.serialize(serializer),
            Self::Watch(watch) => WatchRow { watch }.serialize(serializer),
            Self::Never => serializer.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for Observe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(row) = Option::<ObserveRow>::deserialize(deserializer)? else {
            return Ok(Self::Never);
        };
        if let Some(watch) = row.watch {
            return Ok(Self::Watch(watch));
        }
        Ok(Self::Poll(PollPolicy {
            mode: row.mode.ok_or_else(|| D::Error::missing_field("mode"))?,
            cadence: row.cadence.ok_or_else(|| D::Error::missing_field("cadence"))?,
            retry: row.retry,
            timeout: row.timeout.ok_or_else(|| D::Error::missing_field("timeout_ms"))?,
            stop_grace: row.stop_grace,
            work: row.work,
        }))
    }
}

/// A watch as it is stored.
#[derive(Serialize)]
struct WatchRow<'a> {
    watch: &'a WatchPolicy,
}

/// Either of both, as it is stored.
#[derive(Deserialize)]
struct ObserveRow {
    watch: Option<WatchPolicy>,
    mode: Option<FetchAnswer>,
    cadence: Option<Cadence>,
    retry: Option<RetryPolicy>,
    #[serde(rename = "timeout_ms", default, with = "crate::millis::maybe")]
    timeout: Option<Duration>,
    #[serde(rename = "stop_grace_ms", default, with = "crate::millis::maybe")]
    stop_grace: Option<Duration>,
    #[serde(default)]
    work: WorkExitCodes,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(row: &str, expected: &Observe) {
        assert_eq!(&serde_json::from_str::<Observe>(row).unwrap(), expected, "{row}");
        assert_eq!(
            serde_json::to_string(expected).unwrap(),
            row,
            "and it is written as it was read"
        );
    }

    #[test]
    fn what_versions_of_before_wrote_is_read_and_written_as_it_was() {
        let retry = RetryPolicy {
            base: Duration::from_secs(1),
            max: Duration::from_secs(2),
            max_attempts: Some(3),
        };
        let poll = PollPolicy {
            mode: FetchAnswer::ExitCode,
            cadence: Cadence::Interval {
                poll: Duration::from_secs(30),
                steady: Duration::from_secs(300),
            },
            retry: None,
            timeout: Duration::from_secs(600),
            stop_grace: None,
            work: WorkExitCodes::default(),
        };
        check(
            r#"{"mode":"ExitCode","cadence":{"Interval":{"poll_ms":30000,"steady_ms":300000}},"retry":null,"timeout_ms":600000}"#,
            &Observe::Poll(poll.clone()),
        );
        check(
            concat!(
                r#"{"mode":"StructuredOutput","cadence":{"Interval":{"poll_ms":30000,"steady_ms":300000}},"#,
                r#""retry":{"base_ms":1000,"max_ms":2000,"max_attempts":3},"timeout_ms":600000,"stop_grace_ms":45000,"work":[10,11]}"#
            ),
            &Observe::Poll(PollPolicy {
                mode: FetchAnswer::StructuredOutput,
                retry: Some(retry),
                stop_grace: Some(Duration::from_secs(45)),
                work: WorkExitCodes::chosen(&[11, 10, 11]),
                ..poll
            }),
        );
        check("null", &Observe::Never);
        check(
            r#"{"watch":{"fresh_for_ms":90000}}"#,
            &Observe::Watch(WatchPolicy { fresh_for: Duration::from_secs(90) }),
        );
    }

    #[test]
    fn what_a_config_names_takes_the_place_of_the_usual_code() {
        for (chosen, codes, words) in [
            (&[][..], &[2][..], "2 means"),
            (&[10], &[10], "10 means"),
            (&[11, 2, 10], &[2, 10, 11], "2, 10 and 11 mean"),
        ] {
            let work = WorkExitCodes::chosen(chosen);
            let says: Vec<i32> = (0..256).filter(|code| work.says_work(*code)).collect();
            assert_eq!((&says[..], work.that_mean().as_str()), (codes, words));
        }
    }

    #[test]
    fn a_row_that_is_neither_is_not_taken_for_one_that_nobody_looks_at() {
        for row in ["{}", r#"{"mode":"ExitCode","retry":null,"timeout_ms":5}"#, "false"] {
            serde_json::from_str::<Observe>(row).unwrap_err();
        }
    }

    #[test]
    fn a_version_of_before_does_not_read_a_watch_as_a_poll() {
        serde_json::from_str::<Option<PollPolicy>>(r#"{"watch":{"fresh_for_ms":90000}}"#)
            .unwrap_err();
    }
}
