//! Pseudorandom numbers, the same on every machine and in every run. Not for secrets.

/// The increment of the generator's state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of numbers: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

/// The next number of a stream whose state the caller keeps.
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STEP);
    mix(*state)
}

/// The number at this index of the stream of `seed`.
pub fn at(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_add(index.wrapping_add(1).wrapping_mul(STEP)))
}

/// The number at this index as a share, 0 (included) to 1 (excluded).
pub fn share_at(seed: u64, index: u64) -> f64 {
    share_of(at(seed, index))
}

/// A bijection of 64 bits in which each bit of the input changes half of the output.
pub fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 53 bits: as many as an `f64` between 0 and 1 has.
fn share_of(number: u64) -> f64 {
    (number >> 11) as f64 / (1u64 << 53) as f64
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        next(&mut self.state)
    }

    /// A number from 0 to `end` - 1; 0 if `end` is 0. The bias is less than `end` / 2^64.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    /// Shuffles the items (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at as u64 + 1) as usize;
            items.swap(at, other);
        }
    }

    /// A share, 0 (included) to 1 (excluded).
    pub fn share(&mut self) -> f64 {
        share_of(self.number())
    }

    /// A log-normal number: half are below `median`, two thirds within a factor of exp(`sigma`) of it.
    pub fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        median * (sigma * radius * (std::f64::consts::TAU * self.share()).cos()).exp()
    }

    /// An index with a probability in proportion to its weight; the last one if no weight is above 0. `None` without weights.
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

    /// The first numbers of seed 0, as printed by the authors' program.
    #[test]
    fn the_stream_is_the_published_one() {
        let mut random = Random::new(0);
        let first = [random.number(), random.number(), random.number()];
        assert_eq!(first, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
        assert_eq!([at(0, 0), at(0, 2)], [first[0], first[2]]);
    }

    #[test]
    fn its_distributions_are_right() {
        let mut random = Random::new(7);
        let below = (0..10_000).filter(|_| random.log_normal(30.0, 1.0) < 30.0).count();
        assert!((4_800..5_200).contains(&below), "{below}");
        let mut picks = [0; 3];
        (0..10_000).filter_map(|_| random.pick(&[1.0, 0.0, 3.0])).for_each(|place| picks[place] += 1);
        assert!(picks[1] == 0 && (2_300..2_700).contains(&picks[0]), "{picks:?}");
        assert_eq!(random.pick(&[]), None);
    }

    #[test]
    fn shares_are_even_and_shuffles_lose_nothing() {
        let mean = (0..10_000).map(|i| share_at(7, i)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(1).shuffle(&mut items);
        assert_ne!(items[..5], [0, 1, 2, 3, 4]);
        items.sort_unstable();
        assert!(items.into_iter().eq(0..100));
    }
}
