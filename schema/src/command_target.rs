//! Commands in what is told of one instance, with the names that they need: whoever reads `pvnctl
//! services retry` in a message copies it. What is stored of an instance leaves the names out;
//! `pvnctl`, and what is sent to people, put them in.

/// The instance that is told of.
#[derive(Debug, Clone, Copy)]
pub struct CommandTarget<'a> {
    pub application: &'a str,
    pub service: &'a str,
    pub channel: &'a str,
}

impl CommandTarget<'_> {
    /// The command with the names; `None` for one that has them, or needs none.
    pub fn command(&self, command: &str) -> Option<String> {
        let rest = command.strip_prefix("pvnctl services ")?;
        let (verb, flags) = rest.split_once(' ').unwrap_or((rest, ""));
        let of_channel = match verb {
            "retry" | "resume" | "pause" | "observe" | "acknowledge" | "open-window" => {
                " --channel "
            }
            // Nobody who asks about one channel means to release to the others, too.
            "rollback" | "push" => " --channels ",
            _ => return None,
        };
        if !flags.is_empty() && !flags.starts_with("--") {
            return None;
        }
        let Self { application, service, channel } = self;
        let flags = if flags.is_empty() { String::new() } else { format!(" {flags}") };
        Some(format!(
            "pvnctl services {verb} {service} --app {application}{of_channel}{channel}{flags}"
        ))
    }

    /// A text with each command in backticks so.
    pub fn text(&self, text: &str) -> String {
        let parts = text.split('`').enumerate().map(|(at, part)| match self.command(part) {
            Some(command) if at % 2 == 1 => command,
            _ => part.to_owned(),
        });
        parts.collect::<Vec<_>>().join("`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_in_a_message_has_the_names_that_it_needs() {
        let named = CommandTarget { application: "shop", service: "web", channel: "eu" };
        assert_eq!(
            named.text(
                "ended with 1; `pvnctl services retry` or `pvnctl services push`, and services \
                 retry; see `x`"
            ),
            "ended with 1; `pvnctl services retry web --app shop --channel eu` or `pvnctl \
             services push web --app shop --channels eu`, and services retry; see `x`"
        );
        let whole = "`pvnctl services resume web --app shop --channel eu`, `pvnctl jobs cancel \
                     job-1` and `pvnctl services retry";
        assert_eq!(
            named.text(whole),
            whole.replace("retry", "retry web --app shop --channel eu"),
            "of what is cut too"
        );
    }
}
