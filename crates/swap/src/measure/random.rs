//! A small generator of numbers that need not be secret (SplitMix64), so that choices are repeatable in tests.

use rustix::rand::{GetRandomFlags, getrandom};

/// The generator.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// For tests: repeats the same numbers for the same seed.
    #[cfg(test)]
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Seeded by the kernel.
    pub(crate) fn from_kernel() -> Self {
        let mut seed = [0; 8];
        let _ = getrandom(&mut seed, GetRandomFlags::empty());
        Self(u64::from_ne_bytes(seed))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Puts `items` in random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}
