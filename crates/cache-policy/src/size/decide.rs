//! The store's limit from the memory signals. Pure.
//!
//! `held` is the store's memory and `room` the least of (available − reserve) over the machine and each group. The store may
//! have `most = held + room` and leave every reserve whole:
//! - `room < 0`: `limit = most − margin` at once. The margin is a quarter of the reserve, or what others took since the last
//!   reading if that is more: they may continue at that rate.
//! - Pages swapped out while less than the reserve is *free*: the limit drops by an eighth of `held` a second, to a quarter of what was asked for. The
//!   kernel may swap others out although `MemAvailable` is high, because that counts the page cache as available.
//! - In no case is it above the ceiling of [`others`](super::others).
//! - Otherwise the limit is at most `most`. After [`CALM`] without either of these it grows by an eighth of the rest per
//!   second, while `most` exceeds it by half of the reserve. That is twice what a shrink leaves, so the limit does not
//!   swing.

use std::time::Duration;

use eke_model::units::{Bytes, MIB};

use super::others::Ceiling;
use super::reserve::{group_reserve, machine_reserve};
use super::signals::{Machine, OwnUse, Signals};
use super::{MOST_PERCENT, Memory};

/// The limit grows only if nobody else needed memory for this long.
pub const CALM: Duration = Duration::from_secs(3);

/// Less than this is noise, in pages per second.
const SWAP_NOISE: f64 = 64.0;
/// The store sheds this share per second while others are swapped out, down to the other one of what was asked for.
const SHED: f64 = 1.0 / 8.0;
const SWAP_FLOOR: f64 = 0.25;

/// The limit grows by this share of the rest per second.
const GROWTH: f64 = 1.0 / 8.0;

/// With less room than this many reserves, the next reading is due soon: a process can take a quarter of RAM within a
/// second.
const TIGHT: i64 = 4;

/// Why the limit is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitReason {
    /// It is what was asked for.
    #[default]
    Asked,
    /// The machine's available memory allows no more.
    Machine,
    /// The headroom of a group allows no more.
    Group,
    /// Others read from the disk again what was dropped for the store.
    Others,
    /// Others are swapped out while little memory is free.
    Swapping,
    /// The mount stands aside.
    Aside,
    /// Memory became available and the limit grows, or waits for calm to grow.
    Growing,
}

/// The state between decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GovernorState {
    /// The present limit.
    pub limit: Bytes,
    /// When somebody else last needed memory, by the governor's clock; `None`: not so far.
    pub needed: Option<Duration>,
    /// The last reading: its time, pages swapped out so far, and the room.
    last: Option<(Duration, u64, i64)>,
    ceiling: Ceiling,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The limit from now on.
    pub limit: Bytes,
    /// The most that was asked for, in bytes.
    pub asked: Bytes,
    /// The reason for the limit.
    pub why: LimitReason,
    /// Memory is moving, or little is left: the next reading is due soon.
    pub moving: bool,
    /// For the next decision.
    pub state: GovernorState,
}

impl Decision {
    /// The same while the mount stands aside: the store gets nothing, and grows again afterwards.
    #[must_use]
    pub fn aside(self) -> Self {
        let limit = Bytes(0);
        Self {
            limit,
            why: LimitReason::Aside,
            moving: false,
            state: GovernorState { limit, ..self.state },
            ..self
        }
    }
}

/// What was asked for, in bytes. A share is of RAM, or of the tightest group's limit if that is less. At most 85 % of
/// either, also for an amount in bytes.
pub fn resolve(asked: Memory, signals: &Signals) -> Bytes {
    let limits = signals.groups.iter().map(|group| group.limit);
    let total = limits.fold(signals.machine.total, Bytes::min);
    let percent = |p: u8| total.scaled(f64::from(p.min(MOST_PERCENT)) / 100.0);
    match asked {
        Memory::Bytes(bytes) => bytes.min(percent(MOST_PERCENT)),
        Memory::Percent(p) => percent(p),
    }
}

/// How much more the store could have; negative: how much is missing. With several reserves, the tightest one can differ for
/// each margin, so each margin has its own minimum.
#[derive(Debug, Clone, Copy)]
struct Headroom {
    /// With every reserve whole.
    least: i64,
    /// With another quarter of each reserve.
    with_quarter: i64,
    /// With another half.
    with_half: i64,
    /// The reserve that decides `least`, and the reason to report for it.
    reserve: i64,
    whose: LimitReason,
}

