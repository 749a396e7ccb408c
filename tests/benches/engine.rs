//! Steps of the pure engine a second on one core: many instances that look, find work, apply and
//! look again, through the lanes as the driver would. Nothing is stored and nothing runs.
//!
//! `cargo bench -p tests --bench engine [-- SECONDS]`

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::time::{Duration, Instant};

use engine::action::Action;
use engine::desired::{
    ApplyPolicy, Cadence, Desired, FetchAnswer, Observe, PollPolicy, RetryPolicy, WorkExitCodes,
};
use engine::event::{Event, FetchResult, Outcome};
use engine::{State, next_wake, step};
use schema::id::{BlobId, ChannelId, InstanceId, ReleaseId, ServiceId};
use schema::status::JobKind;
use schema::time::Timestamp;

/// Instances that take turns: more than the caches of one core hold.
const INSTANCES: usize = 1_000;

fn main() {
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(5);
    let span = Duration::from_secs(seconds);
    let mut now = Timestamp::from_millis(1_800_000_000_000);
    let mut states: Vec<_> = (0..INSTANCES).map(|number| instance(number, now)).collect();
    let (mut steps, mut jobs) = (0_u64, 0_u64);
    let start = Instant::now();
    while start.elapsed() < span {
        now = now.plus_ms(1_000);
        for slot in &mut states {
            let mut state = slot.take().expect("each slot is filled again below");
            let mut pending = vec![Event::Tick];
            while let Some(event) = pending.pop() {
                let (next, actions) = step(state, event, now);
                state = next;
                steps += 1;
                for action in actions {
                    if let Action::Start(job) = action {
                        jobs += 1;
                        let code = if job.kind == JobKind::Fetch && jobs % 4 == 1 { 2 } else { 0 };
                        let seen =
                            FetchResult { output: Some(BlobId::of(&[])), ..FetchResult::default() };
                        let outcome = Outcome::Exited {
                            code,
                            started_at: now,
                            ended_at: now,
                            said: String::new(),
                            seen: Box::new(seen),
                            info: None,
                        };
                        // Last in, first out: it starts, then it ends.
                        pending.push(Event::JobEnded { job: job.job, outcome });
                        pending.push(Event::JobStarted { job: job.job, at: now });
                    }
                }
                let wanted = [JobKind::Fetch, JobKind::Apply]
                    .into_iter()
                    .find(|kind| state.wants(*kind).is_some());
                if let (true, Some(kind)) = (pending.is_empty(), wanted) {
                    pending.push(Event::Granted(kind));
                }
            }
            assert!(
                next_wake(&state).is_some(),
                "an instance that is looked after is never left alone"
            );
            *slot = Some(state);
        }
    }
    let rate = steps as f64 / start.elapsed().as_secs_f64();
    println!("{:<44}{rate:>10.0} /s   at least 500000", "engine steps on one core");
    println!(
        "{:<44}{:>10.0} /s",
        "jobs decided on the way",
        jobs as f64 / start.elapsed().as_secs_f64()
    );
}

fn instance(number: usize, now: Timestamp) -> Option<State> {
    let part = number.to_le_bytes();
    let id = InstanceId::of(ServiceId::derive(&[&part]), ChannelId::derive(&[&part]));
    let retry = RetryPolicy {
        base: Duration::from_secs(30),
        max: Duration::from_secs(300),
        max_attempts: None,
    };
    let desired = Desired {
        release: ReleaseId::derive(&[&part]),
        version: "s0-1".to_owned(),
        released_at: now,
        runtime: "files".parse().expect("a legal name"),
        max_concurrency: None,
        compiled: BlobId::of(&part),
        target: None,
        observe: Observe::Poll(PollPolicy {
            mode: FetchAnswer::ExitCode,
            cadence: Cadence::Interval {
                poll: Duration::from_secs(1),
                steady: Duration::from_secs(1),
            },
            retry: None,
            timeout: Duration::from_secs(600),
            stop_grace: None,
            work: WorkExitCodes::default(),
        }),
        apply: ApplyPolicy {
            retryable_exit_codes: vec![75],
            retry,
            window: None,
            timeout: None,
            stop_grace: None,
        },
        get_info: None,
        gates: Vec::new(),
        require_approval_before_apply: false,
        require_approval_for_destroy: false,
        approval_timeout: None,
        grace: Duration::from_secs(1),
        apply_id: None,
        progress_deadline: None,
        auto_rollback: false,
        stable_before: false,
        is_rollback: false,
        shared_for: None,
    };
    let (state, _) = step(State::new(id, now), Event::Desired(Box::new(desired)), now);
    Some(state)
}
