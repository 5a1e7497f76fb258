//! The *stressor*: a program that fills memory with known content.
//!
//! It fills pages that compress by a known ratio, touches them in passes, times every access, and at the end checks the content of every page.
//! Experiments and tests run it as a process of its own (`eke stressor SPEC`), usually in a box.
//!
//! - [`page`]: the content of a page
//! - [`latency`]: access times, in 15 KiB for any number of them

pub mod latency;
pub mod page;

use std::hint::black_box;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_linux::parse::process_stat;
use eke_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use latency::{Latencies, Latency};
use page::{Page, Recipe, sum};

/// The pause before each pass of a stressor without end: its pages stay warm, and a CPU stays free.
const PAUSE_MS: u64 = 50;
/// The time between two checks of the flag in a long pause.
const POLL: Duration = Duration::from_millis(50);

/// The parameters of a memory stressor, as JSON in its argument; missing ones have the value of [`StressorSpec::default`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StressorSpec {
    /// Its memory, rounded down to pages of 4 KiB.
    pub size: Bytes,
    /// The compression ratio of a page, 1 to 40.
    pub ratio: f64,
    /// The same seed gives the same pages.
    pub seed: u64,
    /// Passes after filling that read and change every page; `None`: until its standard input ends.
    pub passes: Option<u32>,
    /// The pause before each pass without end, in milliseconds. In a long one its pages get cold.
    pub pause_ms: u64,
    /// Random reads after the passes, each timed.
    pub reads: Option<Reads>,
}

/// Random reads of one page each. The order is random and fixed, so a page is read again only after all others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reads {
    /// The most reads.
    pub count: u64,
    /// The longest time, in seconds.
    pub seconds: f64,
}

impl Default for StressorSpec {
    fn default() -> Self {
        Self { size: Bytes::mib(256), ratio: 3.0, seed: 1, passes: Some(1), pause_ms: PAUSE_MS, reads: None }
    }
}

/// The result of a memory stressor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StressorReport {
    /// Its memory.
    pub size: Bytes,
    /// The requested ratio.
    pub ratio: f64,
    /// The seed of its content.
    pub seed: u64,
    /// The time to fill its pages, in seconds.
    pub fill_seconds: f64,
    /// Complete passes.
    pub passes: u32,
    /// The time of all passes, in seconds.
    pub pass_seconds: f64,
    /// Times of single touches in the passes.
    pub touches: Option<Latency>,
    /// Times of single random reads.
    pub reads: Option<Latency>,
    /// The time of all reads, with the check of each page, in seconds.
    pub read_seconds: f64,
    /// Page faults of all reads that waited for swap or a disk.
    pub read_major_faults: u64,
    /// Pages with other content than written, at the end or at a read.
    pub corrupted_pages: u64,
}

/// Why a memory stressor cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The specification asks for what cannot be.
    #[error("the memory stressor cannot do that: {0}")]
    Spec(String),
    /// There is no address space for it.
    #[error("cannot reserve {size} of memory: {source}; ask for less")]
    Memory {
        /// The requested size.
        size: Bytes,
        /// The allocator's answer.
        source: std::collections::TryReserveError,
    },
}

struct Stressor {
    recipe: Recipe,
    pages: Vec<Page>,
    sums: Vec<u64>,
}

