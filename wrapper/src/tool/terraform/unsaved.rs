//! What an apply did whose state could not be saved: terraform leaves it in `errored.tfstate`, one
//! name for all who work in that directory. Each service instance gets a file of its own, and makes
//! nothing again before somebody has seen to it. Called by `terraform`.
//!
//! The applies of a directory run one after the other (the run around them holds that file's lock),
//! so what lies there after one is of that one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use schema::shown;
use schema::wire::INSTANCE_VARIABLE;

use super::super::call::CallEnd;
use super::super::{Fault, said};
use super::diagnostic::own_errors;
use crate::spawn::{Environment, variable};

/// Where terraform puts a state that it could not save, beside the configuration. Seen with
/// terraform 1.11.4 and tofu 1.12.6.
pub(super) const UNSAVED: &str = "errored.tfstate";

/// What it says then, also where it could not write that file.
const NOT_SAVED: [&str; 2] = ["Error: Failed to save state", "Error: Failed to persist state"];

/// What says that a state could be saved nowhere, in the directory of the service instance.
const LOST: &str = "state-that-was-not-saved";

/// Where a state may lie that was not saved.
pub(super) struct UnsavedState {
    /// Where the tool runs.
    directory: PathBuf,
    /// The file of this service instance, where it is known which it is.
    own: Option<PathBuf>,
    /// Left where there is no such file: nobody else would know.
    lost: Option<PathBuf>,
    /// How a person calls the tool for this service instance.
    program: String,
}

impl UnsavedState {
    /// That of a job, whose calls have this `TF_DATA_DIR`.
    pub(super) fn of(program: &str, data: Option<&OsStr>, environment: &Environment) -> Self {
        let directory = std::env::current_dir().unwrap_or_default();
        let name = |name| variable(environment, name).and_then(OsStr::to_str);
        let names = (name("PVN_APPLICATION"), name("PVN_SERVICE"), name("PVN_RELEASE_CHANNEL"));
        let own = match names {
            (Some(application), Some(service), Some(channel)) => {
                Some(directory.join(format!("errored.{application}.{service}@{channel}.tfstate")))
            }
            _ => None,
        };
        let lost = variable(environment, INSTANCE_VARIABLE).map(|own| Path::new(own).join(LOST));
        let program = match data {
            Some(data) => {
                format!("TF_DATA_DIR={} {program}", shown::shell_word(&data.to_string_lossy()))
            }
            None => program.to_owned(),
        };
        Self { directory, own, lost, program }
    }

    /// A failure where one lies: what it says was made would be made again.
    pub(super) fn none(&self) -> Result<(), Fault> {
        if let Some(own) = self.own.as_ref().filter(|own| own.exists()) {
            return Err(self.kept_in(own, "an earlier apply did its work"));
        }
        let anybodys = self.directory.join(UNSAVED);
        if anybodys.exists() {
            return Err(Fault::failed(format!(
                "{} has a state that could not be saved, of whoever applied there last: by hand, \
                 or in a job that was killed. Nothing is planned or applied there before somebody \
                 has looked whose it is (what it lists says so), saved it there with `state push`, \
                 and removed the file",
                anybodys.display()
            )));
        }
        match self.lost.as_ref().filter(|lost| lost.exists()) {
            Some(lost) => Err(lost_for_good("an earlier apply", Some(lost))),
            None => Ok(()),
        }
    }

    /// What the end of an apply that failed comes to, if it could not save its state.
    pub(super) fn after(&self, ended: &CallEnd) -> Option<Fault> {
        let unsaved = self.directory.join(UNSAVED);
        if unsaved.exists() {
            let own = self.own.as_ref().filter(|own| std::fs::rename(&unsaved, own).is_ok());
            return Some(self.kept_in(own.unwrap_or(&unsaved), "the apply did its work"));
        }
        let own = own_errors(&ended.words);
        if !own.lines().any(|line| NOT_SAVED.iter().any(|text| line.starts_with(text))) {
            return None;
        }
        let words = said::in_one_line(&own);
        let lost = self.lost.as_ref().filter(|lost| std::fs::write(lost, &words).is_ok());
        Some(lost_for_good("the apply", lost.map(PathBuf::as_path)))
    }

    fn kept_in(&self, file: &Path, what: &str) -> Fault {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Fault::failed(format!(
            "{what} and could not save the state: {} has it. Nothing is planned or applied before \
             it is saved: once the backend works, `cd {} && {} state push {}`, and remove the file",
            file.display(),
            shown::shell_word(&self.directory.to_string_lossy()),
            self.program,
            shown::shell_word(&name)
        ))
    }
}

/// Nobody has the state. `mark`: the file that keeps it from being made again.
fn lost_for_good(who: &str, mark: Option<&Path>) -> Fault {
    let then = match mark {
        Some(mark) => format!(
            "nothing is planned or applied before that is seen to; then remove {}",
            mark.display()
        ),
        None => "nothing here remembers that: `pvnctl services pause` keeps it from being made \
                 again meanwhile"
            .to_owned(),
    };
    Fault::failed(format!(
        "{who} did its work, and its state could be saved nowhere, neither in the backend nor \
         beside the configuration. What it made is in no state and would be made once more: \
         `import` it, or remove it by hand; {then}"
    ))
}
