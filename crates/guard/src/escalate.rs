//! What to do about a shortage, in steps: slow, stop for a moment, ask to end, end. Pure, with its state as data.

use eke_model::process::ProcessId;

use crate::shortage::Shortage;
use crate::target::Target;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// Nothing to do.
    #[default]
    Calm,
    /// Memory will end soon, or tasks wait often.
    Short,
    /// Nearly nothing runs: a person would say that it freezes.
    Stalled,
    /// Nothing is left to give.
    Exhausted,
}

/// Programs can get less than this share of RAM: the kernel's own OOM killer is near.
const EXHAUSTED_ROOM: f64 = 0.02;
/// With this share left, growth that takes all of it within [`SOON_S`] exhausts memory, too.
const EXHAUSTED_SOON_ROOM: f64 = 0.08;
const SOON_S: f64 = 1.0;
/// With this share left, growth that takes all of it within [`RUSH_S`], or before the poll after the next, is stopped at once.
const RUSH_ROOM: f64 = 0.25;
const RUSH_S: f64 = 2.0;
const RUSH_POLLS: f64 = 2.5;
/// So little of RAM is left to programs, while they wait: the compressed pool itself has taken it. The kernel's OOM killer comes a
/// second later (measured with 124 MB and data that does not compress).
const EXHAUSTED_RESIDENT: f64 = 0.05;
const EXHAUSTED_STALLED_1S: f64 = 0.3;
/// Every task waits for this share of the last second, or of the last five.
const STALLED_1S: f64 = 0.5;
const STALLED_5S: f64 = 0.4;
/// A stall is over below this share of the last second.
const FLOWS_AGAIN_1S: f64 = 0.2;
/// With more available, it is a group at its own limit that waits, or files that are read again: no shortage of the machine.
const PLENTY: f64 = 0.35;
const SHORT_5S: f64 = 0.1;
const SHORT_ROOM: f64 = 0.1;
const SHORT_LEFT_S: f64 = 10.0;
const SHORT_LEFT_ROOM: f64 = 0.3;

/// A stall lasts this long before its cause is slowed, stopped, and asked to end.
const SLOW_AFTER_MS: u64 = 500;
const STOP_AFTER_MS: u64 = 1_500;
const ASK_AFTER_MS: u64 = 5_000;
/// The same while there is room and little is read back from swap: a load that fits comes in. Where only one task runs, all tasks wait whenever it does
/// (the fleet's machines of 384 and 512 MB stall for half a minute while a program of 115 to 130 % of RAM comes in, and it ends by itself).
/// An emulated machine of 124 MB with a busy CPU stalled for a minute at a viewer's seventh document; with an idle one it shows nine.
const ASK_WITH_ROOM_AFTER_MS: u64 = 180_000;
/// Above this share of RAM a second, programs read back what was taken from them: they thrash.
const THRASHES: f64 = 0.02;
/// With more room than this, one program that starts on a slow machine thrashes, too, and then works (a viewer's first document in an emulated machine of
/// 124 MB, which holds seven of them).
const THRASHES_ROOM: f64 = 0.35;
/// A stall that lasts this long has a cause, even if nothing grows: a program uses more than there is, again and again.
const WITHOUT_GROWTH_MS: u64 = 30_000;
/// Exhausted memory for this long ends its cause.
const END_AFTER_MS: u64 = 250;
/// The longest stop, and the shortest if everything flows again.
const STOPPED_MS: u64 = 3_000;
const STOPPED_LEAST_MS: u64 = 1_000;
/// Most stops within [`STOPS_WITHIN_MS`]. A program that needs more of them is not helped by them.
const STOPS: usize = 3;
const STOPS_WITHIN_MS: u64 = 60_000;
/// Another eke that has the journal may delay a stop for so long. It may hang itself.
const DELAYED_MS: u64 = 15_000;
/// Only a stall this hard, all the time, ends a program while there is room ...
const ASK_STALLED_5S: f64 = 0.6;
/// ... and the usual one, if less than this share of RAM is left and a stop did not help.
const ASK_ROOM: f64 = 0.15;
/// Time to end after SIGTERM.
const GRACE_MS: u64 = 1_500;
/// What has its memory so long after that waits in the kernel, for a disk that is gone, and cannot be ended.
const GIVES_UP_MS: u64 = 12_000;
/// The kernel needs this long to take back what an ended program had.
const RETURNS_MS: u64 = 1_000;
/// Nothing stays slowed for longer after the last shortage.
const CALM_MS: u64 = 5_000;

