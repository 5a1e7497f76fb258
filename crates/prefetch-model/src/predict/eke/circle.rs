//! Counts by time of day or week: a circle of bins, smoothed, because habits vary by more than minutes.

use serde::{Deserialize, Serialize};

use super::fading_counts::FadingCounts;
use crate::program::ProgramId;

/// The most programs per bin.
const LIMIT: usize = 64;

/// How many bins on each side count.
const REACH: i64 = 2;

/// A circle of bins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Circle {
    bins: Vec<FadingCounts>,
}

impl Circle {
    /// A circle with this many bins.
    pub fn new(bins: usize) -> Self {
        Self { bins: vec![FadingCounts::default(); bins] }
    }

    /// Counts a program at a position in the circle, 0 to 1.
    pub fn add(&mut self, place: f64, program: ProgramId, half_life: f64) {
        let at = self.bin(place);
        if let Some(row) = self.bins.get_mut(at) {
            row.add(program, half_life, LIMIT);
        }
    }

    fn bin(&self, place: f64) -> usize {
        let bins = self.bins.len().max(1);
        ((place * bins as f64) as usize).min(bins - 1)
    }

    /// The rows around a position with their weights: a Gaussian one bin wide.
    pub fn around(&self, place: f64) -> Vec<(f64, &FadingCounts)> {
        let (at, bins) = (self.bin(place) as i64, self.bins.len() as i64);
        let inside = place * bins as f64 - at as f64 - 0.5;
        let rows = (-REACH..=REACH).filter_map(|off| {
            let row = self.bins.get(usize::try_from((at + off).rem_euclid(bins.max(1))).ok()?)?;
            Some(((-(off as f64 - inside).powi(2) / 2.0).exp(), row))
        });
        rows.collect()
    }

    /// Forgets a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.bins.iter_mut().for_each(|row| row.forget(program));
    }

    /// A program goes on under another id.
    pub fn rename(&mut self, old: ProgramId, new: ProgramId) {
        self.bins.iter_mut().for_each(|row| row.rename(old, new));
    }

    /// Resets invalid numbers.
    pub fn sanitize(&mut self, bins: usize) {
        self.bins.resize_with(bins, FadingCounts::default);
        self.bins.iter_mut().for_each(|row| row.sanitize(LIMIT));
    }
}

/// The position of a time within a period, from 0 up to and excluding 1.
pub fn place(at_s: f64, period_s: f64) -> f64 {
    let share = at_s.rem_euclid(period_s) / period_s;
    if share.is_finite() && share < 1.0 { share } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn midnight_is_no_border() {
        let mut circle = Circle::new(24);
        circle.add(place(23.9 * 3600.0, 86_400.0), ProgramId(7), 100.0);
        let seen = |hour: f64| -> f64 {
            circle
                .around(place(hour * 3600.0, 86_400.0))
                .iter()
                .map(|(w, row)| w * row.count(ProgramId(7)))
                .sum()
        };
        assert!(seen(24.1) > 0.5 && seen(24.1) > seen(25.5) && seen(12.0) == 0.0);
    }

    #[test]
    fn any_time_has_a_place() {
        for at in [f64::NAN, f64::INFINITY, -1e300, 1e300, -0.0, -1e-30] {
            assert!((0.0..1.0).contains(&place(at, 86_400.0)), "{at}");
        }
    }
}
