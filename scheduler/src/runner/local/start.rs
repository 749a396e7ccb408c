//! Makes a job's spool directory and starts its wrapper in it, at most once. Called by `local`;
//! `pursue` goes on from there.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use schema::status::JobKind;
use schema::wire::{CACHE_VARIABLE, INSTANCE_VARIABLE};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::command;
use super::directory::{SpoolContents, SpoolDirectory};
use super::process::Wrapper;
use super::pursue::{ProcessesGone, TaskPhase, WRAPPER_GRACE};
use super::{End, JobSpec, LocalInner};
use crate::blobs::{HandOver, unusable};

/// What a start came to.
enum Launch {
    Started(Child),
    /// The job had a directory already.
    Found(SpoolContents),
    Refused(End),
}

impl LocalInner {
    /// The task of a job that is started here.
    pub(super) async fn run(self: Arc<Self>, spec: JobSpec, mut stops: mpsc::Receiver<()>) {
        let job = spec.job;
        let inner = self.clone();
        let launched = self.blocking.run(move || {
            if stops.try_recv().is_ok() {
                (Ok(None), stops)
            } else {
                (inner.launch(&spec).map(Some), stops)
            }
        });
        let (launched, stops) = launched.await;
        let at = match launched {
            Ok(Some(Launch::Started(child))) => TaskPhase::Running(Wrapper::Started(child)),
            Ok(Some(Launch::Found(found))) => TaskPhase::Found(found),
            Ok(Some(Launch::Refused(end))) => TaskPhase::Over(end, ProcessesGone::Yes),
            Ok(None) => TaskPhase::Over(
                End::NotStarted {
                    why: "it was stopped before it was started".to_owned(),
                    surroundings: false,
                },
                ProcessesGone::Yes,
            ),
            Err(error) => {
                let spool = &self.settings.spool;
                let why = match spool.exists() {
                    true => format!("its directory in {} cannot be made: {error}", spool.display()),
                    false => format!(
                        "{} was removed while this daemon used it; start the daemon again",
                        spool.display()
                    ),
                };
                tracing::error!(%job, "a job cannot be started: {why}");
                TaskPhase::Over(not_started(why), ProcessesGone::Yes)
            }
        };
        self.pursue(job, at, stops).await;
    }

    /// Makes the job's directory and starts its wrapper. Blocks.
    fn launch(&self, spec: &JobSpec) -> io::Result<Launch> {
        let directory = self.directory(spec.job);
        let current = match command::working_directory(spec, &self.settings.started_in) {
            Ok(current) => current,
            Err(end) => return Ok(Launch::Refused(end)),
        };
        while !self.spares.make(&directory)? {
            match directory.look()? {
                // Nobody can start it any more in that directory, so it makes room for another.
                SpoolContents::NeverStarted => self.spares.take(&directory)?,
                SpoolContents::Nothing => {}
                found => return Ok(Launch::Found(found)),
            }
        }
        if let Some(instance) = &spec.instance {
            self.strays.keep(instance.id);
        }
        match self
            .prepare(spec, &directory)
            .and_then(|own| self.spawn(spec, &directory, &current, own.as_deref()))
        {
            Ok(child) => Ok(Launch::Started(child)),
            Err(end) => {
                self.spares.take(&directory)?;
                Ok(Launch::Refused(end))
            }
        }
    }

    /// Makes what the job is to find beside its own directory. Returns its instance's, or why
    /// nothing may be started.
    fn prepare(&self, spec: &JobSpec, directory: &SpoolDirectory) -> Result<Option<PathBuf>, End> {
        let inputs = self.put_inputs(spec, directory);
        if let Some(why) = inputs.map_err(|error| {
            not_started(format!("what it is to be given cannot be put in place: {error}"))
        })? {
            return Err(End::InputLost { why });
        }
        let running = self.runs_already(spec);
        let running = running.map_err(|error| {
            not_started(format!(
                "whether another apply of its instance runs cannot be told: {error}"
            ))
        })?;
        if let Some(why) = running {
            return Err(not_started(why));
        }
        let own =
            spec.instance.as_ref().map(|instance| self.instances.make(instance.id)).transpose();
        own.map_err(|error| {
            let instances = self.settings.instances.display();
            not_started(format!(
                "the directory of its instance in {instances} cannot be made: {error}"
            ))
        })
    }

