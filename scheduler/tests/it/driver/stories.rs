//! Stories told by chance: pushes for all channels and for some, with values and without, values
//! for one channel alone, rollbacks to what was before and to any version, releases that never come
//! right in a channel, pauses, people who say yes or no, crashes in between. An account that knows
//! nothing of the planner holds it to what people said: a value that was taken back in a channel
//! comes to no channel that has not begun it, until somebody names it again; and no push that names
//! none takes a channel back to an older one than it has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pvn_scheduler::compile::StoredValue;
use pvn_scheduler::driver::{Ask, Refusal};
use pvn_scheduler::runner::JobSpec;
use pvn_scheduler::store::{PageRequest, ReleaseRow};
use schema::api::{PushRequest, RollbackRequest};
use schema::id::ChannelName;
use schema::status::{ApprovalStatus, JobKind, Status};
use tests::dice::{Dice, number};

use super::rollbacks::goes_back;
use super::round::variable;
use super::{Rig, TWO_CHANNELS, any_plan, caller, target};

mod account;

/// How many stories are told; `PVN_STORIES=500` tells more.
const STORIES: u64 = 12;

/// What happens in each.
const TURNS: usize = 14;

const CHANNELS: [&str; 2] = ["staging", "production"];

/// The world outside: which size is where, and which never comes right where.
#[derive(Default)]
struct Outside {
    there: BTreeMap<String, String>,
    sick: BTreeSet<(String, String)>,
    /// What began to be applied where.
    begun: BTreeSet<(String, String)>,
}

fn plays(
    outside: &Arc<Mutex<Outside>>,
) -> impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static {
    let outside = outside.clone();
    move |spec| {
        let mut outside = outside.lock().unwrap();
        let here =
            (variable(spec, "PVN_RELEASE_CHANNEL"), spec.command.argv.last().unwrap().clone());
        if spec.kind == JobKind::Apply {
            outside.begun.insert(here.clone());
        }
        match spec.kind {
            JobKind::Apply if outside.sick.contains(&here) => {
                outside.there.remove(&here.0);
                Some(1)
            }
            JobKind::Apply => {
                outside.there.insert(here.0, here.1);
                Some(0)
            }
            _ => Some(if outside.there.get(&here.0) == Some(&here.1) { 0 } else { 2 }),
        }
    }
}

/// A release, and the channels to which it went.
struct Made {
    row: ReleaseRow,
    channels: Vec<ChannelName>,
}

impl Made {
    fn size(&self, channel: &ChannelName) -> String {
        match self.row.params.get(Some(channel), "size") {
            Some(StoredValue::Text(text)) => text.clone(),
            None => "medium".to_owned(),
            other => panic!("{other:?}"),
        }
    }
}

/// What a channel was asked for.
#[derive(Debug, Clone)]
struct Went {
    /// Of the release that brought its version first.
    number: u64,
    version: String,
    size: String,
}

/// What was left in a channel, and the own sizes of all.
type Left = (BTreeSet<String>, BTreeSet<(String, String)>);