/// The level of a shortage.
pub fn level(s: &Shortage) -> Level {
    let soon = |within_s: f64| s.left_s.is_some_and(|left| left < within_s);
    let is_exhausted = s.room_share < EXHAUSTED_ROOM
        || (s.room_share < EXHAUSTED_SOON_ROOM && soon(SOON_S))
        || (s.resident_share < EXHAUSTED_RESIDENT && s.stalled_1s >= EXHAUSTED_STALLED_1S);
    let is_short = s.stalled_5s >= SHORT_5S
        || s.room_share < SHORT_ROOM
        || (s.room_share < SHORT_LEFT_ROOM && soon(SHORT_LEFT_S));
    match () {
        () if s.available_share > PLENTY => Level::Calm,
        () if is_exhausted => Level::Exhausted,
        () if s.stalled_1s >= STALLED_1S => Level::Stalled,
        () if s.stalled_5s >= STALLED_5S && s.stalled_1s >= FLOWS_AGAIN_1S => Level::Stalled,
        () if is_short => Level::Short,
        () => Level::Calm,
    }
}

/// Whether memory ends before there is time to watch.
fn is_rush(s: &Shortage) -> bool {
    s.available_share <= PLENTY
        && s.room_share < RUSH_ROOM
        && s.left_s.is_some_and(|left| left < RUSH_S.max(s.gap_s * RUSH_POLLS))
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Let the target's control group reclaim its own memory before it gets more.
    Slow(Target),
    /// Stop the target for a moment.
    Stop(Target),
    /// Let the stopped target continue.
    Continue,
    /// Let the slowed target go on at full speed.
    Release,
    /// SIGTERM.
    Ask(Target),
    /// SIGKILL.
    End(Target),
}

/// From poll to poll.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    stalled_ms: Option<u64>,
    /// Since when the last five seconds have been a hard stall: a slow machine at work with much in swap is stalled for minutes, and goes on.
    hard_ms: Option<u64>,
    exhausted_ms: Option<u64>,
    calm_ms: Option<u64>,
    slowed: bool,
    stopped: Option<(u64, Target)>,
    stops_ms: Vec<u64>,
    /// Since when another eke has delayed a stop in this stall.
    delayed_ms: Option<u64>,
    /// The last stop ended in the same stall.
    stop_was_in_vain: bool,
    asked: Option<(u64, Target)>,
    ended_ms: Option<u64>,
    /// Processes that could not be ended.
    in_vain: Vec<ProcessId>,
}

impl State {
    /// Whether something is slowed or stopped, or was asked to end.
    pub fn is_acting(&self) -> bool {
        self.slowed || self.stopped.is_some() || self.asked.is_some()
    }

    /// The stopped target.
    pub fn stopped(&self) -> Option<&Target> {
        self.stopped.as_ref().map(|(_, target)| target)
    }

    /// Whether a target is slowed.
    pub fn is_slowed(&self) -> bool {
        self.slowed
    }

    /// The stop was refused: no further one is tried now, and the next step follows.
    pub fn stop_failed(&mut self, now_ms: u64) {
        self.stopped = None;
        self.stops_ms = vec![now_ms; STOPS];
    }

    /// The step could not be begun yet: it is decided anew at the next poll. A stop that cannot be begun for long was refused.
    pub fn not_yet(&mut self, action: &Action, now_ms: u64) {
        match action {
            Action::Slow(_) => self.slowed = false,
            Action::Stop(_) if lasts(self.delayed_ms, DELAYED_MS, now_ms) => self.stop_failed(now_ms),
            Action::Stop(_) => {
                self.delayed_ms.get_or_insert(now_ms);
                self.stopped = None;
                self.stops_ms.pop();
            }
            _ => {}
        }
    }

