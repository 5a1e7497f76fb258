//! What is compared, and on which machines. Pure.

use eke_bench_core::shuffled;
use eke_results::report::{Role, Variant};
use serde::{Deserialize, Serialize};

/// A client's means against a shortage of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Means {
    /// LTSP alone.
    Plain,
    /// A line in ltsp.conf, as administrators write it.
    ZramScript,
    /// `EKE=auto`.
    Eke,
    /// The same once more: the difference is the noise.
    EkeAgain,
}

impl Means {
    /// In the order of the table.
    pub const ALL: [Self; 4] = [Self::Plain, Self::ZramScript, Self::Eke, Self::EkeAgain];

    /// Its name in rows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain LTSP",
            Self::ZramScript => "zram script",
            Self::Eke => "eke",
            Self::EkeAgain => eke_results::again!("eke"),
        }
    }

    /// Its name on the command line, where commas separate names.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::EkeAgain => "eke again",
            others => others.name(),
        }
    }

    /// Whether ltsp.conf has `EKE=auto`.
    #[must_use]
    pub fn is_eke(self) -> bool {
        matches!(self, Self::Eke | Self::EkeAgain)
    }

    /// For the report.
    #[must_use]
    pub fn variant(self) -> Variant {
        let (role, set_up) = match self {
            Self::Plain => (Role::Baseline, "LTSP's client as it is, without swap"),
            Self::ZramScript => (
                Role::Peer,
                "POST_INIT_ZRAM in ltsp.conf: zram of half the RAM with the kernel's algorithm, priority 100",
            ),
            Self::Eke => (Role::Ours, "EKE=auto and EKE_METRICS=on in ltsp.conf"),
            Self::EkeAgain => (Role::Variation, "the same as eke; the difference is the noise"),
        };
        Variant { name: self.name().into(), role, set_up: set_up.into() }
    }
}

/// One run: all clients of one size with the same means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// RAM of each client.
    pub memory_mib: u32,
    /// What all of them have.
    pub means: Means,
    /// Counted from 1.
    pub round: usize,
    /// The server hangs and is restarted meanwhile.
    pub has_faults: bool,
}

impl Round {
    /// The name in the progress, and of its kept measurement.
    #[must_use]
    pub fn name(&self) -> String {
        let faults = if self.has_faults { ", with faults of the server" } else { "" };
        format!("{}, {} MiB, round {}{faults}", self.means.name(), self.memory_mib, self.round)
    }
}

/// All runs: each round has all sizes, and each size all means in an order of its own.
#[must_use]
pub fn rounds(sizes_mib: &[u32], repeats: usize) -> Vec<Round> {
    let mut runs = Vec::new();
    for round in 0..repeats {
        for memory_mib in sizes_mib.iter().copied() {
            let of = |means| Round { memory_mib, means, round: round + 1, has_faults: false };
            runs.extend(shuffled(&Means::ALL, round).into_iter().map(of));
        }
    }
    runs
}

/// Runs with faults of the server: eke's clients of each size.
#[must_use]
pub fn with_faults(sizes_mib: &[u32], repeats: usize) -> Vec<Round> {
    let of = |round| move |memory_mib| Round { memory_mib, means: Means::Eke, round, has_faults: true };
    (1..=repeats).flat_map(|round| sizes_mib.iter().copied().map(of(round))).collect()
}

/// The hardware address of a client, and its IP address.
#[must_use]
pub fn addresses(client: usize) -> (String, String) {
    (format!("52:54:00:6b:65:{:02x}", client + 1), format!("192.168.67.{}", 21 + client))
}

#[cfg(test)]
mod tests {
    use eke_results::report::again::first_of;

    use super::*;

    #[test]
    fn every_size_has_every_means_once_a_round() {
        let runs = rounds(&[124, 256], 2);
        assert_eq!(runs.len(), 16);
        let of = |round, mib, means| {
            let is =
                |r: &&Round| (r.round, r.memory_mib, r.means, r.has_faults) == (round, mib, means, false);
            runs.iter().filter(is).count()
        };
        let faults = with_faults(&[124, 256], 1);
        assert!(faults.len() == 2 && faults[1].has_faults && faults[1].memory_mib == 256);
        for means in Means::ALL {
            assert_eq!((of(1, 124, means), of(2, 256, means)), (1, 1));
        }
    }

    #[test]
    fn the_arm_that_is_measured_again_is_the_noise_of_eke() {
        assert_eq!(first_of(Means::EkeAgain.name()), Some(Means::Eke.name()));
        assert!(Means::ALL.iter().all(|means| !means.word().contains(',')));
    }

    #[test]
    fn clients_have_addresses_of_their_own() {
        assert_eq!(addresses(0), ("52:54:00:6b:65:01".into(), "192.168.67.21".into()));
        assert_ne!(addresses(0), addresses(1));
    }
}
