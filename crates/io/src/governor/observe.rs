//! Observations of a disk, as the governor needs them.

use eke_model::units::Nanos;

use super::rules::Rules;
use crate::class::Operation;
use crate::counters::Device;
use crate::histogram::Histogram;

/// A read that is answered sooner came from the disk's cache: the arm did not move. A data sheet's seek to the next track takes about as long.
const LEAST_SEEK: Nanos = Nanos(2_000_000);
/// Reads in parallel share the arm's ways: they never leave less than this share of the time.
const LEAST_LEFT: f64 = 0.2;

/// A disk in a time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Observation {
    /// Its length, in seconds.
    pub seconds: f64,
    /// Latencies of reads that a process waited for.
    pub reads: Histogram,
    /// Reads of any class that completed.
    pub answered: u64,
    /// Are reads in flight at its end?
    pub waits: bool,
    /// Are writes in flight at its end?
    pub writes_wait: bool,
    /// Do requests wait at its end, of which none was answered since the observation before?
    pub is_stuck: bool,
    /// Is it unknown whether reads are in flight?
    pub may_wait: bool,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// The quality of reads in an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quality {
    /// Too many missed the target, or none completed.
    Bad,
    /// Nearly all met the target.
    Good,
    /// Neither.
    Between,
    /// Few reads, which all met the target.
    FewGood,
    /// Nobody read, and no read waits.
    Idle,
    /// Too few reads. This does not count as good.
    Unknown,
}

impl Observation {
    /// Takes it from a window of `seconds`.
    pub fn of(device: &Device, seconds: f64) -> Self {
        let waits = device.reads_in_flight.unwrap_or(0) > 0;
        let writes_wait = device.writes_in_flight.unwrap_or(0) > 0;
        Self {
            seconds,
            reads: device.awaited_reads().whole,
            answered: device.of(Operation::Read).whole.count,
            waits,
            writes_wait,
            is_stuck: (waits || writes_wait) && device.sum(|_| true).whole.is_empty(),
            may_wait: device.reads_in_flight.is_none(),
            read_bytes: device.of(Operation::Read).bytes.0,
            written_bytes: device.of(Operation::Write).bytes.0,
        }
    }

    /// Adds the observation that followed.
    pub fn add(&mut self, next: &Self) {
        self.seconds += next.seconds;
        self.reads.merge(&next.reads);
        self.answered += next.answered;
        (self.waits, self.writes_wait) = (next.waits, next.writes_wait);
        (self.may_wait, self.is_stuck) = (next.may_wait, next.is_stuck);
        self.read_bytes += next.read_bytes;
        self.written_bytes += next.written_bytes;
    }

    /// The share of the reads that took longer than `target`. With averages alone, all or none.
    pub fn missed(&self, target: Nanos) -> Option<f64> {
        let by_mean = self.reads.mean_ns().map(|mean| if mean > target.0 as f64 { 1.0 } else { 0.0 });
        self.reads.share_over(target.0).or(by_mean)
    }

    /// The 99th percentile of reads, in nanoseconds; with averages alone, the average.
    pub fn p99_ns(&self) -> Option<f64> {
        self.reads.quantile_ns(0.99).or_else(|| self.reads.mean_ns())
    }

    /// How many times as long as `target` the slower half of the reads took, by the 75th percentile; 1 if it is unknown.
    pub fn times_too_long(&self, target: Nanos) -> f64 {
        let slow = self.reads.quantile_ns(0.75).or_else(|| self.reads.mean_ns());
        slow.map_or(1.0, |ns| ns / target.0.max(1) as f64)
    }

    /// Bytes read and written per second of the time that reads leave to the disk: the arm is on its way to each and back for `seek`, or for as
    /// long as the read took. Reads that the disk's cache answers take nothing.
    pub fn moved_per_s(&self, seek: Nanos) -> f64 {
        let seek_s = self.reads.mean_ns().unwrap_or(0.0).min(seek.0 as f64) / 1e9;
        let seconds = self.seconds.max(1e-9);
        let seeks = self.reads.count as f64 * self.missed(LEAST_SEEK).unwrap_or(0.0);
        let left_s = (seconds - seeks * seek_s).max(LEAST_LEFT * seconds);
        (self.read_bytes + self.written_bytes) as f64 / left_s
    }

    /// Bytes written per second.
    pub fn written_per_s(&self) -> f64 {
        self.written_bytes as f64 / self.seconds.max(1e-9)
    }

    /// The written share of all bytes.
    pub fn written_share(&self) -> f64 {
        self.written_bytes as f64 / (self.written_bytes + self.read_bytes).max(1) as f64
    }

    /// Do writers write, at least so many bytes per second, or wait?
    pub fn has_writers(&self, least_per_s: f64) -> bool {
        self.writes_wait || self.written_per_s() >= least_per_s
    }

    /// Are writers in the way of reads?
    pub fn writers_lead(&self, rules: &Rules) -> bool {
        self.written_share() > rules.writers
    }

    /// Does a read wait, while none of any class is answered?
    fn stands_still(&self) -> bool {
        self.answered == 0 && self.reads.is_empty() && self.waits
    }

    /// Are there enough reads? Few are enough if a process waited for half of the time: slow answers make few reads.
    fn has_enough_reads(&self, rules: &Rules) -> bool {
        let waited_s = self.reads.sum_ns as f64 / 1e9;
        self.reads.count >= rules.least_reads || (self.reads.count > 0 && waited_s >= 0.5 * self.seconds)
    }

    /// Is it long enough? It must be longer than the latency, and have enough reads or have lasted for the longest time.
    pub fn is_whole(&self, rules: &Rules, window_s: f64) -> bool {
        let answered_s = self.p99_ns().unwrap_or(0.0) / 1e9 * rules.times_p99;
        let is_long = self.seconds >= window_s && self.seconds >= answered_s.min(rules.longest_s);
        let is_enough =
            self.has_enough_reads(rules) || self.stands_still() || self.seconds >= rules.longest_s;
        // a change of a disk that answers nothing would wait for it
        is_long && is_enough && !self.is_stuck
    }

    /// Its quality.
    pub fn quality(&self, rules: &Rules) -> Quality {
        if self.stands_still() && self.seconds * 1e9 > rules.target.0 as f64 {
            return Quality::Bad;
        }
        if self.reads.is_empty() && !self.waits && !self.may_wait {
            return Quality::Idle;
        }
        match self.missed(rules.target) {
            Some(missed) if !self.has_enough_reads(rules) && missed == 0.0 && !self.waits => Quality::FewGood,
            _ if !self.has_enough_reads(rules) => Quality::Unknown,
            Some(missed) if missed > rules.bad => Quality::Bad,
            Some(missed) if missed < rules.good => Quality::Good,
            Some(_) => Quality::Between,
            None => Quality::Unknown,
        }
    }
}
