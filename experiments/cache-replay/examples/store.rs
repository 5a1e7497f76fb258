//! Measures the store on the caller's files: `cargo run --release -p eke-cache-replay --example store -- FILE...`
//!
//! It measures CPU time, so a busy machine gives the same results: blocks and bytes per second of one CPU for hits
//! (LZ4, then zstd), misses and insertions, by number of threads. memcpy and LZ4 alone run on the same blocks for
//! comparison. It also measures how long a shrink takes. `eke bench trace` has hit rates by policy.

use std::time::Instant;

use eke_cache_replay::next_random;
use eke_cache_store::codec::{Codec, Compressed, Lz4};
use eke_cache_store::{FileId, Key, Lookup, Scratch, Store, StoreSpec, WorkDone};
use eke_model::units::Bytes;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

const BLOCK: usize = 64 << 10;
const ROUNDS: usize = 4;

fn main() -> Fallible<()> {
    let files: Vec<Vec<u8>> = std::env::args().skip(1).map(std::fs::read).collect::<Result<_, _>>()?;
    let blocks: Vec<&[u8]> = files.iter().flat_map(|file| file.chunks(BLOCK)).collect();
    println!("{} blocks, {}", blocks.len(), Bytes(blocks.iter().map(|b| b.len() as u64).sum()));
    if !blocks.is_empty() {
        alone(&blocks)?;
        stored(&blocks)?;
    }
    Ok(())
}

/// This thread's CPU time in seconds.
fn cpu_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Runs `work` for `count` blocks and prints blocks per second and bytes moved.
fn timed(what: &str, count: usize, bytes: usize, work: impl FnOnce() -> Fallible<()>) -> Fallible<()> {
    let start = cpu_s();
    work()?;
    let s = cpu_s() - start;
    println!("{what:<40} {:>9.0} blocks/s {:>7.2} GB/s", count as f64 / s, bytes as f64 / s / 1e9);
    Ok(())
}

fn bytes(blocks: &[&[u8]]) -> usize {
    blocks.iter().map(|b| b.len()).sum()
}

fn alone(blocks: &[&[u8]]) -> Fallible<()> {
    let (count, mut out) = (blocks.len(), vec![0; BLOCK]);
    let (mut engine, mut compressed) =
        (Lz4.engine()?, Compressed::with_room(Lz4.bound(BLOCK) * count, count)?);
    timed("memcpy", count * ROUNDS, bytes(blocks) * ROUNDS, || {
        for block in (0..ROUNDS).flat_map(|_| blocks) {
            out[..block.len()].copy_from_slice(block);
            std::hint::black_box(&mut out);
        }
        Ok(())
    })?;
    timed("LZ4 alone: compress", count, bytes(blocks), || {
        engine.compress_batch(blocks, &mut compressed);
        Ok(())
    })?;
    timed("LZ4 alone: decompress", count * ROUNDS, bytes(blocks) * ROUNDS, || {
        for index in (0..count * ROUNDS).map(|i| i % count) {
            let bytes = compressed.get(index).ok_or("not compressed")?;
            engine.decompress(bytes, &mut out[..blocks[index].len()])?;
        }
        Ok(())
    })
}

fn key(index: usize) -> Key {
    Key::new(FileId(1), index as u64)
}

fn stored(blocks: &[&[u8]]) -> Fallible<()> {
    let (count, cpus) = (blocks.len(), std::thread::available_parallelism()?.get());
    let store = Store::new(StoreSpec::for_cpus(Bytes::mib(512), cpus))?;
    let mut scratch = store.scratch()?;
    timed("insert, LZ4, 1 thread", count, bytes(blocks), || {
        for (index, block) in blocks.iter().enumerate() {
            store.admit(&mut scratch, store.ticket(key(index)), block);
        }
        Ok(())
    })?;
    show(&store);
    for threads in (0..).map(|n| 1 << n).take_while(|&n| n <= cpus) {
        hits(&store, blocks, threads, "LZ4")?;
    }
    let mut out = vec![0; BLOCK];
    timed("miss, 1 thread", 1_000_000, 0, || {
        (0..1_000_000).for_each(|i| _ = store.get(&mut scratch, Key::new(FileId(2), i), &mut out));
        Ok(())
    })?;
    recompress(&store, blocks)?;
    show(&store);
    for threads in (0..).map(|n| 1 << n).take_while(|&n| n <= cpus) {
        hits(&store, blocks, threads, "zstd")?;
    }
    shrink(&store, &mut scratch, blocks);
    Ok(())
}

