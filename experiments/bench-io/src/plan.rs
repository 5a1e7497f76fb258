//! What is compared, and in which order. Pure.

use super::Options;

/// What is done about the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Nothing: what the kernel does by itself.
    Default,
    /// A scheduler.
    Scheduler(&'static str),
    /// Without the writeback throttle.
    NoThrottle,
    /// With it, at the kernel's own value.
    Throttle,
    /// The writer in the idle class, under BFQ, which heeds it.
    Idle,
    /// eke's governor.
    Eke,
}

impl Variant {
    /// All.
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
    /// With `--quick`.
    pub const QUICK: [Self; 4] = [Self::Default, Self::Scheduler("mq-deadline"), Self::NoThrottle, Self::Eke];

    /// On the command line.
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

    /// In the report.
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

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// A large file, buffered.
    Stream,
    /// Small writes, each waited for until it is safe.
    Fsync,
    /// A large file that btrfs compresses with zlib:9.
    Btrfs,
}

impl Writer {
    /// All.
    pub const ALL: [Self; 3] = [Self::Stream, Self::Fsync, Self::Btrfs];

    /// On the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Fsync => "fsync",
            Self::Btrfs => "btrfs",
        }
    }

    /// In the report.
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
    /// Counted from 0.
    pub round: usize,
    /// What is done about the writer.
    pub variant: Variant,
    /// Who writes.
    pub writer: Writer,
}

impl Run {
    /// While it goes on: `eke beside many fsyncs, 2 of 3`.
    pub fn name(&self, repeats: usize) -> String {
        format!("{} beside {}, {} of {repeats}", self.variant.name(), self.writer.name(), self.round + 1)
    }
}

/// All runs, every variant once in each round, so that what drifts is the same for all.
pub fn runs(options: &Options) -> Vec<Run> {
    let mut runs = Vec::new();
    for writer in &options.writers {
        for round in 0..options.repeats {
            let run = |variant: &Variant| Run { round, variant: *variant, writer: *writer };
            runs.extend(options.variants.iter().map(run));
        }
    }
    runs
}
