//! The bare page cache: no prefetch, but memory of the same size that keeps what launches used last.

use std::collections::BTreeSet;

use super::memory::percent;
use super::run::{Life, lives};
use super::{Row, Settings};
use crate::predict::Maps;
use crate::trace::Trace;

/// A cache of whole maps that drops the least recently used. It sees only what launches use, and so is larger than a real one
/// of the same size, which what programs read later passes through too.
struct Cache {
    room_bytes: u64,
    held_bytes: u64,
    turn: u64,
    turns: Vec<Option<u64>>,
    order: BTreeSet<(u64, usize)>,
}

impl Cache {
    fn new(room_bytes: u64, maps: usize) -> Self {
        Self { room_bytes, held_bytes: 0, turn: 0, turns: vec![None; maps], order: BTreeSet::new() }
    }

    fn clear(&mut self) {
        *self = Self::new(self.room_bytes, self.turns.len());
    }

    /// Uses a map; was it there?
    fn touch(&mut self, map: usize, maps: &Maps) -> bool {
        self.turn += 1;
        let before = self.turns[map].replace(self.turn);
        match before {
            Some(turn) => self.order.remove(&(turn, map)),
            None => {
                self.held_bytes = self.held_bytes.saturating_add(maps.all()[map].bytes());
                false
            }
        };
        self.order.insert((self.turn, map));
        while let Some((_, oldest)) =
            (self.held_bytes > self.room_bytes).then(|| self.order.pop_first()).flatten()
        {
            self.turns[oldest] = None;
            self.held_bytes = self.held_bytes.saturating_sub(maps.all()[oldest].bytes());
        }
        before.is_some()
    }
}

/// Its figures.
pub fn rows(trace: &Trace, settings: &Settings) -> Vec<Row> {
    settings.budgets_bytes.iter().flat_map(|budget| figures(trace, *budget)).collect()
}

fn figures(trace: &Trace, budget_bytes: u64) -> [Row; 2] {
    let maps = &trace.maps;
    let mut cache = Cache::new(budget_bytes, maps.all().len());
    let (mut needed, mut hit) = ([0_u64; 2], [0_u64; 2]);
    for (_, life) in lives(trace) {
        match life {
            Life::Boot => cache.clear(),
            Life::Start(program) => {
                for map in maps.of(program) {
                    let bytes = maps.all()[*map].bytes();
                    let there = u64::from(cache.touch(*map, maps));
                    needed = [needed[0] + 1, bytes.saturating_add(needed[1])];
                    hit = [hit[0] + there, (there * bytes).saturating_add(hit[1])];
                }
            }
            Life::Other => {}
        }
    }
    let params = [("budget", budget_bytes.to_string())];
    let row = |metric, at: usize| Row::new("page cache", &params, metric, "%", percent(hit[at], needed[at]));
    [row("hit maps", 0), row("hit bytes", 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::MapsBuilder;
    use eke_prefetch_model::pages::{PAGE_BYTES, Span};
    use eke_prefetch_model::program::ProgramId;

    #[test]
    fn the_least_recently_used_goes() {
        let mut builder = MapsBuilder::default();
        ["0", "1", "2"]
            .into_iter()
            .for_each(|file| builder.add(ProgramId(1), file, Span { first: 0, end: 1 }));
        let maps = builder.build();
        let mut cache = Cache::new(2 * PAGE_BYTES, 3);
        let there: Vec<bool> = [0, 1, 0, 2, 0, 1].into_iter().map(|map| cache.touch(map, &maps)).collect();
        assert_eq!(there, [false, false, true, false, true, false]);
        assert_eq!(cache.held_bytes, 2 * PAGE_BYTES);
    }
}