    /// The target that was asked to end.
    pub fn asked(&self) -> Option<&Target> {
        self.asked.as_ref().map(|(_, target)| target)
    }

    /// Processes that could not be ended.
    pub fn in_vain(&self) -> &[ProcessId] {
        &self.in_vain
    }

    /// Forgets which of the processes that could not be ended are gone.
    pub fn keep_in_vain(&mut self, runs: impl Fn(&ProcessId) -> bool) {
        self.in_vain.retain(runs);
    }

    /// The steps of this poll. `target` is to blame now; `asked_runs`: the target that was asked to end still runs.
    pub fn decide(
        &mut self,
        shortage: &Shortage,
        target: Option<&Target>,
        asked_runs: bool,
        now_ms: u64,
    ) -> Vec<Action> {
        self.note(shortage, now_ms);
        self.note_end(asked_runs, now_ms);
        let causes = |t: &&Target| t.grows || lasts(self.stalled_ms, WITHOUT_GROWTH_MS, now_ms);
        let target = if self.exhausted_ms.is_some() { target } else { target.filter(causes) };
        let mut actions: Vec<Action> = self.end(shortage, target, now_ms).into_iter().collect();
        if actions.is_empty() {
            actions.extend(self.continue_or_release(shortage, now_ms));
        }
        if actions.is_empty() && self.asked.is_none() {
            actions.extend(self.slow_or_stop(shortage, target, now_ms));
        }
        actions
    }

    fn note_end(&mut self, asked_runs: bool, now_ms: u64) {
        let gives_up = |at: u64| now_ms.saturating_sub(at) >= GIVES_UP_MS;
        let Some((_, asked)) = self.asked.take_if(|(at, _)| !asked_runs || gives_up(*at)) else { return };
        let mut in_vain = std::mem::take(&mut self.in_vain);
        if asked_runs {
            in_vain.extend(asked.processes);
        }
        // What was measured until now was its doing.
        *self = Self {
            slowed: self.slowed,
            stops_ms: self.stops_ms.clone(),
            ended_ms: Some(now_ms),
            in_vain,
            ..Self::default()
        };
    }

    fn note(&mut self, shortage: &Shortage, now_ms: u64) {
        let level = level(shortage);
        let since = |is: bool, was: Option<u64>| is.then(|| was.unwrap_or(now_ms));
        let flows = shortage.stalled_1s < FLOWS_AGAIN_1S;
        self.stalled_ms =
            since(level == Level::Stalled || self.stalled_ms.is_some() && !flows, self.stalled_ms);
        self.hard_ms = since(shortage.stalled_5s >= ASK_STALLED_5S, self.hard_ms);
        self.exhausted_ms = since(level == Level::Exhausted, self.exhausted_ms);
        self.calm_ms = since(level == Level::Calm, self.calm_ms);
        self.stops_ms.retain(|at| now_ms.saturating_sub(*at) < STOPS_WITHIN_MS);
        self.stop_was_in_vain &= self.stalled_ms.is_some();
        self.delayed_ms = self.delayed_ms.filter(|_| self.stalled_ms.is_some());
    }

    /// The end of a target: at once if nothing is left, else only after a hard stall that stops did not cure.
    fn end(&mut self, shortage: &Shortage, target: Option<&Target>, now_ms: u64) -> Option<Action> {
        let returning = self.is_returning(now_ms);
        let is_exhausted = lasts(self.exhausted_ms, END_AFTER_MS, now_ms);
        if let Some((at, asked)) = &self.asked {
            let over = is_exhausted || now_ms.saturating_sub(*at) >= GRACE_MS;
            return over.then(|| Action::End(asked.clone()));
        }
        if returning {
            return None;
        }
        if is_exhausted {
            let target = self.stopped.take().map(|(_, t)| t).or_else(|| target.cloned())?;
            return Some(self.ending(Action::End(target), now_ms));
        }
        let hard = level(shortage) >= Level::Stalled && self.lasts_too_long(shortage, now_ms);
        let helpless = self.stopped.is_none() && (self.stops_ms.len() >= STOPS || self.stop_was_in_vain);
        let asks = target.filter(|t| (hard || is_rush(shortage)) && (helpless || hard && t.shell_waits))?;
        Some(self.ending(Action::Ask(asks.clone()), now_ms))
    }

