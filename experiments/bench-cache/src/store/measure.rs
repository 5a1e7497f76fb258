//! Filled caches, and their measurements.

use std::time::{Duration, Instant};

use eke_bench_core::Environment;
use eke_cache_replay::next_random;
use eke_model::units::Bytes;
use eke_results::rows::{Params, params};

use super::caches::{Cache, EkeCache, Quick};
use super::corpus::{Blocks, Corpus};
use super::load::{Span, Tally, run};
use super::plan::{Case, Subject};
use super::{Error, Options, memory, metrics, operations};

/// A measurement: metric, unit, value.
pub type Measurement = (&'static str, &'static str, Option<f64>);

/// Blocks of one size, and caches that contain all of them.
struct Filled<'c> {
    blocks: Blocks<'c>,
    eke: EkeCache,
    quick: Quick,
}

impl<'c> Filled<'c> {
    fn new(corpus: &'c Corpus, size: usize, threads: usize) -> Result<Self, Error> {
        let blocks = Blocks::cut(corpus, size)?;
        let limit = roomy(&blocks);
        let (eke, quick) = (EkeCache::new(size, limit, threads)?, Quick::new(size, limit, threads)?);
        operations::fill(&eke, &blocks)?;
        operations::fill(&quick, &blocks)?;
        Ok(Self { blocks, eke, quick })
    }
}

/// A limit with which all blocks fit, also if shards get uneven shares.
fn roomy(blocks: &Blocks<'_>) -> Bytes {
    Bytes(blocks.compressed_bytes() * 3 / 2 + (32 << 20))
}

/// A limit with which a third of the blocks fits.
fn scarce(blocks: &Blocks<'_>) -> Bytes {
    Bytes((blocks.compressed_bytes() / 3).max(4 << 20))
}

/// All caches that measurements need.
pub struct Caches<'c> {
    environment: &'c Environment<'c>,
    options: &'c Options,
    by_size: Vec<Filled<'c>>,
    /// The index of the block size of all cases but `BlockSize`.
    main: usize,
    /// A store whose blocks were recompressed.
    recompressed: EkeCache,
    pub(super) notes: Vec<String>,
}

impl<'c> Caches<'c> {
    /// Fills all caches.
    pub(super) fn fill(
        environment: &'c Environment<'c>,
        options: &'c Options,
        corpus: &'c Corpus,
    ) -> Result<Self, Error> {
        let sizes = options.sizes();
        let by_size = sizes.iter().map(|size| Filled::new(corpus, *size, options.threads));
        let by_size = by_size.collect::<Result<Vec<_>, _>>()?;
        let main = sizes.iter().position(|size| *size == options.block).unwrap_or(0);
        let (recompressed, note) = recompressed(&by_size[main].blocks, options.threads)?;
        let notes = vec![about(corpus, &by_size[main].blocks), note];
        Ok(Self { environment, options, by_size, main, recompressed, notes })
    }

    /// The number of block sizes.
    pub(super) fn sizes(&self) -> usize {
        self.by_size.len()
    }

    /// Measures one subject in one case.
    pub(super) fn measure(&self, case: Case, subject: Subject) -> Result<(Params, Vec<Measurement>), Error> {
        let filled = &self.by_size[if let Case::BlockSize { size } = case { size } else { self.main }];
        let (threads, measurements) = match case {
            Case::Hits { threads } => (threads, self.hits(filled, subject, threads)?),
            Case::Misses { threads } => (threads, self.misses(filled, subject, threads)?),
            Case::Inserts { threads } => (threads, self.inserts(filled, subject, threads)?),
            Case::Mixed { threads } => (threads, self.mixed(filled, subject, threads)?),
            Case::BlockSize { .. } => (1, self.block_size(filled, subject)?),
            Case::Zeros => (1, self.zeros(filled, subject)?),
            Case::Noise => (1, self.noise(filled, subject)?),
        };
        let kib = filled.blocks.size >> 10;
        Ok((params([("threads", threads.into()), ("block_kib", kib.into())]), measurements))
    }

