//! Variables of terraform's own, given in a config or to the daemon, and what lies beside the
//! configuration: where a job's data and its state are.

use super::*;

#[test]
fn a_directory_for_data_that_somebody_named_is_told_of_and_not_shared() {
    let Some(world) = World::new("a_directory_for_data_that_somebody_named") else { return };
    let shared = world.path("shared");
    let named = |run: Wrapper| run.env("TF_DATA_DIR", &shared);
    let plan = ["plan", "--init-args", "-backend-config=path=p.tfstate"];
    let run = named(world.wrapper(&plan)).run();
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(!shared.exists() && world.path("own/terraform-plan/data").exists());
    let told = format!("TF_DATA_DIR is {} and is not used: ", shared.display());
    assert_eq!(run.stderr.matches(&told).count(), 1, "{}", run.stderr);
    // Also where a login exports it.
    let login = format!("export TF_DATA_DIR={}", shared.display());
    let run = world.run(&[&plan[..], &["--pre-run", &login]].concat());
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(!shared.exists() && run.stderr.contains(&told), "{}", run.stderr);
    let run = named(world.wrapper(&["check"])).run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!shared.exists());
}

#[test]
fn a_workspace_whose_state_lies_beside_the_configuration_is_refused_before_there_is_one() {
    let Some(world) = World::new("a_workspace_whose_state_lies_beside_the_configuration") else {
        return;
    };
    let plan = |more: &[&str]| {
        let given = [&["plan", "--init-args", "-backend-config=path=p.tfstate"], more].concat();
        world.wrapper(&given).env("TF_WORKSPACE", "blue").run()
    };
    let run = plan(&[]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let said = "TF_WORKSPACE is `blue`, and the backend `local` keeps the states of workspaces in \
                terraform.tfstate.d";
    assert!(reason(&run).contains(said), "{}", reason(&run));
    let checked = world.wrapper(&["check"]).env("TF_WORKSPACE", "blue").run();
    finds(&checked, "tool ., target FAILED", said);

    // Where each channel has a directory for them it works, again and again.
    let own = ["--init-args", "-backend-config=workspace_dir=p.d"];
    for code in [2, 0] {
        let run = plan(&own);
        assert_eq!(run.code, code, "{}", run.stderr);
        if code == 2 {
            let own = ["apply", own[0], own[1]];
            let apply = world.wrapper(&own).env("TF_WORKSPACE", "blue");
            let applied = world.with_plan("own", apply).run();
            assert_eq!(applied.code, 0, "{}", applied.stderr);
        }
    }
    assert!(world.path("p.d/blue/terraform.tfstate").exists());
}

#[test]
fn a_state_beside_the_configuration_that_is_not_the_backends_is_told_as_that() {
    let Some(world) = World::new("a_state_beside_the_configuration_that_is_not_the_backends")
    else {
        return;
    };
    world.run(&["plan"]);
    assert_eq!(world.apply().run().code, 0);
    let other = ["plan", "--init-args", "-backend-config=path=p.tfstate"];
    let run = world.run(&other);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let said = "there is a state beside the configuration (terraform.tfstate, or one of a \
                workspace in terraform.tfstate.d)";
    assert!(reason(&run).contains(said), "{}", reason(&run));
    assert!(!world.path("p.tfstate").exists(), "no state was moved");
    std::fs::create_dir_all(world.path("terraform.tfstate.d/blue")).unwrap();
    std::fs::rename(
        world.path("terraform.tfstate"),
        world.path("terraform.tfstate.d/blue/terraform.tfstate"),
    )
    .unwrap();
    let run = world.run(&other);
    assert!(run.code == 1 && reason(&run).contains(said), "{}", run.stderr);
}
