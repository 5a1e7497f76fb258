//! Measures the cost of requests on a disk.
//!
//! It bypasses the page cache (O_DIRECT), runs in a thread of the idle I/O class, and only while the disk is otherwise quiet. The caches of the disk
//! and of a virtual machine's host are part of the measurement, as they are of later reads.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use eke_linux::Root;
use serde::{Deserialize, Serialize};

use crate::backing::{Backing, Block, Storage};
use crate::counters::{self, Counters};
use crate::direct::{AlignedBuffer, Direct};
use crate::plan::{self, LARGE_BYTES, SMALL_BYTES};
use eke_linux::io_class::{self, Class};
use eke_prefetch_model::cost::DiskCost;

/// How long to watch a disk for others' I/O before the measurement.
const WATCH: Duration = Duration::from_millis(100);
/// With more I/O of others than this, the measurement is discarded.
const OTHERS_BYTES: u64 = 256 << 10;
/// The number of parallel reads that show whether depth helps.
const DEPTH: usize = 4;
const MOST_ALONE: Duration = Duration::from_millis(300);
const MOST_NEAR: Duration = Duration::from_millis(200);
const MOST_AT_ONCE: Duration = Duration::from_millis(250);
const MOST_LARGE: Duration = Duration::from_millis(250);
/// A read that takes so many times the usual waited for something else than the disk's work.
const STALL: f64 = 8.0;
/// Fewer may have waited for a CPU.
const LEAST_STALLS: usize = 3;
/// A disk that takes longer is not measured, and nothing is read from it.
const PATIENCE: Duration = Duration::from_secs(3);

/// What to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The file system's block device or, if that cannot be read, a big file on it.
    pub path: PathBuf,
    /// The numbers of the disks whose counters show others' I/O; empty if there are no counters.
    pub disks: Vec<u64>,
    /// The inode number of the file; `None` for a device.
    pub ino: Option<u64>,
}

/// A measurement. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The median of random reads of 4 KiB, one at a time, without the first half of them.
    pub request_s: f64,
    /// The same for reads within a thousandth of the disk.
    pub near_request_s: f64,
    /// The rate with four reads at once, relative to one at a time; at most 4.
    pub depth_gain: f64,
    /// Seconds per byte of a sequential read.
    pub byte_s: f64,
    /// Number of reads.
    pub reads: u32,
    /// Their bytes.
    pub bytes: u64,
    /// The duration in seconds.
    pub took_s: f64,
}

