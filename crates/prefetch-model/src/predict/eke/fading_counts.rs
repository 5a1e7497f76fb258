//! Counts of programs that fade by later counts, not by time: a machine that was off forgets nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::program::ProgramId;

/// Above this unit all counts are rescaled, so that numbers stay small.
const LARGE: f64 = 1e9;

/// Counts below this are dropped.
const NOTHING: f64 = 1e-4;

/// Fading counts. Instead of shrinking all old counts, each new one weighs more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FadingCounts {
    unit: f64,
    total: f64,
    counts: BTreeMap<ProgramId, f64>,
}

impl Default for FadingCounts {
    fn default() -> Self {
        Self { unit: 1.0, total: 0.0, counts: BTreeMap::new() }
    }
}

impl FadingCounts {
    /// Counts a program. Its count halves after `half_life` further ones. At most `limit` programs stay; the least go.
    pub fn add(&mut self, program: ProgramId, half_life: f64, limit: usize) {
        self.unit *= (1.0 / half_life).exp2();
        *self.counts.entry(program).or_insert(0.0) += self.unit;
        self.total += self.unit;
        if self.unit > LARGE || self.counts.len() > limit {
            self.shrink(limit);
        }
    }

    fn shrink(&mut self, limit: usize) {
        let unit = self.unit;
        self.counts.values_mut().for_each(|count| *count /= unit);
        self.counts.retain(|_, count| *count >= NOTHING);
        let mut by_count: Vec<(f64, ProgramId)> = self.counts.iter().map(|(p, count)| (*count, *p)).collect();
        by_count.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, program) in by_count.iter().take(self.counts.len().saturating_sub(limit)) {
            self.counts.remove(program);
        }
        self.unit = 1.0;
        self.total = self.counts.values().sum();
    }

    /// The sum of all counts, in units of the newest.
    #[cfg(test)]
    pub fn weight(&self) -> f64 {
        self.total / self.unit
    }

    /// A program's count, in units of the newest.
    #[cfg(test)]
    pub fn count(&self, program: ProgramId) -> f64 {
        self.counts.get(&program).map_or(0.0, |count| count / self.unit)
    }

    /// Adds the counts of these programs, which are sorted by id, times `factor` to `sums`.
    pub fn add_to(&self, programs: &[ProgramId], factor: f64, sums: &mut [f64]) {
        let mut at = 0;
        for (program, count) in &self.counts {
            at += programs[at..].partition_point(|have| have < program);
            if programs.get(at) == Some(program) {
                sums[at] += factor * count / self.unit;
            }
        }
    }

    /// The programs, by id.
    pub fn programs(&self) -> impl Iterator<Item = ProgramId> + '_ {
        self.counts.keys().copied()
    }

    /// Forgets a program.
    pub fn forget(&mut self, program: ProgramId) {
        if let Some(count) = self.counts.remove(&program) {
            self.total = (self.total - count).max(0.0);
        }
    }

    /// A program goes on under another id.
    pub fn rename(&mut self, old: ProgramId, new: ProgramId) {
        if let Some(count) = self.counts.remove(&old) {
            *self.counts.entry(new).or_insert(0.0) += count;
        }
    }

    /// Whether it has no counts.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Resets invalid numbers: not finite, or negative.
    pub fn sanitize(&mut self, limit: usize) {
        if !(self.unit.is_finite() && self.unit >= 1.0) {
            *self = Self::default();
        }
        self.counts.retain(|_, count| count.is_finite() && *count > 0.0);
        self.shrink(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ProgramId = ProgramId(1);
    const B: ProgramId = ProgramId(2);

    #[test]
    fn a_count_halves_after_its_half_life() {
        let mut row = FadingCounts::default();
        row.add(A, 4.0, 10);
        (0..4).for_each(|_| row.add(B, 4.0, 10));
        assert!((row.count(A) - 0.5).abs() < 1e-12);
        // 1 + 2^(-1/4) + 2^(-2/4) + 2^(-3/4) + 2^(-1)
        assert!((row.weight() - 3.642_607).abs() < 1e-5, "{}", row.weight());
    }

    #[test]
    fn it_is_bounded_in_number_and_in_size() {
        let mut row = FadingCounts::default();
        (0..10_000).for_each(|i| row.add(ProgramId(i % 50), 3.0, 8));
        assert!(row.programs().count() <= 8 && row.unit <= LARGE);
        assert!(row.count(ProgramId(49)) > 0.99);
    }

    #[test]
    fn foreign_numbers_are_mended() {
        let counts = [(A, f64::NAN), (B, -3.0), (ProgramId(3), 2.0)].into_iter().collect();
        let mut row = FadingCounts { unit: 1.0, total: -1.0, counts };
        row.sanitize(5);
        assert_eq!((row.weight(), row.programs().count()), (2.0, 1));
        let mut broken = FadingCounts { unit: 0.0, ..row };
        broken.sanitize(5);
        assert!(broken.is_empty() && broken.weight() == 0.0);
    }
}
