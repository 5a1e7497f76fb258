//! What readers do.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_cache_replay::next_random;
use eke_results::report::groups::quantile;
use rustix::fs::{Advice, fadvise};

use super::{Error, Who, on};

/// What a program that reads on and on asks for at once.
const PIECE: usize = 128 << 10;
/// A block of the store's.
const BLOCK: usize = 64 << 10;
/// Memory for reads past the kernel's cache begins at a multiple of this.
const ALIGN: usize = 4096;

/// A figure: metric, unit, value.
pub type Figure = (&'static str, &'static str, f64);

/// How they read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// File after file, so many readers at once.
    Sequential {
        /// Each has files of its own.
        readers: usize,
    },
    /// Blocks anywhere, one after the other.
    Random,
}

impl Kind {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Sequential { readers: 1 } => "from beginning to end",
            Self::Sequential { .. } => "from beginning to end by several",
            Self::Random => "anywhere",
        }
    }

    pub fn readers(self) -> usize {
        if let Self::Sequential { readers } = self { readers } else { 1 }
    }
}

/// Readers of files.
pub(super) struct Work<'a> {
    pub files: Vec<PathBuf>,
    pub who: Who,
    pub time: Duration,
    pub stop: &'a AtomicBool,
}

/// Bytes at a multiple of [`ALIGN`].
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(len: usize) -> Self {
        let bytes = vec![0; len + ALIGN];
        let start = bytes.as_ptr().addr().wrapping_neg() % ALIGN;
        Self { bytes, start }
    }

    fn get(&mut self, len: usize) -> &mut [u8] {
        &mut self.bytes[self.start..][..len]
    }
}

impl Work<'_> {
    pub fn measure(&self, kind: Kind) -> Result<Vec<Figure>, Error> {
        if self.who == Who::Native || self.who == Who::Mount {
            // So that the kernel has all of it.
            self.files.iter().try_for_each(|file| std::fs::read(file).map(drop).map_err(on("read", file)))?;
        }
        match kind {
            Kind::Sequential { readers } => self.sequential(readers),
            Kind::Random => self.random(),
        }
    }

    fn sequential(&self, readers: usize) -> Result<Vec<Figure>, Error> {
        let begun = Instant::now();
        let read: Vec<Result<u64, Error>> = std::thread::scope(|scope| {
            let start = |first| scope.spawn(move || self.read_on(first, readers, begun));
            let threads: Vec<_> = (0..readers).map(start).collect();
            threads.into_iter().map(|t| t.join().unwrap_or(Err(Error::Interrupted))).collect()
        });
        let bytes: u64 = read.into_iter().sum::<Result<u64, Error>>()?;
        Ok(vec![("sequential", "MB/s", bytes as f64 / 1e6 / begun.elapsed().as_secs_f64())])
    }

    /// Every `step`th file from `first` on, again and again while there is time; how many bytes.
    fn read_on(&self, first: usize, step: usize, begun: Instant) -> Result<u64, Error> {
        let (mut bytes, mut buffer) = (0, Aligned::new(PIECE));
        let files = self.files.iter().skip(first % self.files.len()).step_by(step);
        for path in files.clone().cycle() {
            let file = self.open(path)?;
            let mut offset = 0;
            while let read @ 1.. = file.read_at(buffer.get(PIECE), offset).map_err(on("read", path))? {
                offset += read as u64;
            }
            bytes += offset;
            if begun.elapsed() >= self.time || self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(bytes)
    }

    fn random(&self) -> Result<Vec<Figure>, Error> {
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
        Ok(vec![
            ("64 KiB anywhere", "µs", us(quantile(&took, 0.5))),
            ("64 KiB anywhere, slow ones", "µs", us(quantile(&took, 0.99))),
        ])
    }

    /// Reads a block; microseconds.
    fn one(&self, file: &File, random: u64, buffer: &mut Aligned) -> io::Result<f64> {
        let blocks = file.metadata()?.len() / BLOCK as u64;
        let offset = random % blocks.max(1) * BLOCK as u64;
        if self.who == Who::Store {
            fadvise(file, offset, std::num::NonZeroU64::new(BLOCK as u64), Advice::DontNeed)?;
        }
        let began = Instant::now();
        let read = file.read_at(buffer.get(BLOCK), offset)?;
        let took = began.elapsed();
        if read == BLOCK { Ok(took.as_secs_f64() * 1e6) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Without what the kernel holds of it, if it is not to be read from there.
    fn open(&self, path: &PathBuf) -> Result<File, Error> {
        let mut how = File::options();
        how.read(true);
        if self.who == Who::Disk {
            how.custom_flags(libc::O_DIRECT);
        }
        let file = how.open(path).map_err(on("open", path))?;
        if self.who == Who::Store {
            advise(&file, Advice::DontNeed).map_err(on("advise on", path))?;
        }
        Ok(file)
    }
}

fn advise(file: &File, advice: Advice) -> io::Result<()> {
    Ok(fadvise(file.as_fd(), 0, None, advice)?)
}
