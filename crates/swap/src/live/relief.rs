//! Writeback at once while memory is short: what maintenance would write back in calm, before a program has to end for it. Pure, with its state as data.
//!
//! A pass marks the pages that are idle by age, and writes back those that do not compress, then the other idle ones, then all that do not compress. The
//! wear budget bounds it as it bounds maintenance. It asks neither for calm nor for an idle CPU.

use std::collections::VecDeque;

use eke_model::units::Bytes;

use super::act::ActionOutcome;
use super::action::{Action, Age, PageKind};
use super::facts::{Device, Facts, MachineLoad};
use super::gate::{RECLAIM_PER_S, WAITING_PERCENT};
use super::maintain::{ROUND_UNITS, most_units, paced};

/// With more of RAM available, programs wait for something else: a group at its own limit, files that are read again.
pub const LITTLE_AVAILABLE: f64 = 0.15;
/// The pause between two rounds: the disk has other work, too.
const PAUSE_MS: u64 = 1_000;
/// The pause after a pass, in which pages become idle.
const REST_MS: u64 = 60_000;
/// The most rounds of one kind in a pass: pages that are swapped out meanwhile can make every round useful.
const ROUNDS_OF_A_KIND: u32 = 64;

/// A page is idle after two minutes, the least that maintenance asks for.
const IDLE_S: u64 = 120;

/// In this order: pages that nobody used first, and of these the ones that free most for what is written.
const KINDS: [PageKind; 3] = [PageKind::HugeIdle, PageKind::Idle, PageKind::Huge];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Mark,
    WriteBack(PageKind),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    device: String,
    work: Work,
    rounds: u32,
}

/// The state from call to call.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// What is left of the pass.
    tasks: VecDeque<Task>,
    next_ms: u64,
    round_units: u64,
    /// The kernel marks only "all", which says nothing at once.
    only_marks_all: bool,
    freed: Bytes,
    written: Bytes,
}

impl Default for State {
    fn default() -> Self {
        Self {
            tasks: VecDeque::new(),
            next_ms: 0,
            round_units: *ROUND_UNITS.start(),
            only_marks_all: false,
            freed: Bytes(0),
            written: Bytes(0),
        }
    }
}

/// Is the machine short of memory?
pub fn is_short(load: &MachineLoad) -> bool {
    let waits = load.waiting_avg10_percent.is_some_and(|percent| percent >= WAITING_PERCENT);
    (waits || load.anonymous_reclaim_per_s >= RECLAIM_PER_S) && load.available_share < LITTLE_AVAILABLE
}

impl State {
    /// The next action; none while memory is not short, on battery, or with nothing left of the budget.
    pub fn next(
        &mut self,
        facts: &Facts,
        load: &MachineLoad,
        left_units: u64,
        now_ms: u64,
    ) -> Option<Action> {
        if !is_short(load) || facts.waits_for_mains {
            self.end_pass();
            return None;
        }
        if now_ms < self.next_ms {
            return None;
        }
        if self.tasks.is_empty() {
            self.tasks = self.pass(facts);
        }
        while let Some(task) = self.tasks.front_mut() {
            let device = facts.devices.iter().find(|device| device.name == task.device);
            let units = limit(facts, device, self.round_units, left_units);
            let action = device.filter(|_| units > 0).and_then(|device| action(device, task.work, units));
            if action.is_some() && task.rounds < ROUNDS_OF_A_KIND {
                task.rounds += 1;
                return action;
            }
            self.tasks.pop_front();
        }
        self.next_ms = now_ms + REST_MS;
        None
    }

    /// Memory is not short any more: what is left of the pass is for calm.
    pub fn end_pass(&mut self) {
        self.tasks.clear();
    }

