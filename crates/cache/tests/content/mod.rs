//! Blocks with known content.
#![allow(dead_code)]

use eke_cache::trace::next_random;

/// The usual size of a block.
pub const BLOCK: usize = 64 << 10;

/// Bytes that do not compress; the same for the same seed.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed ^ 0x5eed;
    (0..len).map(|_| next_random(&mut state) as u8).collect()
}

/// Words by chance: packs to a third or so, more or less by seed, as text does.
pub fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let words: Vec<Vec<u8>> = (0..64 << (seed % 4)).map(|i| noise(i, 3 + (i % 9) as usize)).collect();
    let mut text = Vec::with_capacity(len + 16);
    while text.len() < len {
        text.extend_from_slice(&words[next_random(&mut state) as usize % words.len()]);
        text.push(b' ');
    }
    text.truncate(len);
    text
}
