//! Swaps idle pages out before memory is short; pure, with its state as data.
//!
//! Each step has the kernel reclaim a little, coldest pages first. What comes back within a minute is the price: at most [`PROMISE`] of the memory in use,
//! as in Google's far memory (Lagar-Cavilla et al., "Software-Defined Far Memory in Warehouse-Scale Computers", ASPLOS 2019). A
//! step that finds it broken starts a pause, and each pause is twice as long as the last.

use std::collections::VecDeque;

use eke_model::snapshot::Message;
use eke_model::units::Bytes;

use super::facts::{Facts, MachineLoad};
use super::gate;

/// The most that may come back within a minute, as a share of the memory in use.
pub const PROMISE: f64 = 0.002;
/// Returns are counted over this time.
const MINUTE_MS: u64 = 60_000;
/// The first pause.
pub const PAUSE_MS: u64 = 300_000;
/// The longest pause.
const LONGEST_PAUSE_MS: u64 = 4_800_000;
/// The least step.
pub const LEAST: Bytes = Bytes::mib(1);
/// The most reclaimed per second: half of what closes the gate of maintenance.
const MOST_PAGES_PER_S: f64 = gate::RECLAIM_PER_S / 2.0;
/// After so many steps in a row that reclaimed less than requested, nothing idle is left. Until then each makes the kernel look at more pages.
const MOST_FEWER: u32 = 10;
/// The rest of a device is for a shortage.
const MOST_FILL: f64 = 0.5;

/// How anonymous pages are requested. Without a word the kernel would rather drop pages of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Only those (`swappiness=max`, Linux 6.16).
    #[default]
    Anonymous,
    /// Those as far as there are some (`swappiness=200`, Linux 6.9).
    MostlyAnonymous,
}

impl Form {
    /// The second word of the request.
    pub fn word(self) -> &'static str {
        match self {
            Self::Anonymous => " swappiness=max",
            Self::MostlyAnonymous => " swappiness=200",
        }
    }
}

/// A request to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// How much.
    pub bytes: Bytes,
    /// Which pages.
    pub form: Form,
}

/// What the kernel did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As requested.
    Reclaimed,
    /// Less: it found no more (EAGAIN).
    Fewer,
    /// It does not know this form (EINVAL).
    UnknownForm,
    /// It has no such request.
    Absent,
    /// Any other error, as a message.
    Failed(String),
}

/// The tick.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Now {
    /// Monotonic time.
    pub ms: u64,
    /// Pages swapped out, ever.
    pub out_pages: u64,
    /// Anonymous pages that came back, ever.
    pub returned_pages: u64,
    /// Bytes in a page.
    pub page_bytes: u64,
    /// RAM that is not available.
    pub in_use: Bytes,
    /// Seconds since the last tick.
    pub interval_s: f64,
}

/// What it has done, and what came back. The default may begin after a minute.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Times and counts of returned pages, a minute long.
    returned: VecDeque<(u64, u64)>,
    form: Form,
    step: Bytes,
    rests_until_ms: u64,
    pause_ms: u64,
    /// Pages swapped out before the last step; `None` if their number is counted already.
    out_before: Option<u64>,
    /// Swapped out by steps since the last message.
    moved: Bytes,
    /// Steps in a row that reclaimed less than requested.
    fewer: u32,
    is_over: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            returned: VecDeque::new(),
            form: Form::default(),
            step: LEAST,
            rests_until_ms: 0,
            pause_ms: PAUSE_MS,
            out_before: None,
            moved: Bytes(0),
            fewer: 0,
            is_over: false,
        }
    }
}

/// What to do, and the state after it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// The next step.
    pub request: Option<Request>,
    /// A message when no step follows soon.
    pub message: Option<Message>,
    /// The state for the next decision.
    pub state: State,
}

/// Decides. Pure: the same arguments give the same decision.
pub fn decide(facts: &Facts, load: &MachineLoad, state: &State, now: Now) -> Decision {
    let mut state = state.clone();
    state.count_moved(now);
    let returned = state.returned_in_a_minute(now);
    if state.is_over || gate::closed_by(facts, load).is_some() || now.ms < state.rests_until_ms {
        return Decision { state, ..Decision::default() };
    }
    let Some(returned) = returned else { return Decision { state, ..Decision::default() } };
    if !has_room(facts) {
        let message = state.told("half of the compressed swap is in use, and the rest is for a shortage");
        return Decision { message, state, ..Decision::default() };
    }
    let share = returned.0 as f64 / (now.in_use.0.max(1)) as f64;
    if share > PROMISE {
        let message = state.pause(share, now.ms);
        return Decision { message, state, ..Decision::default() };
    }
    let request = Some(Request { bytes: state.step.min(most(now)), form: state.form });
    state.out_before = Some(now.out_pages);
    Decision { request, message: None, state }
}