    fn span(&self, every: usize) -> Span<'c> {
        let time = Duration::from_secs_f64(self.options.seconds);
        Span { time, every, stop: self.environment.shutdown }
    }

    fn reads(&self, filled: &Filled<'_>, subject: Subject, threads: usize) -> Result<Tally, Error> {
        let Filled { blocks, eke, quick } = filled;
        let operation = |thread: usize| match subject {
            Subject::Memcpy => Ok(operations::copy(blocks, thread)),
            Subject::Lz4 => operations::decompress(blocks, thread),
            Subject::Quick => operations::get(quick, blocks, thread),
            Subject::Recompressed => operations::get(&self.recompressed, blocks, thread),
            Subject::Eke | Subject::Queue => operations::get(eke, blocks, thread),
        };
        Ok(run(each(threads, operation)?, self.span(1)))
    }

    fn hits(&self, filled: &Filled<'_>, subject: Subject, threads: usize) -> Result<Vec<Measurement>, Error> {
        let tally = self.reads(filled, subject, threads)?;
        Ok(vec![
            (metrics::HITS, "MB/s", Some(tally.bytes_s / 1e6)),
            (metrics::HIT_COUNT, "blocks/s", Some(tally.hits_s)),
            (metrics::HIT_P50, "µs", tally.quantile_us(0.5)),
            (metrics::HIT_P99, "µs", tally.quantile_us(0.99)),
            (metrics::HIT_CPU, "µs", tally.cpu_us()),
        ])
    }

    fn misses(
        &self,
        filled: &Filled<'_>,
        subject: Subject,
        threads: usize,
    ) -> Result<Vec<Measurement>, Error> {
        let size = filled.blocks.size;
        let operations = each(threads, |thread| match subject {
            Subject::Quick => operations::miss(&filled.quick, size, thread),
            _ => operations::miss(&filled.eke, size, thread),
        })?;
        let tally = run(operations, self.span(64));
        Ok(vec![
            (metrics::MISSES, "million/s", Some(tally.operations_s / 1e6)),
            (metrics::MISS_CPU, "µs", tally.cpu_us()),
        ])
    }

    fn inserts(
        &self,
        filled: &Filled<'_>,
        subject: Subject,
        threads: usize,
    ) -> Result<Vec<Measurement>, Error> {
        let Blocks { raw, size, .. } = &filled.blocks;
        let tally = match subject {
            Subject::Lz4 => {
                run(each(threads, |thread| operations::compress(raw, *size, thread))?, self.span(1))
            }
            Subject::Quick => self.insertions_of::<Quick>(filled, raw, threads)?,
            Subject::Queue => self.queued(filled, threads)?,
            _ => self.insertions_of::<EkeCache>(filled, raw, threads)?,
        };
        Ok(vec![
            (metrics::INSERTS, "MB/s", Some(tally.bytes_s / 1e6)),
            (metrics::INSERT_COUNT, "blocks/s", Some(tally.hits_s)),
            (metrics::INSERT_P50, "µs", tally.quantile_us(0.5)),
            // The tally lacks the CPU time of the queue's workers.
            (metrics::INSERT_CPU, "µs", tally.cpu_us().filter(|_| subject != Subject::Queue)),
        ])
    }

    /// Inserts into a full cache.
    fn insertions_of<C: Cache>(
        &self,
        filled: &Filled<'_>,
        raw: &[&[u8]],
        threads: usize,
    ) -> Result<Tally, Error> {
        let cache = C::new(filled.blocks.size, scarce(&filled.blocks), self.options.threads)?;
        operations::fill(&cache, &filled.blocks)?;
        Ok(run(each(threads, |thread| operations::insert(&cache, raw, thread))?, self.span(1)))
    }

    /// Inserts through queues, with a worker for each thread. The rates count blocks that were compressed and accepted.
    fn queued(&self, filled: &Filled<'_>, threads: usize) -> Result<Tally, Error> {
        let Blocks { raw, size, .. } = &filled.blocks;
        let cache = EkeCache::new(*size, scarce(&filled.blocks), self.options.threads)?;
        operations::fill(&cache, &filled.blocks)?;
        let workers = each(threads, |n| cache.0.worker(n).map_err(Error::of_cache))?;
        let (before, start) = (cache.0.stats().insertions, Instant::now());
        std::thread::scope(|scope| {
            for mut worker in workers {
                scope.spawn(move || worker.run());
            }
            let operations = (0..threads).map(|thread| operations::queue(&cache, raw, thread)).collect();
            let mut tally = run(operations, self.span(1));
            let taken = cache.0.stats().insertions - before;
            tally.hits_s = taken as f64 / start.elapsed().as_secs_f64();
            tally.bytes_s = tally.hits_s * *size as f64;
            cache.0.close();
            Ok(tally)
        })
    }

    fn mixed(
        &self,
        filled: &Filled<'_>,
        subject: Subject,
        threads: usize,
    ) -> Result<Vec<Measurement>, Error> {
        if subject == Subject::Quick {
            self.mixed_of::<Quick>(filled, threads)
        } else {
            self.mixed_of::<EkeCache>(filled, threads)
        }
    }

    fn mixed_of<C: Cache>(&self, filled: &Filled<'_>, threads: usize) -> Result<Vec<Measurement>, Error> {
        let blocks = &filled.blocks;
        let before = memory::anonymous_mib(self.environment.root);
        let cache = C::new(blocks.size, scarce(blocks), self.options.threads)?;
        let mut warm = operations::mixed(&cache, blocks, threads)?;
        (0..3 * blocks.raw.len()).for_each(|_| _ = warm());
        drop(warm);
        let tally = run(each(threads, |thread| operations::mixed(&cache, blocks, thread))?, self.span(1));
        let after = memory::anonymous_mib(self.environment.root);
        let memory = before.zip(after).map(|(before, after)| after - before);
        let by_byte = memory.filter(|mib| *mib > 0.0).map(|mib| memory::by_byte(cache.sizes().0, mib));
        Ok(vec![
            (metrics::MIXED, "requests/s", Some(tally.operations_s)),
            (metrics::HIT_RATIO, "%", tally.hit_percent()),
            (metrics::MEMORY, "MiB", memory),
            (metrics::BY_BYTE, "bytes/byte", by_byte),
        ])
    }

    fn block_size(&self, filled: &Filled<'_>, subject: Subject) -> Result<Vec<Measurement>, Error> {
        let reads = self.reads(filled, subject, 1)?;
        let raw = &filled.blocks.raw;
        let inserts = match subject {
            Subject::Memcpy => None,
            Subject::Lz4 => Some(run(vec![operations::compress(raw, filled.blocks.size, 0)?], self.span(1))),
            Subject::Quick => Some(self.insertions_of::<Quick>(filled, raw, 1)?),
            _ => Some(self.insertions_of::<EkeCache>(filled, raw, 1)?),
        };
        let ratio = |(raw, memory): (u64, u64)| Some(raw as f64 / memory.max(1) as f64);
        let ratio = match subject {
            Subject::Memcpy => None,
            Subject::Lz4 => Some(filled.blocks.ratio()),
            Subject::Quick => ratio(filled.quick.sizes()),
            _ => ratio(filled.eke.sizes()),
        };
        Ok(vec![
            (metrics::SIZE_HITS, "MB/s", Some(reads.bytes_s / 1e6)),
            (metrics::SIZE_P50, "µs", reads.quantile_us(0.5)),
            (metrics::SIZE_INSERTS, "MB/s", inserts.map(|tally| tally.bytes_s / 1e6)),
            (metrics::SIZE_RATIO, "bytes/byte", ratio),
        ])
    }

    fn zeros(&self, filled: &Filled<'_>, subject: Subject) -> Result<Vec<Measurement>, Error> {
        if subject == Subject::Quick {
            self.zeros_of::<Quick>(filled)
        } else {
            self.zeros_of::<EkeCache>(filled)
        }
    }

    fn zeros_of<C: Cache>(&self, filled: &Filled<'_>) -> Result<Vec<Measurement>, Error> {
        let zero = vec![0; filled.blocks.size];
        let zeros = Blocks { size: zero.len(), raw: vec![&zero; 64], compressed: Vec::new(), left_out: 0 };
        let cache = C::new(zero.len(), Bytes::mib(64), self.options.threads)?;
        operations::fill(&cache, &zeros)?;
        let hits = run(vec![operations::get(&cache, &zeros, 0)?], self.span(1));
        let inserts = run(vec![operations::insert(&cache, &zeros.raw, 0)?], self.span(1));
        Ok(vec![
            (metrics::ZERO_HITS, "GB/s", Some(hits.bytes_s / 1e9)),
            (metrics::ZERO_INSERTS, "GB/s", Some(inserts.bytes_s / 1e9)),
        ])
    }

    fn noise(&self, filled: &Filled<'_>, subject: Subject) -> Result<Vec<Measurement>, Error> {
        let size = filled.blocks.size;
        let noise = noise(64 * size);
        let raw: Vec<&[u8]> = noise.chunks_exact(size).collect();
        let tally = match subject {
            Subject::Lz4 => run(vec![operations::compress(&raw, size, 0)?], self.span(1)),
            Subject::Quick => self.insertions_of::<Quick>(filled, &raw, 1)?,
            _ => self.insertions_of::<EkeCache>(filled, &raw, 1)?,
        };
        Ok(vec![(metrics::NOISE, "GB/s", Some(tally.operations_s * size as f64 / 1e9))])
    }
}

