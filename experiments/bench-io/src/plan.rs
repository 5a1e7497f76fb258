//! The variants, the writers, and the order of the runs. Pure.

use eke_bench_core::shuffled;

use super::Options;

/// The setting that protects reads from the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// The kernel's defaults.
    Default,
    /// A scheduler.
    Scheduler(&'static str),
    /// Without the writeback throttle.
    NoThrottle,
    /// With the writeback throttle at the kernel's default value.
    Throttle,
    /// The writer in the idle class, under BFQ, which obeys it.
    Idle,
    /// eke's governor.
    Eke,
}

impl Variant {
    /// All variants.
    pub const ALL: [Self; 8] = [
        Self::Default,
        Self::Scheduler("mq-deadline"),
        Self::Scheduler("kyber"),
        Self::Scheduler("bfq"),
        Self::NoThrottle,
        Self::Throttle,
        Self::Idle,
        Self::Eke,
    ];
    /// The variants of `--quick`.
    pub const QUICK: [Self; 4] = [Self::Default, Self::Scheduler("mq-deadline"), Self::NoThrottle, Self::Eke];

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Scheduler(name) => name,
            Self::NoThrottle => "no-wbt",
            Self::Throttle => "wbt",
            Self::Idle => "ionice",
            Self::Eke => "eke",
        }
    }

    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "kernel default",
            Self::Scheduler(name) => name,
            Self::NoThrottle => "wbt off",
            Self::Throttle => "wbt on",
            Self::Idle => "ionice idle, bfq",
            Self::Eke => "eke",
        }
    }
}

/// The background load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Large buffered writes.
    Stream,
    /// Small synchronous writes.
    Fsync,
    /// Large buffered writes to btrfs with zlib:9.
    Btrfs,
}

impl Writer {
    /// All writers.
    pub const ALL: [Self; 3] = [Self::Stream, Self::Fsync, Self::Btrfs];

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Fsync => "fsync",
            Self::Btrfs => "btrfs",
        }
    }

    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "a buffered stream",
            Self::Fsync => "many fsyncs",
            Self::Btrfs => "btrfs with zlib:9",
        }
    }
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The round, counted from 0.
    pub round: usize,
    /// The setting.
    pub variant: Variant,
    /// The background load.
    pub writer: Writer,
}

impl Run {
    /// The name for progress: `eke beside many fsyncs, 2 of 3`.
    pub fn name(&self, repeats: usize) -> String {
        format!("{} beside {}, {} of {repeats}", self.variant.name(), self.writer.name(), self.round + 1)
    }
}

/// All runs, round by round in an order of chance: slow drift of the machine affects all variants equally.
pub fn runs(options: &Options) -> Vec<Run> {
    let mut runs = Vec::new();
    for writer in &options.writers {
        for round in 0..options.repeats {
            let run = |variant| Run { round, variant, writer: *writer };
            runs.extend(shuffled(&options.variants, round).into_iter().map(run));
        }
    }
    runs
}
