//! Jobs that run here and with which nobody has anything to do: the database does not know them, as
//! an older copy of it would not, or says that they are over. They are followed to their end, what
//! a killed wrapper left of one is ended, and until all of it is gone no apply of its instance is
//! started beside it and no instance's directory is removed. Nobody is told. Called by `local`.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use schema::id::{InstanceId, JobId};

use super::deleted::remove_instances;
use super::directory::SpoolContents;
use super::left::{self, LONG_LOOK, LeftOvers, Trace};
use super::process::Wrapper;
use super::pursue::{CLAIMING_LOOK, CLAIMING_LOOKS};
use super::{LocalInner, LocalRunner};
use crate::removal::remove_all;
use crate::runner::Instance;

/// Those that are not known to be gone, and what waits for that.
#[derive(Debug, Default)]
pub(super) struct Strays(Mutex<StraysState>);

#[derive(Debug, Default)]
struct StraysState {
    /// What the wrapper of each left, in words; `None` while it runs.
    jobs: HashMap<JobId, Option<String>>,
    /// Instances that were deleted meanwhile and keep what they have until no stray is left.
    put_off: HashMap<InstanceId, Instance>,
}

impl Strays {
    /// Whether all of a job is not known to be gone.
    pub(super) fn has(&self, job: JobId) -> bool {
        self.lock().jobs.contains_key(&job)
    }

    /// What is left of a job whose wrapper was killed, in words.
    pub(super) fn left_by(&self, job: JobId) -> Option<String> {
        self.lock().jobs.get(&job)?.clone()
    }

    /// Puts the removal of what an instance keeps off; `false` when nothing speaks against it now.
    pub(super) fn put_off(&self, instance: &Instance) -> bool {
        let mut state = self.lock();
        let is_put_off = !state.jobs.is_empty();
        if is_put_off {
            state.put_off.insert(instance.id, instance.clone());
        }
        is_put_off
    }

    /// An instance has jobs again, so that it keeps what it has.
    pub(super) fn keep(&self, instance: InstanceId) {
        self.lock().put_off.remove(&instance);
    }

    fn begins(&self, job: JobId) {
        self.lock().jobs.insert(job, None);
    }

    fn leaves(&self, job: JobId, words: String) {
        self.lock().jobs.insert(job, Some(words));
    }

    fn is_gone(&self, job: JobId) {
        self.lock().jobs.remove(&job);
    }

    fn lock(&self) -> MutexGuard<'_, StraysState> {
        self.0.lock().expect("nobody panics with the lock")
    }
}

impl LocalRunner {
    /// Follows those of these jobs of which something may run, and returns the others.
    pub async fn follow_strays(&self, jobs: Vec<JobId>) -> Vec<JobId> {
        let mut over = Vec::new();
        for job in jobs {
            let directory = self.inner.directory(job);
            // Whoever forgets one that cannot be looked at says what is wrong.
            if !self.inner.may_be_there(job).await.unwrap_or(false) {
                over.push(job);
                continue;
            }
            tracing::warn!(
                %job,
                directory = %directory.path().display(),
                "a job runs that is over in the database or that the database does not know, as \
                 an older copy of it would not; its directory is left alone until it ends"
            );
            self.inner.strays.begins(job);
            let inner = self.inner.clone();
            self.inner.followed.tasks.spawn(async move { inner.follow_stray(job).await });
        }
        over
    }
}

impl LocalInner {
    /// Whether something of a job may run that is not followed yet.
    pub(super) async fn may_be_there(&self, job: JobId) -> io::Result<bool> {
        Ok(match self.look_at_stray(job).await? {
            SpoolContents::Running { .. } | SpoolContents::Claiming => true,
            SpoolContents::Reported(report) => {
                !report.left_running
                    && (left::is_unseen(&report) || !left::reported(&report).is_nothing())
            }
            // Nothing runs of before the machine was started.
            SpoolContents::Lost if self.boot.is_new() && self.was_claimed_before_boot(job) => false,
            SpoolContents::Lost => {
                !left::look_later(job, &self.trace_of_lost(job)).await?.is_nothing()
            }
            SpoolContents::Nothing | SpoolContents::NeverStarted => false,
        })
    }

