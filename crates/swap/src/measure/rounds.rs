//! All algorithms on the same pages, in rounds.
//!
//! Two ratios compare only if they are of the same pages: pages of one process compress ten times better than those of another. A slow CPU cannot
//! store the whole sample with each algorithm in time, so the time decides the number of pages, for all algorithms alike:
//!
//! 1. A first round of a few pages shows the speed of each.
//! 2. The next rounds have as many pages as all algorithms together can store and load in the usual time, or [`LEAST_PAGES`] if a slow CPU can
//!    in the longer time.
//! 3. While the order of the algorithms is not clear, a round of twice as many pages follows, if it fits into the time for that.
//!
//! The pages of a round are spread evenly over the sample, which is in the order of the processes. The rows are those of the last complete round.

use std::path::PathBuf;
use std::time::Duration;

use eke_statistics::Random;
use eke_statistics::bootstrap::difference;

use super::ratio::{self, Checkpoint};
use super::sample::Sample;
use super::variants::{self, PageSet, Variant};
use crate::error::{Error, Result};

/// Pages of the first round.
const FIRST: usize = 96;
/// The fewest pages, also if they take longer than usual: an emulated CPU stored 93 in the usual time.
const LEAST_PAGES: usize = 768;
/// Readings of the memory after the warm-up.
const BATCHES: usize = 8;
/// The most pages of one round that are read back.
const LOADS: usize = 2000;
/// The fewest, which have a p99.
const LEAST_LOADS: usize = 128;
/// Two costs within this share of each other count as equal: the choice of the algorithm takes the faster one then.
const EQUAL: f64 = 0.03;
/// A round has at most so many times the pages of the one before it, whose times it is planned with: if it does not end in time, that one counts.
const MOST_TIMES: usize = 10;
/// The part of the remaining time to plan with.
const PLANNED: f64 = 0.9;

/// A device that compresses pages.
pub(crate) trait PageDevice {
    /// Stores `page` as page `at`.
    fn store(&mut self, at: usize, page: &[u8]) -> Result<()>;
    /// Loads page `at`.
    fn load(&mut self, at: usize) -> Result<&[u8]>;
    /// Its memory, with `pages` stored.
    fn reading(&mut self, pages: usize) -> Result<Checkpoint>;
    /// Its path, for errors.
    fn path(&self) -> PathBuf;
    /// Removes it.
    fn remove(self: Box<Self>) -> Result<()>;
}

/// Makes devices, one at a time.
pub(crate) trait PageDevices {
    /// A device with room for `pages`, which compresses by `variant`.
    fn add(&mut self, variant: &Variant, pages: usize) -> Result<Box<dyn PageDevice + '_>>;
}

/// The time since some moment.
pub(crate) trait Clock {
    fn now(&self) -> Duration;

    /// CPU time of this thread. A program that takes the CPU in the middle of a page adds nothing: that is no cost of the algorithm, and a single CPU
    /// in use would have made every 99th percentile too long. zram works in the thread that reads or writes (zram_drv.c, zram_submit_bio).
    fn busy(&self) -> Duration;
}

/// The time for all algorithms together, without making and removing devices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    /// On a modern CPU, which is enough for thousands of pages.
    pub usual: Duration,
    /// While the order is not clear.
    pub if_unclear: Duration,
    /// At most, on a slow one.
    pub if_slow: Duration,
}

/// One algorithm on the pages of a round.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Run {
    /// CPU time.
    pub store_ns: Vec<u64>,
    pub load_ns: Vec<u64>,
    /// The same pages by the clock, with the wait for hardware; empty if the CPU compresses.
    pub store_latency_ns: Vec<u64>,
    pub load_latency_ns: Vec<u64>,
    pub checkpoints: Vec<Checkpoint>,
}

impl Run {
    /// Pages stored.
    pub(crate) fn pages(&self) -> usize {
        self.store_ns.len()
    }
}

/// One algorithm, with its run in the last complete round or the reason why it is unusable.
#[derive(Debug)]
pub(crate) struct Row {
    pub variant: Variant,
    pub outcome: Result<Run, String>,
}

/// The rounds' common state.
pub(crate) struct Rounds<'a> {
    pub devices: &'a mut dyn PageDevices,
    pub sample: &'a Sample,
    pub random: &'a mut Random,
    pub clock: &'a dyn Clock,
}

