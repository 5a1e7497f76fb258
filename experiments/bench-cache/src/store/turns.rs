//! What threads do, turn by turn.

use std::hint::black_box;

use eke_cache_replay::{Zipf, next_random};
use eke_cache_store::{Admitted, FileId, Key};

use super::Error;
use super::caches::{Cache, Ours, Packing};
use super::corpus::Blocks;
use super::load::{Done, Turn};

/// The file whose blocks are the corpus'.
const FILE: FileId = FileId(1);
/// A file of which nothing is held.
const NOWHERE: FileId = FileId(2);
/// Files from here on have blocks that come once; one for each thread.
const FRESH: u64 = 1000;
/// How uneven requests are: between the 0.6 and the 1.0 that web servers see.
const ALPHA: f64 = 0.8;
/// Of so many turns of the mixed load one is a write.
const WRITE_ONE_IN: u64 = 10;

/// The corpus' block number `index`.
pub(super) fn key(index: usize) -> Key {
    Key::new(FILE, index as u64)
}

/// Numbers below `count` by chance, other ones for each thread.
fn by_chance(count: usize, thread: usize) -> impl FnMut() -> usize {
    let mut state = thread as u64;
    move || (next_random(&mut state) % count as u64) as usize
}

/// Takes all blocks in once.
pub(super) fn fill<C: Cache>(cache: &C, blocks: &Blocks<'_>) -> Result<(), Error> {
    let mut scratch = cache.scratch()?;
    for (index, block) in blocks.raw.iter().enumerate() {
        cache.put(&mut scratch, key(index), block);
    }
    Ok(())
}

/// Copies blocks.
pub(super) fn copy<'a>(blocks: &'a Blocks<'a>, thread: usize) -> Turn<'a> {
    let (mut next, mut out) = (by_chance(blocks.raw.len(), thread), vec![0; blocks.size]);
    Box::new(move || {
        out.copy_from_slice(blocks.raw[next()]);
        black_box(&mut out);
        Done::Hit(out.len())
    })
}

/// Unpacks packed blocks.
pub(super) fn unpack<'a>(blocks: &'a Blocks<'a>, thread: usize) -> Result<Turn<'a>, Error> {
    let (mut next, mut out) = (by_chance(blocks.raw.len(), thread), vec![0; blocks.size]);
    let mut packing = Packing::new(blocks.size)?;
    Ok(Box::new(move || {
        if packing.unpack(&blocks.packed[next()], &mut out) {
            black_box(&mut out);
            return Done::Hit(out.len());
        }
        Done::Miss
    }))
}

/// Packs `raw` and forgets it.
pub(super) fn pack<'a>(raw: &'a [&'a [u8]], size: usize, thread: usize) -> Result<Turn<'a>, Error> {
    let (mut next, mut packing) = (by_chance(raw.len(), thread), Packing::new(size)?);
    Ok(Box::new(move || {
        black_box(packing.pack(raw[next()]));
        Done::Hit(size)
    }))
}

/// Looks for blocks that are held.
pub(super) fn get<'a, C: Cache>(cache: &'a C, blocks: &Blocks<'_>, thread: usize) -> Result<Turn<'a>, Error> {
    let (mut next, mut out) = (by_chance(blocks.raw.len(), thread), vec![0; blocks.size]);
    let mut scratch = cache.scratch()?;
    Ok(Box::new(move || {
        let got = cache.get(&mut scratch, key(next()), &mut out);
        black_box(&mut out);
        got.map_or(Done::Miss, Done::Hit)
    }))
}

/// Looks for blocks that are not there.
pub(super) fn miss<'a, C: Cache>(cache: &'a C, size: usize, thread: usize) -> Result<Turn<'a>, Error> {
    let (mut next, mut out, mut scratch) = (by_chance(usize::MAX, thread), vec![0; size], cache.scratch()?);
    Ok(Box::new(move || {
        let got = cache.get(&mut scratch, Key::new(NOWHERE, next() as u64), &mut out);
        got.map_or(Done::Miss, Done::Hit)
    }))
}

/// Blocks that were never there, with contents from `raw`.
fn fresh<'a>(raw: &'a [&'a [u8]], thread: usize) -> impl FnMut() -> (Key, &'a [u8]) {
    let (file, mut count) = (FileId(FRESH + thread as u64), thread * raw.len() / 2);
    move || {
        count += 1;
        (Key::new(file, count as u64), raw[count % raw.len()])
    }
}

/// Takes in blocks that were never there.
pub(super) fn insert<'a, C: Cache>(
    cache: &'a C,
    raw: &'a [&'a [u8]],
    thread: usize,
) -> Result<Turn<'a>, Error> {
    let (mut next, mut scratch) = (fresh(raw, thread), cache.scratch()?);
    Ok(Box::new(move || {
        let (key, block) = next();
        if cache.put(&mut scratch, key, block) { Done::Hit(block.len()) } else { Done::Miss }
    }))
}

/// Puts blocks that were never there into a queue. Who finds it full lets others work.
pub(super) fn queue<'a>(cache: &'a Ours, raw: &'a [&'a [u8]], thread: usize) -> Turn<'a> {
    let mut next = fresh(raw, thread);
    Box::new(move || {
        let (key, block) = next();
        match cache.0.submit(thread, cache.0.ticket(key), block) {
            Admitted::Queued => Done::Hit(block.len()),
            _ => {
                std::thread::yield_now();
                Done::Miss
            }
        }
    })
}

/// Reads by Zipf's law through the cache, what misses comes in; one turn in ten is a write.
pub(super) fn mixed<'a, C: Cache>(
    cache: &'a C,
    blocks: &'a Blocks<'a>,
    thread: usize,
) -> Result<Turn<'a>, Error> {
    let (count, mut out, mut scratch) = (blocks.raw.len(), vec![0; blocks.size], cache.scratch()?);
    let (mut asked, mut turn) = (Zipf::new(count as u64, ALPHA, thread as u64), thread as u64);
    Ok(Box::new(move || {
        turn += 1;
        let index = asked.next().map_or(0, |request| spread(request.key as usize, count));
        let block = blocks.raw[index];
        if turn % WRITE_ONE_IN == 0 {
            cache.renew(&mut scratch, key(index), block);
            return Done::Write(block.len());
        }
        if let Some(len) = cache.get(&mut scratch, key(index), &mut out) {
            black_box(&mut out);
            return Done::Hit(len);
        }
        cache.put(&mut scratch, key(index), block);
        Done::Miss
    }))
}

/// What is asked for most must not be the first file's: ranks are spread over all blocks. The step has no divisor in common
/// with `count`, so that each rank has a block of its own.
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
    fn every_rank_has_a_block_of_its_own() {
        for count in [1, 2, 6, 97, 1300] {
            let mut all: Vec<usize> = (0..count).map(|rank| spread(rank, count)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
