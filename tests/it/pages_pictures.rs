//! The pictures in the README: the page of a service and of a job of the quickstart, in a real
//! browser, after somebody broke something. With `PVN_PICTURES=docs/pictures` they are written
//! there.

use tests::browser::{Browser, Look};
use tests::dev::Dev;
use tests::programs::repository;
use tests::wait;

use crate::house::tracked;
use crate::pages::sign_in;

/// As wide as a README is shown, or nearly.
const LOOK: Look = Look { name: "readme", width: 1080, height: 760, scheme: "light" };

/// Most bytes of a picture: whoever reads a README on a phone pays for it.
const PICTURE_BYTES: u64 = 120_000;

#[test]
fn the_pictures_of_the_readme_are_of_the_quickstart() {
    let test = "the_pictures_of_the_readme_are_of_the_quickstart";
    let mut dev = Dev::of("quickstart");
    dev.start(&[]);
    dev.file_becomes("site/greeting.txt", "hello\n");
    let Some(browser) = Browser::start(test, &dev.url()) else { return };
    browser.look(LOOK);
    browser.open("/applications/quickstart/services/site");
    sign_in(&browser, &dev.token());
    browser.shows("#why", "Converged");
    let index = dev.directory().join("site/index.html");
    let good = std::fs::read_to_string(&index).expect("it is there");
    std::fs::write(&index, "oops\n").expect("a file can be written");
    wait::until("the file to be repaired", || {
        (std::fs::read_to_string(&index).ok()? == good).then_some(())
    });
    browser.shows("#timeline", "drift.found");
    browser.shows("#why", "Converged");
    browser.shows("#jobs li[data-kind=apply]", "Succeeded");
    let picture = |name: &str| {
        if let Some(pictures) = std::env::var_os("PVN_PICTURES") {
            let pictures = repository().join(pictures);
            std::fs::create_dir_all(&pictures).expect("a directory can be made");
            browser.picture_of_window(&pictures.join(name));
        }
    };
    picture("service.png");
    browser.click("#jobs li[data-kind=apply] a");
    browser.shows(".head", "Succeeded");
    browser.shows("#log", "index.html");
    picture("job.png");
    // Nobody had signed in at first.
    let noted = browser.complaints();
    assert!(noted.iter().all(|said| said.contains("401")), "{noted:?}");
}

#[test]
fn every_picture_is_small() {
    for path in tracked(".png") {
        let bytes = std::fs::metadata(repository().join(&path)).expect("it is there").len();
        assert!(bytes < PICTURE_BYTES, "{} has {bytes} bytes", path.display());
    }
}
