//! Stores the sample on a scratch zram device: its memory there, and the time to store and load a page.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use eke_linux::{Root, parse};
use eke_model::step::ZramSpec;
use eke_model::units::{Bytes, Nanos};
use eke_statistics::Random;
use eke_statistics::sample::quantile_sorting;
use rustix::fs::OFlags;

use super::buffer::Buffer;
use super::measurements::AlgorithmMeasurement;
use super::ratio::{self, Checkpoint, Ratio};
use super::sampler::Sample;
use super::scratch::{Device, Scratch};
use super::variants::{self, Variant};
use crate::error::{Error, Result};
use crate::facts::ZramFeatures;
use crate::probe;

/// One page of so many warms the allocator up.
const WARM_UP_EVERY: usize = 4;
/// Readings of `mm_stat` after the warm-up.
const BATCHES: usize = 8;
/// The most pages that are read back.
const LOADS: usize = 2000;
/// The fewest pages to store, also if that takes longer than usual: an emulated CPU stored 93 in the usual time.
const LEAST_STORED: usize = 768;
/// Of these, the fewest for the warm-up.
const LEAST_WARM: usize = 256;
/// The fewest pages to read back, which have a p99.
const LEAST_LOADED: usize = 128;
/// Algorithms for a first device, whose file then lists those of the kernel.
const LIKELY: [&str; 4] = ["lzo-rle", "lzo", "lz4", "zstd"];

/// Reads the features of the kernel's zram from a scratch device.
///
/// # Errors
/// The kernel's refusal of a device, or of every likely algorithm.
pub(crate) fn discover(root: &Root, scratch: &mut dyn Scratch) -> Result<ZramFeatures> {
    let mut refusal = None;
    for name in LIKELY {
        match Device::add(&mut *scratch, &spec(&Variant { name: name.into(), params: None }, 1 << 20)) {
            Ok(device) => {
                let features = probe::zram::features(root, device.name());
                device.finish()?;
                return Ok(features?);
            }
            Err(e) => refusal = Some(e),
        }
    }
    Err(refusal.unwrap_or_else(|| eke_linux::Error::Refused("zram names no algorithm".into()).into()))
}

fn spec(variant: &Variant, bytes: u64) -> ZramSpec {
    ZramSpec {
        algorithm: variant.name.clone(),
        params: variant.params.clone(),
        recompress_with: None,
        backing_dev: None,
        disksize: Bytes(bytes),
        swap_priority: None,
    }
}

/// The memory of the allocator beyond the data, from all measurements together, to correct estimates.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Overhead {
    data_bytes: u64,
    memory_bytes: u64,
}

impl Overhead {
    /// Memory per byte of data; `None` before anything was measured.
    pub(crate) fn factor(self) -> Option<f64> {
        (self.data_bytes > 0).then(|| (self.memory_bytes as f64 / self.data_bytes as f64).max(1.0))
    }
}

/// The common state of all algorithms' measurements.
pub(crate) struct Trials<'a> {
    pub root: &'a Root,
    pub scratch: &'a mut dyn Scratch,
    pub sample: &'a Sample,
    pub random: &'a mut Random,
    pub overhead: Overhead,
}

/// The time for one algorithm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    /// On a modern CPU, which is enough for thousands of pages.
    pub usual: Duration,
    /// At most, until the fewest pages are done.
    pub if_slow: Duration,
}

/// The end of a stage.
#[derive(Debug, Clone, Copy)]
struct Until {
    usual: Instant,
    if_slow: Instant,
    /// Pages to wait for beyond `usual`.
    least: usize,
}

impl Time {
    /// The end of a stage after this part of the time.
    fn until(&self, started: Instant, part: f64, least: usize) -> Until {
        let after = |time: Duration| started + time.mul_f64(part);
        Until { usual: after(self.usual), if_slow: after(self.if_slow.max(self.usual)), least }
    }
}