/// Sizes are numbered as they are given.
fn age(size: &str) -> u64 {
    size.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// What people said, and what became of it.
#[derive(Default)]
struct Account {
    /// What each channel was asked for, in order.
    went: BTreeMap<String, Vec<Went>>,
    /// The sizes that were taken back in each channel and that nobody has named for it since.
    left: BTreeMap<String, BTreeSet<String>>,
    /// The sizes that people gave for one channel alone, or to which it was to go back.
    own: BTreeSet<(String, String)>,
    /// What was left in each channel before it was asked to go back, as long as that is what it
    /// was asked last.
    before_back: BTreeMap<String, Left>,
    /// How many releases and jobs are in this account.
    releases: u64,
    jobs: usize,
}

struct Story {
    rig: Rig,
    dice: Dice,
    outside: Arc<Mutex<Outside>>,
    account: Account,
    told: Vec<String>,
    sizes: usize,
}

impl Story {
    async fn begin(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let outside: Arc<Mutex<Outside>> = Arc::default();
        let rig = Rig::start(plays(&outside)).await;
        let mut text = TWO_CHANNELS.to_owned();
        // The size that is there is asked for, not the version: going back is real work.
        text = text.replace("entrypoint: [look]", "entrypoint: [look, \"{{.Params.size}}\"]");
        text = text.replace("    apply:\n", "    apply:\n      retryPolicy: {maxAttempts: 1}\n");
        if dice.percent(30) {
            text = text.replace(
                "    preconditions:\n    - releaseChannelStable: {releaseChannel: staging}\n",
                "",
            );
        }
        if dice.percent(40) {
            let gate = "    - releaseChannelStable: {releaseChannel: staging}\n";
            let asks = "    - manualApproval: {name: ops}\n";
            text = match text.contains(gate) {
                true => text.replace(gate, &format!("{gate}{asks}")),
                false => text.replace(
                    "  - name: production\n",
                    &format!("  - name: production\n    preconditions:\n{asks}"),
                ),
            };
        }
        if dice.percent(30) {
            text = goes_back(&text).replace("progressDeadline: 2s", "progressDeadline: 1s");
        }
        rig.request(&text, false).await.unwrap();
        Self { rig, dice, outside, account: Account::default(), told: vec![text], sizes: 0 }
    }

    fn new_size(&mut self) -> String {
        self.sizes += 1;
        let size = format!("size-{}", self.sizes);
        for channel in CHANNELS {
            if self.dice.percent(30) {
                self.outside.lock().unwrap().sick.insert((channel.to_owned(), size.clone()));
                self.told.push(format!("{size} is sick in {channel}"));
            }
        }
        size
    }

    fn some_channels(&mut self) -> Option<Vec<String>> {
        let one = (*self.dice.pick(&CHANNELS)).to_owned();
        self.dice.percent(45).then(|| vec![one])
    }

    async fn push(&mut self) {
        let mut request = PushRequest { channels: self.some_channels(), ..PushRequest::default() };
        let mut named = BTreeSet::new();
        if self.dice.percent(if self.account.releases == 0 { 70 } else { 55 }) {
            let size = self.new_size();
            named.insert(size.clone());
            request.params.insert("size".to_owned(), size);
        }
        if self.dice.percent(15) {
            let (size, channel) = (self.new_size(), (*self.dice.pick(&CHANNELS)).to_owned());
            named.insert(size.clone());
            self.account.own.insert((channel.clone(), size.clone()));
            request.params_for_channel.insert(channel, [("size".to_owned(), size)].into());
        }
        let what = format!(
            "push {:?} {:?} to {:?}",
            request.params, request.params_for_channel, request.channels
        );
        match self.rig.handle.push("app".into(), "web".into(), request, caller("ann")).await {
            Ok(pushed) => {
                self.told.push(format!("{what}: {} {:?}", pushed.version, pushed.warnings))
            }
            Err(error) => self.fail(&format!("{what} is refused: {error}")).await,
        }
        self.hear(&named).await;
    }

    async fn go_back(&mut self) {
        let releases = self.releases().await;
        let to = self.dice.percent(40).then(|| self.dice.pick(&releases).row.version.clone());
        let request = RollbackRequest { version: to.clone(), channels: self.some_channels() };
        let what = format!("rollback to {:?} in {:?}", request.version, request.channels);
        self.look().await;
        let before = self.account.went.clone();
        match self
            .rig
            .handle
            .rollback("app".into(), "web".into(), request.clone(), caller("ann"))
            .await
        {
            Ok(pushed) => {
                self.told.push(format!("{what}: {} {:?}", pushed.version, pushed.warnings))
            }
            Err(Refusal::Conflict(why)) => {
                return self.told.push(format!("{what} is refused: {why}"));
            }
            Err(error) => self.fail(&format!("{what} is refused: {error}")).await,
        }
        if to.is_none() {
            let back = self.releases().await.into_iter().next_back().unwrap();
            for channel in &back.channels {
                let (size, channel) = (back.size(channel), channel.as_str());
                if before[channel].last().is_some_and(|now| now.version == back.row.version) {
                    self.fail(&format!("{what} leaves {channel} where it is")).await;
                }
                let has_begun = self
                    .outside
                    .lock()
                    .unwrap()
                    .begun
                    .contains(&(channel.to_owned(), size.clone()));
                if self.account.is_left(channel, &size) || !has_begun {
                    self.fail(&format!(
                        "{what} leads {channel} to {size}, which it left or never had"
                    ))
                    .await;
                }
            }
        }
        self.hear(&BTreeSet::new()).await;
    }

    /// Or goes on.
    async fn pause(&mut self) {
        let channel = *self.dice.pick(&CHANNELS);
        if self.rig.instance(channel).await.desired_version.is_none() {
            return;
        }
        let ask = if self.dice.percent(40) { Ask::Pause(Default::default()) } else { Ask::Resume };
        self.told.push(format!("{ask:?} {channel}"));
        self.rig.handle.ask(target(channel), ask, caller("ann")).await.unwrap();
    }

    /// Somebody says yes or no, where that is asked.
    async fn decide(&mut self) {
        let mut asked = Vec::new();
        for channel in CHANNELS {
            let pending = self
                .rig
                .instance(channel)
                .await
                .approvals
                .iter()
                .any(|approval| approval.status == ApprovalStatus::Pending);
            asked.extend(pending.then_some(channel));
        }
        let Some(channel) = asked.first() else { return };
        let says_no = self.dice.percent(40);
        let ask = if says_no { Ask::Reject(any_plan()) } else { Ask::Approve(any_plan()) };
        let said = format!("{ask:?} in {channel}");
        match self.rig.handle.ask(target(channel), ask, caller("bob")).await {
            Ok(_) => self.told.push(said),
            // What was asked is not asked any more.
            Err(why) => return self.told.push(format!("{said}: {why}")),
        }
        self.hear(&BTreeSet::new()).await;
        if says_no {
            self.account.hear_no(channel);
        }
    }

    /// All releases, the oldest first.
    async fn releases(&self) -> Vec<Made> {
        let mut releases = Vec::new();
        for release in self
            .rig
            .store
            .releases(&Default::default(), &PageRequest::default())
            .await
            .unwrap()
            .items
        {
            let row = self.rig.store.release_row(release.release).await.unwrap().unwrap();
            let channels = self
                .rig
                .store
                .release_channels(row.id)
                .await
                .unwrap()
                .into_iter()
                .map(|(name, _)| name)
                .collect();
            releases.push(Made { row, channels });
        }
        releases.sort_by_key(|release| release.row.number);
        releases
    }

    /// Takes down what was released and started since.
    async fn hear(&mut self, named: &BTreeSet<String>) {
        for release in self.releases().await {
            if release.row.number <= self.account.releases {
                continue;
            }
            let begun = self.outside.lock().unwrap().begun.clone();
            if let Err(wrong) = self.account.hear(&release, named, &begun) {
                self.fail(&wrong).await;
            }
        }
        // What was handed over while this was said may be of before.
        self.account.jobs = self.rig.runner.seen.lock().unwrap().len();
    }

    async fn look(&mut self) {
        let seen = self.rig.runner.seen.lock().unwrap().clone();
        if let Err(wrong) = self.account.see(&seen) {
            self.fail(&wrong).await;
        }
    }

    /// Waits until nothing goes on but what waits for people.
    async fn calm(&mut self) {
        let is_calm = async || {
            for channel in CHANNELS {
                let instance = self.rig.instance(channel).await;
                let rests = matches!(
                    instance.status,
                    Status::Converged
                        | Status::Failed
                        | Status::WaitingPreconditions
                        | Status::WaitingManualApproval
                        | Status::Paused
                );
                if !rests && instance.desired_version.is_some() {
                    return None;
                }
            }
            Some(())
        };
        self.rig.until("all being calm", is_calm).await;
        self.look().await;
        self.hear(&BTreeSet::new()).await;
    }

    async fn fail(&self, wrong: &str) -> ! {
        panic!("{wrong}\n\n{}\n\n{}", self.told.join("\n"), self.rig.log().await);
    }
}

async fn tell(seed: u64) {
    let mut story = Story::begin(seed).await;
    story.told.push(format!("seed {seed}"));
    story.push().await;
    for _ in 0..TURNS {
        if story.dice.percent(50) {
            story.calm().await;
        }
        match story.dice.below(100) {
            0..50 => story.push().await,
            50..75 => story.go_back().await,
            75..88 => story.decide().await,
            88..95 => story.pause().await,
            _ => {
                let plays = plays(&story.outside);
                story.told.push("crash".to_owned());
                story.rig = story.rig.crash(plays).await;
                story.account.jobs = 0;
            }
        }
        tokio::time::sleep(Duration::from_millis(story.dice.below(40) as u64)).await;
        story.look().await;
    }
    story.calm().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_p8_what_was_taken_back_comes_to_nobody_who_has_not_begun_it_until_somebody_names_it() {
    let first = number("PVN_STORIES_SEED", 1);
    for seed in first..first + number("PVN_STORIES", STORIES) {
        tell(seed).await;
    }
}
