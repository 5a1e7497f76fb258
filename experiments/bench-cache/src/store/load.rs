//! Threads that do the same thing for a while, and what they came to together.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_results::report::groups::quantile;
use rustix::time::{ClockId, clock_gettime};

/// What one turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// What was wanted, with so many bytes of the file moved.
    Hit(usize),
    /// Not held, or not taken.
    Miss,
    /// Something that is not counted among hits and misses, with so many bytes moved.
    Write(usize),
}

/// One thread's part: does one thing.
pub(super) type Turn<'a> = Box<dyn FnMut() -> Done + Send + 'a>;

/// How long, and how turns are timed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'a> {
    pub time: Duration,
    /// The clock is read once in so many turns; single turns are timed if that is 1.
    pub every: usize,
    pub stop: &'a AtomicBool,
}

/// What all threads did.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Tally {
    pub turns: u64,
    pub hits: u64,
    pub misses: u64,
    pub writes: u64,
    /// Turns in a second: the sum of the threads'.
    pub turns_s: f64,
    /// Of hits only.
    pub hits_s: f64,
    /// CPU time of all threads, seconds.
    pub cpu_s: f64,
    /// Bytes moved in a second.
    pub bytes_s: f64,
    /// Of single hits, if they were timed, in microseconds.
    pub hit_us: Vec<f64>,
}

impl Tally {
    /// Of lookups those that were hits, in percent; `None` without lookups.
    pub fn hit_percent(&self) -> Option<f64> {
        let lookups = self.hits + self.misses;
        (lookups > 0).then(|| 100.0 * self.hits as f64 / lookups as f64)
    }

    /// A quantile of single hits, in microseconds.
    pub fn quantile_us(&self, q: f64) -> Option<f64> {
        quantile(&self.hit_us, q)
    }

    /// CPU time for each turn, in microseconds: what a busy machine shows too.
    pub fn cpu_us(&self) -> Option<f64> {
        (self.turns > 0).then(|| 1e6 * self.cpu_s / self.turns as f64)
    }

    fn add(mut self, other: Self) -> Self {
        self.turns += other.turns;
        self.hits += other.hits;
        self.misses += other.misses;
        self.writes += other.writes;
        self.turns_s += other.turns_s;
        self.hits_s += other.hits_s;
        self.cpu_s += other.cpu_s;
        self.bytes_s += other.bytes_s;
        self.hit_us.extend(other.hit_us);
        self
    }

    fn count(&mut self, done: Done) -> usize {
        self.turns += 1;
        let (count, bytes) = match done {
            Done::Hit(bytes) => (&mut self.hits, bytes),
            Done::Miss => (&mut self.misses, 0),
            Done::Write(bytes) => (&mut self.writes, bytes),
        };
        *count += 1;
        bytes
    }
}

/// A thread for each of `turns`; all begin together. Each does at least one turn.
pub(super) fn hold(turns: Vec<Turn<'_>>, span: Span<'_>) -> Tally {
    let begin = Barrier::new(turns.len());
    std::thread::scope(|scope| {
        let begin = &begin;
        let run = |mut turn: Turn<'_>| {
            begin.wait();
            one_thread(&mut turn, span)
        };
        let threads: Vec<_> = turns.into_iter().map(|turn| scope.spawn(move || run(turn))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).fold(Tally::default(), Tally::add)
    })
}

fn one_thread(turn: &mut Turn<'_>, span: Span<'_>) -> Tally {
    let (mut tally, mut bytes) = (Tally::default(), 0);
    let (start, cpu) = (Instant::now(), cpu_s());
    let mut before = start;
    loop {
        let hits = tally.hits;
        for _ in 0..span.every {
            bytes += tally.count(turn());
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
    tally.turns_s = tally.turns as f64 / seconds;
    tally.hits_s = tally.hits as f64 / seconds;
    tally.bytes_s = bytes as f64 / seconds;
    tally
}

/// This thread's CPU time, seconds.
fn cpu_s() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_is_a_hit_a_miss_or_a_write() {
        let stop = AtomicBool::new(false);
        let span = Span { time: Duration::from_millis(5), every: 1, stop: &stop };
        let turn = |n: usize| -> Turn<'static> {
            let mut at = n;
            Box::new(move || {
                at += 1;
                [Done::Hit(10), Done::Miss, Done::Write(7)][at % 3]
            })
        };
        let tally = hold(vec![turn(0), turn(1)], span);
        assert_eq!(tally.hits + tally.misses + tally.writes, tally.turns);
        assert_eq!(tally.hit_us.len() as u64, tally.hits, "only hits are timed");
        assert!(tally.cpu_s > 0.0 && tally.cpu_us().is_some());
        assert!(tally.turns >= 2 && tally.bytes_s > 0.0);
    }

    #[test]
    fn a_signal_ends_it_after_one_turn() {
        let stop = AtomicBool::new(true);
        let span = Span { time: Duration::from_secs(3600), every: 4, stop: &stop };
        let tally = hold(vec![Box::new(|| Done::Miss)], span);
        assert_eq!((tally.turns, tally.misses, tally.hit_percent()), (4, 4, Some(0.0)));
        assert_eq!(tally.quantile_us(0.5), None);
    }
}
