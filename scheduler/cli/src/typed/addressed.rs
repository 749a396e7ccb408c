//! Commands as messages spell them out, said as people say them: `pvnctl services retry web --app
//! shop --channel eu` is `pvnctl services retry shop/web@eu`. Messages are written with the names
//! apart, some by a scheduler of before; what people see is made of them here alone.

/// What is about a service, or about one channel of it.
const VERBS: &[&str] = &[
    "get",
    "push",
    "wait",
    "approve",
    "reject",
    "refresh",
    "retry",
    "pause",
    "observe",
    "resume",
    "rollback",
    "explain",
    "acknowledge",
    "open-window",
];

/// The words after `pvnctl`, said so; `None` where there is nothing to say otherwise.
pub(super) fn addressed(words: &str) -> Option<String> {
    let mut rest: Vec<&str> = words.split(' ').collect();
    let (spelled, has_service) = match *rest.as_slice() {
        ["services", verb, _, ..] if VERBS.contains(&verb) => (2, true),
        ["run", _, ..] => (1, true),
        ["jobs", "list", ..] => (2, false),
        _ => return None,
    };
    let said: Vec<&str> = rest.drain(..spelled).collect();
    let said = said.join(" ");
    let service = has_service.then(|| rest.remove(0));
    let application = take(&mut rest, "--app")?;
    let service = match service {
        Some(service) => service,
        None => take(&mut rest, "--service")?,
    };
    if !is_plain(service) || !is_plain(application) {
        return None;
    }
    let channel = take(&mut rest, "--channel").or_else(|| {
        let is_one = rest.windows(2).any(|two| two[0] == "--channels" && !two[1].contains(','));
        is_one.then(|| take(&mut rest, "--channels")).flatten()
    });
    let channel = channel.map_or_else(String::new, |channel| format!("@{channel}"));
    let rest: String = rest.iter().map(|word| format!(" {word}")).collect();
    Some(format!("{said} {application}/{service}{channel}{rest}"))
}

/// Takes a flag and its value out of the words.
fn take<'a>(words: &mut Vec<&'a str>, flag: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == flag)?;
    let value = *words.get(at + 1)?;
    words.drain(at..at + 2);
    Some(value)
}

/// Whether a word is no flag, and parts nothing of an address.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-') && !word.contains(['/', '@'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, expected: Option<&str>) {
        assert_eq!(addressed(words).as_deref(), expected, "{words}");
    }

    #[test]
    fn names_apart_become_an_address() {
        check("services retry web --app shop --channel eu", Some("services retry shop/web@eu"));
        check("services get web --app shop", Some("services get shop/web"));
        check("services wait my-web --app my-shop", Some("services wait my-shop/my-web"));
        check(
            "services approve web --app shop --channel eu --approval apr-1 --plan-digest d",
            Some("services approve shop/web@eu --approval apr-1 --plan-digest d"),
        );
        check(
            "services rollback web --app shop --to web-3 --channels eu",
            Some("services rollback shop/web@eu --to web-3"),
        );
        check(
            "services push web --app shop --channels eu,us --param a=--app",
            Some("services push shop/web --channels eu,us --param a=--app"),
        );
        check("run web --app shop --channel eu --kind fetch", Some("run shop/web@eu --kind fetch"));
        check(
            "jobs list --app shop --service web --kind apply",
            Some("jobs list shop/web --kind apply"),
        );
    }

    #[test]
    fn what_is_no_such_command_stays() {
        for words in [
            "services retry",
            "services retry shop/web@eu",
            "services list --app shop",
            "services push --app shop",
            "jobs list --app shop",
            "jobs logs job-1",
            "configs apply",
            "services retry web --app",
        ] {
            check(words, None);
        }
    }
}
