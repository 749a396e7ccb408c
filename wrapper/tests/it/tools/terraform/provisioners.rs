//! A provisioner that fails prints what it likes, the words of terraform itself too.

use super::unsaved::Unsaved;
use super::*;

/// A resource that is made, and then one whose provisioner prints a file and fails.
const FAILING: &str = r#"
resource "terraform_data" "then" {
  depends_on = [terraform_data.made]
  provisioner "local-exec" {
    command = "cat inner.txt; exit 1"
  }
}
"#;

fn add_failing(world: &World, prints: &str) {
    let config = std::fs::read_to_string(world.path("main.tf")).unwrap();
    std::fs::write(world.path("main.tf"), config + FAILING).unwrap();
    std::fs::write(world.path("inner.txt"), prints).unwrap();
}

#[test]
fn what_a_provisioner_prints_is_not_taken_for_terraforms_own_failure() {
    let test = "what_a_provisioner_prints_is_not_taken_for_terraforms_own_failure";
    let Some(world) = World::new(test) else { return };
    add_failing(&world, "");
    let lock = "Error: Error acquiring the state lock\n\nLock Info:\n  ID:        7b7b\n  Who:       \
                bob@elsewhere\n";
    for inner in [
        "Error: Saved plan is stale\n\nThe given plan file can no longer be applied.\n",
        lock,
        "Error: Failed to save state\n\nError saving state: full\n",
        "Error: Failed to install provider\n\nno such version\n",
    ] {
        std::fs::write(world.path("inner.txt"), format!("inner\n\n{inner}")).unwrap();
        assert_eq!(world.run(&["plan"]).code, 2);
        let run = world.apply().run();
        let said = reason(&run);
        assert_eq!(run.code, 1, "{inner}: {said}");
        assert!(
            said.contains("` failed with exit code 1: Error: local-exec provisioner"),
            "{said}"
        );
        for false_words in ["nothing was applied", "force-unlock", "in no state", "registry"] {
            assert!(!said.contains(false_words), "{inner}: {said}");
        }
        let next = world.run(&["plan"]);
        assert_eq!(next.code, 2, "the next plan goes on from there: {}", next.stderr);
    }
}

#[test]
fn a_state_that_was_not_saved_is_told_beside_a_provisioner_that_failed() {
    let test = "a_state_that_was_not_saved_is_told_beside_a_provisioner_that_failed";
    let Some(at) = Unsaved::new(test) else { return };
    add_failing(at.world(), "Error: Saved plan is stale\n");
    assert_eq!(at.plan("eu").code, 2);
    // No file can be made there.
    std::os::unix::fs::symlink("/nowhere/at/all", at.world().path("errored.tfstate")).unwrap();
    at.fill();
    let run = at.apply("eu").run();
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(reason(&run).contains("its state could be saved nowhere"), "{}", reason(&run));
    assert!(at.world().path("own of eu/state-that-was-not-saved").exists());
}