impl Headroom {
    fn of(available: Bytes, reserve: Bytes, whose: LimitReason) -> Self {
        let (reserve, least) = (signed(reserve), signed(available) - signed(reserve));
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

fn room(signals: &Signals) -> Headroom {
    let machine =
        Headroom::of(signals.machine.available, machine_reserve(signals.machine.total), LimitReason::Machine);
    let groups =
        signals.groups.iter().map(|g| Headroom::of(g.headroom(), group_reserve(g.limit), LimitReason::Group));
    groups.fold(machine, Headroom::and)
}

/// The store's part of what was asked for, if the tables of known files take `beside` bytes. At least an eighth, because the
/// kernel alone decides when it forgets files.
pub fn store_share(asked: Bytes, beside: Bytes) -> Bytes {
    asked.saturating_sub(beside).max(Bytes(asked.0 / 8))
}

/// Decides at `now` (any monotonic clock).
pub fn decide(
    asked: Memory,
    state: &GovernorState,
    now: Duration,
    signals: &Signals,
    own: &OwnUse,
) -> Decision {
    let asked = resolve(asked, signals);
    let to_store = store_share(asked, own.beside);
    let room = room(signals);
    let swapping = is_swapping(state, now, &signals.machine);
    let shed = swapping.then(|| shed(state, now, own.held, to_store));
    let (limit, why) = unbounded_limit(state, now, signed(own.held), &room, shed);
    let limit = Bytes(u64::try_from(limit).unwrap_or(0)).min(to_store);
    let ceiling = state.ceiling.step(now, &signals.machine, own, to_store);
    let bound = ceiling.limit().filter(|bound| *bound < limit);
    let (limit, why) = bound.map_or((limit, why), |bound| (bound, LimitReason::Others));
    let needed = if room.least < 0 || swapping { Some(now) } else { state.needed };
    let waits = needed.is_some_and(|at| now.saturating_sub(at) < 2 * CALM);
    let is_tight = room.least < TIGHT * room.reserve;
    Decision {
        limit,
        asked,
        why: if limit == to_store { LimitReason::Asked } else { why },
        moving: waits || is_tight || limit.0.abs_diff(state.limit.0) > MIB,
        state: GovernorState {
            limit,
            needed,
            last: Some((now, signals.machine.swapped_out, room.least)),
            ceiling,
        },
    }
}

/// The limit in bytes for a store of `held` bytes, without regard to what was asked for; it may be negative.
fn unbounded_limit(
    state: &GovernorState,
    now: Duration,
    held: i64,
    room: &Headroom,
    shed: Option<i64>,
) -> (i64, LimitReason) {
    let most = held + room.least;
    // What was taken since the last reading may be taken again until the next.
    let taken = state.last.map_or(0, |(_, _, before)| before - room.least);
    let with_margin = (held + room.with_quarter).min(most - taken);
    let with_half = held + room.with_half;
    let now_at = signed(state.limit).min(most);
    let shed = shed.map(|shed| now_at.min(shed));
    if room.least < 0 {
        (with_margin.min(shed.unwrap_or(now_at)), room.whose)
    } else if let Some(shed) = shed {
        (shed, LimitReason::Swapping)
    } else if state.last.is_none() {
        (with_margin, room.whose)
    } else if is_calm(state, now) && with_half > now_at {
        (grown(state, now, now_at, with_half), LimitReason::Growing)
    } else {
        (now_at, room.whose)
    }
}

/// The limit while others are swapped out.
fn shed(state: &GovernorState, now: Duration, held: Bytes, to_store: Bytes) -> i64 {
    let seconds = state.last.map_or(0.0, |(then, ..)| now.saturating_sub(then).as_secs_f64());
    signed(held.scaled((1.0 - SHED * seconds).max(0.0)).max(to_store.scaled(SWAP_FLOOR)))
}

fn is_swapping(state: &GovernorState, now: Duration, machine: &Machine) -> bool {
    let Some((then, pages, _)) = state.last else { return false };
    let seconds = now.saturating_sub(then).as_secs_f64().max(0.001);
    let rate = machine.swapped_out.saturating_sub(pages) as f64 / seconds;
    rate > SWAP_NOISE && machine.free < machine_reserve(machine.total)
}

fn is_calm(state: &GovernorState, now: Duration) -> bool {
    state.needed.is_none_or(|at| now.saturating_sub(at) >= CALM)
}

/// The limit grown since the last reading, up to `most`; by at least a page, so that it arrives.
fn grown(state: &GovernorState, now: Duration, limit: i64, most: i64) -> i64 {
    let seconds = state.last.map_or(0.0, |(then, ..)| now.saturating_sub(then).as_secs_f64());
    let step = (most - limit) as f64 * (GROWTH * seconds).min(1.0);
    (limit + (step as i64).max(4096)).min(most)
}

fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.0.min(1 << 60)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