impl Rounds<'_> {
    /// Measures all `variants`. If one is refused, or a page read back differs, its row is unusable; that is no error, since others may work.
    ///
    /// # Errors
    /// A device could not be removed.
    pub(crate) fn measure(&mut self, variants: Vec<Variant>, time: Time) -> Result<Vec<Row>> {
        let most = self.sample.len();
        let mut pages = most.min(FIRST);
        let mut spent = Duration::ZERO;
        let mut rows: Vec<Row> =
            variants.into_iter().map(|variant| Row { variant, outcome: Ok(Run::default()) }).collect();
        loop {
            let Some(more) = self.round(&mut rows, pages, &mut spent, time.if_slow)? else { return Ok(rows) };
            for (row, run) in rows.iter_mut().filter(|row| row.outcome.is_ok()).zip(more) {
                row.outcome = Ok(run);
            }
            let runs: Vec<&Run> = rows.iter().filter_map(|row| row.outcome.as_ref().ok()).collect();
            match next(&runs, pages, most, spent, time) {
                Some(more) => pages = more,
                None => return Ok(rows),
            }
        }
    }

    /// A run for each row that is usable, and still is; `None` if the time was over before the end of all. In the first round each algorithm has its
    /// own share of the time: one that does not store the first pages within it is unusable, and keeps nothing from the others.
    fn round(
        &mut self,
        rows: &mut [Row],
        pages: usize,
        spent: &mut Duration,
        limit: Duration,
    ) -> Result<Option<Vec<Run>>> {
        let mut set = variants::page_set(self.sample.len(), pages);
        self.random.shuffle(&mut set.warm);
        let mut runs = Vec::new();
        let share = limit / u32::try_from(rows.len().max(1)).unwrap_or(u32::MAX);
        for row in rows {
            let Ok(before) = &row.outcome else { continue };
            let is_first = before.store_ns.is_empty();
            let left = limit.saturating_sub(*spent);
            let time = if is_first { left.min(share) } else { left };
            match self.run(&row.variant, &set, spent, time) {
                Ok(Some(run)) => runs.push(run),
                Ok(None) if is_first => {
                    row.outcome =
                        Err(format!("it did not store and load {} pages within {time:.1?}", set.len()));
                }
                Ok(None) => return Ok(None),
                Err(e @ Error::NotRemoved { .. }) => return Err(e),
                Err(e) => row.outcome = Err(e.to_string()),
            }
        }
        Ok(Some(runs))
    }

    fn run(
        &mut self,
        variant: &Variant,
        set: &PageSet,
        spent: &mut Duration,
        time: Duration,
    ) -> Result<Option<Run>> {
        let mut device = self.devices.add(variant, self.sample.len())?;
        // loading the algorithm's module from a disk may have taken longer than the whole time
        let started = self.clock.now();
        let until = started + time;
        let timer = Timer { clock: self.clock, by_hardware: variant.hardware.is_some() };
        let mut on = On { device: device.as_mut(), sample: self.sample, timer, until };
        let mut order: Vec<usize> = (0..set.len()).collect();
        self.random.shuffle(&mut order);
        order.truncate(loads(set.len()));
        let run = on.store(set).and_then(|run| match run {
            Some(run) => on.load(run, set, &order, &variant.name),
            None => Ok(None),
        });
        *spent += self.clock.now().saturating_sub(started);
        device.remove()?;
        run
    }
}

/// The number of pages to read back.
fn loads(pages: usize) -> usize {
    (pages / 4).clamp(LEAST_LOADS, LOADS).min(pages)
}

/// The pages of the next round; `None` if there is none.
fn next(runs: &[&Run], pages: usize, most: usize, spent: Duration, time: Time) -> Option<usize> {
    let left = |limit: Duration| limit.saturating_sub(spent).mul_f64(PLANNED);
    let fit = |limit: Duration| fitting(runs, left(limit), most);
    let planned = fit(time.usual).max(LEAST_PAGES.min(fit(time.if_slow)));
    let more = if planned > pages {
        planned.min(pages.saturating_mul(MOST_TIMES))
    } else if is_clear(runs) {
        pages
    } else {
        Some(pages.saturating_mul(2).min(most)).filter(|n| *n <= fit(time.if_unclear)).unwrap_or(pages)
    };
    (more > pages && !runs.is_empty()).then_some(more)
}

