//! What is done once a second beside the requests: rounds of the dense codec when processors are idle, the room that the store
//! has, for the admission policy, and what is held for nothing: files that others have unlinked, buffers.

use std::sync::Arc;
use std::time::Duration;

use eke_cache_policy::admission::Admission;
use eke_cache_store::{Stats, Store};
use eke_cachefs::fs::Fs;
use eke_linux::{Root, parse};
use eke_model::units::Bytes;

use crate::size::Governor;

const TURN: Duration = Duration::from_secs(1);
/// So many turns at least lie between the beginnings of two rounds. What stays is in the main queue already, so that little is
/// recompressed in vain; and while a disk is what holds readers back, the ratio decides.
const BETWEEN_ROUNDS: u32 = 2;
/// Shares of processor time that was idle in the last turn: from the first on a round may begin, below the second it ends.
/// The compressors' own time counts as busy.
const BEGIN_IDLE: f64 = 0.5;
const END_IDLE: f64 = 0.1;
/// Processors count as busy, for what a read from the backing file tells, until so many turns in a row had idle time: in between it is load all the same.
const CALM_TURNS: u32 = 5;
/// So many turns lie between two looks for files that others have unlinked (some thousand calls of statx(2)), with buffers given back.
const BETWEEN_CLEANINGS: u64 = 10;
/// Blocks are about half as large when compressed (text, code; measured on Silesia with LZ4) until the store knows better.
const USUAL_RATIO: f64 = 2.0;

/// What it maintains.
pub(super) struct Maintenance {
    pub(super) store: Arc<Store>,
    pub(super) admission: Arc<Admission>,
    pub(super) governor: Arc<Governor>,
    pub(super) fs: Arc<Fs>,
}

/// What the rounds depend on.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    turns: u32,
    /// Blocks taken in when the last round began.
    insertions: u64,
    under_way: bool,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Begin,
    End,
    Nothing,
}

impl State {
    /// One turn, with the share of idle time in it and the blocks taken in so far.
    fn turn(&mut self, idle: f64, insertions: u64) -> Turn {
        self.turns += 1;
        let due = self.turns >= BETWEEN_ROUNDS && insertions != self.insertions;
        if due && idle >= BEGIN_IDLE {
            *self = Self { turns: 0, insertions, under_way: true };
            Turn::Begin
        } else if self.under_way && idle < END_IDLE {
            // What it did not come to is for the next one.
            *self = Self { turns: 0, insertions: 0, under_way: false };
            Turn::End
        } else {
            Turn::Nothing
        }
    }
}

impl Maintenance {
    /// For ever.
    pub(super) fn run(&self, root: &Root) {
        let mut state = State::default();
        let (mut before, mut turns, mut calm) = (ticks(root), 0_u64, CALM_TURNS);
        loop {
            std::thread::sleep(TURN);
            let now = ticks(root);
            let stats = self.store.stats();
            self.admission.has_room_for(room(&stats));
            self.governor.note_beside(self.fs.footprint().total());
            turns += 1;
            if turns % BETWEEN_CLEANINGS == 0 {
                self.fs.nodes().close_unlinked();
                self.fs.give_back_buffers();
            }
            let idle = idle(before, now);
            calm = if now.0 > before.0 && idle < END_IDLE { 0 } else { calm.saturating_add(1) };
            self.admission.processors_are_busy(calm < CALM_TURNS);
            match state.turn(idle, stats.insertions) {
                Turn::Begin => self.store.begin_round(),
                Turn::End => self.store.end_round(),
                Turn::Nothing => {}
            }
            before = now;
        }
    }
}

fn room(stats: &Stats) -> Bytes {
    stats.limit.scaled(stats.ratio().unwrap_or(USUAL_RATIO).max(1.0))
}

fn ticks(root: &Root) -> (u64, u64) {
    parse::stat::machine(&root.read("proc/stat").unwrap_or_default())
}

fn idle(before: (u64, u64), now: (u64, u64)) -> f64 {
    let (all, idle) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
    if all == 0 { 0.0 } else { idle as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_begins_when_processors_are_idle_and_something_new_is_held() {
        let mut state = State::default();
        let first = (1..100).find(|_| state.turn(0.9, 5) == Turn::Begin);
        assert_eq!(first, Some(BETWEEN_ROUNDS));
        assert!((0..100).all(|_| state.turn(0.9, 5) == Turn::Nothing), "nothing new");
        assert!((0..100).all(|_| state.turn(0.2, 6) == Turn::Nothing), "busy");
        assert_eq!(state.turn(0.9, 6), Turn::Begin);
    }

    #[test]
    fn a_round_ends_when_processors_are_needed_and_is_made_up_for() {
        let mut state = State::default();
        assert!((0..BETWEEN_ROUNDS).any(|_| state.turn(1.0, 5) == Turn::Begin));
        assert_eq!((state.turn(0.05, 5), state.turn(0.05, 5)), (Turn::End, Turn::Nothing));
        assert!((0..BETWEEN_ROUNDS).any(|_| state.turn(1.0, 5) == Turn::Begin));
    }

    #[test]
    fn idle_time_is_a_share() {
        assert!((idle((100, 50), (200, 125)) - 0.75).abs() < 1e-9);
        assert!(idle((100, 50), (100, 50)).abs() < 1e-9);
    }
}
