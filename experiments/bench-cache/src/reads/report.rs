//! The names of variants and metrics.

use eke_bench_core::Environment;
use eke_results::report::{Report, Role, Row, Variant};
use eke_results::report::{less, more};

use super::{Options, Source};

pub(super) const RANDOM_P50: &str = "random 64 KiB p50";
pub(super) const RANDOM_P99: &str = "random 64 KiB p99";

impl Source {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "files, from the disk",
            Self::Native => "files, from the page cache",
            Self::Store => "mount, from the store",
            Self::Mount => "mount, from the page cache",
        }
    }

    fn variant(self) -> Variant {
        let (role, set_up) = match self {
            Self::Disk => (Role::Baseline, "O_DIRECT: bypasses the page cache"),
            Self::Native => (Role::Peer, "read before, so that the page cache has the files"),
            Self::Store => (
                Role::Ours,
                "the mount's pages are dropped from the page cache before each read (POSIX_FADV_DONTNEED)",
            ),
            Self::Mount => (Role::Variation, "read before, so that the page cache has the mount's files"),
        };
        Variant { name: self.name().into(), role, set_up: set_up.into() }
    }
}

pub(super) fn report(
    environment: &Environment<'_>,
    options: &Options,
    rows: Vec<Row>,
    mut notes: Vec<String>,
) -> Report {
    notes.push(format!("Each measurement took {} s.", options.seconds));
    Report {
        variants: Source::ALL.map(Source::variant).to_vec(),
        metrics: vec![
            more("sequential", "complete files in reads of 128 KiB, by the number of readers"),
            less(RANDOM_P50, "median of random reads of one block (POSIX_FADV_RANDOM)"),
            less(RANDOM_P99, "99th percentile of the same reads"),
        ],
        rows,
        notes,
        ..environment.report("reads")
    }
}