impl Until {
    /// Is it over `now`, with so many pages done?
    fn is_over(&self, now: Instant, done: usize) -> bool {
        now >= self.if_slow || (now >= self.usual && done >= self.least)
    }
}

/// The result of one run on one device.
#[derive(Default)]
struct Run {
    store_ns: Vec<u64>,
    load_ns: Vec<u64>,
    checkpoints: Vec<Checkpoint>,
    /// The page of the sample at each page of the device.
    stored: Vec<usize>,
}

impl Trials<'_> {
    /// Measures one algorithm within `time`. If the kernel refuses it, or a page read back differs, the row is unusable; that is no error, since other
    /// algorithms may work.
    ///
    /// # Errors
    /// A scratch device could not be removed.
    pub(crate) fn measure(&mut self, variant: &Variant, time: Time) -> Result<AlgorithmMeasurement> {
        let mut row = AlgorithmMeasurement {
            name: variant.name.clone(),
            params: variant.params.clone(),
            in_zram: true,
            ..AlgorithmMeasurement::default()
        };
        match self.run(variant, time) {
            Ok(mut run) => self.fill(&mut row, &mut run),
            Err(e @ Error::NotRemoved { .. }) => return Err(e),
            Err(e) => row.unusable = Some(e.to_string()),
        }
        Ok(row)
    }

    fn run(&mut self, variant: &Variant, time: Time) -> Result<Run> {
        let bytes = (self.sample.len() * rustix::param::page_size()) as u64;
        let device = Device::add(&mut *self.scratch, &spec(variant, bytes))?;
        // loading the algorithm's module from a disk may have taken longer than the whole time
        let started = Instant::now();
        let on = On { root: self.root, name: device.name(), sample: self.sample };
        let store_until = time.until(started, 0.65, LEAST_STORED);
        let load_until = time.until(started, 0.9, LEAST_LOADED);
        let mut run = on.store(store_until, self.random)?;
        on.load(&mut run, load_until, &variant.name, self.random)?;
        device.finish()?;
        Ok(run)
    }

    fn fill(&mut self, row: &mut AlgorithmMeasurement, run: &mut Run) {
        let page_bytes = rustix::param::page_size();
        let Some(Ratio { ratio, ratio_low, incompressible_share }) =
            ratio::from_checkpoints(&run.checkpoints, self.sample.stored_share(), page_bytes)
        else {
            row.unusable = Some("no page could be stored in its time".into());
            return;
        };
        if let (Some(first), Some(last)) = (run.checkpoints.first(), run.checkpoints.last()) {
            self.overhead.data_bytes += last.compressed_bytes.saturating_sub(first.compressed_bytes);
            self.overhead.memory_bytes += last.mem_used_bytes.saturating_sub(first.mem_used_bytes);
        }
        (row.ratio, row.ratio_low, row.incompressible_share) = (ratio, ratio_low, incompressible_share);
        row.pages = run.stored.len() as u64;
        (row.store_p50, row.store_p99) = p50_p99(&mut run.store_ns);
        (row.load_p50, row.load_p99) = p50_p99(&mut run.load_ns);
    }
}

/// The median and the 99th percentile; 0 without values.
pub(crate) fn p50_p99(times_ns: &mut [u64]) -> (Nanos, Nanos) {
    (
        Nanos(quantile_sorting(times_ns, 0.5).unwrap_or(0)),
        Nanos(quantile_sorting(times_ns, 0.99).unwrap_or(0)),
    )
}

/// Nanoseconds since `start`.
pub(crate) fn since_ns(start: Instant) -> u64 {
    Nanos::from(start.elapsed()).0
}

/// One device, with the sample.
struct On<'a> {
    root: &'a Root,
    name: &'a str,
    sample: &'a Sample,
}

