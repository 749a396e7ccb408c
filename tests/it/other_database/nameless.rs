//! A database whose id is gone or damaged: it is known as the one of its data directory by where it
//! lies and by who used it last, and gets its id back. Where nothing shows that, it is refused,
//! with words that are true and a way back that works.

use tests::disk::edit;
use tests::scheduler::{Scheduler, Start};
use tests::skip;

use super::text;

const LOST: &str = "DELETE FROM meta WHERE key = 'database_id'";

fn can_edit(test: &str) -> bool {
    let can = skip::tool("python3").is_some();
    if !can {
        skip::skipped(test, "python3 is not on PATH");
    }
    can
}

fn note(scheduler: &Scheduler) -> String {
    std::fs::read_to_string(scheduler.data().join("database")).expect("the note is there")
}

#[test]
fn p1_a_database_whose_id_is_lost_or_damaged_gets_it_back_in_its_own_data_directory() {
    if !can_edit("p1_a_database_whose_id_is_lost_or_damaged_gets_it_back_in_its_own_data_directory")
    {
        return;
    }
    let mut scheduler = Scheduler::start();
    let noted = note(&scheduler);
    let repairs = |scheduler: &Scheduler| scheduler.log().matches("got its id back").count();
    let damages = [
        LOST,
        "UPDATE meta SET key = 'databas' WHERE key = 'database_id'",
        "UPDATE meta SET value = 'cut' WHERE key = 'database_id'",
        "UPDATE meta SET value = CAST(x'ff' AS TEXT) WHERE key = 'database_id'",
    ];
    for (before, damage) in damages.into_iter().enumerate() {
        scheduler.kill();
        edit(&scheduler.data().join("pvn.db"), damage);
        scheduler.run(&Start::default());
        assert_eq!(repairs(&scheduler), before + 1, "{damage}: {}", scheduler.log());
        assert_eq!(note(&scheduler), noted, "{damage}");
        scheduler.stop();
        scheduler.run(&Start::default());
        assert_eq!(repairs(&scheduler), before + 1, "once: {}", scheduler.log());
    }
}

#[test]
fn p1_a_database_without_an_id_that_nothing_else_shows_to_be_the_right_one_is_refused() {
    if !can_edit(
        "p1_a_database_without_an_id_that_nothing_else_shows_to_be_the_right_one_is_refused",
    ) {
        return;
    }
    let mut scheduler = Scheduler::start();
    scheduler.stop();
    let own = scheduler.data().join("pvn.db");
    let noted = note(&scheduler);
    let (id, _) = noted.split_once(' ').expect("the id stands first");
    edit(&own, LOST);
    // Elsewhere it may be a copy.
    let copy = scheduler.home().join("copy.db");
    std::fs::copy(&own, &copy).expect("a file can be copied");
    let url = format!("sqlite:{}", copy.display());
    let said =
        scheduler.is_refused(&Start { arguments: &["--database-url", &url], ..Start::default() });
    assert!(said.contains("cannot be told from others") && said.contains(text(&copy)), "{said}");
    // Another directory used it last.
    edit(&own, "UPDATE owner SET data_directory = 'another'");
    let said = scheduler.is_refused(&Start::default());
    for part in ["cannot be told from others", text(&own), "`database_id`", id] {
        assert!(said.contains(part), "no {part}: {said}");
    }
    let (_, told) = said.split_once(" \"INSERT").expect("it has the statement that mends it");
    let (told, _) = told.split_once('"').expect("which ends");
    edit(&own, &format!("INSERT{told}"));
    scheduler.run(&Start::default());
    assert_eq!(note(&scheduler), noted);
    scheduler.stop();

    // One with an id of its own, in the place.
    let mut other = Scheduler::start();
    other.stop();
    std::fs::copy(other.data().join("pvn.db"), &own).expect("a file can be copied");
    let said = scheduler.is_refused(&Start::default());
    assert!(said.contains("another one is in its place now"), "{said}");
    assert!(said.contains("Put that database back") && !said.contains("--database-url"), "{said}");
    edit(&own, LOST);
    let said = scheduler.is_refused(&Start::default());
    assert!(said.contains("cannot be told from others"), "{said}");
}
