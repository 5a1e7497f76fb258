//! What the governor goes by.

use eke_model::units::Nanos;

use super::rules::Rules;
use crate::class::Operation;
use crate::figures::Device;
use crate::histogram::Histogram;

/// What was seen of a disk in a time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Observation {
    /// How long, in seconds.
    pub seconds: f64,
    /// Reads that somebody waited for.
    pub reads: Histogram,
    /// Do reads wait at its end?
    pub waits: bool,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// What that says of reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quality {
    /// Too many missed the target, or none is answered.
    Bad,
    /// In time.
    Good,
    /// Neither.
    Between,
    /// Nothing is known, which is not good.
    Unknown,
}

impl Observation {
    /// Of a window.
    pub fn of(device: &Device, seconds: f64) -> Self {
        Self {
            seconds,
            reads: device.awaited_reads().whole,
            waits: device.reads_in_flight.unwrap_or(0) > 0,
            read_bytes: device.of(Operation::Read).bytes.0,
            written_bytes: device.of(Operation::Write).bytes.0,
        }
    }

    /// With what followed.
    pub fn add(&mut self, next: &Self) {
        self.seconds += next.seconds;
        self.reads.merge(&next.reads);
        self.waits = next.waits;
        self.read_bytes += next.read_bytes;
        self.written_bytes += next.written_bytes;
    }

    /// The share of the reads that took longer than `target`. Where only averages are known, all or none.
    pub fn missed(&self, target: Nanos) -> Option<f64> {
        let by_mean = self.reads.mean_ns().map(|mean| if mean > target.0 as f64 { 1.0 } else { 0.0 });
        self.reads.share_over(target.0).or(by_mean)
    }

    /// 99 of 100 reads are below, in nanoseconds; where only averages are known, the average.
    pub fn p99_ns(&self) -> Option<f64> {
        self.reads.quantile_ns(0.99).or_else(|| self.reads.mean_ns())
    }

    /// Bytes written in a second.
    pub fn written_per_s(&self) -> f64 {
        self.written_bytes as f64 / self.seconds.max(1e-9)
    }

    /// The share of the bytes that were written.
    pub fn written_share(&self) -> f64 {
        self.written_bytes as f64 / (self.written_bytes + self.read_bytes).max(1) as f64
    }

    /// Are there reads enough to tell? Few are enough where somebody waited for half of the time: slow answers make few reads.
    fn is_telling(&self, rules: &Rules) -> bool {
        let waited_s = self.reads.sum_ns as f64 / 1e9;
        self.reads.count >= rules.least_reads || (self.reads.count > 0 && waited_s >= 0.5 * self.seconds)
    }

    /// Is it long enough to tell? Longer than answers take, and with reads enough, or for so long that nothing more will come.
    pub fn is_whole(&self, rules: &Rules, window_s: f64) -> bool {
        let answered_s = self.p99_ns().unwrap_or(0.0) / 1e9 * rules.times_p99;
        let is_long = self.seconds >= window_s && self.seconds >= answered_s.min(rules.longest_s);
        let stands_still = self.reads.is_empty() && self.waits;
        is_long && (self.is_telling(rules) || stands_still || self.seconds >= rules.longest_s)
    }

    /// What it says.
    pub fn quality(&self, rules: &Rules) -> Quality {
        if self.reads.is_empty() && self.waits && self.seconds * 1e9 > rules.target.0 as f64 {
            return Quality::Bad;
        }
        match self.missed(rules.target) {
            _ if !self.is_telling(rules) => Quality::Unknown,
            Some(missed) if missed > rules.bad => Quality::Bad,
            Some(missed) if missed < rules.good => Quality::Good,
            Some(_) => Quality::Between,
            None => Quality::Unknown,
        }
    }
}
