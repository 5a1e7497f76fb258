//! The governor's thresholds.

use eke_model::units::Nanos;

/// Thresholds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The latency that reads should have.
    pub target: Nanos,
    /// The most that a read takes of the disk's time: the arm's way to it and back.
    pub seek: Nanos,
    /// The shortest window, in seconds.
    pub window_s: f64,
    /// A window is at least this many times the 99th percentile of reads.
    pub times_p99: f64,
    /// The fewest reads of a window; a window with fewer goes on.
    pub least_reads: u64,
    /// The longest window, in seconds; with too few reads its quality is unknown.
    pub longest_s: f64,
    /// A window is bad if more than this share of its reads missed the target.
    pub bad: f64,
    /// A window is good if less than this share missed it.
    pub good: f64,
    /// Writers are in the way if more than this share of the bytes is written.
    pub writers: f64,
    /// Bad windows in a row before a knob is lowered.
    pub bad_row: u32,
    /// One bad window is enough where reads take so many times the target,
    pub at_once: f64,
    /// and so many were answered: a disk that spins up delays one.
    pub at_once_reads: u64,
    /// Good windows in a row before a knob is raised.
    pub good_row: u32,
    /// The same for windows in which nobody reads: each is as long as [`Rules::longest_s`].
    pub idle_row: u32,
    /// Windows that judge a change, after one that does not count.
    pub judged_by: u32,
    /// The most windows, if writers paused or the disk moved less but unevenly: writeback comes in bursts.
    pub judged_by_at_most: u32,
    /// Windows with less than this share of what was written when the change was decided have no writers.
    pub least_written: f64,
    /// The share of its throughput that the disk must keep, or the change is taken back.
    pub keep: f64,
    /// The share by which reads must improve for a change to have an effect.
    pub gain: f64,
    /// Changes of a knob without effect in a row before it is left.
    pub without_effect: u32,
    /// The pause after the last knob had no effect, in seconds.
    pub give_up_s: f64,
}

impl Rules {
    /// The defaults, for a target and a disk without an arm.
    pub fn new(target: Nanos) -> Self {
        Self {
            target,
            seek: Nanos(0),
            window_s: 1.0,
            times_p99: 3.0,
            least_reads: 20,
            longest_s: 10.0,
            bad: 0.10,
            good: 0.05,
            writers: 0.5,
            bad_row: 3,
            at_once: 8.0,
            at_once_reads: 3,
            good_row: 30,
            idle_row: 6,
            judged_by: 5,
            judged_by_at_most: 20,
            least_written: 0.1,
            keep: 0.95,
            gain: 0.10,
            without_effect: 2,
            give_up_s: 600.0,
        }
    }
}