impl On<'_> {
    fn path(&self) -> PathBuf {
        self.root.path(format!("dev/{}", self.name))
    }

    /// Opens it for direct I/O, so that the device is timed and not the page cache.
    fn open(&self) -> Result<File> {
        let direct = OFlags::DIRECT.bits() as i32;
        let opened = OpenOptions::new().read(true).write(true).custom_flags(direct).open(self.path());
        opened.map_err(|e| Error::io("open", &self.path(), e))
    }

    fn reading(&self, pages: usize) -> Result<Checkpoint> {
        let text = self.root.read(format!("sys/block/{}/mm_stat", self.name))?;
        let stat = parse::zram::mm_stat(self.name, &text);
        Ok(Checkpoint {
            pages,
            mem_used_bytes: stat.mem_used.0,
            compressed_bytes: stat.compr_data.0,
            huge_pages: stat.huge_pages,
        })
    }

    /// Warms up in random order, then stores the rest until `until`, in order and in batches.
    fn store(&self, until: Until, random: &mut Random) -> Result<Run> {
        let file = self.open()?;
        let mut run = Run::default();
        let mut first = variants::warm_up(self.sample.len(), WARM_UP_EVERY);
        random.shuffle(&mut first);
        let started = Instant::now();
        self.store_pages(&file, &first, Until { least: LEAST_WARM, ..until }, &mut run)?;
        run.checkpoints.push(self.reading(run.stored.len())?);
        let page_ns = started.elapsed().as_nanos() as usize / run.stored.len().max(1) + 1;
        let left_ns = until.usual.saturating_duration_since(Instant::now()).as_nanos() as usize;
        let room = (left_ns / page_ns).max(until.least.saturating_sub(run.stored.len()));
        let rest = variants::remaining(self.sample.len(), WARM_UP_EVERY, room);
        for batch in rest.chunks(rest.len().div_ceil(BATCHES).max(1)) {
            self.store_pages(&file, batch, until, &mut run)?;
            run.checkpoints.push(self.reading(run.stored.len())?);
        }
        Ok(run)
    }

    fn store_pages(&self, file: &File, pages: &[usize], until: Until, run: &mut Run) -> Result<()> {
        let page_bytes = rustix::param::page_size();
        for index in pages {
            let start = Instant::now();
            if until.is_over(start, run.stored.len()) {
                break;
            }
            let offset = (run.stored.len() * page_bytes) as u64;
            file.write_all_at(self.sample.page(*index), offset)
                .map_err(|e| Error::io("write a page to", &self.path(), e))?;
            run.store_ns.push(since_ns(start));
            run.stored.push(*index);
        }
        Ok(())
    }

    /// Reads pages back in random order and compares each with the stored one.
    fn load(&self, run: &mut Run, until: Until, algorithm: &str, random: &mut Random) -> Result<()> {
        let file = self.open()?;
        let mut page = Buffer::new(1)?;
        let mut order: Vec<usize> = (0..run.stored.len()).collect();
        random.shuffle(&mut order);
        for at in order.into_iter().take(LOADS) {
            let start = Instant::now();
            if until.is_over(start, run.load_ns.len()) {
                break;
            }
            let offset = (at * rustix::param::page_size()) as u64;
            file.read_exact_at(page.bytes_mut(), offset)
                .map_err(|e| Error::io("read a page from", &self.path(), e))?;
            run.load_ns.push(since_ns(start));
            if page.bytes() != self.sample.page(run.stored[at]) {
                return Err(Error::Mismatch { path: self.path(), page: at, algorithm: algorithm.to_owned() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_cpu_gets_time_for_the_least_and_no_more() {
        let (started, ms) = (Instant::now(), Duration::from_millis);
        let until = Time { usual: ms(100), if_slow: ms(1000) }.until(started, 0.5, 64);
        let over = |at, done| until.is_over(started + ms(at), done);
        assert!(!over(49, 9000) && over(50, 64), "no more than the usual time");
        assert!(!over(50, 63) && !over(499, 63), "it waits for the fewest pages");
        assert!(over(500, 0), "but not for ever");
    }
}
