//! The readers.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;
use eke_cache_replay::next_random;
use eke_results::report::groups::quantile;
use rustix::fs::{Advice, fadvise};

use super::report::{RANDOM_P50, RANDOM_P99};
use super::{Error, Source};

/// The size of one sequential read.
const READ: usize = 128 << 10;
/// The store's block size.
const BLOCK: usize = 64 << 10;
/// The alignment of memory for O_DIRECT reads.
const ALIGN: usize = 4096;

/// A measurement: metric, unit, value.
pub type Measurement = (&'static str, &'static str, f64);

/// The access pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// File after file.
    Sequential {
        /// The number of readers. Each has its own files.
        readers: usize,
    },
    /// Random blocks, one after the other.
    Random,
}

impl Kind {
    /// The name for progress.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential { readers: 1 } => "sequential",
            Self::Sequential { .. } => "sequential by several readers",
            Self::Random => "random",
        }
    }

    pub fn readers(self) -> usize {
        if let Self::Sequential { readers } = self { readers } else { 1 }
    }
}

/// Readers of files.
pub(super) struct Work<'a> {
    pub files: Vec<PathBuf>,
    pub source: Source,
    pub time: Duration,
    pub stop: &'a AtomicBool,
}

/// A buffer aligned to [`ALIGN`].
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len + ALIGN];
        let start = bytes.as_ptr().addr().wrapping_neg() % ALIGN;
        Self { bytes, start }
    }

    pub fn get(&mut self, len: usize) -> &mut [u8] {
        &mut self.bytes[self.start..][..len]
    }
}

impl Work<'_> {
    pub fn measure(&self, kind: Kind) -> Result<Vec<Measurement>, Error> {
        if self.source == Source::Native || self.source == Source::Mount {
            // Fills the page cache.
            self.files.iter().try_for_each(|file| std::fs::read(file).map(drop).map_err(on("read", file)))?;
        }
        match kind {
            Kind::Sequential { readers } => self.sequential(readers),
            Kind::Random => self.random(),
        }
    }

    fn sequential(&self, readers: usize) -> Result<Vec<Measurement>, Error> {
        let begun = Instant::now();
        let read: Vec<Result<u64, Error>> = std::thread::scope(|scope| {
            let start = |first| scope.spawn(move || self.read_files(first, readers, begun));
            let threads: Vec<_> = (0..readers).map(start).collect();
            threads.into_iter().map(|t| t.join().unwrap_or(Err(Error::Interrupted))).collect()
        });
        let bytes: u64 = read.into_iter().sum::<Result<u64, Error>>()?;
        Ok(vec![("sequential", "MB/s", bytes as f64 / 1e6 / begun.elapsed().as_secs_f64())])
    }

    /// Reads every `step`th file from `first` on, repeatedly until the time is over. Returns the number of bytes.
    fn read_files(&self, first: usize, step: usize, begun: Instant) -> Result<u64, Error> {
        let (mut bytes, mut buffer) = (0, Aligned::new(READ));
        let files = self.files.iter().skip(first % self.files.len()).step_by(step);
        for path in files.clone().cycle() {
            let file = self.open(path)?;
            let mut offset = 0;
            while let read @ 1.. = file.read_at(buffer.get(READ), offset).map_err(on("read", path))? {
                offset += read as u64;
            }
            bytes += offset;
            if begun.elapsed() >= self.time || self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(bytes)
    }

    fn random(&self) -> Result<Vec<Measurement>, Error> {
        let files: Vec<File> = self.files.iter().map(|path| self.open(path)).collect::<Result<_, _>>()?;
        for (file, path) in files.iter().zip(&self.files) {
            advise(file, Advice::Random).map_err(on("advise on", path))?;
        }
        let (begun, mut state, mut buffer, mut took) = (Instant::now(), 1, Aligned::new(BLOCK), Vec::new());
        while begun.elapsed() < self.time && !self.stop.load(Ordering::Relaxed) {
            let which = next_random(&mut state) as usize % files.len();
            took.push(
                self.one(&files[which], next_random(&mut state), &mut buffer)
                    .map_err(on("read", &self.files[which]))?,
            );
        }
        let us = |value: Option<f64>| value.unwrap_or(f64::NAN);
        Ok(vec![(RANDOM_P50, "µs", us(quantile(&took, 0.5))), (RANDOM_P99, "µs", us(quantile(&took, 0.99)))])
    }

    /// Reads a block. Returns the time in microseconds.
    fn one(&self, file: &File, random: u64, buffer: &mut Aligned) -> io::Result<f64> {
        let blocks = file.metadata()?.len() / BLOCK as u64;
        let offset = random % blocks.max(1) * BLOCK as u64;
        if self.source == Source::Store {
            fadvise(file, offset, std::num::NonZeroU64::new(BLOCK as u64), Advice::DontNeed)?;
        }
        let began = Instant::now();
        let read = file.read_at(buffer.get(BLOCK), offset)?;
        let took = began.elapsed();
        if read == BLOCK { Ok(took.as_secs_f64() * 1e6) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Opens a file so that reads bypass the page cache, if the source requires it.
    fn open(&self, path: &PathBuf) -> Result<File, Error> {
        let mut how = File::options();
        how.read(true);
        if self.source == Source::Disk {
            how.custom_flags(libc::O_DIRECT);
        }
        let file = how.open(path).map_err(on("open", path))?;
        if self.source == Source::Store {
            advise(&file, Advice::DontNeed).map_err(on("advise on", path))?;
        }
        Ok(file)
    }
}

fn advise(file: &File, advice: Advice) -> io::Result<()> {
    Ok(fadvise(file.as_fd(), 0, None, advice)?)
}
