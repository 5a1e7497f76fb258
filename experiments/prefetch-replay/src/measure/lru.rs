//! The page cache alone: no prefetching, but memory of the same size that keeps the most recently used maps.

use std::collections::BTreeSet;

use super::memory::percent;
use super::run::{Life, lives};
use super::{Row, Settings};
use crate::predict::Maps;
use crate::trace::Trace;

/// An LRU cache of whole maps. It caches only what launches use, so it is effectively larger than a real page cache,
/// which also caches what programs read later.
struct Cache {
    room_bytes: u64,
    cached_bytes: u64,
    clock: u64,
    uses: Vec<Option<u64>>,
    order: BTreeSet<(u64, usize)>,
}

impl Cache {
    fn new(room_bytes: u64, maps: usize) -> Self {
        Self { room_bytes, cached_bytes: 0, clock: 0, uses: vec![None; maps], order: BTreeSet::new() }
    }

    fn clear(&mut self) {
        *self = Self::new(self.room_bytes, self.uses.len());
    }

    /// Uses a map; returns whether it was cached.
    fn touch(&mut self, map: usize, maps: &Maps) -> bool {
        self.clock += 1;
        let before = self.uses[map].replace(self.clock);
        match before {
            Some(clock) => self.order.remove(&(clock, map)),
            None => {
                self.cached_bytes = self.cached_bytes.saturating_add(maps.all()[map].bytes());
                false
            }
        };
        self.order.insert((self.clock, map));
        while let Some((_, oldest)) =
            (self.cached_bytes > self.room_bytes).then(|| self.order.pop_first()).flatten()
        {
            self.uses[oldest] = None;
            self.cached_bytes = self.cached_bytes.saturating_sub(maps.all()[oldest].bytes());
        }
        before.is_some()
    }
}

/// Its results.
pub fn rows(trace: &Trace, settings: &Settings) -> Vec<Row> {
    settings.budgets_bytes.iter().flat_map(|budget| of_budget(trace, *budget)).collect()
}

fn of_budget(trace: &Trace, budget_bytes: u64) -> [Row; 2] {
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
    fn the_least_recently_used_is_evicted() {
        let mut builder = MapsBuilder::default();
        ["0", "1", "2"]
            .into_iter()
            .for_each(|file| builder.add(ProgramId(1), file, Span { first: 0, end: 1 }));
        let maps = builder.build();
        let mut cache = Cache::new(2 * PAGE_BYTES, 3);
        let there: Vec<bool> = [0, 1, 0, 2, 0, 1].into_iter().map(|map| cache.touch(map, &maps)).collect();
        assert_eq!(there, [false, false, true, false, true, false]);
        assert_eq!(cache.cached_bytes, 2 * PAGE_BYTES);
    }
}
