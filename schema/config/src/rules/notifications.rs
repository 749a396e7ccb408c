//! Rules of an application's notifications: addresses that can be sent to, keys that sign.

use super::Rules;
use crate::notifications::{
    NotificationProvider, NotificationTarget, SentValue, signing_key, web_address,
};

/// Most targets of an application: each event is written, and sent, for each of them.
const TARGETS_AT_MOST: usize = 20;

impl Rules<'_> {
    pub(super) fn notifications(&mut self, targets: &[NotificationTarget], at: &str) {
        if targets.len() > TARGETS_AT_MOST {
            self.add(at, format!("there are more than {TARGETS_AT_MOST} targets"));
            self.help("send to one that hands on: a webhook of yours, or a channel of many people");
        }
        let names = targets.iter().map(|target| target.name.as_str());
        self.unique(names, "notification target", |index| format!("{at}/{index}/name"));
        for (index, target) in targets.iter().enumerate() {
            let own = format!("{at}/{index}");
            let at = format!("{own}/{}", target.kind());
            match &target.provider {
                NotificationProvider::Slack(slack) => self.address(&slack.url, &at),
                NotificationProvider::Webhook(webhook) => {
                    self.address(&webhook.url, &at);
                    if let Some(key) = &webhook.signing_key {
                        self.signing_key(key, &at);
                    }
                }
            }
            if target.events.as_ref().is_some_and(Vec::is_empty) {
                self.add(format!("{own}/events"), "no event is named, so that nothing is told");
                self.help("name some, or leave `events` out for those that people have to know of");
            }
            let mut events = target.events.clone().unwrap_or_default();
            let all = events.len();
            events.sort_unstable();
            events.dedup();
            if events.len() < all {
                self.add(format!("{own}/events"), "an event is named twice");
            }
        }
    }

    fn address(&mut self, url: &SentValue, at: &str) {
        let Some((field, text)) = url.written() else { return };
        if let Err(why) = web_address(text) {
            self.add(
                format!("{at}/url/{field}"),
                format!("this is no address of a webhook: {why}"),
            );
            self.help("write it whole, as in `https://hooks.slack.com/services/…`");
        }
    }

    fn signing_key(&mut self, key: &SentValue, at: &str) {
        let Some((field, text)) = key.written() else { return };
        if let Err(why) = signing_key(text) {
            self.add(format!("{at}/signingKey/{field}"), format!("this is no signing key: {why}"));
            self.help(
                "make one: `echo whsec_$(openssl rand -base64 32)`, and keep it with `pvnctl \
                 secrets set`",
            );
        }
    }
}
