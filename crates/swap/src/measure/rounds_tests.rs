use std::cell::{Cell, RefCell};
use std::rc::Rc;

use eke_model::units::Nanos;

use super::*;
use crate::measure::rows;

/// Time passes only in the devices.
#[derive(Default, Clone)]
struct Simulated {
    now: Rc<Cell<Duration>>,
    busy: Rc<Cell<Duration>>,
}

impl Clock for Simulated {
    fn now(&self) -> Duration {
        self.now.get()
    }

    fn busy(&self) -> Duration {
        self.busy.get()
    }
}

impl Simulated {
    fn pass(&self, time: Duration) {
        self.others(time);
        self.busy.set(self.busy.get() + time);
    }

    /// Another program has the CPU.
    fn others(&self, time: Duration) {
        self.now.set(self.now.get() + time);
    }
}

/// One algorithm: the bytes of a page by its first byte (its process), and the time to store or load one.
#[derive(Clone)]
struct Algorithm {
    name: &'static str,
    bytes: fn(u8) -> u64,
    page: Duration,
    /// After so many pages on a device, each takes a hundred times as long.
    burst: Option<usize>,
    /// At every twentieth load, another program takes the CPU for this long.
    others: Duration,
}

/// The pages of each removed device, with its algorithm.
type Log = Vec<(&'static str, Vec<Vec<u8>>)>;

struct Slow {
    clock: Simulated,
    algorithms: Vec<Algorithm>,
    stored: Rc<RefCell<Log>>,
}

struct SlowDevice {
    algorithm: Algorithm,
    clock: Simulated,
    pages: Vec<Vec<u8>>,
    log: Rc<RefCell<Log>>,
}

impl PageDevices for Slow {
    fn add(&mut self, variant: &Variant, _: usize) -> Result<Box<dyn PageDevice + '_>> {
        // making a device does not count
        self.clock.pass(Duration::from_secs(60));
        let algorithm = self.algorithms.iter().find(|a| a.name == variant.name).unwrap().clone();
        Ok(Box::new(SlowDevice {
            algorithm,
            clock: self.clock.clone(),
            pages: vec![],
            log: Rc::clone(&self.stored),
        }))
    }
}

impl PageDevice for SlowDevice {
    fn store(&mut self, at: usize, page: &[u8]) -> Result<()> {
        assert_eq!(at, self.pages.len());
        let is_slow = self.algorithm.burst.is_some_and(|pages| at >= pages);
        self.clock.pass(self.algorithm.page * if is_slow { 100 } else { 1 });
        self.pages.push(page.to_vec());
        Ok(())
    }

    fn load(&mut self, at: usize) -> Result<&[u8]> {
        self.clock.pass(self.algorithm.page);
        if at.is_multiple_of(20) {
            self.clock.others(self.algorithm.others);
        }
        Ok(&self.pages[at])
    }

    fn reading(&mut self, pages: usize) -> Result<Checkpoint> {
        let bytes = self.pages.iter().map(|p| (self.algorithm.bytes)(p[0])).sum();
        Ok(Checkpoint { pages, mem_used_bytes: bytes * 103 / 100, compressed_bytes: bytes, huge_pages: 0 })
    }

    fn path(&self) -> PathBuf {
        self.algorithm.name.into()
    }

    fn remove(self: Box<Self>) -> Result<()> {
        self.log.borrow_mut().push((self.algorithm.name, self.pages));
        Ok(())
    }
}

/// Pages of `processes` processes, in their order; the first byte is the process, the second and third the number.
fn sample(processes: u8, each: usize) -> Sample {
    let page = |process: u8, n: usize| {
        let mut page = vec![7; rustix::param::page_size()];
        page[..3].copy_from_slice(&[process, (n >> 8) as u8, n as u8]);
        page
    };
    let all: Vec<Vec<u8>> = (0..processes).flat_map(|p| (0..each).map(move |n| page(p, n))).collect();
    Sample::of(&all)
}

const TIME: Time = Time {
    usual: Duration::from_millis(1200),
    if_unclear: Duration::from_secs(5),
    if_slow: Duration::from_secs(15),
};