    /// Notes the outcome of an action.
    pub fn note(&mut self, action: &Action, outcome: &ActionOutcome, now_ms: u64) {
        match outcome {
            ActionOutcome::Later => {}
            ActionOutcome::Failed(_) => self.tasks.retain(|task| task.device != action.device()),
            ActionOutcome::Unsupported => {
                self.only_marks_all |= matches!(action, Action::MarkIdle { .. });
                self.tasks.pop_front();
            }
            ActionOutcome::Done { freed, written, took_ms } => {
                self.freed = self.freed + *freed;
                self.written = self.written + *written;
                if matches!(action, Action::WriteBack { .. }) {
                    self.round_units = paced(self.round_units, *took_ms);
                }
                if written.0 == 0 {
                    self.tasks.pop_front();
                }
            }
        }
        self.next_ms = now_ms + if self.tasks.is_empty() { REST_MS } else { PAUSE_MS };
    }

    /// What was freed, once nothing is left to do.
    pub fn told(&mut self) -> Option<String> {
        if !self.tasks.is_empty() || self.written.0 == 0 {
            return None;
        }
        let (freed, written) = (std::mem::take(&mut self.freed), std::mem::take(&mut self.written));
        Some(format!(
            "Memory was short: {freed} of compressed memory was freed, and {written} went to the writeback device."
        ))
    }

    fn pass(&self, facts: &Facts) -> VecDeque<Task> {
        let may_write = facts.devices.iter().filter(|d| d.own && d.writeback && facts.writeback_a_day.0 > 0);
        let tasks = may_write.flat_map(|device| {
            let mark = (device.idle && !self.only_marks_all).then_some(Work::Mark);
            let kinds = KINDS.into_iter().filter(|kind| device.idle || *kind == PageKind::Huge);
            let works = mark.into_iter().chain(kinds.map(Work::WriteBack));
            works.map(|work| Task { device: device.name.clone(), work, rounds: 0 })
        });
        tasks.collect()
    }
}

/// The units of a round. The kernel counts whole pages down and stops at exactly 0: any other limit wraps and is none.
fn limit(facts: &Facts, device: Option<&Device>, round_units: u64, left_units: u64) -> u64 {
    let page_units = facts.page_units.max(1);
    let most = device.map_or(0, most_units);
    round_units.min(most).min(left_units) / page_units * page_units
}

