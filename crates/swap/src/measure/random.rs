//! Choices that differ from run to run: the generator with a seed of the kernel's.

use eke_statistics::Random;
use rustix::rand::{GetRandomFlags, getrandom};

/// A generator seeded by the kernel.
pub(crate) fn from_kernel() -> Random {
    let mut seed = [0; 8];
    let _ = getrandom(&mut seed, GetRandomFlags::empty());
    Random::new(u64::from_ne_bytes(seed))
}
