//! Numbers that look random and are the same in every run. Pure.

/// The number of this index (splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
pub fn number(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The same as a share, 0 (included) to 1 (not).
pub fn share(seed: u64, index: u64) -> f64 {
    (number(seed, index) >> 11) as f64 / (1u64 << 53) as f64
}

/// A stream of them.
#[derive(Debug, Clone)]
pub struct Random {
    seed: u64,
    next: u64,
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, next: 0 }
    }

    /// One below `limit`, which is at least 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next += 1;
        number(self.seed, self.next) % limit.max(1)
    }

    /// In another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even_and_shuffles_lose_nothing() {
        let mean = (0..10_000).map(|i| share(7, i)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(1).shuffle(&mut items);
        assert_ne!(items[..5], [0, 1, 2, 3, 4]);
        items.sort_unstable();
        assert!(items.into_iter().eq(0..100));
    }
}
