//! `docs/tutorial.md`, followed word for word: every block of commands in its order, at a terminal
//! of 80 columns, with nothing done that the page does not say. What the page shows below a block
//! is what a reader sees.

use std::path::Path;

use tests::programs::repository;
use tests::reader::Reader;
use tests::skip;

/// The page, all commands of which are run here.
pub(crate) const PAGE: &str = "docs/tutorial.md";

/// A block of commands, and what the page shows of it.
struct Step {
    commands: String,
    shown: Option<String>,
}

/// The steps of the page. Fails where something is shown of no commands.
fn steps() -> Vec<Step> {
    let page = std::fs::read_to_string(repository().join(PAGE)).expect("the page can be read");
    let mut steps: Vec<Step> = Vec::new();
    let mut rest = page.as_str();
    while let Some((_, block)) = rest.split_once("\n```") {
        let (kind, block) = block.split_once('\n').expect("a block begins with a line");
        let (text, after) = block.split_once("\n```\n").expect("a block has an end");
        let text = format!("{text}\n");
        match kind {
            "sh" => steps.push(Step { commands: text, shown: None }),
            "text" => {
                let step = steps.last_mut().expect("commands come first");
                assert!(step.shown.replace(text).is_none(), "{} shows twice", step.commands);
            }
            _ => panic!("a block of the page is of `{kind}`"),
        }
        rest = after;
    }
    steps
}

/// How a reader does a step, as a line of shell.
fn done(at: usize, step: &Step) -> String {
    let begins = |with: &str| step.commands.starts_with(with);
    if begins("pvn-scheduler dev") {
        return format!("daemon {at}\n");
    }
    if begins("pvnctl approve") {
        return format!("asked {at}\n");
    }
    if begins("pvnctl push") {
        return format!("once {at}\n");
    }
    if step.shown.is_some() {
        return format!("look {at}\n");
    }
    // A new terminal stands in the checkout; what is set and where one goes holds from then on.
    let place = if begins("export PATH") { "cd \"$checkout\"\n" } else { "" };
    format!("{place}. \"$steps/{at}.sh\" </dev/null\n")
}

#[test]
fn the_tutorial_is_as_it_says() {
    let test = "the_tutorial_is_as_it_says";
    if skip::tool("script").is_none() {
        return skip::skipped(test, "there is no `script`");
    }
    let Some(reader) = Reader::checkout(test) else { return };
    let directory = reader.root().join("tutorial-steps");
    std::fs::create_dir_all(directory.join("home")).expect("a directory can be made");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.join(name), text).expect("a file can be written");
    };
    let mut script = format!(
        "checkout=$PWD\nsteps=$checkout/tutorial-steps\nexport HOME=\"$steps/home\"\n{}",
        include_str!("tutorial/follow.sh")
    );
    let steps = steps();
    assert!(steps.len() > 12, "the page has {} steps", steps.len());
    for (at, step) in steps.iter().enumerate() {
        write(&format!("{at}.sh"), &step.commands);
        if let Some(shown) = &step.shown {
            write(&format!("{at}.shown"), shown);
        }
        script += &done(at, step);
    }
    script += "interrupt_it pvn-scheduler\nwait \"$running\"\n";
    reader.succeeds(&script);
    let kept = directory.join("home/limits/.pvn");
    assert!(Path::exists(&kept), "everything that pvn keeps is in {}", kept.display());
}