/// Runs a memory stressor in this process until it is done or `stop` is set; calls `filled` when all pages are filled.
///
/// # Errors
/// A size of less than a page, a ratio outside 1 to 40, or no address space. Out of memory is no error: the kernel kills the process.
pub fn run(spec: &StressorSpec, stop: &AtomicBool, filled: impl FnOnce()) -> Result<StressorReport, Error> {
    let started = Instant::now();
    let mut stressor = Stressor::reserve(spec)?;
    let none = Latencies::new().map_err(|e| Error::Spec(e.to_string()))?;
    stressor.fill(stop);
    let fill_seconds = started.elapsed().as_secs_f64();
    filled();
    let passed = Instant::now();
    let (passes, touches) = stressor.touch(spec, stop, none.clone());
    let pass_seconds = passed.elapsed().as_secs_f64();
    let (faults_before, reading) = (own_major_faults(), Instant::now());
    let (reads, corrupted_at_reads) = match spec.reads {
        Some(reads) => stressor.read(reads, spec.seed, stop, none),
        None => (none, 0),
    };
    let (read_seconds, faults_after) = (reading.elapsed().as_secs_f64(), own_major_faults());
    Ok(StressorReport {
        size: Bytes((stressor.pages.len() * size_of::<Page>()) as u64),
        ratio: spec.ratio,
        seed: spec.seed,
        fill_seconds,
        passes,
        pass_seconds,
        touches: touches.summary(),
        reads: reads.summary(),
        read_seconds,
        read_major_faults: faults_after.saturating_sub(faults_before),
        corrupted_pages: corrupted_at_reads.max(stressor.corrupted()),
    })
}

impl Stressor {
    fn reserve(spec: &StressorSpec) -> Result<Self, Error> {
        let recipe = Recipe::new(spec.seed, spec.ratio).map_err(Error::Spec)?;
        let count = usize::try_from(spec.size.0).unwrap_or(usize::MAX) / size_of::<Page>();
        if count == 0 {
            return Err(Error::Spec(format!("a size of {} is less than a page of 4 KiB", spec.size)));
        }
        let (mut pages, mut sums) = (Vec::new(), Vec::new());
        let reserved = pages.try_reserve_exact(count).and_then(|()| sums.try_reserve_exact(count));
        reserved.map_err(|source| Error::Memory { size: spec.size, source })?;
        Ok(Self { recipe, pages, sums })
    }

    fn fill(&mut self, stop: &AtomicBool) {
        for index in 0..self.pages.capacity() as u64 {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let page = self.recipe.page(index);
            self.sums.push(sum(&page));
            self.pages.push(page);
        }
    }

    fn touch(&mut self, spec: &StressorSpec, stop: &AtomicBool, mut times: Latencies) -> (u32, Latencies) {
        let mut done = 0;
        while spec.passes.is_none_or(|passes| done < passes) && !stop.load(Ordering::Relaxed) {
            if spec.passes.is_none() {
                pause(Duration::from_millis(spec.pause_ms), stop);
            }
            for page in &mut self.pages {
                if stop.load(Ordering::Relaxed) {
                    return (done, times);
                }
                let start = Instant::now();
                page.touch();
                times.add(Nanos::from(start.elapsed()));
            }
            done = done.saturating_add(1);
        }
        (done, times)
    }

    /// Times the read alone, not the check of the page, which is in memory by then.
    fn read(&self, reads: Reads, seed: u64, stop: &AtomicBool, mut times: Latencies) -> (Latencies, u64) {
        let order = page::order(self.pages.len(), seed);
        let mut corrupted = 0;
        let begun = Instant::now();
        for read in (0..reads.count).zip(order.iter().cycle()) {
            if stop.load(Ordering::Relaxed) || begun.elapsed().as_secs_f64() >= reads.seconds {
                break;
            }
            let index = *read.1 as usize;
            let start = Instant::now();
            black_box(self.pages[index].first());
            times.add(Nanos::from(start.elapsed()));
            corrupted += u64::from(sum(&self.pages[index]) != self.sums[index]);
        }
        (times, corrupted)
    }

    fn corrupted(&self) -> u64 {
        self.pages.iter().zip(&self.sums).filter(|(page, expected)| sum(page) != **expected).count() as u64
    }
}

fn pause(time: Duration, stop: &AtomicBool) {
    let begun = Instant::now();
    while begun.elapsed() < time && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(POLL.min(time.saturating_sub(begun.elapsed())));
    }
}

/// Page faults of this process that had to wait for I/O.
fn own_major_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    process_stat::parse(&stat).map_or(0, |stat| stat.major_faults)
}