impl Measured {
    /// The costs of reading.
    pub fn cost(&self) -> DiskCost {
        DiskCost { request_s: self.request_s, near_request_s: self.near_request_s, byte_s: self.byte_s }
    }
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Others use the disk.
    #[error("{} was not measured: others use the disk ({reads} reads, {writes} writes, {in_flight} in flight in {watched_ms} ms); eke tries again when it is quiet", path.display())]
    Busy {
        /// The target.
        path: PathBuf,
        /// Reads of others.
        reads: u64,
        /// Writes of others.
        writes: u64,
        /// Requests in flight.
        in_flight: u64,
        /// How long the disk was watched.
        watched_ms: u128,
    },
    /// The target is too small for a measurement.
    #[error("{} was not measured: it has {bytes} bytes, and a measurement needs 16 MiB", path.display())]
    Small {
        /// The target.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The disk did not answer.
    #[error("{} did not answer within {} s: it is not measured, and the thread that reads it is abandoned", path.display(), after.as_secs())]
    Silent {
        /// The target.
        path: PathBuf,
        /// The time limit.
        after: Duration,
    },
    /// The kernel refused.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// A verb.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

impl Target {
    /// The block device of a file system; `None` on a server or in memory.
    pub fn of(backing: &Backing) -> Option<Self> {
        let Storage::Disks(disks) = &backing.storage else { return None };
        Some(Self {
            path: Path::new("/dev").join(&measured_block(backing)?.name),
            disks: disks.iter().map(|disk| disk.dev).collect(),
            ino: None,
        })
    }

    /// Measures a file instead, if the device cannot be read: a big one, because its extents are spread over the disk.
    #[must_use]
    pub fn by_file(self, path: impl Into<PathBuf>, ino: u64) -> Self {
        Self { path: path.into(), ino: Some(ino), ..self }
    }

    fn error(&self, operation: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = self.path.clone();
        move |source| Error::Io { operation, path, source }
    }
}

/// What is measured of the disks below a file system: its own device, or the disk below a loop device, of which a machine with snaps has dozens.
pub(crate) fn measured_block(backing: &Backing) -> Option<&Block> {
    let Storage::Disks(disks) = &backing.storage else { return None };
    let own = backing.own.as_ref().filter(|own| !own.name.starts_with("loop"));
    own.or(disks.first())
}

/// Measures in about a second; blocks for at most three. `seed` selects the offsets.
///
/// # Errors
/// Others use the disk, the target is too small or cannot be read, or it does not answer.
pub fn measure(root: &Root, target: &Target, seed: u64) -> Result<Measured, Error> {
    let before = counters(root, target);
    root.sleep(WATCH);
    let began = counters(root, target);
    if !began.since(before).is_quiet() {
        return Err(busy(target, began.since(before), WATCH));
    }
    let measured = in_a_thread(target, seed)?;
    let during = counters(root, target).since(began);
    let others = Counters { read_bytes: during.read_bytes.saturating_sub(measured.bytes), ..during };
    if others.read_bytes > OTHERS_BYTES || others.written_bytes > OTHERS_BYTES {
        return Err(busy(target, others, Duration::from_secs_f64(measured.took_s)));
    }
    Ok(measured)
}

fn counters(root: &Root, target: &Target) -> Counters {
    counters::sum(&root.read("proc/diskstats").unwrap_or_default(), &target.disks)
}

fn busy(target: &Target, others: Counters, watched: Duration) -> Error {
    Error::Busy {
        path: target.path.clone(),
        reads: others.reads,
        writes: others.writes,
        in_flight: others.in_flight,
        watched_ms: watched.as_millis(),
    }
}

/// A hanging disk blocks this thread and not the caller.
fn in_a_thread(target: &Target, seed: u64) -> Result<Measured, Error> {
    let (send, receive) = std::sync::mpsc::channel();
    let of = target.clone();
    let run = move || {
        let _ = send.send(timed(&of, seed));
    };
    let thread = std::thread::Builder::new().name("disk-profile".to_owned()).spawn(run);
    thread.map_err(target.error("start a thread for"))?;
    let silent = |_| Error::Silent { path: target.path.clone(), after: PATIENCE };
    receive.recv_timeout(PATIENCE).map_err(silent)?
}

fn timed(target: &Target, seed: u64) -> Result<Measured, Error> {
    // A kernel without I/O classes can still measure.
    let _ = io_class::set(Class::Idle);
    let began = Instant::now();
    let disk = Direct::open(&target.path, target.ino).map_err(target.error("open"))?;
    let small = || Error::Small { path: target.path.clone(), bytes: disk.bytes };
    let offsets = plan::offsets(disk.bytes, seed).ok_or_else(small)?;
    let failed = || target.error("read");
    let row = |offsets: &[u64], bytes, most| row(&disk, offsets, bytes, most).map_err(failed());
    let alone = row(&offsets.alone, SMALL_BYTES, MOST_ALONE)?;
    let near = row(&offsets.near, SMALL_BYTES, MOST_NEAR)?;
    let at_once = at_once(&disk, &offsets.at_once).map_err(failed())?;
    let large = row(&offsets.large, LARGE_BYTES, MOST_LARGE)?;
    let small_reads = alone.len() + near.len() + at_once.len();
    let sustained = sustained(&[&alone, &near, &at_once]);
    Ok(Measured {
        request_s: steady(&alone).max(sustained.unwrap_or(0.0)),
        near_request_s: steady(&near).max(sustained.unwrap_or(0.0)),
        depth_gain: sustained.map_or_else(|| gain(steady(&alone), median(&at_once)), |_| 1.0),
        byte_s: large_s(&large) / LARGE_BYTES as f64,
        reads: (small_reads + large.len()) as u32,
        bytes: small_reads as u64 * SMALL_BYTES + large.len() as u64 * LARGE_BYTES,
        took_s: began.elapsed().as_secs_f64(),
    })
}

/// Seconds of each read, one after the other, until `most` has passed; at least one.
fn row(disk: &Direct, offsets: &[u64], bytes: u64, most: Duration) -> io::Result<Vec<f64>> {
    let began = Instant::now();
    let mut buffer = AlignedBuffer::new();
    let mut took = Vec::new();
    for offset in offsets {
        took.push(disk.read(&mut buffer, *offset, bytes)?.as_secs_f64());
        if began.elapsed() > most {
            break;
        }
    }
    Ok(took)
}

/// Seconds of each read with several threads.
fn at_once(disk: &Direct, offsets: &[u64]) -> io::Result<Vec<f64>> {
    let per_thread = offsets.len().div_ceil(DEPTH);
    std::thread::scope(|scope| {
        let reader = |part| {
            scope.spawn(move || {
                let _ = io_class::set(Class::Idle);
                row(disk, part, SMALL_BYTES, MOST_AT_ONCE)
            })
        };
        let threads: Vec<_> = offsets.chunks(per_thread).map(reader).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().unwrap_or_else(|_| Err(io::Error::other("a reading thread died")))?);
        }
        Ok(all)
    })
}

