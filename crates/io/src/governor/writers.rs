//! What writers keep after a change. Writeback comes in bursts, so a few windows may say anything.

use eke_statistics as statistics;

/// Standard errors by which a difference is taken for more than chance: 95 of 100 lie within.
const SURE: f64 = 2.0;

/// What was written, in bytes a second, window by window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rates(Vec<f64>);

/// Do writers keep enough?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// They do.
    Yes,
    /// They do not.
    No,
    /// They wrote less, but that may be chance: more windows would tell.
    Unsure,
}

impl FromIterator<f64> for Rates {
    fn from_iter<I: IntoIterator<Item = f64>>(rates: I) -> Self {
        Self(rates.into_iter().collect())
    }
}

impl Rates {
    /// One more window.
    pub fn push(&mut self, bytes_per_s: f64) {
        self.0.push(bytes_per_s);
    }

    /// Their mean; 0 of none.
    pub fn mean(&self) -> f64 {
        statistics::mean(&self.0).unwrap_or(0.0)
    }

    /// The mean's standard error; 0 of fewer than two. Windows that follow each other are alike, so it is rather more.
    pub fn error(&self) -> f64 {
        statistics::standard_error(&self.0).unwrap_or(0.0)
    }

    /// Is this at least `share` of what it was before?
    pub fn keep(&self, share: f64, before: &Self) -> Kept {
        let short = share * before.mean() - self.mean();
        if short <= 0.0 {
            return Kept::Yes;
        }
        let error = (share * before.error()).hypot(self.error());
        if short > SURE * error { Kept::No } else { Kept::Unsure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(before: &[f64], after: &[f64]) -> Kept {
        let rates = |of: &[f64]| of.iter().copied().collect::<Rates>();
        rates(after).keep(0.95, &rates(before))
    }

    #[test]
    fn steady_writers_tell_at_once() {
        assert_eq!(kept(&[50.0; 5], &[48.0; 5]), Kept::Yes);
        assert_eq!(kept(&[50.0; 5], &[47.0; 5]), Kept::No);
    }

    #[test]
    fn a_gap_between_bursts_is_no_loss_yet() {
        let bursts: Vec<f64> = (0..20).map(|i| if i % 4 < 2 { 40.0 } else { 0.0 }).collect();
        assert_eq!(kept(&bursts, &[0.0, 0.0, 40.0, 0.0, 0.0]), Kept::Unsure);
        assert_eq!(kept(&bursts, &[0.0; 20]), Kept::No);
        assert_eq!(kept(&bursts, &bursts[2..]), Kept::Unsure);
        assert_eq!(kept(&bursts, &bursts), Kept::Yes);
    }

    #[test]
    fn nothing_of_nothing_is_kept() {
        assert_eq!(kept(&[], &[]), Kept::Yes);
        assert_eq!(kept(&[0.0], &[0.0]), Kept::Yes);
    }
}
