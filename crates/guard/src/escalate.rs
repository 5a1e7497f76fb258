//! What to do about a shortage, in steps: slow, stop for a moment, ask to end, end. Pure, with its state as data.

use eke_model::process::ProcessId;

use crate::level::{EXHAUSTED_SOON_ROOM, FLOWS_AGAIN_1S, Level, STALLED_5S, is_rush, level};
use crate::shortage::Shortage;
use crate::target::Target;
use crate::unit::UnitKey;

/// A stall lasts this long before its cause is slowed, stopped, and asked to end.
const SLOW_AFTER_MS: u64 = 500;
const STOP_AFTER_MS: u64 = 1_500;
const ASK_AFTER_MS: u64 = 5_000;
/// The same while there is room and little is read back from swap: a load that fits comes in. Where only one task runs, all tasks wait whenever it does
/// (the fleet's machines of 384 and 512 MB stall for half a minute while a program of 115 to 130 % of RAM comes in, and it ends by itself).
/// An emulated machine of 124 MB with a busy CPU stalled for a minute at a viewer's seventh document; with an idle one it shows nine.
const ASK_WITH_ROOM_AFTER_MS: u64 = 180_000;
/// Above this share of RAM a second, programs read back what was taken from them: they thrash.
pub(crate) const THRASHES: f64 = 0.02;
/// With more room than this, one program that starts on a slow machine thrashes, too, and then works (a viewer's first document in an emulated machine of
/// 124 MB, which holds seven of them).
const THRASHES_ROOM: f64 = 0.35;
/// A stall that lasts this long has a cause, even if nothing grows: a program uses more than there is, again and again.
const WITHOUT_GROWTH_MS: u64 = 30_000;
/// Exhausted memory for this long ends its cause.
const END_AFTER_MS: u64 = 250;
/// The same beside a daemon that acts first, or a balloon that deflates.
const END_BESIDE_ANOTHER_MS: u64 = 2_000;
/// The longest stop, and the shortest if everything flows again.
const STOPPED_MS: u64 = 3_000;
const STOPPED_LEAST_MS: u64 = 1_000;
/// Most stops of one unit within [`STOPS_WITHIN_MS`]. A program that needs more of them is not helped by them.
const STOPS: usize = 3;
const STOPS_WITHIN_MS: u64 = 60_000;
/// Another eke that has the journal may delay a stop for so long. It may hang itself.
const DELAYED_MS: u64 = 15_000;
/// Only a stall this hard, all the time, ends a program while there is room ...
const ASK_STALLED_5S: f64 = 0.6;
/// ... and the usual one, if less than this share of RAM is left and a stop did not help.
pub(crate) const ASK_ROOM: f64 = 0.15;
/// Time to end after SIGTERM.
const GRACE_MS: u64 = 1_500;
/// What has its memory so long after that waits in the kernel, for a disk that is gone, and cannot be ended.
const GIVES_UP_MS: u64 = 12_000;
/// The kernel needs this long to take back what an ended program had.
const RETURNS_MS: u64 = 1_000;
/// Nothing stays slowed for longer once tasks run again, however little room is left ...
const FLOWING_MS: u64 = 5_000;
/// ... nor for longer than this in any case: it waits for memory itself, and where nothing else runs that is a stall of the machine.
const SLOWED_MS: u64 = 30_000;
/// So long after it was released a stall is none of its own.
const RELEASED_MS: u64 = 2_000;

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
    /// Since when tasks run.
    flowing_ms: Option<u64>,
    slowed_ms: Option<u64>,
    /// When a slowed target was released in this stall: it is not slowed again.
    released_ms: Option<u64>,
    stopped: Option<(u64, Target)>,
    /// The stops of the last minute: when, and whose.
    stops: Vec<(u64, UnitKey)>,
    /// Since when another eke has delayed a stop in this stall.
    delayed_ms: Option<u64>,
    /// Whose stop ended in the same stall.
    stopped_in_vain: Option<UnitKey>,
    asked: Option<(u64, Target)>,
    ended_ms: Option<u64>,
    /// Processes that could not be ended.
    in_vain: Vec<ProcessId>,
}

impl State {
    /// Whether something is slowed or stopped, or was asked to end.
    pub fn is_acting(&self) -> bool {
        self.slowed_ms.is_some() || self.stopped.is_some() || self.asked.is_some()
    }

    /// The stopped target.
    pub fn stopped(&self) -> Option<&Target> {
        self.stopped.as_ref().map(|(_, target)| target)
    }

    /// Whether a target is slowed.
    pub fn is_slowed(&self) -> bool {
        self.slowed_ms.is_some()
    }

    /// The stop was refused: no further one is tried now, and the next step follows.
    pub fn stop_failed(&mut self, now_ms: u64) {
        if let Some((_, target)) = self.stopped.take() {
            self.stops.extend(std::iter::repeat_n((now_ms, target.key), STOPS));
        }
    }

    /// The step could not be begun yet: it is decided anew at the next poll. A stop that cannot be begun for long was refused.
    pub fn not_yet(&mut self, action: &Action, now_ms: u64) {
        match action {
            Action::Slow(_) => self.slowed_ms = None,
            Action::Stop(_) if lasts(self.delayed_ms, DELAYED_MS, now_ms) => self.stop_failed(now_ms),
            Action::Stop(_) => {
                self.delayed_ms.get_or_insert(now_ms);
                self.stopped = None;
                self.stops.pop();
            }
            _ => {}
        }
    }

