//! What is taken away again from where an input was is that input and nothing else.

use std::os::unix::fs::MetadataExt;

use super::shell;
use crate::scheduler::Scheduler;

const PLAN: &[u8] = b"the whole plan";

fn with_plan() -> Scheduler {
    let scheduler = Scheduler::start();
    scheduler.state().inputs.insert("fetch:plan".to_owned(), PLAN.to_vec());
    scheduler
}

/// Removes the file and makes another in its place, under the number of the removed one where the
/// file system gives that again.
const ANOTHER: &str = "old=$(stat -c %i tf.plan); for i in 1 2 3 4 5 6 7 8 9; do rm -f tf.plan; \
                       echo mine > tf.plan; [ $(stat -c %i tf.plan) != $old ] || break; done";

#[test]
fn a_file_that_the_command_makes_in_place_of_an_input_is_its_own() {
    for before in [None, Some("before\n")] {
        let scheduler = with_plan();
        let wrapper = shell(&scheduler, &["--in", "tf.plan=fetch:plan"], ANOTHER);
        if let Some(before) = before {
            std::fs::write(wrapper.path("tf.plan"), before).unwrap();
        }
        let run = wrapper.run();
        let text = |name: &str| std::fs::read_to_string(run.path(name)).ok();
        assert_eq!((run.code, text("tf.plan").as_deref()), (0, Some("mine\n")), "{}", run.stderr);
        assert_eq!(text(".tf.plan.pvn-before").as_deref(), before, "{}", run.stderr);
        assert_eq!(
            run.stderr.contains("what lay at tf.plan before is in"),
            before.is_some(),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_file_that_the_command_makes_in_place_of_the_one_moved_aside_is_not_taken_for_it() {
    let script = "old=$(stat -c %i .tf.plan.pvn-before); for i in 1 2 3 4 5 6 7 8 9; do rm -f \
                  .tf.plan.pvn-before; echo mine > .tf.plan.pvn-before; [ $(stat -c %i \
                  .tf.plan.pvn-before) != $old ] || break; done";
    let scheduler = with_plan();
    let wrapper = shell(&scheduler, &["--in", "tf.plan=fetch:plan"], script);
    std::fs::write(wrapper.path("tf.plan"), "before\n").unwrap();
    let run = wrapper.run();
    let text = |name: &str| std::fs::read_to_string(run.path(name)).ok();
    assert_eq!((run.code, text("tf.plan").as_deref()), (0, Some("before\n")), "{}", run.stderr);
    assert_eq!(text(".tf.plan.pvn-before").as_deref(), Some("mine\n"), "{}", run.stderr);
}

#[test]
fn nothing_but_a_file_makes_room_for_an_input() {
    let scheduler = with_plan();
    let wrapper = shell(&scheduler, &["--in", "pipe=fetch:plan"], "echo ran");
    rustix::fs::mkfifoat(rustix::fs::CWD, wrapper.path("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let number = |path: &std::path::Path| std::fs::symlink_metadata(path).unwrap().ino();
    let before = number(&wrapper.path("pipe"));
    let run = wrapper.run();
    assert_eq!((run.code, run.text().as_str()), (125, ""), "{}", run.stderr);
    assert!(run.stderr.contains("into pipe: what lies there is no file"), "{}", run.stderr);
    assert_eq!(number(&run.path("pipe")), before);
}
