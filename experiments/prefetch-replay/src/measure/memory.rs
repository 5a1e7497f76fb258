//! Counts the prefetched bytes, and their use.

use super::choose::Choice;
use super::{Order, Row};
use crate::predict::Maps;

/// The memory filled by one order of choice with one budget, and its counters.
#[derive(Debug, Clone)]
pub struct Memory {
    /// The budget.
    pub budget_bytes: u64,
    /// The order of choice.
    pub order: Order,
    read: Vec<Option<u64>>,
    used: Vec<bool>,
    needed: Sum,
    hit: Sum,
    fetched_bytes: u64,
    wasted_bytes: u64,
    starts: u64,
    choices: u64,
    bound: u64,
}

/// A number of maps, and their bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    maps: u64,
    bytes: u64,
}

impl Sum {
    /// Adds a map. Saturates, because a trace may come from anybody.
    fn add(&mut self, bytes: u64) {
        self.maps += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl Memory {
    /// Empty memory.
    pub fn new(budget_bytes: u64, order: Order, maps: usize) -> Self {
        Self {
            budget_bytes,
            order,
            read: vec![None; maps],
            used: vec![false; maps],
            needed: Sum::default(),
            hit: Sum::default(),
            fetched_bytes: 0,
            wasted_bytes: 0,
            starts: 0,
            choices: 0,
            bound: 0,
        }
    }

    /// Replaces the content by a new choice; maps that stay are not read again.
    pub fn fill(&mut self, choice: &Choice) {
        self.choices += 1;
        self.bound += u64::from(choice.bound);
        for (map, new) in choice.read.iter().enumerate() {
            let (old, new_bytes) = (self.read[map], new.unwrap_or(0));
            let more = new_bytes.saturating_sub(old.unwrap_or(0));
            self.fetched_bytes = self.fetched_bytes.saturating_add(more);
            if new.is_none() {
                self.drop_map(map);
            }
            self.read[map] = *new;
        }
    }

    fn drop_map(&mut self, map: usize) {
        let unused = self.read[map].take().filter(|_| !self.used[map]);
        self.wasted_bytes = self.wasted_bytes.saturating_add(unused.unwrap_or(0));
        self.used[map] = false;
    }

    /// Empties it: the machine was off, or the trace has ended.
    pub fn clear(&mut self) {
        (0..self.read.len()).for_each(|map| self.drop_map(map));
    }

    /// A program starts and needs these maps.
    pub fn start(&mut self, needs: &[usize], maps: &Maps) {
        self.starts += 1;
        for map in needs {
            self.needed.add(maps.all()[*map].bytes());
            if let Some(bytes) = self.read[*map] {
                self.hit.add(bytes);
                self.used[*map] = true;
            }
        }
    }

    /// Its results.
    pub fn rows(&self, variant: &str) -> Vec<Row> {
        let params = [("budget", self.budget_bytes.to_string()), ("order", self.order.name().to_owned())];
        let row = |metric, unit, value| Row::new(variant, &params, metric, unit, value);
        vec![
            row("hit maps", "%", percent(self.hit.maps, self.needed.maps)),
            row("hit bytes", "%", percent(self.hit.bytes, self.needed.bytes)),
            row("waste", "%", percent(self.wasted_bytes, self.fetched_bytes)),
            row("fetched per start", "bytes", self.fetched_bytes as f64 / self.starts.max(1) as f64),
            row("bound", "%", percent(self.bound, self.choices)),
        ]
    }
}

/// A share in percent; 0 if `whole` is 0.
pub fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::MapsBuilder;
    use eke_prefetch_model::pages::{PAGE_BYTES, Span};
    use eke_prefetch_model::program::ProgramId;

    #[test]
    fn hits_waste_and_reads_by_hand() {
        let mut builder = MapsBuilder::default();
        ["0", "1", "2"]
            .into_iter()
            .for_each(|file| builder.add(ProgramId(1), file, Span { first: 0, end: 10 }));
        let maps = builder.build();
        let page = |pages: u64| Some(pages * PAGE_BYTES);
        let choice = |read: [Option<u64>; 3]| Choice { read: read.to_vec(), bound: read[2].is_none() };
        let mut memory = Memory::new(0, Order::Own, 3);
        memory.start(&[0, 1], &maps); // misses: nothing was chosen yet
        memory.fill(&choice([page(10), page(4), None]));
        memory.start(&[1, 2], &maps); // of 20 pages 4 are hit, of 2 maps 1
        memory.fill(&choice([None, page(4), page(10)])); // 0 was never used, 1 stays
        memory.clear(); // 2 was in vain
        let value = |metric: &str| memory.rows("x").iter().find(|row| row.metric == metric).unwrap().value;
        assert_eq!([value("hit maps"), value("hit bytes")], [25.0, 10.0]);
        assert!((value("waste") - 100.0 * 20.0 / 24.0).abs() < 1e-9);
        assert_eq!(value("fetched per start"), (24 * PAGE_BYTES) as f64 / 2.0);
        assert_eq!(value("bound"), 50.0);
    }
}
