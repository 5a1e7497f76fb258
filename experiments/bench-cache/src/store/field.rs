//! Caches that are full, and measurements of them.

use std::time::{Duration, Instant};

use eke_bench_core::Environment;
use eke_cache_replay::next_random;
use eke_model::units::Bytes;
use eke_results::rows::{Params, params};

use super::caches::{Cache, Ours, Quick};
use super::corpus::{Blocks, Corpus};
use super::load::{Span, Tally, hold};
use super::plan::{Case, Who};
use super::{Error, Options, memory, metrics, turns};

/// A figure: metric, unit, value.
pub type Figure = (&'static str, &'static str, Option<f64>);

/// Blocks of one size, and caches that hold all of them.
struct Stand<'c> {
    blocks: Blocks<'c>,
    ours: Ours,
    quick: Quick,
}

impl<'c> Stand<'c> {
    fn set(corpus: &'c Corpus, size: usize, threads: usize) -> Result<Self, Error> {
        let blocks = Blocks::cut(corpus, size)?;
        let limit = roomy(&blocks);
        let (ours, quick) = (Ours::new(size, limit, threads)?, Quick::new(size, limit, threads)?);
        turns::fill(&ours, &blocks)?;
        turns::fill(&quick, &blocks)?;
        Ok(Self { blocks, ours, quick })
    }
}

/// Everything fits, also if shards get uneven shares.
fn roomy(blocks: &Blocks<'_>) -> Bytes {
    Bytes(blocks.packed_bytes() * 3 / 2 + (32 << 20))
}

/// A third of the blocks fits.
fn scarce(blocks: &Blocks<'_>) -> Bytes {
    Bytes((blocks.packed_bytes() / 3).max(4 << 20))
}

/// Everything that measurements need.
pub struct Field<'c> {
    environment: &'c Environment<'c>,
    options: &'c Options,
    stands: Vec<Stand<'c>>,
    /// The stand with blocks of the size that the others are about.
    main: usize,
    /// A store whose blocks were packed again.
    dense: Ours,
    pub(super) notes: Vec<String>,
}

impl<'c> Field<'c> {
    /// Fills all caches.
    pub(super) fn set(
        environment: &'c Environment<'c>,
        options: &'c Options,
        corpus: &'c Corpus,
    ) -> Result<Self, Error> {
        let sizes = options.sizes();
        let stands = sizes.iter().map(|size| Stand::set(corpus, *size, options.threads));
        let stands = stands.collect::<Result<Vec<_>, _>>()?;
        let main = sizes.iter().position(|size| *size == options.block).unwrap_or(0);
        let (dense, note) = dense(&stands[main].blocks, options.threads)?;
        let notes = vec![about(corpus, &stands[main].blocks), note];
        Ok(Self { environment, options, stands, main, dense, notes })
    }

    pub(super) fn stands(&self) -> usize {
        self.stands.len()
    }

    /// One measurement of one of a case's.
    pub(super) fn measure(&self, case: Case, who: Who) -> Result<(Params, Vec<Figure>), Error> {
        let stand = &self.stands[if let Case::BlockSize { stand } = case { stand } else { self.main }];
        let (threads, figures) = match case {
            Case::Hits { threads } => (threads, self.hits(stand, who, threads)?),
            Case::Misses { threads } => (threads, self.misses(stand, who, threads)?),
            Case::Inserts { threads } => (threads, self.inserts(stand, who, threads)?),
            Case::Mixed { threads } => (threads, self.mixed(stand, who, threads)?),
            Case::BlockSize { .. } => (1, self.by_size(stand, who)?),
            Case::Zeros => (1, self.zeros(stand, who)?),
            Case::Noise => (1, self.noise(stand, who)?),
        };
        let kib = stand.blocks.size >> 10;
        Ok((params([("threads", threads.into()), ("block_kib", kib.into())]), figures))
    }

