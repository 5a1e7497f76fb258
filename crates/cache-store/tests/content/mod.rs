//! Blocks with known content.
#![allow(dead_code, reason = "no test uses all of it")]

use eke_cache_replay::next_random;

/// The usual size of a block.
pub const BLOCK: usize = 64 << 10;

/// Bytes that do not compress; the same for the same seed.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed ^ 0x5eed;
    (0..len).map(|_| next_random(&mut state) as u8).collect()
}

/// Words by chance: packs to a third or so, more or less by seed, as text does.
pub fn text(seed: u64, len: usize) -> Vec<u8> {
    let (mut state, letters, vocabulary) = (seed, noise(0, 16 + (512 << 3)), 64 << (seed % 4));
    let mut text = Vec::with_capacity(len + 16);
    while text.len() < len {
        let word = next_random(&mut state) as usize % vocabulary;
        text.extend_from_slice(&letters[word << 3..][..3 + word % 9]);
        text.push(b' ');
    }
    text.truncate(len);
    text
}
