//! What was measured, as data.

use eke_model::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::facts::{Missing, ZramFeatures};

/// Figures from the machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// The kernel that it was measured on (`uname -r`).
    pub kernel: String,
    /// The sample that they are about.
    pub pages: PageCounts,
    /// One row for each algorithm and parameter, in the kernel's order.
    pub algorithms: Vec<AlgorithmFigures>,
    /// What zram offers: from the facts, or seen on a scratch device where no device existed to ask.
    pub zram_features: Option<ZramFeatures>,
    /// Random reads of the swap disk, where there is one.
    pub swap_disk: Option<DiskFigures>,
    /// Random reads of the disk that holds files.
    pub file_read: Option<DiskFigures>,
    /// How long all of it took.
    pub took_ms: u64,
    /// Is every algorithm's row an estimate (no root, no zram)?
    pub estimated: bool,
    /// What could not be measured, each with its reason.
    pub unmeasured: Vec<Missing>,
}

/// The sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageCounts {
    /// Anonymous pages taken, zero and same-filled ones included.
    pub sampled: u64,
    /// Pages of zeros.
    pub zero: u64,
    /// Pages of one repeated word other than zero.
    pub same_filled: u64,
    /// Processes that they are from.
    pub processes: u64,
    /// Processes that could not be read (not root, or gone).
    pub unreadable_processes: u64,
}

/// One algorithm with one set of parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AlgorithmFigures {
    /// The kernel's name for it.
    pub name: String,
    /// For zram's `algorithm_params`, such as `level=1`; `None` is the kernel's default.
    pub params: Option<String>,
    /// Does this kernel's zram offer it?
    pub in_zram: bool,
    /// Does this kernel's zswap offer it?
    pub in_zswap: bool,
    /// Compressed in user space, not by the kernel.
    pub estimated: bool,
    /// Bytes stored (zero and same-filled pages included, which cost nothing) by memory really used. 0 if unusable.
    pub ratio: f64,
    /// The same, conservatively: below what the batches of the sample, ordered by process, gave.
    pub ratio_low: f64,
    /// Share of pages that do not compress, 0..=1, of all pages of the sample.
    pub incompressible_share: f64,
    /// Pages that the figures stand on: those stored, without the same-filled.
    pub pages: u64,
    /// Storing a page: median.
    pub store_p50: Nanos,
    /// Storing a page: 99 of 100.
    pub store_p99: Nanos,
    /// Loading a page: median.
    pub load_p50: Nanos,
    /// Loading a page: 99 of 100.
    pub load_p99: Nanos,
    /// Why there are no figures.
    pub unusable: Option<String>,
}

impl AlgorithmFigures {
    /// `zstd (level=1)`.
    pub fn label(&self) -> String {
        self.params.as_ref().map_or_else(|| self.name.clone(), |p| format!("{} ({p})", self.name))
    }
}

/// Random reads of 4 KiB.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskFigures {
    /// What was read: a device or the files below a directory.
    pub what: String,
    /// The whole block device below it, where that can be told: `sda`.
    pub device: Option<String>,
    /// How many reads.
    pub reads: u64,
    /// Median.
    pub p50: Nanos,
    /// 99 of 100.
    pub p99: Nanos,
    /// Past the page cache (`O_DIRECT`), or by way of it after it was asked to forget?
    pub direct: bool,
}
