//! The measurement, as data.

use eke_linux::parse::release::version;
use eke_model::units::Nanos;
use serde::{Deserialize, Serialize};

use super::dictionary::Dictionary;
use super::machine::Machine;
use crate::facts::{Missing, ZramFeatures};

/// The measurement of a machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// The kernel's release (`uname -r`).
    pub kernel: String,
    /// Was it made while the machine booted, when few programs run and many read the disks?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_boot: bool,
    /// The machine; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The sample of pages.
    pub pages: PageCounts,
    /// One row for each algorithm and parameter, in the kernel's order.
    pub algorithms: Vec<AlgorithmMeasurement>,
    /// The features of zram: from the facts, or from a scratch device.
    pub zram_features: Option<ZramFeatures>,
    /// Random reads of the swap disk, if there is one.
    pub swap_disk: Option<DiskLatency>,
    /// Random reads of the disk of files.
    pub file_read: Option<DiskLatency>,
    /// Its duration.
    pub took_ms: u64,
    /// Its end in seconds since 1970; 0 if unknown.
    #[serde(default)]
    pub unix_s: u64,
    /// Is every algorithm's row an estimate (no root, no zram)?
    pub estimated: bool,
    /// What could not be measured, each with its reason.
    pub unmeasured: Vec<Missing>,
    /// The dictionary of the rows with one. It is for the process that trained it, and never stored.
    #[serde(skip)]
    pub dictionary: Option<Dictionary>,
}

impl Measured {
    /// Was it made on a kernel of the same series, as 6.12.3 and 6.12.9 are? Their releases differ by repairs, so the numbers hold.
    pub fn is_of_series(&self, kernel: &str) -> bool {
        self.kernel == kernel || version(kernel).is_some_and(|series| version(&self.kernel) == Some(series))
    }

    /// With the times of the disks of an earlier measurement of the same disks, if that was made in calm.
    #[must_use]
    pub fn with_disks_of(self, earlier: Self) -> Self {
        let is_calm = !earlier.at_boot;
        let of = |now: Option<DiskLatency>, then: Option<DiskLatency>| {
            let same = then.filter(|then| is_calm && now.as_ref().is_some_and(|now| now.what == then.what));
            same.or(now)
        };
        let swap_disk = of(self.swap_disk, earlier.swap_disk);
        let file_read = of(self.file_read, earlier.file_read);
        Self { swap_disk, file_read, ..self }
    }
}

/// The sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageCounts {
    /// Sampled anonymous pages, with zero and same-filled ones.
    pub sampled: u64,
    /// Pages of zeros.
    pub zero: u64,
    /// Pages of one repeated word other than zero.
    pub same_filled: u64,
    /// Processes that were sampled.
    pub processes: u64,
    /// Processes that could not be read (not root, or gone).
    pub unreadable_processes: u64,
}

impl PageCounts {
    /// The share of sampled pages that are not same-filled: these never get to zram's data. 1 for an empty sample.
    pub fn stored_share(&self) -> f64 {
        let free = self.zero.saturating_add(self.same_filled).min(self.sampled);
        if self.sampled == 0 { 1.0 } else { (self.sampled - free) as f64 / self.sampled as f64 }
    }
}

/// One algorithm with one set of parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AlgorithmMeasurement {
    /// The kernel's name for it.
    pub name: String,
    /// For zram's `algorithm_params`, such as `level=1`; `None` is the kernel's default.
    pub params: Option<String>,
    /// With a dictionary of this machine's pages? Another process, or another start of the machine, trains its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dictionary: bool,
    /// The module or driver that has it compressed in hardware; `None`: the CPU compresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// Does this kernel's zram offer it?
    pub in_zram: bool,
    /// Does this kernel's zswap offer it?
    pub in_zswap: bool,
    /// Compressed in user space, not by the kernel.
    pub estimated: bool,
    /// Stored bytes (with zero and same-filled pages, which are free) per byte of used memory. 0 if unusable.
    pub ratio: f64,
    /// A conservative ratio, from the spread of the sample's batches: the lower end of its 90 % interval.
    pub ratio_low: f64,
    /// The upper end of that interval.
    pub ratio_high: f64,
    /// The incompressible share of all sampled pages, 0..=1.
    pub incompressible_share: f64,
    /// Pages that were stored: the sample without same-filled pages.
    pub pages: u64,
    /// The median time to store a page.
    pub store_p50: Nanos,
    /// The 99th percentile to store a page.
    pub store_p99: Nanos,
    /// The median time to load a page.
    pub load_p50: Nanos,
    /// The 99th percentile to load a page.
    pub load_p99: Nanos,
    /// CPU time to store and load a page, where hardware compresses and the times above contain the wait for it; `None`: their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_per_page: Option<Nanos>,
    /// Why the algorithm is unusable.
    pub unusable: Option<String>,
}