    fn lasts_too_long(&self, shortage: &Shortage, now_ms: u64) -> bool {
        let thrashes = shortage.read_back_share >= THRASHES && shortage.room_share < THRASHES_ROOM;
        let is_at_least =
            |share| shortage.stalled_5s >= share && lasts(self.stalled_ms, ASK_AFTER_MS, now_ms);
        match () {
            () if shortage.room_share < ASK_ROOM => is_at_least(STALLED_5S),
            () if thrashes => is_at_least(ASK_STALLED_5S),
            () => lasts(self.hard_ms, ASK_WITH_ROOM_AFTER_MS, now_ms),
        }
    }

    fn ending(&mut self, action: Action, now_ms: u64) -> Action {
        if let Action::End(target) | Action::Ask(target) = &action {
            self.asked = Some((now_ms, target.clone()));
        }
        action
    }

    fn continue_or_release(&mut self, shortage: &Shortage, now_ms: u64) -> Option<Action> {
        if let Some((at, _)) = &self.stopped {
            let for_ms = now_ms.saturating_sub(*at);
            let flows = shortage.stalled_1s < FLOWS_AGAIN_1S && for_ms >= STOPPED_LEAST_MS;
            if flows || for_ms >= STOPPED_MS {
                self.stopped = None;
                self.stop_was_in_vain = !flows;
                return Some(Action::Continue);
            }
        } else if self.slowed && self.calm_ms.is_some_and(|at| now_ms.saturating_sub(at) >= CALM_MS) {
            self.slowed = false;
            return Some(Action::Release);
        }
        None
    }

    fn slow_or_stop(&mut self, shortage: &Shortage, target: Option<&Target>, now_ms: u64) -> Option<Action> {
        let target = target.filter(|_| !self.is_returning(now_ms) && self.stopped.is_none())?;
        let is_stalled = level(shortage) >= Level::Stalled;
        let may_stop = !target.shell_waits && self.stops_ms.len() < STOPS && !self.stop_was_in_vain;
        let stops = is_rush(shortage) || is_stalled && lasts(self.stalled_ms, STOP_AFTER_MS, now_ms);
        if may_stop && stops {
            self.stopped = Some((now_ms, target.clone()));
            self.stops_ms.push(now_ms);
            return Some(Action::Stop(target.clone()));
        }
        let slows = is_stalled && lasts(self.stalled_ms, SLOW_AFTER_MS, now_ms);
        if slows && !self.slowed && target.group.is_some() {
            self.slowed = true;
            return Some(Action::Slow(target.clone()));
        }
        None
    }

    /// The kernel still takes back what an ended program had.
    fn is_returning(&self, now_ms: u64) -> bool {
        self.ended_ms.is_some_and(|at| now_ms.saturating_sub(at) < RETURNS_MS)
    }
}

fn lasts(since_ms: Option<u64>, for_ms: u64, now_ms: u64) -> bool {
    since_ms.is_some_and(|at| now_ms.saturating_sub(at) >= for_ms)
}

#[cfg(test)]
mod tests {
    use eke_model::process::ProcessId;
    use eke_model::units::Bytes;

    use super::*;
    use crate::unit::UnitKey;

    fn stressor(group: Option<&str>, shell_waits: bool) -> Target {
        Target {
            key: UnitKey::Job { session: 7, group: 5 },
            name: "stressor".into(),
            user: 1000,
            processes: vec![ProcessId { pid: 5, start_ticks: 5 }],
            size: Bytes::mib(400),
            group: group.map(str::to_owned),
            shell_waits,
            grows: true,
        }
    }

    fn stalled(share: f64) -> Shortage {
        Shortage {
            stalled_1s: share,
            stalled_5s: share,
            room_share: 0.5,
            resident_share: 0.5,
            ..Shortage::default()
        }
    }

