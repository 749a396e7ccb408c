//! `pvnctl services acknowledge`.

use clap::Args;
use schema::api::{AcknowledgeRequest, Drift, Instance};
use schema::id::BlobId;
use schema::time::Timestamp;

use crate::address::{ChannelArgument, InstancePath};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  pvnctl acknowledge shop/web@eu --until 2026-12-01 --reason 'the audit wants it like that'
  pvnctl acknowledge shop/web@eu --end

The drift that there is now is left as it is and told to nobody until then; other drift is \
                        repaired as ever. `pvnctl explain SERVICE` shows what is.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    instance: ChannelArgument,
    /// Until when: a date, which begins at 00:00 UTC, or an instant as in 2026-12-01T08:00:00Z
    #[arg(
        long,
        value_name = "WHEN",
        value_parser = instant,
        required_unless_present = "end",
        conflicts_with = "end"
    )]
    until: Option<Timestamp>,
    /// Why it may stay, for those who see it
    #[arg(long, short, value_name = "TEXT", conflicts_with = "end")]
    reason: Option<String>,
    /// Only this drift, by its fingerprint; without it the one that there is now
    #[arg(long, value_name = "FINGERPRINT", conflicts_with = "end")]
    drift: Option<BlobId>,
    /// End it instead: what is there is repaired again
    #[arg(long)]
    end: bool,
}

/// An instant, or the first one of a day.
fn instant(text: &str) -> Result<Timestamp, String> {
    let day = format!("{text}T00:00:00Z");
    text.parse().or_else(|_| day.parse()).map_err(|_| {
        "write it as a date, 2026-12-01, or as an instant, 2026-12-01T08:00:00Z".to_owned()
    })
}

/// Sends it.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let instance = arguments.instance.resolve(client).await?;
    if arguments.end {
        let request = AcknowledgeRequest { end: true, ..AcknowledgeRequest::default() };
        let now = send(&request, &instance, client).await?;
        return console.done(&now, &format!("drift of {} is repaired again", instance.say()));
    }
    let fingerprint = match arguments.drift {
        Some(fingerprint) => fingerprint,
        None => there_is(&instance, client).await?.fingerprint,
    };
    let request = AcknowledgeRequest {
        fingerprint: Some(fingerprint),
        until: arguments.until,
        reason: arguments.reason.clone(),
        end: false,
    };
    let now = send(&request, &instance, client).await?;
    let (what, until) = now.drift.as_ref().map_or((String::new(), String::new()), |drift| {
        let known = drift.acknowledged.as_ref();
        (drift.what.clone(), known.map_or_else(String::new, |known| known.until.to_string()))
    });
    console.done(
        &now,
        &format!(
            "left as it is until {until}: {}: {}",
            instance.say(),
            instance.named().text(&what)
        ),
    )
}

async fn send(
    request: &AcknowledgeRequest,
    instance: &InstancePath,
    client: &Client,
) -> Result<Instance, Failure> {
    client.post(&instance.path("acknowledge"), request).await
}

/// The drift that there is now.
async fn there_is(instance: &InstancePath, client: &Client) -> Result<Drift, Failure> {
    let now: Instance = client.get(&instance.own_path(), &[]).await?;
    now.drift.ok_or_else(|| {
        Failure::user(format!(
            "there is no drift of {} that could be known again; it is {}: {}",
            instance.say(),
            now.status,
            instance.named().text(&now.message)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_begins_at_midnight_and_an_instant_is_taken_as_it_is() {
        for (text, expected) in [
            ("2026-12-01", Some("2026-12-01T00:00:00.000Z")),
            ("2026-12-01T08:30:00+02:00", Some("2026-12-01T06:30:00.000Z")),
            ("tomorrow", None),
            ("2026-13-01", None),
        ] {
            let told = instant(text).ok().map(|at| at.to_string());
            assert_eq!(told.as_deref(), expected, "{text}");
        }
    }
}
