//! The sample on a scratch zram device: what it takes there, and how long a page takes in and out.

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
use super::figures::AlgorithmFigures;
use super::ratio::{self, Checkpoint, Ratio};
use super::sampler::Sample;
use super::scratch::{Device, Scratch};
use super::variants::{self, Variant};
use crate::error::{Error, Result};
use crate::facts::ZramFeatures;
use crate::probe;

/// The part of the sample that warms the allocator up: one page of this many.
const WARM_UP_EVERY: usize = 4;
/// Readings of `mm_stat` after that.
const BATCHES: usize = 8;
/// The most pages that are read back.
const LOADS: usize = 2000;
/// So many pages are stored, and so many of them read back, even where that takes longer than usual: an emulated CPU managed
/// 93 in its time. The second is the least that has a p99.
const LEAST_STORED: usize = 768;
/// Of these, so many to warm up.
const LEAST_WARM: usize = 256;
const LEAST_LOADED: usize = 128;
/// Tried in turn to get a first device, whose file then names what the kernel has.
const LIKELY: [&str; 4] = ["lzo-rle", "lzo", "lz4", "zstd"];

/// What a kernel's zram offers, read from a scratch device that exists only for that.
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

/// What a device's allocator takes beyond the data, from all measurements together: to correct estimates by.
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

/// What the measurements of all algorithms share.
pub(crate) struct Bench<'a> {
    pub root: &'a Root,
    pub scratch: &'a mut dyn Scratch,
    pub sample: &'a Sample,
    pub random: &'a mut Random,
    pub overhead: Overhead,
}

/// How long one algorithm may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    /// On a CPU of today, where it is enough for thousands of pages.
    pub usual: Duration,
    /// Until the least number of pages is done.
    pub if_slow: Duration,
}

/// When a stage is over.
#[derive(Debug, Clone, Copy)]
struct Until {
    usual: Instant,
    if_slow: Instant,
    /// Pages that are waited for beyond `usual`.
    least: usize,
}

impl Time {
    /// The end of a stage that is over after this part of the time.
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

/// What one run on one device gave.
#[derive(Default)]
struct Run {
    store_ns: Vec<u64>,
    load_ns: Vec<u64>,
    checkpoints: Vec<Checkpoint>,
    /// Which page of the sample is at each page of the device.
    stored: Vec<usize>,
}

impl Bench<'_> {
    /// Measures one algorithm within `time`. A refusal of the kernel, or a page that comes back wrong, makes the row
    /// unusable and is no error: other algorithms may do.
    ///
    /// # Errors
    /// Only a scratch device that could not be removed.
    pub(crate) fn figures(&mut self, variant: &Variant, time: Time) -> Result<AlgorithmFigures> {
        let mut row = AlgorithmFigures {
            name: variant.name.clone(),
            params: variant.params.clone(),
            in_zram: true,
            ..AlgorithmFigures::default()
        };
        match self.run(variant, time) {
            Ok(mut run) => self.fill(&mut row, &mut run),
            Err(e @ Error::LeftBehind { .. }) => return Err(e),
            Err(e) => row.unusable = Some(e.to_string()),
        }
        Ok(row)
    }

    fn run(&mut self, variant: &Variant, time: Time) -> Result<Run> {
        let bytes = (self.sample.len() * rustix::param::page_size()) as u64;
        let device = Device::add(&mut *self.scratch, &spec(variant, bytes))?;
        // The algorithm's module came from a disk, which may have taken longer than all the time there is.
        let started = Instant::now();
        let on = On { root: self.root, name: device.name(), sample: self.sample };
        let store_until = time.until(started, 0.65, LEAST_STORED);
        let load_until = time.until(started, 0.9, LEAST_LOADED);
        let mut run = on.store(store_until, self.random)?;
        on.load(&mut run, load_until, &variant.name, self.random)?;
        device.finish()?;
        Ok(run)
    }

    fn fill(&mut self, row: &mut AlgorithmFigures, run: &mut Run) {
        let page_bytes = rustix::param::page_size();
        let Some(Ratio { ratio, ratio_low, incompressible_share }) =
            ratio::from_checkpoints(&run.checkpoints, self.sample.stored_share(), page_bytes)
        else {
            row.unusable = Some("no page was stored within the time limit".into());
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

/// Median and 99 of 100; 0 of nothing.
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

/// One device and the sample.
struct On<'a> {
    root: &'a Root,
    name: &'a str,
    sample: &'a Sample,
}

impl On<'_> {
    fn path(&self) -> PathBuf {
        self.root.path(format!("dev/{}", self.name))
    }

    /// Past the page cache: what is timed is the device.
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

    /// Warms up in random order, then stores as much of the rest as fits before `until`, in order and in batches.
    fn store(&self, until: Until, random: &mut Random) -> Result<Run> {
        let file = self.open()?;
        let mut run = Run::default();
        let mut first = variants::warming_up(self.sample.len(), WARM_UP_EVERY);
        random.shuffle(&mut first);
        let started = Instant::now();
        self.store_pages(&file, &first, Until { least: LEAST_WARM, ..until }, &mut run)?;
        run.checkpoints.push(self.reading(run.stored.len())?);
        let page_ns = started.elapsed().as_nanos() as usize / run.stored.len().max(1) + 1;
        let left_ns = until.usual.saturating_duration_since(Instant::now()).as_nanos() as usize;
        let room = (left_ns / page_ns).max(until.least.saturating_sub(run.stored.len()));
        let rest = variants::the_rest(self.sample.len(), WARM_UP_EVERY, room);
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

    /// Reads pages back in random order and compares each with what was stored.
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
        assert!(!over(49, 9000) && over(50, 64), "the usual time is used, and no more than that");
        assert!(!over(50, 63) && !over(499, 63), "the least is waited for");
        assert!(over(500, 0), "but not for ever");
    }
}