/// The most pages that all algorithms together store and load in `time`, by their means so far.
fn fitting(runs: &[&Run], time: Duration, most: usize) -> usize {
    let mean = |ns: &[u64]| ns.iter().sum::<u64>() as f64 / ns.len().max(1) as f64;
    let stored: f64 = runs.iter().map(|run| mean(&run.store_ns)).sum();
    let loaded: f64 = runs.iter().map(|run| mean(&run.load_ns)).sum();
    let takes = |pages: usize| pages as f64 * stored + loads(pages) as f64 * loaded;
    let (mut fits, mut step) = (0, most.next_power_of_two());
    while step > 0 {
        if fits + step <= most && takes(fits + step) <= time.as_nanos() as f64 {
            fits += step;
        }
        step /= 2;
    }
    fits
}

/// Is the order by ratio clear: does each algorithm differ from the next one, or equal it, beyond chance? The batches are of the same pages, so
/// they are pairs.
fn is_clear(runs: &[&Run]) -> bool {
    let costs: Vec<Vec<f64>> = runs.iter().map(|run| ratio::batch_costs(&run.checkpoints)).collect();
    let total = |costs: &[f64]| costs.iter().sum::<f64>();
    let mut order: Vec<&Vec<f64>> = costs.iter().filter(|costs| costs.len() > 1).collect();
    order.sort_by(|a, b| total(a).total_cmp(&total(b)));
    order.windows(2).all(|two| {
        let pairs: Vec<(f64, f64)> = two[0].iter().copied().zip(two[1].iter().copied()).collect();
        let equal = EQUAL * total(two[0]) / two[0].len() as f64;
        difference(&pairs, 1).is_none_or(|d| d.is_clear() || (d.low > -equal && d.high < equal))
    })
}

/// One device, with the sample.
struct On<'a> {
    device: &'a mut (dyn PageDevice + 'a),
    sample: &'a Sample,
    timer: Timer<'a>,
    until: Duration,
}

/// Times pages.
#[derive(Clone, Copy)]
struct Timer<'a> {
    clock: &'a dyn Clock,
    by_hardware: bool,
}

/// When a page began: by the clock, and by the CPU time of this thread.
struct Began {
    now: Duration,
    busy: Duration,
}

impl Timer<'_> {
    fn begin(self) -> Began {
        Began { now: self.clock.now(), busy: self.clock.busy() }
    }

    /// Adds a page's CPU time, and its latency if hardware compresses: the thread waits for that without taking the CPU.
    fn add(self, began: &Began, busy_ns: &mut Vec<u64>, latency_ns: &mut Vec<u64>) {
        busy_ns.push(nanos(self.clock.busy().saturating_sub(began.busy)));
        if self.by_hardware {
            latency_ns.push(nanos(self.clock.now().saturating_sub(began.now)));
        }
    }
}

impl On<'_> {
    /// Warms up in random order, then stores the rest in order and in batches. `None` if the time is over.
    fn store(&mut self, set: &PageSet) -> Result<Option<Run>> {
        let mut run = Run::default();
        if !self.store_pages(&set.warm, &mut run)? {
            return Ok(None);
        }
        run.checkpoints.push(self.device.reading(run.pages())?);
        for batch in set.rest.chunks(set.rest.len().div_ceil(BATCHES).max(1)) {
            if !self.store_pages(batch, &mut run)? {
                return Ok(None);
            }
            run.checkpoints.push(self.device.reading(run.pages())?);
        }
        Ok(Some(run))
    }

    fn store_pages(&mut self, pages: &[usize], run: &mut Run) -> Result<bool> {
        for index in pages {
            let began = self.timer.begin();
            if began.now >= self.until {
                return Ok(false);
            }
            self.device.store(run.pages(), self.sample.page(*index))?;
            self.timer.add(&began, &mut run.store_ns, &mut run.store_latency_ns);
        }
        Ok(true)
    }

    /// Reads pages back in `order` and compares each with the stored one. `None` if the time is over.
    fn load(&mut self, mut run: Run, set: &PageSet, order: &[usize], algorithm: &str) -> Result<Option<Run>> {
        for at in order {
            let began = self.timer.begin();
            if began.now >= self.until {
                return Ok(None);
            }
            let page = self.device.load(*at)?;
            self.timer.add(&began, &mut run.load_ns, &mut run.load_latency_ns);
            if page != self.sample.page(set.stored_at(*at)) {
                let path = self.device.path();
                return Err(Error::Mismatch { path, page: *at, algorithm: algorithm.to_owned() });
            }
        }
        Ok(Some(run))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
