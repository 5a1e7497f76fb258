//! The content of a page of the memory stressor: a repeated phrase, then incompressible bytes.

use eke_statistics::Random;
use eke_statistics::random::mix;

/// Eight words of text, repeated in the part of a page that compresses.
const PHRASE: &[u8; 64] = b"to eke out: to make a small supply last, page by page by page.\n ";
/// The compressed size of the repeated phrase with an LZ compressor: the phrase once, and the length of its repetition.
const PHRASE_COMPRESSED_BYTES: f64 = 88.0;
const WORDS: usize = 512;
/// The last word counts touches and is not part of the content.
const CONTENT_WORDS: usize = WORDS - 1;

/// One page of 4 KiB, aligned as the kernel's are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C, align(4096))]
pub struct Page([u64; WORDS]);

impl Page {
    /// Reads and changes it, outside its content.
    pub fn touch(&mut self) {
        self.0[WORDS - 1] = self.0[WORDS - 1].wrapping_add(1);
    }

    /// Its first word.
    pub fn first(&self) -> u64 {
        self.0[0]
    }

    /// Its 4096 bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}

/// How pages are made.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    seed: u64,
    random_words: usize,
}

impl Recipe {
    /// Pages that compress `ratio` to 1 with lz4, lzo, deflate or zstd; `ratio` is 1 to 40.
    ///
    /// # Errors
    /// The ratio is impossible, as a sentence.
    pub fn new(seed: u64, ratio: f64) -> Result<Self, String> {
        if !(1.0..=40.0).contains(&ratio) {
            return Err(format!("a ratio of {ratio} is not between 1 and 40"));
        }
        let compressed = WORDS as f64 * 8.0 / ratio;
        let words = ((compressed - PHRASE_COMPRESSED_BYTES) / 8.0).round().max(1.0) as usize;
        let random_words = if ratio < 1.02 { CONTENT_WORDS } else { words.min(CONTENT_WORDS) };
        Ok(Self { seed, random_words })
    }

    /// Page number `index`. No two are equal: the first random word differs for every index. Text comes first, since after many incompressible
    /// bytes lz4 searches in long strides and would miss some of it.
    pub fn page(&self, index: u64) -> Page {
        let mut words = [0; WORDS];
        let (text, random) = words[..CONTENT_WORDS].split_at_mut(CONTENT_WORDS - self.random_words);
        for (word, bytes) in text.iter_mut().zip(PHRASE.chunks_exact(8).cycle()) {
            *word = bytes.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b));
        }
        // `mix` is a bijection: no two pages begin alike
        let mut numbers = Random::new(mix(self.seed) ^ index);
        random.fill_with(|| numbers.number());
        Page(words)
    }
}

/// A checksum of the content; one changed bit changes it.
pub fn sum(page: &Page) -> u64 {
    page.0[..CONTENT_WORDS].iter().fold(0, |h, w| (h ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

/// The numbers below `count` (at most `u32::MAX`) in a random order.
pub fn order(count: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    Random::new(seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn pages_compress_by_about_the_requested_ratio() {
        for ratio in [1.5, 2.0, 3.0, 4.0, 8.0] {
            let recipe = Recipe::new(7, ratio).unwrap();
            let pages: Vec<Vec<u8>> = (0..64).map(|i| recipe.page(i).bytes()).collect();
            let with = |compress: fn(&[u8]) -> Vec<u8>| {
                let compressed: usize = pages.iter().map(|p| compress(p).len()).sum();
                64.0 * 4096.0 / compressed as f64
            };
            let lz4 = with(lz4_flex::block::compress);
            let zstd = with(|p| zstd::bulk::compress(p, 3).unwrap());
            assert!((lz4 / ratio - 1.0).abs() < 0.06, "lz4 gives {lz4} for {ratio}");
            assert!((zstd / ratio - 1.0).abs() < 0.08, "zstd gives {zstd} for {ratio}");
        }
    }

    #[test]
    fn a_ratio_of_one_does_not_compress() {
        let page = Recipe::new(7, 1.0).unwrap().page(3).bytes();
        assert!(lz4_flex::block::compress(&page).len() > 4070);
    }

    #[test]
    fn no_two_pages_are_equal_and_none_is_of_one_word() {
        for ratio in [1.0, 3.0, 40.0] {
            let recipe = Recipe::new(1, ratio).unwrap();
            let pages: Vec<Page> = (0..2000).map(|i| recipe.page(i)).collect();
            let sums: HashSet<u64> = pages.iter().map(sum).collect();
            assert_eq!(sums.len(), 2000);
            assert!(pages.iter().all(|p| p.0.iter().any(|w| *w != p.0[0])));
        }
    }

    #[test]
    fn the_seed_decides_the_content() {
        let page = |seed| Recipe::new(seed, 3.0).unwrap().page(5);
        assert_eq!(page(1), page(1));
        assert_ne!(page(1), page(2));
    }

    #[test]
    fn touching_leaves_the_sum_and_a_flipped_bit_changes_it() {
        let mut page = Recipe::new(1, 3.0).unwrap().page(0);
        let before = sum(&page);
        page.touch();
        assert_eq!(sum(&page), before);
        page.0[300] ^= 1;
        assert_ne!(sum(&page), before);
    }

    #[test]
    fn the_order_holds_every_page_once() {
        let mut all = order(1000, 3);
        assert_ne!(all, order(1000, 4));
        assert!(all.windows(2).filter(|w| w[1] == w[0] + 1).count() < 20);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
        assert!(order(0, 1).is_empty());
    }
}
