//! What a read costs that the kernel's cache does not have: `cargo run --release -p eke-mount --example miss_path -- FILE...`
//!
//! The tier's part of it, without FUSE: random 64 KiB and sequential 128 KiB, from the store and from below, beside pread(2) of
//! what the kernel holds and memcpy, in the same run. Of the files given, or of words by chance; 256 MiB in all.

use std::fs::File as StdFile;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

use eke_cache::trace::next_random;
use eke_cache::{FileId, Incompressible, Store, StoreSpec};
use eke_core::units::Bytes;
use eke_mount::below::File;
use eke_mount::settings::Compress;
use eke_mount::tier::{Hands, Options, Tier};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const BLOCK: usize = 64 << 10;
const WINDOW: usize = 128 << 10;
const SIZE: usize = 256 << 20;
const READS: usize = 4000;

fn main() -> Fallible<()> {
    let mut content = Vec::new();
    for file in std::env::args().skip(1) {
        content.extend(std::fs::read(file)?);
    }
    if content.is_empty() {
        content = words(8 << 20);
    }
    let file = below(&content)?;
    copies(&content);
    let (tier, store) = tier(Compress::Sync)?;
    let opened = File::new(OwnedFd::from(file.try_clone()?));
    let cold = Source::Tier { tier: &tier, below: &opened };
    println!("read below and taken in: {:.2} GB/s", sequential(&cold, 1)?);
    let stats = store.stats();
    println!("{} held for {}: ratio {:.2}", stats.held, stats.raw, stats.ratio().unwrap_or(0.0));
    for threads in [1, 2] {
        show("tier, from the store", &cold, threads)?;
    }
    // The first pass fills the kernel's cache.
    sequential(&Source::Kernel(&file), 1)?;
    for threads in [1, 2] {
        show("pread, hot", &Source::Kernel(&file), threads)?;
    }
    let straight = Tier::default();
    show("tier, straight", &Source::Tier { tier: &straight, below: &opened }, 1)?;
    println!("{:#?}", tier.report());
    Ok(())
}

fn tier(compress: Compress) -> Fallible<(Tier, Arc<Store>)> {
    let usual = StoreSpec::for_cpus(Bytes::mib(512), std::thread::available_parallelism()?.get());
    let store = Arc::new(Store::new(StoreSpec { incompressible: Incompressible::Keep, ..usual })?);
    Ok((Tier::new(store.clone(), compress, Options::default()), store))
}

/// Words by chance: packs to a third or so, as text does.
fn words(len: usize) -> Vec<u8> {
    let mut state = 1;
    let letters: Vec<u8> = (0..4096).map(|_| b'a' + (next_random(&mut state) % 26) as u8).collect();
    let mut text = Vec::with_capacity(len + 16);
    while text.len() < len {
        let word = (next_random(&mut state) % 500) as usize * 8;
        text.extend_from_slice(&letters[word..][..3 + word % 5]);
        text.push(b' ');
    }
    text
}

/// A file of the content again and again.
fn below(content: &[u8]) -> Fallible<StdFile> {
    let mut file = tempfile::tempfile_in(".")?;
    let mut left = SIZE;
    while left > 0 {
        let len = left.min(content.len());
        file.write_all(&content[..len])?;
        left -= len;
    }
    file.sync_all()?;
    Ok(file)
}

fn copies(content: &[u8]) {
    let (mut out, mut us) = (vec![0; BLOCK], Vec::new());
    for block in (0..100).flat_map(|_| content.chunks_exact(BLOCK)).take(READS) {
        let began = Instant::now();
        out.copy_from_slice(block);
        std::hint::black_box(&mut out);
        us.push(began.elapsed().as_secs_f64() * 1e6);
    }
    println!("memcpy: 64 KiB {:.1} us", median(&mut us));
}

fn median(us: &mut [f64]) -> f64 {
    us.sort_by(f64::total_cmp);
    us.get(us.len() / 2).copied().unwrap_or(0.0)
}

/// What is read from.
enum Source<'a> {
    Kernel(&'a StdFile),
    Tier { tier: &'a Tier, below: &'a File },
}

/// One thread that reads.
struct Reader<'a> {
    source: &'a Source<'a>,
    hands: Hands,
    out: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn of(source: &'a Source<'a>) -> Self {
        let hands = if let Source::Tier { tier, .. } = source { tier.hands() } else { Hands::default() };
        Self { source, hands, out: vec![0; WINDOW] }
    }

    fn read(&mut self, at: usize, len: usize) -> Fallible<usize> {
        Ok(match self.source {
            Source::Kernel(file) => file.read_at(&mut self.out[..len], at as u64)?,
            Source::Tier { tier, below } => {
                tier.read(&mut self.hands, FileId(1), below, at as u64, len)?.len()
            }
        })
    }
}

/// Random reads' median and sequential reads' speed, by so many threads.
fn show(what: &str, source: &Source<'_>, threads: usize) -> Fallible<()> {
    let us = by_threads(threads, |n| random(source, n as u64))?;
    let mut us: Vec<f64> = us.into_iter().flatten().collect();
    let (us, gb_s) = (median(&mut us), sequential(source, threads)?);
    println!("{what:<22} {threads} threads: random 64 KiB {us:>6.1} us, sequential {gb_s:>5.2} GB/s in all");
    Ok(())
}

fn random(source: &Source<'_>, seed: u64) -> Fallible<Vec<f64>> {
    let (mut reader, mut state, mut us) = (Reader::of(source), seed, Vec::with_capacity(READS));
    for _ in 0..READS {
        let at = next_random(&mut state) as usize % (SIZE / BLOCK) * BLOCK;
        let began = Instant::now();
        reader.read(at, BLOCK)?;
        us.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(us)
}

/// GB per second of all threads, each of which reads its share of the file.
fn sequential(source: &Source<'_>, threads: usize) -> Fallible<f64> {
    let (began, share) = (Instant::now(), SIZE / threads);
    by_threads(threads, |n| {
        let mut reader = Reader::of(source);
        (n * share..(n + 1) * share).step_by(WINDOW).try_for_each(|at| reader.read(at, WINDOW).map(|_| ()))
    })?;
    Ok(SIZE as f64 / began.elapsed().as_secs_f64() / 1e9)
}

fn by_threads<T: Send>(threads: usize, work: impl Fn(usize) -> Fallible<T> + Sync) -> Fallible<Vec<T>> {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|n| {
                scope.spawn({
                    let work = &work;
                    move || work(n)
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().map_err(|_| "a thread died")?).collect()
    })
}