    fn span(&self, every: usize) -> Span<'c> {
        let time = Duration::from_secs_f64(self.options.seconds);
        Span { time, every, stop: self.environment.shutdown }
    }

    fn reads(&self, stand: &Stand<'_>, who: Who, threads: usize) -> Result<Tally, Error> {
        let Stand { blocks, ours, quick } = stand;
        let turn = |thread: usize| match who {
            Who::Memcpy => Ok(turns::copy(blocks, thread)),
            Who::Lz4 => turns::unpack(blocks, thread),
            Who::Quick => turns::get(quick, blocks, thread),
            Who::Dense => turns::get(&self.dense, blocks, thread),
            Who::Eke | Who::Queue => turns::get(ours, blocks, thread),
        };
        Ok(hold(each(threads, turn)?, self.span(1)))
    }

    fn hits(&self, stand: &Stand<'_>, who: Who, threads: usize) -> Result<Vec<Figure>, Error> {
        let tally = self.reads(stand, who, threads)?;
        Ok(vec![
            (metrics::HITS, "MB/s", Some(tally.bytes_s / 1e6)),
            (metrics::HIT_COUNT, "blocks/s", Some(tally.hits_s)),
            (metrics::HIT_P50, "µs", tally.quantile_us(0.5)),
            (metrics::HIT_P99, "µs", tally.quantile_us(0.99)),
            (metrics::HIT_CPU, "µs", tally.cpu_us()),
        ])
    }

    fn misses(&self, stand: &Stand<'_>, who: Who, threads: usize) -> Result<Vec<Figure>, Error> {
        let size = stand.blocks.size;
        let turns = each(threads, |thread| match who {
            Who::Quick => turns::miss(&stand.quick, size, thread),
            _ => turns::miss(&stand.ours, size, thread),
        })?;
        let tally = hold(turns, self.span(64));
        Ok(vec![
            (metrics::MISSES, "million/s", Some(tally.turns_s / 1e6)),
            (metrics::MISS_CPU, "µs", tally.cpu_us()),
        ])
    }

    fn inserts(&self, stand: &Stand<'_>, who: Who, threads: usize) -> Result<Vec<Figure>, Error> {
        let Blocks { raw, size, .. } = &stand.blocks;
        let tally = match who {
            Who::Lz4 => hold(each(threads, |thread| turns::pack(raw, *size, thread))?, self.span(1)),
            Who::Quick => self.taken_in::<Quick>(stand, raw, threads)?,
            Who::Queue => self.queued(stand, threads)?,
            _ => self.taken_in::<Ours>(stand, raw, threads)?,
        };
        Ok(vec![
            (metrics::INSERTS, "MB/s", Some(tally.bytes_s / 1e6)),
            (metrics::INSERT_COUNT, "blocks/s", Some(tally.hits_s)),
            (metrics::INSERT_P50, "µs", tally.quantile_us(0.5)),
            // The queue's workers are not in it.
            (metrics::INSERT_CPU, "µs", tally.cpu_us().filter(|_| who != Who::Queue)),
        ])
    }

    /// Into a cache that is full.
    fn taken_in<C: Cache>(&self, stand: &Stand<'_>, raw: &[&[u8]], threads: usize) -> Result<Tally, Error> {
        let cache = C::new(stand.blocks.size, scarce(&stand.blocks), self.options.threads)?;
        turns::fill(&cache, &stand.blocks)?;
        Ok(hold(each(threads, |thread| turns::insert(&cache, raw, thread))?, self.span(1)))
    }

    /// Into queues, with a worker for each thread; the rates are those of blocks that were packed and held.
    fn queued(&self, stand: &Stand<'_>, threads: usize) -> Result<Tally, Error> {
        let Blocks { raw, size, .. } = &stand.blocks;
        let cache = Ours::new(*size, scarce(&stand.blocks), self.options.threads)?;
        turns::fill(&cache, &stand.blocks)?;
        let workers = each(threads, |n| cache.0.worker(n).map_err(Error::of_cache))?;
        let (before, start) = (cache.0.stats().insertions, Instant::now());
        std::thread::scope(|scope| {
            for mut worker in workers {
                scope.spawn(move || worker.run());
            }
            let turns = (0..threads).map(|thread| turns::queue(&cache, raw, thread)).collect();
            let mut tally = hold(turns, self.span(1));
            let taken = cache.0.stats().insertions - before;
            tally.hits_s = taken as f64 / start.elapsed().as_secs_f64();
            tally.bytes_s = tally.hits_s * *size as f64;
            cache.0.close();
            Ok(tally)
        })
    }

    fn mixed(&self, stand: &Stand<'_>, who: Who, threads: usize) -> Result<Vec<Figure>, Error> {
        if who == Who::Quick {
            self.mixed_of::<Quick>(stand, threads)
        } else {
            self.mixed_of::<Ours>(stand, threads)
        }
    }

    fn mixed_of<C: Cache>(&self, stand: &Stand<'_>, threads: usize) -> Result<Vec<Figure>, Error> {
        let blocks = &stand.blocks;
        let before = memory::held_mib(self.environment.root);
        let cache = C::new(blocks.size, scarce(blocks), self.options.threads)?;
        let mut warm = turns::mixed(&cache, blocks, threads)?;
        (0..3 * blocks.raw.len()).for_each(|_| _ = warm());
        drop(warm);
        let tally = hold(each(threads, |thread| turns::mixed(&cache, blocks, thread))?, self.span(1));
        let after = memory::held_mib(self.environment.root);
        let memory = before.zip(after).map(|(before, after)| after - before);
        let by_byte = memory.filter(|mib| *mib > 0.0).map(|mib| memory::by_byte(cache.held().0, mib));
        Ok(vec![
            (metrics::MIXED, "requests/s", Some(tally.turns_s)),
            (metrics::HIT_RATIO, "%", tally.hit_percent()),
            (metrics::MEMORY, "MiB", memory),
            (metrics::BY_BYTE, "bytes/byte", by_byte),
        ])
    }

    fn by_size(&self, stand: &Stand<'_>, who: Who) -> Result<Vec<Figure>, Error> {
        let reads = self.reads(stand, who, 1)?;
        let raw = &stand.blocks.raw;
        let inserts = match who {
            Who::Memcpy => None,
            Who::Lz4 => Some(hold(vec![turns::pack(raw, stand.blocks.size, 0)?], self.span(1))),
            Who::Quick => Some(self.taken_in::<Quick>(stand, raw, 1)?),
            _ => Some(self.taken_in::<Ours>(stand, raw, 1)?),
        };
        let ratio = |(raw, memory): (u64, u64)| Some(raw as f64 / memory.max(1) as f64);
        let ratio = match who {
            Who::Memcpy => None,
            Who::Lz4 => Some(stand.blocks.ratio()),
            Who::Quick => ratio(stand.quick.held()),
            _ => ratio(stand.ours.held()),
        };
        Ok(vec![
            (metrics::SIZE_HITS, "MB/s", Some(reads.bytes_s / 1e6)),
            (metrics::SIZE_P50, "µs", reads.quantile_us(0.5)),
            (metrics::SIZE_INSERTS, "MB/s", inserts.map(|tally| tally.bytes_s / 1e6)),
            (metrics::SIZE_RATIO, "bytes/byte", ratio),
        ])
    }

    fn zeros(&self, stand: &Stand<'_>, who: Who) -> Result<Vec<Figure>, Error> {
        if who == Who::Quick { self.zeros_of::<Quick>(stand) } else { self.zeros_of::<Ours>(stand) }
    }

    fn zeros_of<C: Cache>(&self, stand: &Stand<'_>) -> Result<Vec<Figure>, Error> {
        let zero = vec![0; stand.blocks.size];
        let zeros = Blocks { size: zero.len(), raw: vec![&zero; 64], packed: Vec::new(), left_out: 0 };
        let cache = C::new(zero.len(), Bytes::mib(64), self.options.threads)?;
        turns::fill(&cache, &zeros)?;
        let hits = hold(vec![turns::get(&cache, &zeros, 0)?], self.span(1));
        let inserts = hold(vec![turns::insert(&cache, &zeros.raw, 0)?], self.span(1));
        Ok(vec![
            (metrics::ZERO_HITS, "GB/s", Some(hits.bytes_s / 1e9)),
            (metrics::ZERO_INSERTS, "GB/s", Some(inserts.bytes_s / 1e9)),
        ])
    }

    fn noise(&self, stand: &Stand<'_>, who: Who) -> Result<Vec<Figure>, Error> {
        let size = stand.blocks.size;
        let noise = noise(64 * size);
        let raw: Vec<&[u8]> = noise.chunks_exact(size).collect();
        let tally = match who {
            Who::Lz4 => hold(vec![turns::pack(&raw, size, 0)?], self.span(1)),
            Who::Quick => self.taken_in::<Quick>(stand, &raw, 1)?,
            _ => self.taken_in::<Ours>(stand, &raw, 1)?,
        };
        Ok(vec![(metrics::NOISE, "GB/s", Some(tally.turns_s * size as f64 / 1e9))])
    }
}

