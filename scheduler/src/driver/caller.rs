//! Who asks, and where they may change something: the one place that decides it, on the rows that
//! are concerned, whatever way they were named. What they may do at all was decided at the door
//! (`http::access`).

use schema::access::{TokenScope, list};
use schema::id::{ApplicationName, ChannelName};

use super::Refusal;
use crate::names::InstanceNames;

/// Who asks, for the audit log.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Name of the token.
    pub who: String,
    /// Address, or `local`.
    pub origin: String,
    /// Where they may change something.
    pub scope: TokenScope,
}

impl Caller {
    /// Somebody who is limited to nothing.
    pub fn unlimited(who: impl Into<String>, origin: impl Into<String>) -> Self {
        Self { who: who.into(), origin: origin.into(), scope: TokenScope::default() }
    }

    /// As an entry of the log names it.
    pub(super) fn on_record(&self) -> (Option<String>, Option<String>) {
        (Some(self.who.clone()), Some(self.origin.clone()))
    }

    /// Whether the application and all of these channels are within their limits: one that is not
    /// refuses the whole.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`] that says what they may, and who can give more.
    pub(super) fn reaches<'a>(
        &self,
        application: &ApplicationName,
        channels: impl IntoIterator<Item = &'a ChannelName>,
    ) -> Result<(), Refusal> {
        let beyond = self.scope.beyond(application, channels);
        if !self.scope.includes_application(application) {
            return Err(self.beyond(&format!("application {application}"), "; use another token"));
        }
        if beyond.is_empty() {
            return Ok(());
        }
        let others = "; name only channels that it may change, or use another token";
        let beyond: Vec<&str> = beyond.into_iter().map(ChannelName::as_str).collect();
        let channel = if beyond.len() == 1 { "channel" } else { "channels" };
        Err(self.beyond(
            &format!("{channel} {} of application {application}", list(&beyond, "and")),
            others,
        ))
    }

    /// The same for one instance.
    ///
    /// # Errors
    /// As [`Caller::reaches`].
    pub(super) fn reaches_instance(&self, names: &InstanceNames) -> Result<(), Refusal> {
        self.reaches(&names.application.1, [&names.channel.1])
    }

    /// Whether they are limited to nothing, which what concerns all applications needs.
    ///
    /// # Errors
    /// As [`Caller::reaches`].
    pub(super) fn reaches_everything(&self, what: &str) -> Result<(), Refusal> {
        if self.scope.is_everything() {
            return Ok(());
        }
        Err(self.beyond(what, "; use a token without a limit"))
    }

    fn beyond(&self, what: &str, way: &str) -> Refusal {
        // Not as a command to copy: the token that it would be run with is this one.
        Refusal::Forbidden(format!(
            "the token `{}` may change only {}, and this is about {what}, so nothing was \
             done{way}, which an admin makes (`auth token create NAME --role …`)",
            self.who,
            self.scope.in_words()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limits_is_refused_as_a_whole_with_what_is_allowed_and_by_whom() {
        let mut ci = Caller::unlimited("ci", "local");
        let shop: ApplicationName = "shop".parse().unwrap();
        let channels: [ChannelName; 3] = ["eu", "staging", "us"].map(|name| name.parse().unwrap());
        ci.reaches(&shop, &channels).unwrap();
        ci.reaches_everything("all of it").unwrap();
        ci.scope.channels.insert("staging".parse().unwrap());
        ci.reaches(&shop, [&channels[1]]).unwrap();
        let refused = |result: Result<(), Refusal>| match result {
            Err(Refusal::Forbidden(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused(ci.reaches(&shop, &channels)),
            "the token `ci` may change only channel staging of every application, and this is \
             about channels eu and us of application shop, so nothing was done; name only \
             channels that it may change, or use another token, which an admin makes (`auth \
             token create NAME --role …`)"
        );
        ci.scope.applications.insert("other".parse().unwrap());
        assert!(
            refused(ci.reaches(&shop, []))
                .contains("about application shop, so nothing was done; use another")
        );
        assert!(refused(ci.reaches_everything("runtime vm")).contains("about runtime vm"));
    }
}
