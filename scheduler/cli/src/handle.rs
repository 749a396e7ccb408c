//! What `-o name` prints of a thing: the word by which other commands take it.

use schema::api::{
    Application, ApplicationSummary, Job, LogEntry, Release, Runtime, Secret, Service,
    ServiceSummary, Token,
};
use schema::report::OutputFile;

/// A thing that a command can be told about.
pub trait Handle {
    /// Its name or whole id, one word.
    fn handle(&self) -> String;
}

macro_rules! handles {
    ($($type:ident: $one:ident => $handle:expr;)*) => {
        $(impl Handle for $type {
            fn handle(&self) -> String {
                let $one = self;
                $handle
            }
        })*
    };
}

handles! {
    Application: one => one.name.to_string();
    ApplicationSummary: one => one.name.to_string();
    Service: one => format!("{}/{}", one.application, one.name);
    ServiceSummary: one => format!("{}/{}", one.application, one.name);
    Job: one => one.id.to_string();
    Release: one => one.release.to_string();
    Runtime: one => one.name.to_string();
    Secret: one => one.key.clone();
    Token: one => one.name.clone();
    LogEntry: one => one.seq.to_string();
    OutputFile: one => one.name.to_string();
}

impl<T: Handle> Handle for &T {
    fn handle(&self) -> String {
        (*self).handle()
    }
}
