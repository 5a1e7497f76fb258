//! The variants, the writers, and the order of the runs. Pure.

use eke_bench_core::shuffled;
use eke_results::again;

use super::Options;

/// The setting that protects reads from the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// The kernel's defaults.
    Default,
    /// The same again: how far two equal arms differ.
    Again,
    /// A scheduler.
    Scheduler(&'static str),
    /// BFQ, which sends one request at a time.
    Strict,
    /// Without the writeback throttle.
    NoThrottle,
    /// With the writeback throttle at this target, in microseconds.
    Throttle(u32),
    /// The writer in the idle class, under BFQ, which obeys it.
    Idle,
    /// Little dirty memory.
    Dirty,
    /// Little dirty memory, and BFQ.
    DirtyBfq,
    /// eke's governor.
    Eke,
}

impl Variant {
    /// All variants.
    pub const ALL: [Self; 15] = [
        Self::Default,
        Self::Again,
        Self::Scheduler("mq-deadline"),
        Self::Scheduler("kyber"),
        Self::Scheduler("bfq"),
        Self::Strict,
        Self::NoThrottle,
        Self::Throttle(500),
        Self::Throttle(2_000),
        Self::Throttle(10_000),
        Self::Throttle(75_000),
        Self::Idle,
        Self::Dirty,
        Self::DirtyBfq,
        Self::Eke,
    ];
    /// The variants of `--quick`.
    pub const QUICK: [Self; 4] = [Self::Default, Self::Scheduler("mq-deadline"), Self::NoThrottle, Self::Eke];

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Again => "again",
            Self::Scheduler(name) => name,
            Self::Strict => "bfq-strict",
            Self::NoThrottle => "no-wbt",
            Self::Throttle(500) => "wbt-500",
            Self::Throttle(10_000) => "wbt-10000",
            Self::Throttle(75_000) => "wbt-75000",
            Self::Throttle(_) => "wbt",
            Self::Idle => "ionice",
            Self::Dirty => "dirty",
            Self::DirtyBfq => "dirty-bfq",
            Self::Eke => "eke",
        }
    }

    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "kernel default",
            Self::Again => again!("kernel default"),
            Self::Scheduler(name) => name,
            Self::Strict => "bfq, strict_guarantees",
            Self::NoThrottle => "wbt off",
            Self::Throttle(500) => "wbt 0.5 ms",
            Self::Throttle(10_000) => "wbt 10 ms",
            Self::Throttle(75_000) => "wbt 75 ms",
            Self::Throttle(_) => "wbt on",
            Self::Idle => "ionice idle, bfq",
            Self::Dirty => "little dirty memory",
            Self::DirtyBfq => "little dirty memory, bfq",
            Self::Eke => "eke",
        }
    }

    /// Whether it has all rounds, so that eke, the noise and the best peer are known best.
    fn has_all_rounds(self) -> bool {
        matches!(self, Self::Default | Self::Again | Self::Strict | Self::Eke)
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

/// All runs, round by round in an order of chance: slow drift of the machine affects all variants equally. Only the first rounds have the
/// variants that need fewer.
pub fn runs(options: &Options) -> Vec<Run> {
    let mut runs = Vec::new();
    for writer in &options.writers {
        for round in 0..options.repeats {
            let is_in = |variant: &Variant| round < options.fewer || variant.has_all_rounds();
            let run = |variant| Run { round, variant, writer: *writer };
            runs.extend(shuffled(&options.variants, round).into_iter().filter(is_in).map(run));
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use eke_results::report::again::first_of;

    use super::*;

    #[test]
    fn each_round_has_an_order_of_its_own_and_few_variants_have_all_rounds() {
        let options = Options {
            repeats: 10,
            fewer: 3,
            variants: Variant::ALL.into(),
            writers: vec![Writer::Stream],
            ..Options::default()
        };
        let runs = runs(&options);
        let count = |variant| runs.iter().filter(|run| run.variant == variant).count();
        for variant in [Variant::Default, Variant::Again, Variant::Strict, Variant::Eke] {
            assert_eq!(count(variant), 10, "{variant:?}");
        }
        assert_eq!((count(Variant::DirtyBfq), runs.len()), (3, 4 * 10 + 11 * 3));
        let order =
            |round| runs.iter().filter(|run| run.round == round).map(|run| run.variant).collect::<Vec<_>>();
        assert_ne!(order(0), order(1));
        let firsts: Vec<Variant> = (0..10).map(|round| order(round)[0]).collect();
        assert!(firsts.iter().any(|first| *first != firsts[0]), "{firsts:?}");
    }

    #[test]
    fn names_and_words_are_of_one_variant_and_the_second_arm_is_known() {
        for (index, one) in Variant::ALL.into_iter().enumerate() {
            for other in &Variant::ALL[..index] {
                assert!(one.word() != other.word() && one.name() != other.name(), "{one:?} {other:?}");
            }
        }
        assert_eq!(first_of(Variant::Again.name()), Some(Variant::Default.name()));
    }
}
