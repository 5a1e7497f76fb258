//! The limit from the signals. Pure.
//!
//! With `held` what the store holds and `room` the least of (available − reserve) over the machine and each group, the
//! store may hold `most = held + room` and leave every reserve whole:
//! - `room < 0`: `limit = most − margin` at once, the margin being a quarter of the reserve, or what was taken
//!   since the last look if that is more: it may go on like that until the next one.
//! - swap traffic while less than the reserve is *free*: an eighth of what is held goes. The kernel may swap others out
//!   although `MemAvailable` is high, because it counts the page cache as available.
//! - otherwise the limit is at most `most`, and after [`CALM`] without either it grows by an eighth of what is left
//!   a second, while `most` is above it by half of the reserve: twice what a shrink leaves, so it does not swing.

use std::time::Duration;

use eke_model::units::{Bytes, MIB};

use super::signals::{Machine, Signals};
use super::{MOST_PERCENT, Memory};

/// So long nobody else must have needed memory before the limit grows.
pub const CALM: Duration = Duration::from_secs(3);

/// Swap traffic below this is noise: pages a second.
const SWAP_NOISE: f64 = 64.0;

/// The share of what is left that the limit grows by in a second.
const GROWTH: f64 = 1.0 / 8.0;

/// With less room than so many reserves the next look is due soon: a process can take a quarter of RAM within a second.
const TIGHT: i64 = 4;

/// Why the limit is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Why {
    /// It is what was asked for.
    #[default]
    Asked,
    /// The machine's available memory allows no more.
    Machine,
    /// The headroom of a group allows no more.
    Group,
    /// Others are swapping while little memory is free.
    Swapping,
    /// Memory came back and the limit is growing, or waits for calm before it does.
    Growing,
}

/// What the last decision left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    /// The limit now.
    pub limit: Bytes,
    /// When somebody else last needed memory, by the governor's clock; `None`: not so far.
    pub needed: Option<Duration>,
    /// The last look: when, swap pages so far, and the room that there was.
    last: Option<(Duration, u64, i64)>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The limit from now on.
    pub limit: Bytes,
    /// The most that was asked for, in bytes.
    pub asked: Bytes,
    /// Why.
    pub why: Why,
    /// Is anything moving, or could little more be taken? Then the next look is due soon.
    pub moving: bool,
    /// For the next decision.
    pub state: State,
}

/// The machine's reserve: 1/16 of RAM and at least 32 MiB, but at most 1/8 of RAM. A machine of 124 MB keeps 15 MiB: its
/// kernel starts to reclaim at about 2 MiB, and with 32 MiB of the 50 or so that are available nothing would be left to
/// the store.
pub fn machine_reserve(total: Bytes) -> Bytes {
    reserve(total, 32 * MIB)
}

/// A group's reserve: 1/16 of the limit and at least 16 MiB, but at most 1/8 of the limit.
pub fn group_reserve(limit: Bytes) -> Bytes {
    reserve(limit, 16 * MIB)
}

fn reserve(of: Bytes, least: u64) -> Bytes {
    Bytes((of.0 / 16).max(least).min(of.0 / 8))
}

/// What was asked for in bytes: a share is of RAM, or of the tightest group's limit if that is less. At most 85 % of
/// either, also in bytes.
pub fn resolve(asked: Memory, signals: &Signals) -> Bytes {
    let limits = signals.groups.iter().map(|group| group.limit);
    let there = limits.fold(signals.machine.total, Bytes::min);
    let percent = |p: u8| there.scaled(f64::from(p.min(MOST_PERCENT)) / 100.0);
    match asked {
        Memory::Bytes(bytes) => bytes.min(percent(MOST_PERCENT)),
        Memory::Percent(p) => percent(p),
    }
}

/// How much more the store could hold (negative: what is missing), by whoever allows least: of two, the one with the smaller reserve
/// may allow least now and more with a margin, so each margin has a minimum of its own.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// With every reserve whole.
    least: i64,
    /// With a quarter of each reserve besides.
    with_quarter: i64,
    /// With a half.
    with_half: i64,
    /// The reserve that decides `least`, and whose it is.
    reserve: i64,
    whose: Why,
}

