//! What the runner and the network do: start commands, lose sight of them, tell of them late, twice
//! or never.

use super::*;

impl Driver {
    pub(super) fn spawn(&mut self, instance: usize, start: StartJob) {
        let job = start.job;
        if let Some(first) = self.world.processes.get(&job) {
            assert_eq!(first.start, start, "the same job is always the same");
            return;
        }
        if start.kind == JobKind::Apply {
            let now = self.wall();
            self.oracle.may_hand_over(instance, &start, now);
            let beside = self.world.running(instance).next();
            assert!(beside.is_none(), "P1, rule 1: {job} beside {beside:?}");
        }
        let calm = self.calm;
        let random = &mut self.random;
        let fate = fate_of(&start, calm, random);
        let hangs = !calm && (instance >= SICK * 2 || random.one_in(40));
        let mute = !calm && random.one_in(60);
        let immortal = !calm && random.one_in(if mute { 2 } else { 60 });
        let takes = if random.one_in(20) {
            random.between(1_000, 900_000)
        } else {
            random.between(10, 20_000)
        };
        let process = Process {
            instance,
            decoration: (!calm && random.one_in(4)).then(|| outputs::objects(random)),
            structured: self.shapes[instance]
                .observe
                .poll()
                .is_some_and(|fetch| fetch.mode == engine::desired::FetchAnswer::StructuredOutput),
            alive: true,
            ends_at: (!hangs).then_some(self.true_ms + takes),
            began_at: Timestamp::from_millis(START_MS + self.true_ms + self.offset_ms),
            fate,
            mute,
            immortal,
            forgiven: false,
            outcome: None,
            start,
        };
        let started = Event::JobStarted { job, at: process.began_at };
        let at = self.true_ms + takes;
        if !calm && self.random.one_in(8) {
            self.waits(instance, job);
        }
        self.world.start(process);
        if !hangs {
            self.after(at - self.true_ms, Happening::End(job));
        }
        if immortal || fate == Fate::Orphaned {
            let lives = self.random.between(600_000, 7_200_000);
            self.after(lives, Happening::Bury(job));
        }
        if !mute && fate != Fate::TakenBack && (calm || !self.random.one_in(10)) {
            let delay = self.random.between(0, 2_000);
            self.after(delay, Happening::Deliver(instance, Box::new(started)));
        }
    }

    /// Words that may come late, and never move anything.
    fn waits(&mut self, instance: usize, job: JobId) {
        let until = Timestamp::from_millis(START_MS + self.true_ms + 60_000);
        let wait = Wait {
            why: "no room".to_owned(),
            ends_when: "there is".to_owned(),
            until,
            tried_again: true,
            is_unseen: false,
        };
        let delay = self.random.between(0, 5_000);
        self.after(
            delay,
            Happening::Deliver(
                instance,
                Box::new(Event::JobWaits { job, wait: Some(Box::new(wait)) }),
            ),
        );
    }

    pub(super) fn tell_later(&mut self, job: JobId) {
        if !self.calm && self.random.one_in(10) {
            return; // lost on its way; the next relist finds it
        }
        let times = if !self.calm && self.random.one_in(10) { 2 } else { 1 };
        for _ in 0..times {
            let delay = if !self.calm && self.random.one_in(10) {
                self.random.between(0, 300_000)
            } else {
                self.random.between(0, 500)
            };
            self.after(delay, Happening::Tell(job));
        }
    }

    pub(super) fn tell(&mut self, job: JobId) {
        let Some(process) = self.world.processes.get(&job).filter(|process| !process.mute) else {
            return;
        };
        let Some(outcome) = process.outcome.clone() else { return };
        let instance = process.instance;
        let is_taken_back =
            process.fate == Fate::TakenBack && unbegun(&self.states[instance]) == Some(job);
        let told = if is_taken_back {
            Event::Unstarted { job, taken_back: Some("it was paused".to_owned()) }
        } else {
            Event::JobEnded { job, outcome }
        };
        self.handle(instance, told);
    }
}

fn fate_of(start: &StartJob, calm: bool, random: &mut Random) -> Fate {
    match random.below(if calm { 1 } else { 25 }) {
        0..=11 => Fate::Works,
        12..=14 => Fate::Fails(1),
        15 | 16 => Fate::Fails(75),
        17 => Fate::DoesAndFails(*random.pick(&[1, 75])),
        18 => Fate::Lies,
        19 => Fate::NotStarted { surroundings: true },
        20 if start.kind == JobKind::Apply => Fate::TakenBack,
        20 => Fate::NotStarted { surroundings: true },
        21 if start.fetch_job.is_some() && random.one_in(2) => Fate::InputLost,
        21 => Fate::NotStarted { surroundings: false },
        22 => Fate::Lost,
        23 => Fate::Orphaned,
        _ => Fate::Works,
    }
}
