//! Threads that repeat an operation for some time, and their totals.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_results::report::groups::quantile;
use rustix::time::{ClockId, clock_gettime};

/// The outcome of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Success; this many uncompressed bytes were moved.
    Hit(usize),
    /// The block is not cached, or was refused.
    Miss,
    /// A write, neither hit nor miss; this many bytes were moved.
    Write(usize),
}

/// One thread's operation.
pub(super) type Operation<'a> = Box<dyn FnMut() -> Outcome + Send + 'a>;

/// The length of a measurement, and how operations are timed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'a> {
    pub time: Duration,
    /// The clock is read once in so many operations. With 1, single operations are timed.
    pub every: usize,
    pub stop: &'a AtomicBool,
}

/// The totals of all threads.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Tally {
    pub operations: u64,
    pub hits: u64,
    pub misses: u64,
    pub writes: u64,
    /// Operations per second, summed over the threads.
    pub operations_s: f64,
    /// Hits per second.
    pub hits_s: f64,
    /// CPU time of all threads in seconds.
    pub cpu_s: f64,
    /// Bytes moved per second.
    pub bytes_s: f64,
    /// The latencies of single hits in microseconds, if they were timed.
    pub hit_us: Vec<f64>,
}

impl Tally {
    /// The percentage of lookups that were hits; `None` without lookups.
    pub fn hit_percent(&self) -> Option<f64> {
        let lookups = self.hits + self.misses;
        (lookups > 0).then(|| 100.0 * self.hits as f64 / lookups as f64)
    }

    /// A quantile of hit latency in microseconds.
    pub fn quantile_us(&self, q: f64) -> Option<f64> {
        quantile(&self.hit_us, q)
    }

    /// CPU time per operation in microseconds. Background load hardly changes it.
    pub fn cpu_us(&self) -> Option<f64> {
        (self.operations > 0).then(|| 1e6 * self.cpu_s / self.operations as f64)
    }

    fn add(mut self, other: Self) -> Self {
        self.operations += other.operations;
        self.hits += other.hits;
        self.misses += other.misses;
        self.writes += other.writes;
        self.operations_s += other.operations_s;
        self.hits_s += other.hits_s;
        self.cpu_s += other.cpu_s;
        self.bytes_s += other.bytes_s;
        self.hit_us.extend(other.hit_us);
        self
    }

    fn count(&mut self, outcome: Outcome) -> usize {
        self.operations += 1;
        let (count, bytes) = match outcome {
            Outcome::Hit(bytes) => (&mut self.hits, bytes),
            Outcome::Miss => (&mut self.misses, 0),
            Outcome::Write(bytes) => (&mut self.writes, bytes),
        };
        *count += 1;
        bytes
    }
}

/// Runs a thread for each operation. All begin together, and each does at least one operation.
pub(super) fn run(operations: Vec<Operation<'_>>, span: Span<'_>) -> Tally {
    let begin = Barrier::new(operations.len());
    std::thread::scope(|scope| {
        let begin = &begin;
        let run = |mut operation: Operation<'_>| {
            begin.wait();
            one_thread(&mut operation, span)
        };
        let threads: Vec<_> = operations.into_iter().map(|o| scope.spawn(move || run(o))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).fold(Tally::default(), Tally::add)
    })
}

fn one_thread(operation: &mut Operation<'_>, span: Span<'_>) -> Tally {
    let (mut tally, mut bytes) = (Tally::default(), 0);
    let (start, cpu) = (Instant::now(), cpu_s());
    let mut before = start;
    loop {
        let hits = tally.hits;
        for _ in 0..span.every {
            bytes += tally.count(operation());
        }
        let now = Instant::now();
        if span.every == 1 && tally.hits > hits {
            tally.hit_us.push((now - before).as_nanos() as f64 / 1e3);
        }
        before = now;
        if now - start >= span.time || span.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let seconds = (before - start).as_secs_f64().max(1e-9);
    tally.cpu_s = cpu_s() - cpu;
    tally.operations_s = tally.operations as f64 / seconds;
    tally.hits_s = tally.hits as f64 / seconds;
    tally.bytes_s = bytes as f64 / seconds;
    tally
}

/// This thread's CPU time in seconds.
fn cpu_s() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_a_hit_a_miss_or_a_write() {
        let stop = AtomicBool::new(false);
        let span = Span { time: Duration::from_millis(5), every: 1, stop: &stop };
        let operation = |n: usize| -> Operation<'static> {
            let mut at = n;
            Box::new(move || {
                at += 1;
                [Outcome::Hit(10), Outcome::Miss, Outcome::Write(7)][at % 3]
            })
        };
        let tally = run(vec![operation(0), operation(1)], span);
        assert_eq!(tally.hits + tally.misses + tally.writes, tally.operations);
        assert_eq!(tally.hit_us.len() as u64, tally.hits, "only hits are timed");
        assert!(tally.cpu_s > 0.0 && tally.cpu_us().is_some());
        assert!(tally.operations >= 2 && tally.bytes_s > 0.0);
    }

    #[test]
    fn a_signal_ends_it_after_one_round() {
        let stop = AtomicBool::new(true);
        let span = Span { time: Duration::from_secs(3600), every: 4, stop: &stop };
        let tally = run(vec![Box::new(|| Outcome::Miss)], span);
        assert_eq!((tally.operations, tally.misses, tally.hit_percent()), (4, 4, Some(0.0)));
        assert_eq!(tally.quantile_us(0.5), None);
    }
}