fn action(device: &Device, work: Work, limit_units: u64) -> Option<Action> {
    let name = device.name.clone();
    match work {
        Work::Mark => Some(Action::MarkIdle { device: name, age: Age::Seconds(IDLE_S) }),
        Work::WriteBack(PageKind::HugeIdle | PageKind::Huge) if device.huge_pages == 0 => None,
        Work::WriteBack(kind) => Some(Action::WriteBack { device: name, kind, limit_units }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let device = Device {
            name: "zram1".into(),
            size: Bytes(1 << 30),
            used: Bytes(1 << 29),
            own: true,
            huge_pages: 1_000,
            writeback: true,
            idle: true,
            ..Device::default()
        };
        Facts { devices: vec![device], writeback_a_day: Bytes::mib(1024), ..Facts::default() }
    }

    fn short() -> MachineLoad {
        MachineLoad { waiting_avg10_percent: Some(5.0), available_share: 0.14, ..MachineLoad::default() }
    }

    fn wrote(mib: u64) -> ActionOutcome {
        ActionOutcome::Done { freed: Bytes::mib(mib), written: Bytes::mib(mib), took_ms: 700 }
    }

    /// The actions of so many seconds, each answered at once.
    fn actions(
        facts: &Facts,
        load: &MachineLoad,
        s: u64,
        mut answer: impl FnMut(&Action) -> ActionOutcome,
    ) -> (Vec<String>, State) {
        let (mut state, mut done) = (State::default(), Vec::new());
        for second in 0..s {
            let now_ms = second * 1_000;
            if let Some(action) = state.next(facts, load, 1_000_000, now_ms) {
                state.note(&action, &answer(&action), now_ms);
                done.push(format!("{second}: {action}"));
            }
        }
        (done, state)
    }

    #[test]
    fn a_pass_writes_what_is_idle_first_and_then_rests() {
        let (done, mut state) = actions(&facts(), &short(), 63, |_| wrote(0));
        let pass = [
            "0: mark pages idle that are unused for 120 s",
            "1: write huge_idle pages back",
            "2: write idle pages back",
            "3: write huge pages back",
        ];
        assert_eq!(done, pass);
        assert_eq!(state.told(), None, "nothing was written");
    }

    #[test]
    fn a_kind_is_repeated_while_something_is_written_and_the_end_is_told_once() {
        let mut left = 3;
        let (done, mut state) = actions(&facts(), &short(), 20, |action| match action {
            Action::WriteBack { kind: PageKind::Idle, .. } if left > 0 => {
                left -= 1;
                wrote(2)
            }
            _ => wrote(0),
        });
        assert_eq!(done.iter().filter(|line| line.contains("write idle")).count(), 4, "{done:?}");
        assert_eq!(
            state.told().unwrap(),
            "Memory was short: 6.0 MiB of compressed memory was freed, and 6.0 MiB went to the writeback device."
        );
        assert_eq!(state.told(), None);
    }

    #[test]
    fn a_pass_that_calm_ends_is_told_too() {
        let answer = |action: &Action| wrote(if matches!(action, Action::WriteBack { .. }) { 2 } else { 0 });
        let (_, mut state) = actions(&facts(), &short(), 3, answer);
        assert_eq!(state.told(), None, "there is more to do");
        state.end_pass();
        assert!(state.told().unwrap().contains("4.0 MiB of compressed memory was freed"));
    }

    #[test]
    fn a_kernel_that_marks_only_all_writes_what_is_marked_already() {
        let (done, state) = actions(&facts(), &short(), 5, |action| match action {
            Action::MarkIdle { .. } => ActionOutcome::Unsupported,
            _ => wrote(0),
        });
        assert_eq!(done.len(), 4, "{done:?}");
        assert!(state.pass(&facts()).iter().all(|task| task.work != Work::Mark));
    }

    #[test]
    fn nothing_is_written_in_calm_on_battery_elsewhere_or_beyond_the_budget() {
        let first =
            |facts: &Facts, load: &MachineLoad, left_units| State::default().next(facts, load, left_units, 0);
        assert!(first(&facts(), &short(), 512).is_some());
        assert!(
            first(
                &facts(),
                &MachineLoad { anonymous_reclaim_per_s: 256.0, waiting_avg10_percent: None, ..short() },
                512
            )
            .is_some()
        );
        assert_eq!(first(&facts(), &short(), 0), None);
        assert_eq!(first(&facts(), &MachineLoad { waiting_avg10_percent: Some(4.9), ..short() }, 512), None);
        assert_eq!(first(&facts(), &MachineLoad { available_share: 0.15, ..short() }, 512), None);
        assert_eq!(first(&Facts { waits_for_mains: true, ..facts() }, &short(), 512), None);
        assert_eq!(first(&Facts { writeback_a_day: Bytes(0), ..facts() }, &short(), 512), None);
        let of_another = |change: fn(&mut Device)| {
            let mut facts = facts();
            facts.devices.iter_mut().for_each(change);
            first(&facts, &short(), 512)
        };
        assert_eq!([of_another(|d| d.own = false), of_another(|d| d.writeback = false)], [None, None]);
    }

    #[test]
    fn a_device_that_fails_is_left_alone_until_the_next_pass() {
        let (done, _) = actions(&facts(), &short(), 60, |_| ActionOutcome::Failed("no".into()));
        assert_eq!(done.len(), 1, "{done:?}");
        let (done, _) = actions(&facts(), &short(), 3, |_| ActionOutcome::Later);
        assert_eq!(done.len(), 3, "busy is tried again: {done:?}");
    }

    proptest::proptest! {
        #[test]
        fn a_round_is_of_whole_pages_within_the_budget(left in 0u64..5_000, page_units in 1u64..17, used in 0u64..(1 << 30)) {
            let mut facts = Facts { page_units, ..facts() };
            facts.devices[0].used = Bytes(used);
            facts.devices[0].idle = false;
            if let Some(Action::WriteBack { limit_units, .. }) = State::default().next(&facts, &short(), left, 0) {
                proptest::prop_assert!(limit_units > 0 && limit_units <= left && limit_units % page_units == 0);
            } else {
                proptest::prop_assert!(left < page_units);
            }
        }
    }
}
