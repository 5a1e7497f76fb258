//! Blocks with known content.
#![allow(dead_code, reason = "no test uses all of it")]

/// The usual size of a block.
pub const BLOCK: usize = 64 << 10;

/// Bytes that do not compress; the same for the same seed.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(seed ^ 0x5eed).fill(&mut bytes);
    bytes
}

/// Random words, which compress to about a third, depending on the seed, as text does.
pub fn text(seed: u64, len: usize) -> Vec<u8> {
    let (mut random, letters) = (fastrand::Rng::with_seed(seed), noise(0, 16 + (512 << 3)));
    let vocabulary = 64 << (seed % 4);
    let mut text = Vec::with_capacity(len + 16);
    while text.len() < len {
        let word = random.usize(..vocabulary);
        text.extend_from_slice(&letters[word << 3..][..3 + word % 9]);
        text.push(b' ');
    }
    text.truncate(len);
    text
}
