//! The offsets of a measurement.

use eke_statistics::Random;

/// Bytes of a random read, and the alignment of direct I/O: no disk has larger sectors.
pub const SMALL_BYTES: u64 = 4096;
/// Bytes of a sequential read.
pub const LARGE_BYTES: u64 = 1 << 20;
/// Random reads one at a time: enough for a median, few enough for a disk of 20 ms.
const ALONE: usize = 24;
/// Random reads by several threads, in total.
const AT_ONCE: usize = 32;
/// Random reads near each other.
const NEAR: usize = 24;
/// Sequential reads, as far as their time goes. The first one includes a seek and does not count. A limiter lets some MiB through at once.
const LARGE: usize = 12;

/// Offsets in bytes, each a multiple of [`SMALL_BYTES`], in the order of reading. All reads together are less than 13 MiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets {
    /// Anywhere, one at a time.
    pub alone: Vec<u64>,
    /// Anywhere, four at once.
    pub at_once: Vec<u64>,
    /// Within a small part, one at a time.
    pub near: Vec<u64>,
    /// Sequential, [`LARGE_BYTES`] each.
    pub large: Vec<u64>,
}

impl Offsets {
    /// The most bytes that are read.
    pub fn bytes(&self) -> u64 {
        let small = (self.alone.len() + self.at_once.len() + self.near.len()) as u64;
        small * SMALL_BYTES + self.large.len() as u64 * LARGE_BYTES
    }
}

/// The offsets for a target of this size, determined by the seed. `None` if it is smaller than 16 MiB.
pub fn offsets(size_bytes: u64, seed: u64) -> Option<Offsets> {
    if size_bytes < 16 << 20 {
        return None;
    }
    let mut random = Random::new(seed);
    let mut anywhere = |count: usize| {
        // One in each of `count` equal parts, shuffled: few reads, evenly spread.
        let part = size_bytes / count as u64;
        let mut offsets: Vec<u64> =
            (0..count as u64).map(|nth| align(nth * part + random.below(part.max(1)))).collect();
        random.shuffle(&mut offsets);
        offsets
    };
    let (alone, at_once) = (anywhere(ALONE), anywhere(AT_ONCE));
    let window = (size_bytes / 1024).clamp(1 << 20, 64 << 20);
    let base = align(random.below(size_bytes - window));
    let near = (0..NEAR).map(|_| align(base + random.below(window - SMALL_BYTES))).collect();
    let first = align(random.below(size_bytes - LARGE as u64 * LARGE_BYTES));
    let large = (0..LARGE as u64).map(|nth| first + nth * LARGE_BYTES).collect();
    Some(Offsets { alone, at_once, near, large })
}

fn align(offset: u64) -> u64 {
    offset / SMALL_BYTES * SMALL_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn reads_are_inside_aligned_and_bounded(size in (16u64 << 20)..(1 << 44), seed: u64) {
            let plan = offsets(size, seed).unwrap();
            let small = plan.alone.iter().chain(&plan.at_once).chain(&plan.near);
            for (offset, bytes) in small.map(|o| (o, SMALL_BYTES)).chain(plan.large.iter().map(|o| (o, LARGE_BYTES))) {
                assert!(offset % SMALL_BYTES == 0 && offset + bytes <= size, "{offset} of {size}");
            }
            assert!(plan.bytes() <= 13 << 20);
            let near = plan.near.iter().max().unwrap() - plan.near.iter().min().unwrap();
            assert!(near <= (size / 1024).max(1 << 20));
            assert!(plan.large.windows(2).all(|pair| pair[1] == pair[0] + LARGE_BYTES));
        }
    }

    #[test]
    fn reads_are_spread_and_not_in_order() {
        let plan = offsets(1 << 40, 7).unwrap();
        assert!(!plan.alone.is_sorted());
        let mut parts: Vec<u64> = plan.alone.iter().map(|offset| offset / ((1 << 40) / 24)).collect();
        parts.sort_unstable();
        parts.dedup();
        assert_eq!(parts.len(), 24);
        assert_ne!(plan.alone, offsets(1 << 40, 8).unwrap().alone);
    }

    #[test]
    fn a_small_target_gives_no_offsets() {
        assert_eq!(offsets((16 << 20) - 1, 1), None);
    }
}
