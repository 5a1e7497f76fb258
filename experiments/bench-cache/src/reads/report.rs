//! What the figures are called.

use eke_bench_core::Environment;
use eke_results::report::{Report, Role, Row, Variant};
use eke_results::report::{less, more};

use super::{Options, Who};

impl Who {
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
            Self::Disk => (Role::Baseline, "O_DIRECT: past the kernel's cache"),
            Self::Native => (Role::Peer, "read before, so that the kernel has all of it"),
            Self::Store => (
                Role::Ours,
                "the kernel's pages over the mount are dropped before each read (POSIX_FADV_DONTNEED)",
            ),
            Self::Mount => (Role::Lever, "read before, so that the kernel has all of it over the mount"),
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
        variants: Who::ALL.map(Who::variant).to_vec(),
        metrics: vec![
            more("sequential", "files from beginning to end in pieces of 128 KiB, by how many read at once"),
            less(
                "64 KiB anywhere",
                "one read of a block, the median; the kernel is told that reads are random",
            ),
            less("64 KiB anywhere, slow ones", "the same, all but the slowest hundredth"),
        ],
        rows,
        notes,
        ..environment.report("reads")
    }
}
