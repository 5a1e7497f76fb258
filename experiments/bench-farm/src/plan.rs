//! The variants, their order, and the times of a run. Pure.

use std::time::Duration;

use eke_bench_core::shuffled;
use eke_model::units::Bytes;
use eke_results::report::Role;

/// How many web servers there are.
pub const NODES: usize = 4;
/// How many members the engine's cluster has.
pub const ENGINES: usize = 3;
/// The content is so many times a node's memory.
pub const TIMES: u64 = 5;
/// The same in a quick run, which would not be warm otherwise.
pub const QUICK_TIMES: u64 = 2;
/// The memory of the origin, mostly its page cache.
pub const ORIGIN_MEMORY: Bytes = Bytes::mib(96);

/// A set-up that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Each node with its page cache.
    Alone,
    /// Each node with eke's cache.
    Eke,
    /// The same, and the engine's memory is in the nodes.
    EkeMore,
    /// eke with the tier that the nodes share.
    Shared,
    /// The same once more: the noise.
    Again,
    /// nginx's proxy_cache in front of an nginx on the origin.
    Proxy,
    /// Varnish in front of an nginx on the origin.
    Varnish,
    /// `Shared`, while parts of the farm are killed, cut off and started again.
    Faults,
    /// The same with a replica of each member.
    Replicas,
}

impl Variant {
    /// All variants, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::Alone,
        Self::Eke,
        Self::EkeMore,
        Self::Shared,
        Self::Again,
        Self::Proxy,
        Self::Varnish,
        Self::Faults,
        Self::Replicas,
    ];
    const QUICK: [Self; 5] = [Self::Alone, Self::Eke, Self::Shared, Self::Again, Self::Faults];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "page cache",
            Self::Eke => "eke",
            Self::EkeMore => "eke, more memory",
            Self::Shared => "eke, shared",
            Self::Again => eke_results::again!("eke, shared"),
            Self::Proxy => "nginx proxy_cache",
            Self::Varnish => "Varnish",
            Self::Faults => "eke, shared, with faults",
            Self::Replicas => "eke, shared, with replicas and faults",
        }
    }

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Eke => "eke",
            Self::EkeMore => "eke-more",
            Self::Shared => "shared",
            Self::Again => "again",
            Self::Proxy => "proxy",
            Self::Varnish => "varnish",
            Self::Faults => "faults",
            Self::Replicas => "replicas",
        }
    }

    /// Its role in the comparison.
    pub fn role(self) -> Role {
        match self {
            Self::Alone => Role::Baseline,
            Self::Proxy | Self::Varnish => Role::Peer,
            Self::Shared => Role::Ours,
            Self::Eke | Self::EkeMore | Self::Again | Self::Faults | Self::Replicas => Role::Variation,
        }
    }

    /// Whether the nodes mount the origin's disk over the network.
    pub fn mounts_the_disk(self) -> bool {
        !matches!(self, Self::Proxy | Self::Varnish)
    }

    /// Whether its nodes run eke's cache.
    pub fn uses_eke(self) -> bool {
        self.is_shared() || matches!(self, Self::Eke | Self::EkeMore)
    }

    /// Whether its nodes share a tier.
    pub fn is_shared(self) -> bool {
        self.has_faults() || matches!(self, Self::Shared | Self::Again)
    }

    /// Whether parts of the farm are broken, instead of a measurement.
    pub fn has_faults(self) -> bool {
        matches!(self, Self::Faults | Self::Replicas)
    }

    /// How many members of the engine have no content of their own.
    pub fn replicas(self) -> usize {
        usize::from(self == Self::Replicas)
    }

    /// The memory of one node, if others have `memory`, and so has each member of the engine.
    pub fn memory(self, memory: Bytes) -> Bytes {
        let more = if self == Self::EkeMore { memory.0 * ENGINES as u64 / NODES as u64 } else { 0 };
        Bytes(memory.0 + more)
    }
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The variant.
    pub variant: Variant,
    /// The round, from 1.
    pub round: usize,
}

/// The variants that the user wants.
pub fn wanted(named: &[Variant], quick: bool) -> Vec<Variant> {
    let of = |v: &Variant| match (named, quick) {
        ([], true) => Variant::QUICK.contains(v),
        ([], false) => true,
        (named, _) => named.contains(v),
    };
    Variant::ALL.into_iter().filter(of).collect()
}

/// All runs. Each round has all variants, in an order of its own. Those with faults come last and once: they are no part of the comparison.
pub fn runs(variants: &[Variant], repeats: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    let compared: Vec<Variant> = variants.iter().copied().filter(|v| !v.has_faults()).collect();
    for round in 0..repeats {
        let run = |variant| Run { variant, round: round + 1 };
        runs.extend(shuffled(&compared, round).into_iter().map(run));
    }
    let faults = variants.iter().copied().filter(|v| v.has_faults());
    runs.extend(faults.map(|variant| Run { variant, round: 1 }));
    runs
}

/// What the user chose.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How often to make each run.
    pub repeats: usize,
    /// Few variants.
    pub quick: bool,
    /// Only these; all if empty.
    pub variants: Vec<Variant>,
    /// The memory of a node, and of a member of the engine.
    pub memory: Bytes,
    /// All files together.
    pub content: Bytes,
    /// The origin's disk.
    pub disk: String,
    /// Connections to each node.
    pub connections: usize,
    /// The exponent of Zipf's law.
    pub exponent: f64,
    /// How long each run warms up.
    pub warm_up: Duration,
    /// How long each run is measured.
    pub window: Duration,
    /// How long the farm is left alone after each fault.
    pub phase: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_all_variants_and_faults_come_last() {
        let variants = wanted(&[], false);
        let runs = runs(&variants, 2);
        assert_eq!(runs.len(), 2 * (variants.len() - 2) + 2);
        let last: Vec<_> = runs[14..].iter().map(|r| r.variant).collect();
        assert_eq!(last, [Variant::Faults, Variant::Replicas]);
        let first: Vec<_> = runs[..7].iter().map(|r| r.variant).collect();
        let second: Vec<_> = runs[7..14].iter().map(|r| r.variant).collect();
        assert_ne!(first, second);
        let sorted = |mut of: Vec<Variant>| {
            of.sort();
            of
        };
        assert_eq!(sorted(first), sorted(second));
    }

    #[test]
    fn the_arm_that_is_measured_again_is_the_noise_of_the_shared_one() {
        let first = eke_results::report::again::first_of(Variant::Again.name());
        assert_eq!(first, Some(Variant::Shared.name()));
    }

    #[test]
    fn more_memory_is_that_of_the_engine() {
        let memory = Bytes::mib(100);
        let of = |v: Variant| v.memory(memory).0 * NODES as u64;
        assert_eq!(of(Variant::EkeMore), of(Variant::Shared) + memory.0 * ENGINES as u64);
    }

    #[test]
    fn a_quick_run_has_both_goals() {
        let quick = wanted(&[], true);
        assert!([Variant::Eke, Variant::Shared, Variant::Faults].iter().all(|v| quick.contains(v)));
        assert_eq!(wanted(&[Variant::Proxy], true), [Variant::Proxy]);
    }
}
