//! The governor's figures.

use eke_model::units::Nanos;

/// By what it goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Reads should be answered within this time.
    pub target: Nanos,
    /// A window is at least so long, in seconds,
    pub window_s: f64,
    /// and so many times what 99 of 100 reads take,
    pub times_p99: f64,
    /// and has so many reads; of a shorter one it waits for the next.
    pub least_reads: u64,
    /// But not for longer than this, in seconds: then nothing is known.
    pub longest_s: f64,
    /// More than this share of the reads missed the target: bad.
    pub bad: f64,
    /// Less than this: good. In between it is neither.
    pub good: f64,
    /// More than this share of the bytes is written: writers are in the way.
    pub writers: f64,
    /// So many bad windows in a row, and less is given to writers.
    pub bad_row: u32,
    /// So many good ones in a row, and more is given.
    pub good_row: u32,
    /// A change is judged by so many windows, after one that is left out,
    pub judged_by: u32,
    /// and by up to so many where writers wrote less, but unevenly: writeback comes in bursts.
    pub judged_by_at_most: u32,
    /// Writers keep at least this share of what they wrote before, or the change is taken back.
    pub keep: f64,
    /// A change has an effect if reads got better by at least this share.
    pub gain: f64,
    /// So many changes in a row without one, and it gives up,
    pub without_effect: u32,
    /// for so many seconds.
    pub give_up_s: f64,
}

impl Rules {
    /// For a target.
    pub fn new(target: Nanos) -> Self {
        Self {
            target,
            window_s: 1.0,
            times_p99: 3.0,
            least_reads: 20,
            longest_s: 10.0,
            bad: 0.10,
            good: 0.05,
            writers: 0.5,
            bad_row: 3,
            good_row: 6,
            judged_by: 5,
            judged_by_at_most: 20,
            keep: 0.95,
            gain: 0.10,
            without_effect: 2,
            give_up_s: 600.0,
        }
    }
}