    fn word(action: &Action) -> &'static str {
        match action {
            Action::Slow(_) => "slow",
            Action::Stop(_) => "stop",
            Action::Continue => "continue",
            Action::Release => "release",
            Action::Ask(_) => "ask",
            Action::End(_) => "end",
        }
    }

    /// The steps for a shortage as a function of time, four times a second; the target ends when it is told to.
    fn steps(target: &Target, until_ms: u64, shortage: impl Fn(u64) -> Shortage) -> Vec<(u64, &'static str)> {
        let (mut state, mut steps) = (State::default(), Vec::new());
        let mut runs = true;
        for now_ms in (0..=until_ms).step_by(250) {
            let found = state.decide(&shortage(now_ms), runs.then_some(target), runs, now_ms);
            for action in &found {
                steps.push((now_ms, word(action)));
                runs &= !matches!(action, Action::End(_));
            }
        }
        steps
    }

    #[test]
    fn a_stall_that_ends_by_itself_is_left_alone() {
        assert_eq!(
            steps(&stressor(Some("a"), false), 9_000, |ms| stalled(if ms < 500 { 0.9 } else { 0.0 })),
            []
        );
        assert_eq!(steps(&stressor(Some("a"), false), 60_000, |_| stalled(0.3)), [], "slow, but it goes on");
    }

    #[test]
    fn a_group_is_slowed_then_stopped_and_goes_on_when_it_is_over() {
        let found =
            steps(&stressor(Some("a"), false), 12_000, |ms| stalled(if ms < 2_000 { 0.9 } else { 0.0 }));
        assert_eq!(found, [(500, "slow"), (1_500, "stop"), (2_500, "continue"), (7_000, "release")]);
    }

    #[test]
    fn what_stops_do_not_cure_is_asked_and_then_ended() {
        for share in [0.9, 0.5] {
            let full = Shortage { room_share: 0.1, ..stalled(share) };
            let found = steps(&stressor(None, false), 20_000, |_| full);
            assert_eq!(found, [(1_500, "stop"), (4_500, "continue"), (5_000, "ask"), (6_500, "end")]);
        }
    }

    #[test]
    fn what_fits_is_given_three_minutes() {
        let found = steps(&stressor(None, false), 200_000, |_| stalled(0.9));
        let words: Vec<&str> = found.iter().map(|step| step.1).collect();
        assert_eq!(words, ["stop", "continue", "ask", "end"], "a stop in vain is not repeated");
        assert_eq!(found[2].0, 180_000);
        let waits = steps(&stressor(None, true), 200_000, |_| stalled(0.9));
        assert_eq!(waits, [(180_000, "ask"), (181_500, "end")]);
        let thrashes = |room_share| Shortage { read_back_share: 0.1, room_share, ..stalled(0.9) };
        let steps_with = |room| steps(&stressor(None, true), 200_000, move |_| thrashes(room));
        assert_eq!(steps_with(0.3), [(5_000, "ask"), (6_500, "end")]);
        assert_eq!(steps_with(1.2), [(180_000, "ask"), (181_500, "end")], "it thrashes, but it fits");
        let words: Vec<&str> =
            steps(&stressor(None, false), 80_000, |_| stalled(0.5)).iter().map(|f| f.1).collect();
        assert_eq!(words, ["stop", "continue"], "slow, but it goes on");
        let at_work = |ms: u64| stalled(if ms % 150_000 < 1_000 { 0.5 } else { 0.9 });
        assert_eq!(steps(&stressor(None, true), 600_000, at_work), [], "one document after the other");
    }

    #[test]
    fn a_group_at_its_own_limit_is_no_shortage_of_the_machine() {
        let plenty = |_| Shortage { available_share: 0.6, ..stalled(0.95) };
        assert_eq!(steps(&stressor(Some("a"), false), 60_000, plenty), []);
    }

    #[test]
    fn a_rush_is_stopped_at_once() {
        let rush = Shortage { room_share: 0.2, left_s: Some(1.5), ..stalled(0.1) };
        let found = steps(&stressor(None, false), 2_000, |_| rush);
        assert_eq!(found, [(0, "stop"), (1_000, "continue"), (1_250, "stop")]);
        let words: Vec<&str> = steps(&stressor(None, false), 9_000, |_| rush).iter().map(|f| f.1).collect();
        assert_eq!(words, ["stop", "continue", "stop", "continue", "stop", "continue", "ask", "end"]);
        let late = Shortage { left_s: Some(2.2), gap_s: 0.9, ..rush };
        assert!(is_rush(&late) && !is_rush(&Shortage { gap_s: 0.25, ..late }));
    }

    #[test]
    fn a_job_that_a_shell_waits_for_is_not_stopped() {
        let full = Shortage { room_share: 0.1, ..stalled(0.9) };
        assert_eq!(steps(&stressor(None, true), 20_000, |_| full), [(5_000, "ask"), (6_500, "end")]);
    }

    #[test]
    fn what_does_not_grow_is_left_alone_for_half_a_minute() {
        let still = Target { grows: false, ..stressor(None, true) };
        let full = Shortage { room_share: 0.1, ..stalled(0.9) };
        assert_eq!(steps(&still, 40_000, |_| full), [(30_000, "ask"), (31_500, "end")]);
    }

    #[test]
    fn exhausted_memory_ends_the_cause_at_once() {
        let none = Shortage { room_share: 0.01, ..Shortage::default() };
        assert_eq!(steps(&stressor(None, false), 9_000, |_| none), [(250, "end")]);
        let soon =
            Shortage { room_share: 0.07, resident_share: 0.3, left_s: Some(0.5), ..Shortage::default() };
        assert_eq!(level(&soon), Level::Exhausted);
        let pool = Shortage { resident_share: 0.04, ..stalled(0.4) };
        assert_eq!(level(&pool), Level::Exhausted);
        assert_eq!(level(&Shortage { left_s: Some(5.0), ..soon }), Level::Short);
    }

    #[test]
    fn what_cannot_be_ended_does_not_keep_others_from_it() {
        let none = Shortage { room_share: 0.01, ..Shortage::default() };
        let (first, mut second) = (stressor(None, false), stressor(None, false));
        second.processes = vec![ProcessId { pid: 6, start_ticks: 6 }];
        let mut state = State::default();
        let mut ended = Vec::new();
        for now_ms in (0..20_000).step_by(250) {
            let target = if state.in_vain().is_empty() { &first } else { &second };
            let actions = state.decide(&none, Some(target), true, now_ms);
            ended.extend(actions.into_iter().filter_map(|a| match a {
                Action::End(target) => Some((now_ms, target.processes[0].pid)),
                _ => None,
            }));
        }
        assert_eq!(ended[0], (250, 5));
        let of_second = ended.iter().find(|(_, pid)| *pid == 6).unwrap();
        assert!((12_000..15_000).contains(&of_second.0), "{ended:?}");
        state.keep_in_vain(|_| false);
        assert!(state.in_vain().is_empty());
    }

    #[test]
    fn without_a_target_nothing_happens() {
        let mut state = State::default();
        let none = Shortage { room_share: 0.0, stalled_1s: 1.0, stalled_5s: 1.0, ..Shortage::default() };
        for now_ms in (0..60_000).step_by(250) {
            assert_eq!(state.decide(&none, None, false, now_ms), []);
        }
    }

    proptest::proptest! {
        /// Whatever the machine does: a stop ends within seconds, and nothing stays slowed once it is calm.
        #[test]
        fn every_stop_is_short(shares in proptest::collection::vec(0.0f64..1.0, 1..200), group: bool, waits: bool) {
            let target = stressor(group.then_some("a"), waits);
            let mut state = State::default();
            let mut stopped_ms = None;
            let calm = std::iter::repeat_n(0.0, 60);
            for (i, share) in shares.into_iter().chain(calm).enumerate() {
                let now_ms = i as u64 * 250;
                for action in state.decide(&stalled(share), Some(&target), true, now_ms) {
                    match action {
                        Action::Stop(_) => stopped_ms = Some(now_ms),
                        Action::Continue => stopped_ms = None,
                        Action::Ask(_) | Action::End(_) => return Ok(()),
                        _ => {}
                    }
                }
                proptest::prop_assert!(stopped_ms.is_none_or(|at| now_ms - at <= STOPPED_MS));
            }
            proptest::prop_assert!(!state.is_acting());
        }
    }
}
