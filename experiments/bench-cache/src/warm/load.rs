//! Readers: of the cached files by Zipf's law, and of another file on the same disk.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;
use eke_cache_replay::{Zipf, next_random};
use rustix::fs::OFlags;

use super::Error;
use super::files::Files;
use crate::cache_mount::CacheMount;
use crate::reads::Aligned;

/// How unevenly files are requested.
const ALPHA: f64 = 0.9;
/// One read of a cached file, and one of the other reader.
const LONG: usize = 1 << 20;
const SHORT: usize = 16 << 10;

/// What a mount has answered from its store and from the disk so far, in bytes.
#[derive(Debug, Clone, Copy)]
struct Answered {
    store: f64,
    disk: f64,
}

/// Reads by Zipf's law.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requests {
    pub number: usize,
    pub seed: u64,
}

/// How a series of requests went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served {
    /// Share of the bytes that came from the store, in percent.
    pub hits: f64,
    /// Megabytes a second.
    pub rate: f64,
}

/// Reads whole files through the mount, past the page cache: the store alone is measured.
pub(super) fn requests(files: &Files<'_>, mount: &CacheMount, which: Requests) -> Result<Served, Error> {
    let (before, begun) = (answered(mount)?, Instant::now());
    let mut buffer = Aligned::new(LONG);
    let mut bytes = 0;
    for request in Zipf::new(files.names.len() as u64, ALPHA, which.seed).take(which.number) {
        files.check()?;
        let Some((name, size)) =
            files.names.get(usize::try_from(request.key).unwrap_or(0) % files.names.len())
        else {
            continue;
        };
        let path = mount.place().join(name);
        let read = open(&path)?.read_at(buffer.get(LONG), 0).map_err(on("read", &path))?;
        bytes += (read as u64).min(*size);
    }
    let took = begun.elapsed().as_secs_f64();
    let after = answered(mount)?;
    let (store, disk) = (after.store - before.store, after.disk - before.disk);
    let hits = if store + disk > 0.0 { 100.0 * store / (store + disk) } else { 0.0 };
    Ok(Served { hits, rate: bytes as f64 / 1e6 / took })
}

fn answered(mount: &CacheMount) -> Result<Answered, Error> {
    let details = mount.details().ok_or(Error::Silent)?;
    let bytes = |name: &str| details.pointer(name).and_then(serde_json::Value::as_f64).unwrap_or(0.0);
    Ok(Answered { store: bytes("/worker/tier/from_store"), disk: bytes("/worker/tier/from_backing") })
}

/// Reads at random places, each a while after the last one, for some time. Returns the durations in milliseconds.
pub(super) fn beside(
    files: &Files<'_>,
    lasts: Duration,
    pause: Duration,
    seed: u64,
) -> Result<Vec<f64>, Error> {
    let path = files.other();
    let file = open(&path)?;
    let pieces = file.metadata().map_err(on("read", &path))?.len() / SHORT as u64;
    let (begun, mut random, mut buffer) = (Instant::now(), seed, Aligned::new(SHORT));
    let mut took = Vec::new();
    while begun.elapsed() < lasts {
        files.check()?;
        // Exponential pauses: as of many independent readers.
        let share = (next_random(&mut random) >> 11) as f64 / (1_u64 << 53) as f64;
        std::thread::sleep(pause.mul_f64(-(1.0 - share).ln()));
        let at = next_random(&mut random) % pieces.max(1) * SHORT as u64;
        let start = Instant::now();
        file.read_at(buffer.get(SHORT), at).map_err(on("read", &path))?;
        took.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(took)
}

fn open(path: &Path) -> Result<File, Error> {
    let flags = OFlags::DIRECT.bits() as i32;
    Ok(OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(on("open", path))?)
}
