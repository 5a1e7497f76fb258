//! The bytes of one file: pieces of the corpus from random offsets.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use eke_statistics::random::Random;
use twox_hash::XxHash64;

use super::corpus::Corpus;
use super::ratio::Meter;
use crate::random::stream;

/// The length of pieces in bytes.
const PIECES: std::ops::Range<u64> = 64 << 10..1 << 20;
/// How often to try another offset where a file of the corpus has changed.
const TRIES: u32 = 100;

/// Cuts pieces from a corpus.
#[derive(Debug)]
pub struct Cutter<'a> {
    corpus: &'a Corpus,
    /// The corpus's total bytes up to the end of each file.
    ends: Vec<u64>,
    buffer: Vec<u8>,
}

impl<'a> Cutter<'a> {
    /// A cutter for a corpus that is not empty.
    pub fn new(corpus: &'a Corpus) -> Self {
        let mut sum = 0;
        let ends = corpus.files.iter().map(|(_, size)| {
            sum += size;
            sum
        });
        Self { corpus, ends: ends.collect(), buffer: Vec::new() }
    }

    /// Writes `bytes` bytes, the same for the same seed. Returns their hash (XXH64, seed 0).
    ///
    /// # Errors
    /// `out` cannot be written, or the corpus cannot be read any more.
    pub fn write(
        &mut self,
        seed: u64,
        bytes: u64,
        out: &mut impl Write,
        meter: &mut Meter,
    ) -> io::Result<u64> {
        let (mut random, mut hash, mut left) = (stream(seed), XxHash64::with_seed(0), bytes);
        while left > 0 {
            self.piece(&mut random, left)?;
            left -= self.buffer.len() as u64;
            hash.write(&self.buffer);
            meter.add(&self.buffer);
            out.write_all(&self.buffer)?;
        }
        meter.end_of_file();
        Ok(hash.finish())
    }

    /// Reads the next piece into the buffer: at least one byte, and at most `left`.
    fn piece(&mut self, random: &mut Random, left: u64) -> io::Result<()> {
        let total = self.ends.last().copied().unwrap_or_default();
        for _ in 0..TRIES {
            let at = random.below(total);
            let file = self.ends.partition_point(|end| *end <= at);
            let Some((path, size)) = self.corpus.files.get(file) else { continue };
            let offset = size - (self.ends[file] - at);
            let length =
                (PIECES.start + random.below(PIECES.end - PIECES.start)).min(size - offset).min(left);
            self.buffer.resize(length as usize, 0);
            let read = File::open(path).and_then(|f| f.read_at(&mut self.buffer, offset)).unwrap_or(0);
            self.buffer.truncate(read);
            if read > 0 {
                return Ok(());
            }
        }
        Err(io::Error::other("the files that the content is cut from are gone"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        let exe = std::env::current_exe().unwrap();
        let size = exe.metadata().unwrap().len();
        let corpus = Corpus { files: vec![(exe, size)], about: String::new() };
        let mut cutter = Cutter::new(&corpus);
        let mut cut = |seed| {
            let (mut out, mut meter) = (Vec::new(), Meter::default());
            let hash = cutter.write(seed, 3_000_001, &mut out, &mut meter).unwrap();
            (out, hash)
        };
        let (first, hash) = cut(1);
        assert_eq!(first.len(), 3_000_001);
        assert_eq!(cut(1), (first.clone(), hash));
        assert_eq!(XxHash64::oneshot(0, &first), hash);
        assert_ne!(cut(2).1, hash);
    }

    #[test]
    fn a_corpus_that_is_gone_is_an_error() {
        let corpus = Corpus { files: vec![("/nonexistent/x".into(), 5)], about: String::new() };
        let written = Cutter::new(&corpus).write(1, 5, &mut Vec::new(), &mut Meter::default());
        assert!(written.unwrap_err().to_string().contains("are gone"));
    }
}
