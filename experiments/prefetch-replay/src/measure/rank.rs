//! How often the next program was among the first that were named.

use super::Row;
use super::memory::percent;
use eke_prefetch_model::predict::Chance;
use eke_prefetch_model::program::ProgramId;

/// How many are looked at.
const FIRST: [usize; 3] = [1, 3, 5];

/// Counts.
#[derive(Debug, Clone, Default)]
pub struct Ranks {
    starts: u64,
    hits: [u64; FIRST.len()],
}

impl Ranks {
    /// A program starts, of which this had been said.
    pub fn start(&mut self, program: ProgramId, chances: &[Chance]) {
        self.starts += 1;
        let place = chances.iter().take(5).position(|chance| chance.program == program);
        for (first, hits) in FIRST.iter().zip(&mut self.hits) {
            *hits += u64::from(place.is_some_and(|place| place < *first));
        }
    }

    /// The figures.
    pub fn rows(&self, variant: &str) -> Vec<Row> {
        let figure = |(k, hits): (&usize, &u64)| {
            Row::new(variant, &[("k", k.to_string())], "hit at", "%", percent(*hits, self.starts))
        };
        FIRST.iter().zip(&self.hits).map(figure).collect()
    }
}