impl AlgorithmMeasurement {
    /// Its [`label`], with the hardware that compresses: `deflate (by iaa_crypto, hardware)`.
    pub fn label(&self) -> String {
        let by = self.hardware.as_ref().map(|by| format!("by {by}, hardware"));
        labelled(&self.name, [self.params.as_deref(), dictionary(self.dictionary), by.as_deref()])
    }

    /// The median CPU time to store a page and to load one.
    pub(crate) fn cpu(&self) -> Nanos {
        self.cpu_per_page.unwrap_or(Nanos(self.store_p50.0.saturating_add(self.load_p50.0)))
    }

    /// With the kernel's defaults?
    pub fn is_as_shipped(&self) -> bool {
        self.params.is_none() && !self.dictionary
    }
}

/// `zstd`, `zstd (level=1)` or `zstd (dictionary)`.
pub fn label(name: &str, params: Option<&str>, with_dictionary: bool) -> String {
    labelled(name, [params, dictionary(with_dictionary), None])
}

fn dictionary(with: bool) -> Option<&'static str> {
    with.then_some("dictionary")
}

fn labelled(name: &str, with: [Option<&str>; 3]) -> String {
    let with: Vec<&str> = with.into_iter().flatten().collect();
    if with.is_empty() { name.to_owned() } else { format!("{name} ({})", with.join(", ")) }
}

/// Random reads of 4 KiB.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskLatency {
    /// The device or directory that was read.
    pub what: String,
    /// Its whole block device, if known: `sda`.
    pub device: Option<String>,
    /// The number of reads.
    pub reads: u64,
    /// The median.
    pub p50: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// Were most reads direct I/O (`O_DIRECT`), or through the page cache after dropping the page?
    pub direct: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_of_the_same_series_keeps_the_measurement() {
        let of = |kernel: &str| Measured { kernel: kernel.into(), ..Measured::default() };
        let deb = of("6.12.38+deb13-amd64");
        assert!(deb.is_of_series("6.12.41+deb13-amd64") && of("custom").is_of_series("custom"));
        assert!(
            !deb.is_of_series("6.13.1")
                && !deb.is_of_series("7.12.38")
                && !of("custom").is_of_series("other")
        );
    }

    #[test]
    fn the_times_of_a_disk_in_calm_count_more_than_those_of_a_boot() {
        let disk = |what: &str, ns| {
            Some(DiskLatency { what: what.into(), p50: Nanos(ns), ..DiskLatency::default() })
        };
        let at_boot = Measured {
            at_boot: true,
            file_read: disk("/usr", 900),
            swap_disk: disk("/dev/sda2", 800),
            ..Measured::default()
        };
        let calm = Measured {
            file_read: disk("/usr", 100),
            swap_disk: disk("/dev/sdb2", 200),
            ..Measured::default()
        };
        let times = |m: Measured| (m.file_read.unwrap().p50.0, m.swap_disk.unwrap().p50.0);
        assert_eq!(times(at_boot.clone().with_disks_of(calm.clone())), (100, 800), "another swap disk");
        assert_eq!(times(at_boot.clone().with_disks_of(Measured { at_boot: true, ..calm })), (900, 800));
    }

    #[test]
    fn a_label_names_all_that_differs_from_the_kernels_default() {
        assert_eq!(label("zstd", None, false), "zstd");
        assert_eq!(label("zstd", Some("level=8"), true), "zstd (level=8, dictionary)");
        let deflate = AlgorithmMeasurement { name: "deflate".into(), ..AlgorithmMeasurement::default() };
        let by_hardware = AlgorithmMeasurement { hardware: Some("iaa_crypto".into()), ..deflate.clone() };
        assert_eq!(
            (deflate.label().as_str(), by_hardware.label().as_str()),
            ("deflate", "deflate (by iaa_crypto, hardware)")
        );
    }
}
