//! Files that change while `dev` runs, and what is wrong with them. Called by `session`.

use pvnctl::console::Console;
use pvnctl::failure::Failure;
use pvnctl::files::Files;

use super::super::files;
use super::Session;

/// What is wrong with the files at present.
#[derive(PartialEq, Eq)]
pub(super) struct Complaint {
    /// As it was told.
    told: String,
    /// Whether they can be read, and the scheduler does not take them.
    is_refused: bool,
    /// Whether the scheduler may take them as they are in a moment.
    passes: bool,
}

impl Session {
    /// Applies changed files; a mistake is shown and waited out.
    pub(super) async fn apply_again(
        &mut self,
        configs: &Files,
        console: &mut Console,
    ) -> Result<(), Failure> {
        match self.apply(configs, console).await {
            Ok(()) => {
                self.complaint = None;
                Ok(())
            }
            Err(failure @ (Failure::Refused(_) | Failure::Token { .. } | Failure::Config(_))) => {
                self.wait_out(&failure, true, console)
            }
            Err(failure) if failure.passes(true) => self.wait_out(&failure, true, console),
            Err(other) => Err(other),
        }
    }

    /// Shows a mistake once, however often an editor writes it. `is_refused`: the files can be
    /// read, and the scheduler does not take them.
    fn wait_out(
        &mut self,
        failure: &Failure,
        is_refused: bool,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let passes = failure.passes(true);
        let complaint = Complaint { told: format!("{failure:?}"), is_refused, passes };
        if self.complaint.as_ref() == Some(&complaint) {
            return Ok(());
        }
        self.complaint = Some(complaint);
        self.doing.clear(console)?;
        console.report(failure)?;
        let then = if passes { "trying again" } else { "waiting for the files to change" };
        console.say(&format!("what was applied before stays in force; {then}"))
    }

    /// The files as they are now, when that is something else than before and can be read.
    pub(in super::super) fn changed(
        &mut self,
        seen: &Files,
        console: &mut Console,
    ) -> Result<Option<Files>, Failure> {
        match files::read(&self.arguments.dir) {
            // What they were refused for may be elsewhere, and mended by now.
            Ok(files) if self.complaint.as_ref().is_some_and(|complaint| complaint.is_refused) => {
                Ok(Some(files))
            }
            Ok(files) if files.files == seen.files => {
                if self.complaint.take().is_some() {
                    self.doing.clear(console)?;
                    console.say("the files are as they were applied again")?;
                }
                Ok(None)
            }
            Ok(files) => Ok(Some(files)),
            Err(failure) => self.wait_out(&failure, false, console).map(|()| None),
        }
    }

    /// Applies the files once more where the scheduler may take them by now.
    pub(super) async fn try_again(
        &mut self,
        configs: &Files,
        console: &mut Console,
    ) -> Result<(), Failure> {
        if self.complaint.as_ref().is_some_and(|complaint| complaint.passes) {
            self.apply_again(configs, console).await?;
        }
        Ok(())
    }
}
