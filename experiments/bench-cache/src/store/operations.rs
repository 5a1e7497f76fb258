//! The operations that threads repeat.

use std::hint::black_box;

use eke_cache_replay::{Zipf, next_random};
use eke_cache_store::{Admitted, FileId, Key};

use super::Error;
use super::caches::{Cache, EkeCache, ThreadCodec};
use super::corpus::Blocks;
use super::load::{Operation, Outcome};

/// The file whose blocks are the corpus's.
const FILE: FileId = FileId(1);
/// A file without cached blocks.
const NOWHERE: FileId = FileId(2);
/// Files from here on have blocks that come once, one file for each thread.
const FRESH: u64 = 1000;
/// The Zipf exponent of requests, between the 0.6 and the 1.0 of web servers.
const ALPHA: f64 = 0.8;
/// One of so many operations of the mixed load is a write.
const WRITE_ONE_IN: u64 = 10;

/// The key of the corpus's block number `index`.
pub(super) fn key(index: usize) -> Key {
    Key::new(FILE, index as u64)
}

/// Random numbers below `count`, different for each thread.
fn random_below(count: usize, thread: usize) -> impl FnMut() -> usize {
    let mut state = thread as u64;
    move || (next_random(&mut state) % count as u64) as usize
}

/// Inserts all blocks once.
pub(super) fn fill<C: Cache>(cache: &C, blocks: &Blocks<'_>) -> Result<(), Error> {
    let mut scratch = cache.scratch()?;
    for (index, block) in blocks.raw.iter().enumerate() {
        cache.put(&mut scratch, key(index), block);
    }
    Ok(())
}

/// Copies blocks.
pub(super) fn copy<'a>(blocks: &'a Blocks<'a>, thread: usize) -> Operation<'a> {
    let (mut next, mut out) = (random_below(blocks.raw.len(), thread), vec![0; blocks.size]);
    Box::new(move || {
        out.copy_from_slice(blocks.raw[next()]);
        black_box(&mut out);
        Outcome::Hit(out.len())
    })
}

/// Decompresses compressed blocks.
pub(super) fn decompress<'a>(blocks: &'a Blocks<'a>, thread: usize) -> Result<Operation<'a>, Error> {
    let (mut next, mut out) = (random_below(blocks.raw.len(), thread), vec![0; blocks.size]);
    let mut codec = ThreadCodec::new(blocks.size)?;
    Ok(Box::new(move || {
        if codec.decompress(&blocks.compressed[next()], &mut out) {
            black_box(&mut out);
            return Outcome::Hit(out.len());
        }
        Outcome::Miss
    }))
}

/// Compresses blocks of `raw` and discards them.
pub(super) fn compress<'a>(raw: &'a [&'a [u8]], size: usize, thread: usize) -> Result<Operation<'a>, Error> {
    let (mut next, mut codec) = (random_below(raw.len(), thread), ThreadCodec::new(size)?);
    Ok(Box::new(move || {
        black_box(codec.compress(raw[next()]));
        Outcome::Hit(size)
    }))
}

/// Reads cached blocks.
pub(super) fn get<'a, C: Cache>(
    cache: &'a C,
    blocks: &Blocks<'_>,
    thread: usize,
) -> Result<Operation<'a>, Error> {
    let (mut next, mut out) = (random_below(blocks.raw.len(), thread), vec![0; blocks.size]);
    let mut scratch = cache.scratch()?;
    Ok(Box::new(move || {
        let got = cache.get(&mut scratch, key(next()), &mut out);
        black_box(&mut out);
        got.map_or(Outcome::Miss, Outcome::Hit)
    }))
}

/// Requests blocks that are not cached.
pub(super) fn miss<'a, C: Cache>(cache: &'a C, size: usize, thread: usize) -> Result<Operation<'a>, Error> {
    let (mut next, mut out, mut scratch) =
        (random_below(usize::MAX, thread), vec![0; size], cache.scratch()?);
    Ok(Box::new(move || {
        let got = cache.get(&mut scratch, Key::new(NOWHERE, next() as u64), &mut out);
        got.map_or(Outcome::Miss, Outcome::Hit)
    }))
}

/// New keys with contents from `raw`.
fn fresh<'a>(raw: &'a [&'a [u8]], thread: usize) -> impl FnMut() -> (Key, &'a [u8]) {
    let (file, mut count) = (FileId(FRESH + thread as u64), thread * raw.len() / 2);
    move || {
        count += 1;
        (Key::new(file, count as u64), raw[count % raw.len()])
    }
}

/// Inserts new blocks.
pub(super) fn insert<'a, C: Cache>(
    cache: &'a C,
    raw: &'a [&'a [u8]],
    thread: usize,
) -> Result<Operation<'a>, Error> {
    let (mut next, mut scratch) = (fresh(raw, thread), cache.scratch()?);
    Ok(Box::new(move || {
        let (key, block) = next();
        if cache.put(&mut scratch, key, block) { Outcome::Hit(block.len()) } else { Outcome::Miss }
    }))
}

/// Puts new blocks into a queue. Yields the CPU if the queue is full.
pub(super) fn queue<'a>(cache: &'a EkeCache, raw: &'a [&'a [u8]], thread: usize) -> Operation<'a> {
    let mut next = fresh(raw, thread);
    Box::new(move || {
        let (key, block) = next();
        match cache.0.submit(thread, cache.0.ticket(key), block) {
            Admitted::Queued => Outcome::Hit(block.len()),
            _ => {
                std::thread::yield_now();
                Outcome::Miss
            }
        }
    })
}

/// Reads by Zipf's law through the cache and inserts misses; one operation in ten is a write.
pub(super) fn mixed<'a, C: Cache>(
    cache: &'a C,
    blocks: &'a Blocks<'a>,
    thread: usize,
) -> Result<Operation<'a>, Error> {
    let (count, mut out, mut scratch) = (blocks.raw.len(), vec![0; blocks.size], cache.scratch()?);
    let (mut requests, mut number) = (Zipf::new(count as u64, ALPHA, thread as u64), thread as u64);
    Ok(Box::new(move || {
        number += 1;
        let index = requests.next().map_or(0, |request| spread(request.key as usize, count));
        let block = blocks.raw[index];
        if number % WRITE_ONE_IN == 0 {
            cache.replace(&mut scratch, key(index), block);
            return Outcome::Write(block.len());
        }
        if let Some(len) = cache.get(&mut scratch, key(index), &mut out) {
            black_box(&mut out);
            return Outcome::Hit(len);
        }
        cache.put(&mut scratch, key(index), block);
        Outcome::Miss
    }))
}

/// Spreads ranks over all blocks, so that the most popular blocks are not all of the first file. The step and `count` have no
/// common divisor, so each rank has its own block.
fn spread(rank: usize, count: usize) -> usize {
    let coprime = |step: &usize| gcd(*step, count) == 1;
    let step = (count * 5 / 8..).find(coprime).unwrap_or(1);
    rank * step % count
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_its_own_block() {
        for count in [1, 2, 6, 97, 1300] {
            let mut all: Vec<usize> = (0..count).map(|rank| spread(rank, count)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
