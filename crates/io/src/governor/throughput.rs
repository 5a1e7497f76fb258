//! The throughput that a disk keeps after a change. Writeback comes in bursts, so a few windows prove nothing.
//!
//! Reads count with writes, and the time of the arm's ways to them counts for nobody: a read that is answered sooner is followed by the next one,
//! and what that takes of the disk is no loss.

use eke_statistics as statistics;

/// A difference of more standard errors than this is no chance (95 %).
const SURE: f64 = 2.0;

/// Bytes read and written per second, window by window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Throughput(Vec<f64>);

/// Does the disk keep enough?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// Yes.
    Enough,
    /// No.
    TooLittle,
    /// It moved less, but that may be chance: more windows are needed.
    Unsure,
}

impl FromIterator<f64> for Throughput {
    fn from_iter<I: IntoIterator<Item = f64>>(rates: I) -> Self {
        Self(rates.into_iter().collect())
    }
}

impl Throughput {
    /// Adds a window.
    pub fn push(&mut self, bytes_per_s: f64) {
        self.0.push(bytes_per_s);
    }

    /// The number of windows.
    pub fn windows(&self) -> usize {
        self.0.len()
    }

    /// The mean; 0 without windows.
    pub fn mean(&self) -> f64 {
        statistics::mean(&self.0).unwrap_or(0.0)
    }

    /// The mean's standard error; 0 with fewer than two windows. Consecutive windows correlate, so the true error is larger.
    pub fn error(&self) -> f64 {
        statistics::standard_error(&self.0).unwrap_or(0.0)
    }

    /// Is this at least `share` of `before`?
    pub fn keep(&self, share: f64, before: &Self) -> Retention {
        let short = share * before.mean() - self.mean();
        if short <= 0.0 {
            return Retention::Enough;
        }
        let error = (share * before.error()).hypot(self.error());
        if short > SURE * error { Retention::TooLittle } else { Retention::Unsure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(before: &[f64], after: &[f64]) -> Retention {
        let rates = |of: &[f64]| of.iter().copied().collect::<Throughput>();
        rates(after).keep(0.95, &rates(before))
    }

    #[test]
    fn a_steady_disk_is_judged_at_once() {
        assert_eq!(kept(&[50.0; 5], &[48.0; 5]), Retention::Enough);
        assert_eq!(kept(&[50.0; 5], &[47.0; 5]), Retention::TooLittle);
    }

    #[test]
    fn a_gap_between_bursts_is_no_loss_yet() {
        let bursts: Vec<f64> = (0..20).map(|i| if i % 4 < 2 { 40.0 } else { 0.0 }).collect();
        assert_eq!(kept(&bursts, &[0.0, 0.0, 40.0, 0.0, 0.0]), Retention::Unsure);
        assert_eq!(kept(&bursts, &[0.0; 20]), Retention::TooLittle);
        assert_eq!(kept(&bursts, &bursts[2..]), Retention::Unsure);
        assert_eq!(kept(&bursts, &bursts), Retention::Enough);
    }

    #[test]
    fn an_idle_disk_loses_nothing() {
        assert_eq!(kept(&[], &[]), Retention::Enough);
        assert_eq!(kept(&[0.0], &[0.0]), Retention::Enough);
    }
}