impl Room {
    fn of(there: Bytes, reserve: Bytes, whose: Why) -> Self {
        let (reserve, least) = (signed(reserve), signed(there) - signed(reserve));
        Self { least, with_quarter: least - reserve / 4, with_half: least - reserve / 2, reserve, whose }
    }

    fn and(self, other: Self) -> Self {
        let least = if other.least < self.least { other } else { self };
        Self {
            with_quarter: self.with_quarter.min(other.with_quarter),
            with_half: self.with_half.min(other.with_half),
            ..least
        }
    }
}

fn room(signals: &Signals) -> Room {
    let machine = Room::of(signals.machine.available, machine_reserve(signals.machine.total), Why::Machine);
    let groups = signals.groups.iter().map(|g| Room::of(g.headroom(), group_reserve(g.limit), Why::Group));
    groups.fold(machine, Room::and)
}

/// What is left to the store of what was asked for, when so much is taken by what is known of files: an eighth in any case, for the
/// kernel alone decides when it forgets files.
pub fn left(asked: Bytes, beside: Bytes) -> Bytes {
    asked.saturating_sub(beside).max(Bytes(asked.0 / 8))
}

/// Decides at `now` (any clock that only goes forward), with `held.0` bytes in the store, and `held.1` beside it that count as well.
pub fn decide(
    asked: Memory,
    state: &State,
    now: Duration,
    signals: &Signals,
    held: (Bytes, Bytes),
) -> Decision {
    let asked = resolve(asked, signals);
    let (held, to_store) = (held.0, left(asked, held.1));
    let Room { least: room, with_quarter, with_half, reserve, whose } = room(signals);
    let swapping = is_swapping(state, now, &signals.machine);
    let held = signed(held);
    let most = held + room;
    // What was taken since the last look may be taken again until the next.
    let taken = state.last.map_or(0, |(_, _, before)| before - room);
    let with_margin = (held + with_quarter).min(most - taken);
    let now_at = signed(state.limit).min(most);
    let shed = if swapping { held * 7 / 8 } else { i64::MAX };
    let (limit, why) = if room < 0 {
        (now_at.min(with_margin).min(shed), whose)
    } else if swapping {
        (now_at.min(shed), Why::Swapping)
    } else if state.last.is_none() {
        (with_margin, whose)
    } else if is_calm(state, now) && held + with_half > now_at {
        (grown(state, now, now_at, held + with_half), Why::Growing)
    } else {
        (now_at, whose)
    };
    let limit = Bytes(u64::try_from(limit).unwrap_or(0)).min(to_store);
    let needed = if room < 0 || swapping { Some(now) } else { state.needed };
    let waits = needed.is_some_and(|at| now.saturating_sub(at) < 2 * CALM);
    Decision {
        limit,
        asked,
        why: if limit == to_store { Why::Asked } else { why },
        moving: waits || room < TIGHT * reserve || limit.0.abs_diff(state.limit.0) > MIB,
        state: State { limit, needed, last: Some((now, signals.machine.swap_pages, room)) },
    }
}

fn is_swapping(state: &State, now: Duration, machine: &Machine) -> bool {
    let Some((then, pages, _)) = state.last else { return false };
    let seconds = now.saturating_sub(then).as_secs_f64().max(0.001);
    let rate = machine.swap_pages.saturating_sub(pages) as f64 / seconds;
    rate > SWAP_NOISE && machine.free < machine_reserve(machine.total)
}

fn is_calm(state: &State, now: Duration) -> bool {
    state.needed.is_none_or(|at| now.saturating_sub(at) >= CALM)
}

/// The limit after growing since the last look, up to `most`; by a page at least, so that it arrives.
fn grown(state: &State, now: Duration, limit: i64, most: i64) -> i64 {
    let seconds = state.last.map_or(0.0, |(then, ..)| now.saturating_sub(then).as_secs_f64());
    let step = (most - limit) as f64 * (GROWTH * seconds).min(1.0);
    (limit + (step as i64).max(4096)).min(most)
}

fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.0.min(1 << 60)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