fn each<T>(threads: usize, make: impl Fn(usize) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    (0..threads).map(make).collect()
}

/// A store whose blocks were packed again, and how many of them in words.
fn dense(blocks: &Blocks<'_>, threads: usize) -> Result<(Ours, String), Error> {
    let store = Ours::new(blocks.size, roomy(blocks), threads)?;
    turns::fill(&store, blocks)?;
    let (mut scratch, mut out) = (store.scratch()?, vec![0; blocks.size]);
    for index in 0..blocks.raw.len() {
        let _ = store.get(&mut scratch, turns::key(index), &mut out);
    }
    let share = store.pack_again()?;
    let (raw, memory) = store.held();
    let ratio = raw as f64 / memory.max(1) as f64;
    let note = format!(
        "Packed again: {:.0} % of the blocks held were packed by zstd in the round, the others are new and still LZ4's; the store then holds {ratio:.2} bytes for each byte of memory by its own account.",
        100.0 * share
    );
    Ok((store, note))
}

/// What the content is.
fn about(corpus: &Corpus, blocks: &Blocks<'_>) -> String {
    let all = blocks.raw.len() + blocks.left_out;
    format!(
        "Content: {} of {} files from {}. LZ4 packs its blocks of {} KiB {:.2} to 1 on the mean; {} of {all} blocks do not compress by an eighth and are left out.",
        Bytes(corpus.bytes.len() as u64),
        corpus.files,
        corpus.place,
        blocks.size >> 10,
        blocks.ratio(),
        blocks.left_out,
    )
}

/// Bytes by chance.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1;
    (0..len / 8).flat_map(|_| next_random(&mut state).to_le_bytes()).collect()
}