/// The memory stressor as a program. Its argument is a [`StressorSpec`] as JSON; it prints its report as one line of JSON. Without end, it prints
/// `filled` on standard error when all pages are filled, and ends with its standard input. The exit code is 0, 1 if a page was corrupted, 2 for a
/// bad argument.
pub fn program(argument: &str) -> u8 {
    static STOP: AtomicBool = AtomicBool::new(false);
    let spec: StressorSpec = match serde_json::from_str(argument) {
        Ok(spec) => spec,
        Err(e) => {
            eprintln!(
                "stressor: \"{argument}\" is not a specification: {e}; for example '{{\"size\": 268435456, \"ratio\": 3.0}}'"
            );
            return 2;
        }
    };
    let is_endless = spec.passes.is_none();
    if is_endless {
        std::thread::spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            STOP.store(true, Ordering::Relaxed);
        });
    }
    match run(&spec, &STOP, || {
        if is_endless {
            eprintln!("filled")
        }
    }) {
        Ok(report) => {
            println!("{}", serde_json::to_string(&report).unwrap_or_default());
            u8::from(report.corrupted_pages > 0)
        }
        Err(e) => {
            eprintln!("stressor: {e}");
            2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> StressorSpec {
        StressorSpec {
            size: Bytes::mib(1),
            passes: Some(2),
            reads: Some(Reads { count: 500, seconds: 5.0 }),
            ..StressorSpec::default()
        }
    }

    #[test]
    fn a_stressor_counts_its_accesses_and_finds_its_pages_whole() {
        let report = run(&small(), &AtomicBool::new(false), || {}).unwrap();
        assert_eq!((report.size, report.passes, report.corrupted_pages), (Bytes::mib(1), 2, 0));
        assert_eq!((report.touches.unwrap().count, report.reads.unwrap().count), (512, 500));
    }

    #[test]
    fn a_changed_page_is_found() {
        let mut stressor = Stressor::reserve(&small()).unwrap();
        stressor.fill(&AtomicBool::new(false));
        stressor.touch(&StressorSpec::default(), &AtomicBool::new(false), Latencies::new().unwrap());
        assert_eq!(stressor.corrupted(), 0);
        stressor.pages.swap(3, 4);
        assert_eq!(stressor.corrupted(), 2);
        assert_eq!(
            stressor
                .read(
                    Reads { count: 256, seconds: 5.0 },
                    1,
                    &AtomicBool::new(false),
                    Latencies::new().unwrap()
                )
                .1,
            2
        );
    }

    #[test]
    fn a_stressor_stops_when_its_flag_is_set() {
        let spec = StressorSpec { size: Bytes::mib(1), passes: None, ..StressorSpec::default() };
        let report = run(&spec, &AtomicBool::new(true), || {}).unwrap();
        assert_eq!(report.passes, 0);
    }

    #[test]
    fn impossible_stressors_are_refused() {
        for spec in [
            StressorSpec { size: Bytes(100), ..StressorSpec::default() },
            StressorSpec { ratio: 0.5, ..StressorSpec::default() },
            StressorSpec { ratio: f64::NAN, ..StressorSpec::default() },
        ] {
            assert!(run(&spec, &AtomicBool::new(false), || {}).is_err(), "{spec:?}");
        }
        assert_eq!(program("{\"sice\": 1}"), 2);
    }

    #[test]
    fn a_specification_is_short_json() {
        let spec: StressorSpec = serde_json::from_str(r#"{"size": 1048576, "passes": null}"#).unwrap();
        assert_eq!((spec.size, spec.passes, spec.ratio), (Bytes::mib(1), None, 3.0));
    }

    #[test]
    fn a_pausing_stressor_touches_nothing_and_can_be_stopped() {
        let spec = StressorSpec {
            size: Bytes::mib(1),
            passes: None,
            pause_ms: 3_600_000,
            ..StressorSpec::default()
        };
        static STOP: AtomicBool = AtomicBool::new(false);
        let stressor = std::thread::spawn(move || run(&spec, &STOP, || ()));
        std::thread::sleep(Duration::from_millis(100));
        STOP.store(true, Ordering::Relaxed);
        let report = stressor.join().unwrap().unwrap();
        assert_eq!((report.passes, report.touches), (0, None));
    }
}
