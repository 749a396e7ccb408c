//! What `-o name` prints of a thing: the word by which other commands take it.

use schema::api::{
    Application, ApplicationSummary, ConfigVersion, Job, LogEntry, Notification, Release, Runtime,
    Secret, Service, ServiceSummary, Token,
};
use schema::report::OutputFile;

/// A thing that a command can be told about.
pub trait OutputName {
    /// Its name or whole id, one word.
    fn output_name(&self) -> String;
}

macro_rules! names {
    ($($type:ident: $one:ident => $name:expr;)*) => {
        $(impl OutputName for $type {
            fn output_name(&self) -> String {
                let $one = self;
                $name
            }
        })*
    };
}

names! {
    Application: one => one.name.to_string();
    ApplicationSummary: one => one.name.to_string();
    ConfigVersion: one => match &one.application {
        Some(application) => format!("{application}/{}", one.name),
        None => one.name.clone(),
    };
    Service: one => format!("{}/{}", one.application, one.name);
    ServiceSummary: one => format!("{}/{}", one.application, one.name);
    Job: one => one.id.to_string();
    Release: one => one.release.to_string();
    Runtime: one => one.name.to_string();
    Secret: one => one.key.clone();
    Token: one => one.name.clone();
    LogEntry: one => one.seq.to_string();
    Notification: one => one.id.to_string();
    OutputFile: one => one.name.to_string();
}

impl<T: OutputName> OutputName for &T {
    fn output_name(&self) -> String {
        (*self).output_name()
    }
}
