//! A runner whose commands share no disk with the scheduler: it hands each job over, and the test
//! is its wrapper.

use super::*;

/// What the runner does with a job that was handed over: the spec and the variables that `Delivery`
/// gave for it.
pub(super) type Launch = Arc<dyn Fn(&JobSpec, &[(String, String)]) + Send + Sync>;

/// A runner elsewhere: all that it does itself is to hand over and to launch.
#[derive(Clone)]
pub(super) struct Elsewhere {
    pub(super) delivery: Delivery,
    pub(super) news: News,
    pub(super) launch: Launch,
    pub(super) handed: Arc<Mutex<BTreeMap<JobId, Handed>>>,
}

/// A job that was handed over.
#[derive(Debug, Clone)]
pub(super) struct Handed {
    pub(super) spec: JobSpec,
    pub(super) token: String,
}

impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Elsewhere")
    }
}

impl Runner for Elsewhere {
    fn start(&self, spec: JobSpec) {
        let this = self.clone();
        tokio::spawn(async move {
            match this.delivery.expect(&spec, &this.news).await {
                Ok(environment) => {
                    (this.launch)(&spec, &environment);
                    let token =
                        environment.iter().find(|(key, _)| key == "PVN_TOKEN").unwrap().1.clone();
                    this.handed.lock().unwrap().insert(spec.job, Handed { spec, token });
                }
                Err(error) => {
                    let end = End::NotStarted { why: error.to_string(), surroundings: true };
                    let _ =
                        this.news.send(RunnerEvent::Ended { job: spec.job, end, gone: true }).await;
                }
            }
        });
    }

    fn stop(&self, job: JobId) -> bool {
        self.delivery.cancel(job)
    }

    fn recover(&self, unfinished: Vec<JobId>) -> BoxFuture<'_, Vec<JobId>> {
        Box::pin(async move {
            let known = self.delivery.recover(&unfinished, Holds::Nothing, &self.news).await;
            unfinished.into_iter().filter(|job| !known.contains(job)).collect()
        })
    }

    fn forget(&self, jobs: Vec<JobId>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            for job in jobs {
                self.delivery.forget(job).await;
            }
        })
    }

    fn tail(&self, _piece: OutputPiece) -> BoxFuture<'_, std::io::Result<Option<Vec<u8>>>> {
        Box::pin(async { Ok(None) })
    }
}
