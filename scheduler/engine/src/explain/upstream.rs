//! What an explanation says of another channel that is waited for: what brings it to the version of
//! this one.

use schema::cause::CauseCode;
use schema::id::ChannelName;

use super::CauseChain;
use crate::duration::duration;

impl CauseChain<'_> {
    /// Of one channel for which it waits.
    pub(super) fn upstream(&mut self, channel: &ChannelName) {
        let (state, version) = (self.state, self.version());
        let at = match state.upstream.get(channel) {
            Some(other) => format!("is converged at {other}"),
            None => "is not converged".to_owned(),
        };
        let text = match state.taken_back_in(channel) {
            Some(back) => format!(
                "channel `{channel}` {at}: {version} did not converge there within its progress \
                 deadline of {}, and autoRollback took it back at {}; ends with a new release \
                 that converges there{}",
                duration(back.deadline),
                back.at,
                self.past_what_was_taken_back(channel),
            ),
            None => format!(
                "channel `{channel}` {at}; ends when it is converged at {version}, {}",
                self.upstream_way_out(channel)
            ),
        };
        self.say(CauseCode::UpstreamUnstable, text, self.since(), None);
    }

    /// What brings the channel to the version of this one, as the end of a sentence.
    fn upstream_way_out(&self, channel: &ChannelName) -> String {
        let (service, version) = (self.service_in_words(), self.version());
        let pursued = (self.around.pursued)(channel);
        if pursued.as_ref().is_some_and(|there| there.version == version) {
            return format!(
                "which was released there too: `pvnctl services explain {service} --channel \
                 {channel}` says what that waits for"
            );
        }
        let last = match &pursued {
            Some(there) if there.is_rollback => {
                return format!(
                    "and it was taken back to {}{}",
                    there.version,
                    self.past_what_was_taken_back(channel)
                );
            }
            Some(there) => format!("and {} is what was released there last", there.version),
            None => "and nothing was released there".to_owned(),
        };
        let all = self.together();
        // A push would bring what this one was taken back from.
        let command = match self.state.desired().is_some_and(|desired| desired.is_rollback) {
            true => format!(
                "take all of them back with `pvnctl services rollback {service} --to {version} \
                 --channels {all}`"
            ),
            false => format!(
                "release to all of them with `pvnctl services push {service} --channels {all}`"
            ),
        };
        format!("{last}: {command}, or change the precondition")
    }

    /// The ways on from a channel that was taken back to an earlier version, as the end of a
    /// sentence: this one goes back too, or what was wrong is mended. A push alone would apply
    /// the same again.
    fn past_what_was_taken_back(&self, channel: &ChannelName) -> String {
        let (service, all) = (self.service_in_words(), self.together());
        let own = self.around.target.split_once(" --channel ").map_or("", |(_, own)| own);
        let back = (self.around.pursued)(channel).map_or_else(String::new, |there| {
            format!(
                "; `pvnctl services rollback {service} --to {} --channels {own}` takes this one \
                 back too",
                there.version
            )
        });
        format!(
            "{back}; once what was wrong is mended, also in the config, which a push brings \
             along, `pvnctl services push {service} --channels {all}` releases to all of them \
             (without `--param`: with the values that each channel has)"
        )
    }
}