/// The gain by Little's law: requests in flight divided by the time of one. Medians, because a single delayed read may have waited for a CPU. At most
/// `DEPTH`, because fewer threads may have been in flight.
fn gain(alone_s: f64, at_once_s: f64) -> f64 {
    let most = DEPTH as f64;
    if at_once_s > 0.0 { (most * alone_s / at_once_s).min(most) } else { 1.0 }
}

/// The median of the second half: a disk with a burst answers the first reads at once.
fn steady(seconds: &[f64]) -> f64 {
    median(seconds.get(seconds.len() / 2..).unwrap_or_default())
}

/// A limiter with a token bucket (blk-throttle, a cloud's volume) answers some reads at once and then none for a while, so that medians show the speed
/// between its stalls. Then this is the time that a read takes in the long run: the mean, without the longest, which may have waited for a CPU.
fn sustained(rows: &[&[f64]]) -> Option<f64> {
    let all = rows.concat();
    let usual = median(&all);
    let stalls = all.iter().filter(|took| **took > STALL * usual).count();
    let mean = mean_but_longest(&all);
    (stalls >= LEAST_STALLS && mean > STALL * usual).then_some(mean)
}

/// Seconds of a large read, without the first, which moves the arm.
fn large_s(all: &[f64]) -> f64 {
    let rest = all.get(1..).filter(|rest| !rest.is_empty()).unwrap_or(all);
    median(rest).max(if rest.len() > LEAST_STALLS { mean_but_longest(rest) } else { 0.0 })
}

/// 0 for fewer than two.
fn mean_but_longest(seconds: &[f64]) -> f64 {
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    match seconds.len() {
        0 | 1 => 0.0,
        n => (seconds.iter().sum::<f64>() - longest) / (n - 1) as f64,
    }
}

/// 0 without samples.
fn median(seconds: &[f64]) -> f64 {
    eke_statistics::median(seconds).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_at_once_bring_at_most_four_times_as_much() {
        let table = [
            (0.008, 0.032, 1.0),
            (0.000_1, 0.000_1, 4.0),
            (0.001, 0.002, 2.0),
            (0.001, 0.000_1, 4.0),
            (1.0, 0.0, 1.0),
        ];
        for (alone, at_once, expected) in table {
            assert!((gain(alone, at_once) - expected).abs() < 1e-9, "{alone} {at_once}");
        }
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[])), (2.0, 0.0));
    }

    #[test]
    fn a_short_burst_does_not_count() {
        let throttled: Vec<f64> = (0..24).map(|n| if n < 12 { 0.000_1 } else { 0.008 }).collect();
        assert_eq!((steady(&throttled), steady(&[0.005]), steady(&[])), (0.008, 0.005, 0.0));
    }

    #[test]
    fn a_token_bucket_counts_with_its_stalls() {
        // 15 reads at once, then 100 ms of nothing: 150 in a second
        let bucket = |from: usize, to: usize| -> Vec<f64> {
            (from..to).map(|n| if n % 15 == 14 { 0.1 } else { 0.000_05 }).collect()
        };
        let (alone, near, at_once) = (bucket(0, 32), bucket(32, 64), bucket(64, 85));
        let slow = sustained(&[&alone, &near, &at_once]).unwrap();
        assert!((0.004..0.008).contains(&slow), "{slow}");
        assert!((0.004..0.008).contains(&large_s(&bucket(0, 50))));
        // a disk with an arm, and a fast one on a busy machine
        let arm: Vec<f64> = (0..85).map(|n| 0.004 + 0.000_1 * f64::from(n)).collect();
        let busy: Vec<f64> = (0..85).map(|n| if n % 20 == 3 { 0.004 } else { 0.000_08 }).collect();
        assert_eq!((sustained(&[&arm]), sustained(&[&busy]), sustained(&[])), (None, None, None));
        assert_eq!(large_s(&[9.0, 0.5]), 0.5);
    }

    #[test]
    fn a_missing_target_is_an_error() {
        let root = Root::at("/nonexistent");
        let target = Target { path: "/nonexistent/disk".into(), disks: Vec::new(), ino: None };
        let error = measure(&root, &target, 1).unwrap_err().to_string();
        assert!(error.starts_with("cannot open /nonexistent/disk: "), "{error}");
    }
}
