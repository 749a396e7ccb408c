//! A state that could not be saved, which is all that is known of what an apply made.

use fakes::terraform_state::StateServer;

use super::*;

/// Channels whose jobs work in one directory, each with a state in a backend that has no room.
pub(super) struct Unsaved {
    world: World,
    states: StateServer,
}

impl Unsaved {
    pub(super) fn new(test: &str) -> Option<Self> {
        let world = World::new(test)?;
        let states = StateServer::listening("127.0.0.1:0");
        std::fs::write(world.path("main.tf"), CONFIG.replace("\"local\"", "\"http\"")).unwrap();
        Some(Self { world, states })
    }

    fn job(&self, channel: &str, step: &[&str]) -> Wrapper {
        let own = self.world.path(&format!("own of {channel}"));
        std::fs::create_dir_all(&own).unwrap();
        let backend =
            format!("-backend-config=address=http://{}/states/{channel}", self.states.address);
        let init = format!("--init-args={backend}");
        self.world
            .wrapper(&[step, &[init.as_str()]].concat())
            .env("PVN_INSTANCE_DIR", own)
            .env("PVN_APPLICATION", "shop")
            .env("PVN_SERVICE", "web")
            .env("PVN_RELEASE_CHANNEL", channel)
            .env("PVN_JOB_KIND", "apply")
    }

    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// From now on the backend takes no state.
    pub(super) fn fill(&self) {
        self.states.kept().is_full = true;
    }

    pub(super) fn plan(&self, channel: &str) -> Run {
        self.job(channel, &["plan"]).run()
    }

    pub(super) fn apply(&self, channel: &str) -> Wrapper {
        self.world.with_plan(&format!("own of {channel}"), self.job(channel, &["apply"]))
    }
}

#[test]
fn nothing_is_made_again_of_which_the_state_was_not_saved() {
    let test = "nothing_is_made_again_of_which_the_state_was_not_saved";
    let Some(at) = Unsaved::new(test) else { return };
    for channel in ["eu", "us"] {
        assert_eq!(at.plan(channel).code, 2);
    }
    at.states.kept().is_full = true;
    let run = at.apply("eu").run();
    assert_eq!(run.code, 1, "{}", run.stderr);
    let unsaved = at.world.path("errored.shop.web@eu.tfstate");
    assert!(unsaved.exists(), "what terraform could not save is kept: {}", run.stderr);
    let shown = reason(&run).to_owned();
    for words in ["could not save the state", &unsaved.display().to_string(), "state push"] {
        assert!(shown.contains(words), "{shown}");
    }
    let kept = std::fs::read(&unsaved).unwrap();
    at.states.kept().is_full = false;
    for run in [at.plan("eu"), at.apply("eu").run()] {
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(reason(&run).contains("an earlier apply did its work"), "{}", reason(&run));
    }
    assert_eq!(std::fs::read(&unsaved).unwrap(), kept, "it is all that is known of what was made");
    // It is nobody else's.
    let other = at.apply("us").run();
    assert_eq!(other.code, 0, "{}", other.stderr);
    let (_, command) = shown.split_once('`').unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let pushed = Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(pushed.success(), "what is shown saves it: {command}");
    std::fs::remove_file(&unsaved).unwrap();
    assert_eq!(at.plan("eu").code, 0, "what was made is known again");
}

#[test]
fn applies_of_one_directory_do_not_lose_each_others_unsaved_state() {
    let test = "applies_of_one_directory_do_not_lose_each_others_unsaved_state";
    let Some(at) = Unsaved::new(test) else { return };
    let slow = at.job("eu", &["plan", "--pre-run", "export TF_VAR_slow=4"]).run();
    assert_eq!(slow.code, 2, "{}", slow.stderr);
    assert_eq!(at.plan("us").code, 2);
    at.states.kept().is_full = true;
    let first = at.apply("eu").spawn();
    until("the resource is being made", || at.world.path("made.txt").exists().then_some(()));
    let second = at.apply("us").run();
    assert!(second.stderr.contains("which uses errored.tfstate"), "{}", second.stderr);
    assert_eq!([first.wait().code, second.code], [1, 1]);
    for channel in ["eu", "us"] {
        let kept = at.world.path(&format!("errored.shop.web@{channel}.tfstate"));
        assert!(kept.exists(), "{}", kept.display());
    }
}

#[test]
fn a_state_that_can_be_saved_nowhere_is_told_and_nothing_is_made_again() {
    let test = "a_state_that_can_be_saved_nowhere_is_told_and_nothing_is_made_again";
    let Some(at) = Unsaved::new(test) else { return };
    assert_eq!(at.plan("eu").code, 2);
    // No file can be made there, as on a read-only file system; root may write to any other.
    std::os::unix::fs::symlink("/nowhere/at/all", at.world.path("errored.tfstate")).unwrap();
    at.states.kept().is_full = true;
    let run = at.apply("eu").run();
    at.states.kept().is_full = false;
    assert_eq!(run.code, 1, "{}", run.stderr);
    let mark = at.world.path("own of eu/state-that-was-not-saved");
    for words in ["its state could be saved nowhere", "`import` it", &mark.display().to_string()] {
        assert!(reason(&run).contains(words), "{}", reason(&run));
    }
    for run in [at.plan("eu"), at.apply("eu").run()] {
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(reason(&run).contains("an earlier apply did its work"), "{}", reason(&run));
    }
    std::fs::remove_file(mark).unwrap();
    assert_eq!(at.plan("eu").code, 2);
}