    async fn look_at_stray(&self, job: JobId) -> io::Result<SpoolContents> {
        let directory = self.directory(job);
        self.blocking.run(move || directory.look()).await
    }

    async fn follow_stray(self: Arc<Self>, job: JobId) {
        tokio::select! {
            () = self.stray_is_gone(job) => {}
            // It goes on, and the next daemon finds it again.
            () = self.followed.detach.cancelled() => return,
        }
        self.strays.is_gone(job);
        tracing::info!(%job, "the job that the database does not know has ended");
        let inner = self.clone();
        remove_instances(move || inner.remove_what_was_put_off()).await;
    }

    /// Returns once nothing of a job is left.
    async fn stray_is_gone(&self, job: JobId) {
        let mut trace = None;
        let mut looks = 0;
        loop {
            match self.look_at_stray(job).await {
                Ok(SpoolContents::Running { pid }) => match Wrapper::adopt(pid) {
                    // Locked after we took hold of the process: the pid was still the wrapper's.
                    Ok(Some(mut wrapper)) if self.directory(job).is_locked().unwrap_or(true) => {
                        trace = self.trace(job, &wrapper);
                        if wrapper.ended().await.is_err() {
                            tokio::time::sleep(LONG_LOOK).await;
                        }
                    }
                    Ok(_) => tokio::time::sleep(CLAIMING_LOOK).await,
                    Err(_) => tokio::time::sleep(LONG_LOOK).await,
                },
                Ok(SpoolContents::Claiming) if looks < CLAIMING_LOOKS => {
                    looks += 1;
                    tokio::time::sleep(CLAIMING_LOOK).await;
                }
                Ok(SpoolContents::Claiming | SpoolContents::Lost) => {
                    let trace = trace.unwrap_or_else(|| self.trace_of_lost(job));
                    return self.end_what_it_left(job, &trace).await;
                }
                Ok(SpoolContents::Reported(report)) if report.left_running => {
                    return left::spare(&left::reported(&report));
                }
                Ok(SpoolContents::Reported(report)) => {
                    return self.left_is_gone(job, None, left::reported(&report)).await;
                }
                Ok(SpoolContents::Nothing | SpoolContents::NeverStarted) => return,
                Err(error) => {
                    tracing::warn!(
                        %job, %error,
                        "failed to look at a job that the database does not know; trying again"
                    );
                    tokio::time::sleep(LONG_LOOK).await;
                }
            }
        }
    }

    /// As of a job that is known: TERM, KILL, and what cannot be ended is waited for.
    async fn end_what_it_left(&self, job: JobId, trace: &Trace) {
        self.strays
            .leaves(job, "its wrapper was killed, and what it left is being stopped".to_owned());
        loop {
            let kill_after = self.kill_after(job, None);
            match left::end(job, trace, kill_after, std::future::pending()).await {
                Ok(ended) => return self.left_is_gone(job, Some(trace), ended.left).await,
                Err(error) => {
                    tracing::error!(%job, %error, "failed to look for left-over processes");
                    tokio::time::sleep(LONG_LOOK).await;
                }
            }
        }
    }

    /// Returns once what is left has ended, or a person has said that it is not the job's by
    /// removing its directory.
    async fn left_is_gone(&self, job: JobId, trace: Option<&Trace>, left: LeftOvers) {
        if left.is_nothing() {
            return;
        }
        self.strays.leaves(job, format!("its wrapper is gone{}", left.words()));
        let removed = async {
            while self.has_directory(job) {
                tokio::time::sleep(LONG_LOOK).await;
            }
        };
        tokio::select! {
            () = left::ended(job, trace, left) => {}
            () = removed => {}
        }
    }

    /// Removes what the instances keep that were deleted while a stray ran, unless another one runs
    /// or they have jobs again. Blocks.
    fn remove_what_was_put_off(&self) -> io::Result<()> {
        loop {
            let trash = {
                let mut state = self.strays.lock();
                let next = state.put_off.keys().next().copied().filter(|_| state.jobs.is_empty());
                let Some(instance) = next.and_then(|id| state.put_off.remove(&id)) else {
                    return Ok(());
                };
                self.instances.forget_applies(&instance, |job| self.has_directory(job))?;
                self.instances.set_aside(instance.id)?
            };
            if let Some(trash) = trash {
                remove_all(&trash)?;
            }
        }
    }
}