/// Fills the store, then halves its limit.
fn shrink(store: &Store, scratch: &mut Scratch, blocks: &[&[u8]]) {
    store.resize(Bytes::mib(512));
    for copy in 2..14 {
        for (index, block) in blocks.iter().enumerate() {
            let key = Key::new(FileId(copy), index as u64);
            store.admit(scratch, store.ticket(key), block);
        }
    }
    show(store);
    let (start, held) = (Instant::now(), store.stats().held);
    store.resize(Bytes(held.0 / 2));
    println!(
        "shrink by half: {:.1} ms; {} to {}",
        start.elapsed().as_secs_f64() * 1e3,
        held,
        store.stats().held
    );
}

fn show(store: &Store) {
    let stats = store.stats();
    let ratio = stats.ratio().unwrap_or(0.0);
    println!(
        "held {} (tables {}) for {}: ratio {ratio:.2}; {} LZ4, {} zstd",
        stats.held, stats.tables, stats.raw, stats.fast, stats.recompressed
    );
}

/// Reads every block `ROUNDS` times per thread, in random order; misses (incompressible blocks) do not count.
fn hits(store: &Store, blocks: &[&[u8]], threads: usize, form: &str) -> Fallible<()> {
    let (hits, bytes, s) = std::thread::scope(|scope| {
        let readers: Vec<_> =
            (0..threads).map(|n| scope.spawn(move || read(store, blocks.len(), n as u64))).collect();
        let sums = readers.into_iter().map(|reader| reader.join().unwrap_or_default());
        sums.fold((0, 0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
    });
    let (rate, what) = (hits as f64 / s, format!("hit, {form}, {threads} threads, of each"));
    println!(
        "{what:<40} {rate:>9.0} blocks/s {:>7.2} GB/s, {:.1} µs each",
        bytes as f64 / s / 1e9,
        1e6 / rate
    );
    Ok(())
}

fn read(store: &Store, count: usize, seed: u64) -> (usize, usize, f64) {
    let (Ok(mut scratch), mut out, mut state) = (store.scratch(), vec![0; BLOCK], seed) else {
        return (0, 0, 0.0);
    };
    let start = cpu_s();
    let mut sum = (0, 0);
    for _ in 0..count * ROUNDS {
        let index = next_random(&mut state) as usize % count;
        if let Lookup::Hit(len) = store.get(&mut scratch, key(index), &mut out) {
            sum = (sum.0 + 1, sum.1 + len);
        }
    }
    (sum.0, sum.1, cpu_s() - start)
}

/// Lowers the limit a little, so that the policy promotes requested blocks; recompresses those.
fn recompress(store: &Store, blocks: &[&[u8]]) -> Fallible<()> {
    store.resize(Bytes(store.stats().held.0 * 95 / 100));
    let (mut worker, start, mut tried) = (store.worker(0)?, cpu_s(), 0);
    store.begin_round();
    loop {
        match worker.step() {
            WorkDone::Recompressed(done) => tried += usize::from(done),
            WorkDone::Compressed(_) => {}
            WorkDone::Nothing => break,
        }
    }
    let s = cpu_s() - start;
    println!("recompressed: {tried} of {} blocks, {:.0} blocks/s", blocks.len(), tried as f64 / s);
    Ok(())
}