    /// Starts the wrapper.
    fn spawn(
        &self,
        spec: &JobSpec,
        directory: &SpoolDirectory,
        current: &Path,
        own: Option<&Path>,
    ) -> Result<Child, End> {
        let wrapper: &Path = &self.settings.wrapper;
        let arguments = command::arguments(spec, directory.path());
        let places: Vec<_> = [(CACHE_VARIABLE, &*self.settings.cache)]
            .into_iter()
            .chain(own.map(|own| (INSTANCE_VARIABLE, own)))
            .collect();
        let given = &self.settings.environment;
        let environment = command::environment(spec, directory.path(), &places, wrapper, given);
        let mut process = Command::new(wrapper);
        process
            .args(&arguments)
            .env_clear()
            .envs(&environment)
            .current_dir(current)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if !(self.may_start.0)() {
            return Err(not_started("this daemon does not have the database any more".to_owned()));
        }
        process.spawn().map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::ArgumentListTooLong => command::too_long(&arguments, &environment),
                _ => format!("its wrapper {} cannot be started: {error}", wrapper.display()),
            };
            // A NUL in what it is given stays there however often it is tried, and so does its
            // length.
            let stays = matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::ArgumentListTooLong
            );
            End::NotStarted { why, surroundings: !stays }
        })
    }

    /// Why an apply may not be started beside another one of its instance, which the database does
    /// not know, as an older copy of it would not (promise P1). From here on it is the last one
    /// itself.
    fn runs_already(&self, spec: &JobSpec) -> io::Result<Option<String>> {
        let Some(instance) = spec.instance.as_ref().filter(|_| spec.kind == JobKind::Apply) else {
            return Ok(None);
        };
        for last in
            self.instances.last_applies(instance)?.into_iter().filter(|last| *last != spec.job)
        {
            let directory = self.directory(last);
            if let Some(left) = self.strays.left_by(last) {
                return Ok(Some(format!(
                    "an apply of this instance runs already, {last}, which the database does not \
                     know: {left}; they are waited for, and who does not want that ends them, or \
                     removes {} if none of them is of that apply",
                    directory.path().display()
                )));
            }
            if self.followed.has(last) && directory.may_run()? {
                return Ok(Some(format!(
                    "the apply {last} of this instance was given up and runs; it is waited for, \
                     and `pvnctl jobs cancel {last}` stops it once more, and kills it when asked \
                     again, its wrapper too within {} s",
                    WRAPPER_GRACE.as_secs()
                )));
            }
            if self.strays.has(last) || directory.may_run()? {
                return Ok(Some(format!(
                    "an apply of this instance runs already, {last}, which the database does not \
                     know; it is waited for, and who does not want that looks in {} for its \
                     process and stops it",
                    directory.path().display()
                )));
            }
        }
        self.instances.note_apply(instance, spec.job)?;
        Ok(None)
    }

    /// Puts what `--in` can name into the job's directory. Returns in words why nothing may be
    /// started.
    fn put_inputs(&self, spec: &JobSpec, directory: &SpoolDirectory) -> io::Result<Option<String>> {
        for (reference, blob) in &spec.inputs {
            let file = match self.blobs.hand_over(*blob)? {
                HandOver::File(path) => Some(path),
                HandOver::Empty => None,
                HandOver::Lost(why) => return Ok(Some(unusable(reference, &why))),
            };
            directory.put_input(reference, *blob, file.as_deref())?;
        }
        Ok(None)
    }
}

/// It may be started later.
fn not_started(why: String) -> End {
    End::NotStarted { why, surroundings: true }
}
