//! Counts how often the next program was among the first predicted ones.

use super::Row;
use super::memory::percent;
use eke_prefetch_model::predict::Chance;
use eke_prefetch_model::program::ProgramId;

/// The ranks to count.
const FIRST: [usize; 3] = [1, 3, 5];

/// The counts.
#[derive(Debug, Clone, Default)]
pub struct Ranks {
    starts: u64,
    hits: [u64; FIRST.len()],
}

impl Ranks {
    /// A program starts; `chances` was the prediction.
    pub fn start(&mut self, program: ProgramId, chances: &[Chance]) {
        self.starts += 1;
        let place = chances.iter().take(5).position(|chance| chance.program == program);
        for (first, hits) in FIRST.iter().zip(&mut self.hits) {
            *hits += u64::from(place.is_some_and(|place| place < *first));
        }
    }

    /// The results.
    pub fn rows(&self, variant: &str) -> Vec<Row> {
        let row = |(k, hits): (&usize, &u64)| {
            Row::new(variant, &[("k", k.to_string())], "hit at", "%", percent(*hits, self.starts))
        };
        FIRST.iter().zip(&self.hits).map(row).collect()
    }
}