    /// The target that was asked to end.
    pub fn asked(&self) -> Option<&Target> {
        self.asked.as_ref().map(|(_, target)| target)
    }

    /// Whether a target is about to end, or the kernel still takes back what it had: no other is needed.
    pub fn is_ending(&self, now_ms: u64) -> bool {
        self.asked.is_some() || self.is_returning(now_ms)
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

    /// The steps beside a daemon that acts first, or a balloon: none but the end of the target, and only when that has not helped for long.
    pub fn decide_last(
        &mut self,
        shortage: &Shortage,
        target: Option<&Target>,
        asked_runs: bool,
        now_ms: u64,
    ) -> Vec<Action> {
        self.note(shortage, now_ms);
        self.note_end(asked_runs, now_ms);
        if self.asked.is_some() || lasts(self.exhausted_ms, END_BESIDE_ANOTHER_MS, now_ms) {
            self.end(shortage, target, now_ms).into_iter().collect()
        } else {
            // What was done before the daemon started
            self.continue_or_release(shortage, now_ms).into_iter().collect()
        }
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
            slowed_ms: self.slowed_ms,
            stops: std::mem::take(&mut self.stops),
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
        self.flowing_ms = since(level != Level::Stalled && flows, self.flowing_ms);
        self.stops.retain(|(at, _)| now_ms.saturating_sub(*at) < STOPS_WITHIN_MS);
        self.stopped_in_vain.take_if(|_| self.stalled_ms.is_none());
        self.delayed_ms = self.delayed_ms.filter(|_| self.stalled_ms.is_some());
        self.released_ms = self.released_ms.filter(|_| self.stalled_ms.is_some());
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
            let target = self.to_end_now(target?);
            self.stopped = None;
            return Some(self.ending(Action::End(target), now_ms));
        }
        let asks = target.filter(|target| self.asks(shortage, target, now_ms))?;
        Some(self.ending(Action::Ask(asks.clone()), now_ms))
    }

    /// Whether a target is asked to end: stops do not help, and the stall lasts or memory ends at once. A build that takes and gives back in bursts while
    /// there is room is no case of it.
    fn asks(&self, shortage: &Shortage, target: &Target, now_ms: u64) -> bool {
        let at_full_speed =
            !self.is_slowed() && self.released_ms.is_none_or(|at| now_ms.saturating_sub(at) >= RELEASED_MS);
        let is_hard =
            level(shortage) >= Level::Stalled && at_full_speed && self.lasts_too_long(shortage, now_ms);
        let is_late = is_rush(shortage)
            && (shortage.room_share < EXHAUSTED_SOON_ROOM || self.is_stopped_in_vain(target));
        let is_helpless = self.stopped.is_none() && !self.stop_may_help(target);
        (is_hard || is_late) && (is_helpless || is_hard && target.shell_waits)
    }

    fn is_stopped_in_vain(&self, target: &Target) -> bool {
        self.stopped_in_vain.as_ref() == Some(&target.key)
    }

    /// Its last stop helped, and it has not been stopped too often.
    fn stop_may_help(&self, target: &Target) -> bool {
        let of_target = self.stops.iter().filter(|(_, key)| *key == target.key);
        of_target.count() < STOPS && !self.is_stopped_in_vain(target)
    }

    /// What grows now. It may be another than the stopped one, which has taken nothing since, and continues then.
    fn to_end_now(&self, target: &Target) -> Target {
        self.stopped().filter(|_| !target.grows).unwrap_or(target).clone()
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
        if let Some((at, target)) = &self.stopped {
            let for_ms = now_ms.saturating_sub(*at);
            let flows = shortage.stalled_1s < FLOWS_AGAIN_1S && for_ms >= STOPPED_LEAST_MS;
            if flows || for_ms >= STOPPED_MS {
                self.stopped_in_vain = (!flows).then(|| target.key.clone());
                self.stopped = None;
                return Some(Action::Continue);
            }
            return None;
        }
        let is_over = lasts(self.flowing_ms, FLOWING_MS, now_ms)
            || lasts(self.slowed_ms, SLOWED_MS, now_ms)
            || self.lasts_too_long(shortage, now_ms);
        self.slowed_ms.take_if(|_| is_over)?;
        self.released_ms = Some(now_ms);
        Some(Action::Release)
    }

    fn slow_or_stop(&mut self, shortage: &Shortage, target: Option<&Target>, now_ms: u64) -> Option<Action> {
        let target = target.filter(|_| !self.is_returning(now_ms) && self.stopped.is_none())?;
        let is_stalled = level(shortage) >= Level::Stalled;
        let may_stop = !target.shell_waits && self.stop_may_help(target);
        let stops = is_rush(shortage) || is_stalled && lasts(self.stalled_ms, STOP_AFTER_MS, now_ms);
        if may_stop && stops {
            self.stopped = Some((now_ms, target.clone()));
            self.stops.push((now_ms, target.key.clone()));
            return Some(Action::Stop(target.clone()));
        }
        let slows = is_stalled && lasts(self.stalled_ms, SLOW_AFTER_MS, now_ms);
        let may_slow = !self.is_slowed() && self.released_ms.is_none() && target.group.is_some();
        if slows && may_slow {
            self.slowed_ms = Some(now_ms);
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
#[path = "escalate_tests.rs"]
mod tests;