/// Pages must go to eke's compressed swap, and leave half of it free.
fn has_room(facts: &Facts) -> bool {
    let first = facts.devices.iter().max_by_key(|device| device.priority);
    let (size, used) =
        facts.devices.iter().fold((0, 0), |(size, used), d| (size + d.size.0, used + d.used.0));
    first.is_some_and(|d| d.own && facts.disk_priority.is_none_or(|disk| disk < d.priority))
        && (used as f64) < size as f64 * MOST_FILL
}

fn most(now: Now) -> Bytes {
    let pages = (MOST_PAGES_PER_S * now.interval_s) as u64;
    Bytes(pages.saturating_mul(now.page_bytes)).max(LEAST)
}

impl State {
    /// Adds what the last step swapped out. The machine is calm, so nothing else does.
    fn count_moved(&mut self, now: Now) {
        if let Some(before) = self.out_before.take() {
            let pages = now.out_pages.saturating_sub(before);
            self.moved = self.moved + Bytes(pages.saturating_mul(now.page_bytes));
        }
    }

    /// Bytes that came back within the last minute; `None` before one is over.
    fn returned_in_a_minute(&mut self, now: Now) -> Option<Bytes> {
        self.returned.push_back((now.ms, now.returned_pages));
        let minute_ago = now.ms.checked_sub(MINUTE_MS)?;
        while self.returned.get(1).is_some_and(|(ms, _)| *ms <= minute_ago) {
            self.returned.pop_front();
        }
        let (first, last) = (self.returned.front()?, self.returned.back()?);
        let pages = last.1.saturating_sub(first.1);
        (first.0 <= minute_ago).then(|| Bytes(pages.saturating_mul(now.page_bytes)))
    }

    /// Begins a pause because this share came back. If nothing was swapped out, the pause gets no longer.
    fn pause(&mut self, share: f64, now_ms: u64) -> Option<Message> {
        let pause_ms = self.rest(now_ms);
        if self.moved.0 > 0 {
            self.pause_ms = (pause_ms * 2).min(LONGEST_PAUSE_MS);
        }
        let (percent, minutes) = (share * 100.0, pause_ms / 60_000);
        self.told(&format!(
            "{percent:.1} % of the memory in use came back within a minute, so no more follows for {minutes} minutes"
        ))
    }

    /// Begins a pause; returns its length in milliseconds.
    fn rest(&mut self, now_ms: u64) -> u64 {
        self.rests_until_ms = now_ms + self.pause_ms;
        self.step = LEAST;
        self.pause_ms
    }

    /// A message on what was swapped out since the last one.
    fn told(&mut self, why: &str) -> Option<Message> {
        let moved = std::mem::take(&mut self.moved);
        (moved.0 > 0).then(|| format!("{moved} of idle memory were swapped out; {why}.").into())
    }

    /// Notes the outcome of a step; returns a message if no other follows soon.
    pub fn note(&mut self, request: Request, outcome: &Outcome, now_ms: u64) -> Option<Message> {
        match outcome {
            Outcome::Reclaimed => {
                self.fewer = 0;
                self.step = Bytes(request.bytes.0.saturating_mul(2));
                // An hour without a broken promise
                if now_ms.saturating_sub(self.rests_until_ms) > 3_600_000 {
                    self.pause_ms = PAUSE_MS;
                }
            }
            Outcome::Fewer if self.fewer < MOST_FEWER => {
                self.fewer += 1;
                self.step = LEAST;
            }
            Outcome::Fewer => {
                self.fewer = 0;
                self.rest(now_ms);
                return self.told("the kernel finds no more for now");
            }
            Outcome::UnknownForm if self.form == Form::Anonymous => self.form = Form::MostlyAnonymous,
            Outcome::UnknownForm => return self.end("the kernel is older than Linux 6.9"),
            Outcome::Absent => {
                return self.end(
                    "the kernel has neither memory.reclaim (Linux 6.9 with cgroup v2) nor node/reclaim (Linux 6.17)",
                );
            }
            Outcome::Failed(why) => return self.end(why),
        }
        None
    }

    fn end(&mut self, why: &str) -> Option<Message> {
        self.is_over = true;
        Some(Message::important(format!("Idle memory is not swapped out (proactive = true): {why}.")))
    }
}

#[cfg(test)]
#[path = "proactive_tests.rs"]
mod tests;