/// Every row, with the pages of its last device in order.
fn measured(algorithms: &[Algorithm], sample: &Sample, time: Time) -> (Vec<Row>, Vec<Vec<Vec<u8>>>) {
    let variants = algorithms.iter().map(|a| Variant::as_shipped(a.name)).collect();
    measured_as(variants, algorithms, sample, time)
}

fn measured_as(
    variants: Vec<Variant>,
    algorithms: &[Algorithm],
    sample: &Sample,
    time: Time,
) -> (Vec<Row>, Vec<Vec<Vec<u8>>>) {
    let (clock, stored) = (Simulated::default(), Rc::default());
    let mut devices =
        Slow { clock: clock.clone(), algorithms: algorithms.to_vec(), stored: Rc::clone(&stored) };
    let mut random = Random::new(5);
    let mut rounds = Rounds { devices: &mut devices, sample, random: &mut random, clock: &clock };
    let rows = rounds.measure(variants, time).unwrap();
    let log = stored.borrow();
    let last = algorithms.iter().map(|a| {
        let count = rows.iter().find(|r| r.variant.name == a.name).map_or(0, pages);
        log.iter()
            .rev()
            .find(|(name, pages)| *name == a.name && pages.len() == count)
            .map(|(_, pages)| pages.clone())
            .unwrap_or_default()
    });
    let last = last.collect();
    (rows, last)
}

fn pages(row: &Row) -> usize {
    row.outcome.as_ref().map_or(0, Run::pages)
}

fn ratio_of(row: &Row) -> f64 {
    let run = row.outcome.as_ref().unwrap();
    ratio::from_checkpoints(&run.checkpoints, 1.0, 4096).unwrap().ratio
}

#[test]
fn what_another_program_takes_of_the_cpu_is_no_cost_of_the_algorithm() {
    let interrupted = algorithms(10, 50).map(|a| Algorithm { others: Duration::from_millis(1), ..a });
    let (rows, _) = measured(&interrupted, &sample(10, 100), TIME);
    for (row, page_us) in rows.iter().zip([10, 50]) {
        let run = row.outcome.as_ref().unwrap();
        assert!(
            run.load_ns.iter().chain(&run.store_ns).all(|ns| *ns == page_us * 1000),
            "{}",
            row.variant.name
        );
    }
}

#[test]
fn the_wait_for_hardware_is_latency_and_no_cpu_time() {
    let waits = algorithms(10, 50).map(|a| Algorithm { others: Duration::from_millis(1), ..a });
    let by_hardware = Variant { hardware: Some("nx_compress".into()), ..Variant::as_shipped("lz4") };
    let sample = sample(10, 100);
    let (mut rows, _) = measured_as(vec![by_hardware, Variant::as_shipped("zstd")], &waits, &sample, TIME);
    let software = rows::measurement(rows.remove(1), &sample, false);
    assert_eq!((software.load_p99, software.cpu_per_page), (Nanos::micros(50), None));
    let hardware = rows::measurement(rows.remove(0), &sample, false);
    assert_eq!((hardware.load_p50, hardware.load_p99), (Nanos::micros(10), Nanos::micros(1010)));
    assert_eq!((hardware.cpu_per_page, hardware.cpu()), (Some(Nanos::micros(20)), Nanos::micros(20)));
    assert_eq!(hardware.label(), "lz4 (by nx_compress, hardware)");
}

/// The first of ten processes compresses 20 to 1 with all, the others 2 to 1, and 3 to 1 with the slow algorithm.
fn quick(process: u8) -> u64 {
    if process == 0 { 200 } else { 2048 }
}

fn strong(process: u8) -> u64 {
    if process == 0 { 200 } else { 1365 }
}

fn algorithms(quick_us: u64, slow_us: u64) -> [Algorithm; 2] {
    [
        Algorithm {
            name: "lz4",
            bytes: quick,
            page: Duration::from_micros(quick_us),
            burst: None,
            others: Duration::ZERO,
        },
        Algorithm {
            name: "zstd",
            bytes: strong,
            page: Duration::from_micros(slow_us),
            burst: None,
            others: Duration::ZERO,
        },
    ]
}

