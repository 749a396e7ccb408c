//! Why an instance stands where it stands, as data: the chain from what is so to what would move
//! it, and what happens next by itself. Called by the API for people and by the tests, which assert
//! that everything that waits can say what would end it. It decides nothing: what is so, and what
//! would end it, comes from the description of the situation (`describe.rs`), who holds a place
//! from the lanes, and the names in a command from the surroundings.

use schema::api::{Cause, Explanation};
use schema::cause::CauseCode;
use schema::id::{ChannelName, InstanceId};
use schema::time::Timestamp;

mod because;
mod forecast;
mod job;
mod person;
mod place;
mod upstream;
mod way_out;

use crate::limiter::ConcurrencyLimiter;
use crate::state::State;

pub use forecast::{Forecast, forecast};

/// Whether this cause names the channels of [`Surroundings::together`].
pub fn names_together(cause: &Cause) -> bool {
    matches!(cause.code, CauseCode::UpstreamUnstable | CauseCode::NoRelease)
}

/// What a channel pursues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PursuedVersion {
    pub version: String,
    /// Whether it was taken back to that.
    pub is_rollback: bool,
}

/// What an explanation tells of the rest of the world.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// `service/channel` of another instance, for those who hold a place.
    pub name: &'a dyn Fn(InstanceId) -> String,
    /// What another channel of the service pursues; none before a release goes there.
    pub pursued: &'a dyn Fn(&ChannelName) -> Option<PursuedVersion>,
    /// The channels to which one release has to go for this one to come out of its wait for
    /// others, this one among them.
    pub together: &'a dyn Fn() -> Vec<ChannelName>,
    /// The words that name this instance in a command of `pvnctl`: `web --app shop --channel eu`.
    pub target: &'a str,
}

/// Of nobody and nothing.
impl Default for Surroundings<'_> {
    fn default() -> Self {
        Self { name: &|_| String::new(), pursued: &|_| None, together: &Vec::new, target: "" }
    }
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Surroundings").field(&self.target).finish()
    }
}

/// The chain of causes.
pub fn explain(
    state: &State,
    lanes: &ConcurrencyLimiter,
    now: Timestamp,
    around: Surroundings<'_>,
) -> Explanation {
    let standing = state.standing();
    // At the instant that the stored status was decided at, so that both tell the same.
    let situation = state.situate(state.seen_at());
    let described = situation.describe(state, state.seen_at());
    let mut chain = CauseChain { state, lanes, now, around, causes: Vec::new() };
    let led_to = situation.led_to_by(state);
    led_to.iter().chain(&described.because).for_each(|because| chain.because(*because));
    chain.way_out(described.way_out);
    described.besides.iter().for_each(|because| chain.because(*because));
    chain.only_observed(&situation);
    chain.window_lifted();
    chain.beside();
    Explanation {
        status: standing.status,
        reason: standing.reason,
        message: standing.message.clone(),
        causes: chain.causes,
        next: described.next,
    }
}

/// The commands that bring a service back into a channel that was taken away, and what each brings.
/// `target`: as in [`Surroundings`]; `had`: [`State::had`].
pub fn brings_back(target: &str, had: Option<&str>) -> String {
    let channels = |flags: &str| target.replacen(" --channel ", &format!("{flags} --channels "), 1);
    let push = format!("`pvnctl services push {}`", channels(""));
    match had {
        Some(version) => {
            let back = channels(&format!(" --to {version}"));
            format!(
                "`pvnctl services rollback {back}` brings it back as it was at {version}, and \
                 {push} brings the newest values there"
            )
        }
        None => format!("{push} brings it back"),
    }
}

struct CauseChain<'a> {
    state: &'a State,
    lanes: &'a ConcurrencyLimiter,
    now: Timestamp,
    around: Surroundings<'a>,
    causes: Vec<Cause>,
}

impl CauseChain<'_> {
    fn say(
        &mut self,
        code: CauseCode,
        message: String,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) {
        self.causes.push(Cause { code, message, since, until });
    }

    fn since(&self) -> Option<Timestamp> {
        Some(self.state.standing().since)
    }

    /// The one that is desired.
    fn version(&self) -> &str {
        self.state.version_in_words()
    }

    /// The channels to which one release has to go, as a command has them.
    fn together(&self) -> String {
        let names: Vec<String> = (self.around.together)().iter().map(ToString::to_string).collect();
        names.join(",")
    }

    /// What names the service in a command.
    fn service_in_words(&self) -> &str {
        self.around
            .target
            .split_once(" --channel ")
            .map_or(self.around.target, |(service, _)| service)
    }
}
