//! Numbers that look random and are the same on every machine, in every run and with every version of any library.

/// A stream of numbers (splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One from 0 on below `end`; 0 where that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    /// Another order of the same.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at as u64 + 1) as usize;
            items.swap(at, other);
        }
    }

    /// A share, 0 (included) to 1 (not).
    pub fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Log-normal: half are below `median`; two thirds are within a factor of exp(`sigma`) of it.
    pub fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        median * (sigma * radius * (std::f64::consts::TAU * self.share()).cos()).exp()
    }

    /// A place, as likely as its weight; the last one if no weight is above 0. None if there are no weights.
    pub fn pick(&mut self, weights: &[f64]) -> Option<usize> {
        let mut left = self.share() * weights.iter().sum::<f64>();
        let last = weights.len().checked_sub(1)?;
        for (place, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return Some(place);
            }
        }
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_laws_hold() {
        let mut random = Random::new(7);
        let below = (0..10_000).filter(|_| random.log_normal(30.0, 1.0) < 30.0).count();
        assert!((4_800..5_200).contains(&below), "{below}");
        let mut picks = [0; 3];
        (0..10_000).filter_map(|_| random.pick(&[1.0, 0.0, 3.0])).for_each(|place| picks[place] += 1);
        assert!(picks[1] == 0 && (2_300..2_700).contains(&picks[0]), "{picks:?}");
        assert_eq!(random.pick(&[]), None);
    }
}