#[test]
fn a_slow_cpu_compares_all_algorithms_on_the_same_pages() {
    let sample = sample(10, 500);
    let (rows, stored) = measured(&algorithms(200, 6000), &sample, TIME);
    assert_eq!(stored[0], stored[1], "other pages");
    assert!(pages(&rows[0]) >= LEAST_PAGES, "{} pages", pages(&rows[0]));
    let of_process = |p: u8| stored[0].iter().filter(|page| page[0] == p).count();
    let counts: Vec<usize> = (0..10).map(of_process).collect();
    assert!(counts.iter().all(|n| n.abs_diff(counts[0]) <= 1), "not spread: {counts:?}");
    let truth = |bytes: fn(u8) -> u64| 40_960.0 / (1.03 * (0..10).map(bytes).sum::<u64>() as f64);
    for (row, bytes) in rows.iter().zip([quick as fn(u8) -> u64, strong]) {
        assert!((ratio_of(row) / truth(bytes) - 1.0).abs() < 0.02, "{} {}", ratio_of(row), truth(bytes));
    }
}

#[test]
fn a_fast_cpu_stores_the_whole_sample_with_every_algorithm() {
    let sample = sample(10, 500);
    let (rows, stored) = measured(&algorithms(2, 12), &sample, TIME);
    assert_eq!(rows.iter().map(pages).collect::<Vec<_>>(), [5000, 5000]);
    assert_eq!(stored[0], stored[1]);
}

#[test]
fn a_very_slow_cpu_keeps_the_first_round() {
    let sample = sample(10, 500);
    let (rows, stored) = measured(&algorithms(12_000, 36_000), &sample, TIME);
    assert_eq!(rows.iter().map(pages).collect::<Vec<_>>(), [FIRST, FIRST]);
    assert_eq!(stored[0], stored[1]);
}

/// A CPU whose bursts end: the first pages of a device are fast.
#[test]
fn a_round_that_does_not_end_in_time_leaves_the_one_before_it() {
    let sample = sample(10, 500);
    let slow = Duration::from_millis(1900);
    let limits = Time { usual: Duration::from_secs(1), if_unclear: slow, if_slow: slow };
    let mut bursts = algorithms(20, 20);
    bursts.iter_mut().for_each(|a| a.burst = Some(1000));
    let (rows, stored) = measured(&bursts, &sample, limits);
    assert_eq!(rows.iter().map(pages).collect::<Vec<_>>(), [960, 960]);
    assert_eq!(stored[0], stored[1]);
}

#[test]
fn an_algorithm_that_takes_all_time_leaves_the_others() {
    let sample = sample(10, 500);
    let (rows, _) = measured(&algorithms(200, 900_000), &sample, TIME);
    assert!(pages(&rows[0]) >= LEAST_PAGES, "{} pages", pages(&rows[0]));
    assert!(rows[1].outcome.as_ref().is_err_and(|why| why.contains("96 pages")), "{:?}", rows[1].outcome);
}

/// Costs of two algorithms that differ from process to process, by chance (splitmix64), but hardly on average.
fn chance(process: u8, algorithm: u64) -> u64 {
    let x = (u64::from(process) + algorithm).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    100 + (x ^ (x >> 31)) % 2000
}

fn noisy(process: u8) -> u64 {
    chance(process, 1 << 20)
}

fn noisier(process: u8) -> u64 {
    chance(process, 1 << 30)
}

fn unclear(page_us: u64) -> [Algorithm; 2] {
    let page = Duration::from_micros(page_us);
    [
        Algorithm { name: "lz4", bytes: noisy, page, burst: None, others: Duration::ZERO },
        Algorithm { name: "zstd", bytes: noisier, page, burst: None, others: Duration::ZERO },
    ]
}

#[test]
fn an_unclear_order_does_not_take_all_the_time_of_a_slow_cpu() {
    let (rows, _) = measured(&unclear(2000), &sample(250, 20), TIME);
    assert_eq!(pages(&rows[0]), LEAST_PAGES, "twice as many would fit into the longest time");
}

#[test]
fn more_pages_follow_while_the_order_is_not_clear() {
    let sample = sample(250, 20);
    let (rows, stored) = measured(&unclear(700), &sample, TIME);
    assert!(pages(&rows[0]) > LEAST_PAGES, "{} pages", pages(&rows[0]));
    assert_eq!(stored[0], stored[1]);
    let (rows, _) = measured(&algorithms(700, 700), &sample, TIME);
    assert_eq!(pages(&rows[0]), LEAST_PAGES, "a clear order needs no more");
}