fn each<T>(threads: usize, make: impl Fn(usize) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    (0..threads).map(make).collect()
}

/// A store whose blocks were recompressed, and a note on their share.
fn recompressed(blocks: &Blocks<'_>, threads: usize) -> Result<(EkeCache, String), Error> {
    let store = EkeCache::new(blocks.size, roomy(blocks), threads)?;
    operations::fill(&store, blocks)?;
    let (mut scratch, mut out) = (store.scratch()?, vec![0; blocks.size]);
    for index in 0..blocks.raw.len() {
        let _ = store.get(&mut scratch, operations::key(index), &mut out);
    }
    let share = store.recompress()?;
    let (raw, memory) = store.sizes();
    let ratio = raw as f64 / memory.max(1) as f64;
    let note = format!(
        "Recompressed: zstd recompressed {:.0} % of the cached blocks in the round, the others are new and still compressed by LZ4; the store then has {ratio:.2} bytes for each byte of memory by its own account.",
        100.0 * share
    );
    Ok((store, note))
}

/// A note on the content.
fn about(corpus: &Corpus, blocks: &Blocks<'_>) -> String {
    let all = blocks.raw.len() + blocks.left_out;
    format!(
        "Content: {} of {} files from {}. LZ4 compresses its blocks of {} KiB {:.2} to 1 on average; {} of {all} blocks do not compress by an eighth and are left out.",
        Bytes(corpus.bytes.len() as u64),
        corpus.files,
        corpus.origin,
        blocks.size >> 10,
        blocks.ratio(),
        blocks.left_out,
    )
}

/// Random bytes.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1;
    (0..len / 8).flat_map(|_| next_random(&mut state).to_le_bytes()).collect()
}
