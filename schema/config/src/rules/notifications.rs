//! Rules of an application's notifications: addresses that can be sent to, keys that sign,
//! mail servers that no password is shown to in the clear.

use super::Rules;
use crate::notifications::{
    EmailProvider, NotificationProvider, NotificationTarget, SentValue, SmtpTls, mail_address,
    mail_host, signing_key, web_address,
};

/// Most addresses of a target: each is one more question to the server for each message.
const ADDRESSES_AT_MOST: usize = 20;

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
                NotificationProvider::Email(email) => self.email(email, &at),
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

    fn email(&mut self, email: &EmailProvider, at: &str) {
        let EmailProvider { to, from, server } = email;
        if to.is_empty() {
            self.add(format!("{at}/to"), "nobody is named");
            self.help("name those who are told, as in `to: [ann@example.com]`");
        }
        if to.len() > ADDRESSES_AT_MOST {
            self.add(format!("{at}/to"), format!("there are more than {ADDRESSES_AT_MOST}"));
            self.help("name the address of a mailing list");
        }
        let named = to.iter().enumerate().map(|(index, one)| (format!("{at}/to/{index}"), one));
        for (at, address) in named.chain([(format!("{at}/from"), from)]) {
            if let Err(why) = mail_address(address) {
                self.add(at, format!("this is no mail address: {why}"));
                self.help("write the address alone, as in `ann@example.com`");
            }
        }
        let at = format!("{at}/server");
        if let Err(why) = mail_host(&server.host) {
            self.add(format!("{at}/host"), format!("no server can be reached by this: {why}"));
            self.help("write its name alone, as in `smtp.example.com`, and `port` beside it");
        }
        if server.port == Some(0) {
            self.add(format!("{at}/port"), "no server listens at port 0");
            self.help("ports are 1 to 65535; most often it is 587 or 465");
        }
        if server.user.is_some() != server.password.is_some() {
            self.add(&at, "`user` and `password` go together, and only one of them is given");
            self.help("give both, or neither where the server asks nobody who they are");
        }
        if server.tls() == SmtpTls::None && server.password.is_some() && !server.is_local() {
            self.add(format!("{at}/tls"), "the password would go over the network in the clear");
            self.help("leave `tls` out, which asks for STARTTLS, or say `tls: IMPLICIT`");
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
