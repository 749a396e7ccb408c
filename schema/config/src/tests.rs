//! Config texts and what the reader says about them.

mod contended;
mod ejected;
mod fields;
mod formats;
mod ineffective;
mod notifications;
mod passable;
mod places;
mod references;
mod rules;
mod shared;
mod values;
mod whole;

use schema::api::ConfigFile;

use crate::{Document, read};

fn file(text: &str) -> ConfigFile {
    ConfigFile { path: "app.pvn.yaml".to_owned(), text: text.to_owned(), ..ConfigFile::default() }
}

/// All problems of a file, as a terminal shows them.
fn problems(text: &str) -> String {
    match read(&[file(text)]) {
        Ok(_) => "none".to_owned(),
        Err(problems) => {
            problems.iter().map(|problem| problem.render(false)).collect::<Vec<_>>().join("\n\n")
        }
    }
}

/// The documents of a file without problems.
#[track_caller]
fn documents(text: &str) -> Vec<Document> {
    read(&[file(text)]).unwrap_or_else(|_| panic!("{}", problems(text)))
}
