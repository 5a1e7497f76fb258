//! The facts of the machine that arrangements depend on.

use std::path::Path;

use eke_linux::cgroup::name;
use eke_linux::{Root, read, zram};
use eke_model::units::Bytes;
use eke_swap::Swap;
use eke_swap::facts::Facts;
use eke_swap::measure::{Dictionary, Measured, Scope};

use super::{Error, KERNELS_PAGE_CLUSTER, KERNELS_SWAPPINESS};

/// The processes in this process's boxes, for [`Host::measure`]: a small machine would sample the same.
pub fn processes_in_boxes(root: &Root) -> Vec<u32> {
    let Ok(group) = name::of_this_process(root, "box") else { return Vec::new() };
    let is_in_it = |pid: &u32| {
        let groups = root.read(format!("proc/{pid}/cgroup")).unwrap_or_default();
        groups.lines().any(|line| line.rsplit('/').next() == Some(&group))
    };
    read::pids(root).into_iter().filter(is_in_it).collect()
}

/// The machine that the boxes are on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Host {
    /// Its facts.
    pub facts: Facts,
    /// The kernel's default algorithm of a zram device; `None` if unknown.
    pub default_algorithm: Option<String>,
    /// Can its kernel merge equal pages (KSM)?
    pub merges_pages: bool,
    /// The dictionary that eke's variants name by a path of this process: it must live until they were applied.
    pub dictionary: Option<Dictionary>,
}

impl Host {
    /// Reads the facts of `root`.
    ///
    /// # Errors
    /// `/proc/meminfo` or `/proc/swaps` cannot be read.
    pub fn of(root: &Root) -> Result<Self, Error> {
        Ok(Self {
            facts: Swap.probe(root)?,
            default_algorithm: zram::default_algorithm(root),
            merges_pages: root.exists("sys/kernel/mm/ksm/run"),
            dictionary: None,
        })
    }

    /// Takes the dictionary of a measurement, and zram's features if no device existed before.
    pub fn learn(&mut self, measured: &Measured) {
        self.dictionary.clone_from(&measured.dictionary);
        if self.facts.zram.features.is_none() {
            self.facts.zram.features.clone_from(&measured.zram_features);
        }
    }

    /// Measures what eke's plan depends on: compression of the pages of `processes` (those of the box, once they have their memory),
    /// and reads of files below `files`, where programs and documents are. `None` stands for the whole machine. It takes about two
    /// seconds. Scratch devices are journaled and removed.
    ///
    /// # Errors
    /// No memory for the sample, or a scratch device that could not be removed.
    pub fn measure(
        &self,
        root: &Root,
        processes: Option<&[u32]>,
        files: Option<&Path>,
    ) -> Result<Measured, Error> {
        let scope = Scope {
            processes: processes.map(<[u32]>::to_vec),
            files: files.map(Path::to_owned),
            ..Scope::default()
        };
        Ok(Swap.measure_scope(root, &self.facts, &scope)?)
    }

    /// Does this kernel's zram have that algorithm? If unknown, it is tried.
    pub(super) fn offers(&self, algorithm: &str) -> bool {
        self.facts.zram.features.as_ref().is_none_or(|f| f.algorithms.iter().any(|a| a == algorithm))
    }

    /// Can this kernel have zram at all?
    pub(super) fn has_zram(&self) -> bool {
        self.facts.zram.control || self.facts.zram.loadable
    }

    /// Do groups have a swappiness of their own (cgroup v1)?
    pub(super) fn groups_have_swappiness(&self) -> bool {
        !self.facts.memory_groups_v1.is_empty()
    }

    /// A priority above every swap area of the machine, at least `documented`.
    pub(super) fn priority(&self, documented: i16) -> i16 {
        let highest = self.facts.areas.iter().map(|a| a.priority).max().unwrap_or(-1);
        i16::try_from(highest.saturating_add(1)).unwrap_or(i16::MAX).max(documented)
    }

    /// A note on this machine's own swap.
    pub(super) fn other_swap(&self) -> Option<String> {
        let areas = self.facts.areas.iter().map(|a| format!("{} ({})", a.path, a.size));
        let areas: Vec<String> = areas.collect();
        (!areas.is_empty()).then(|| {
            format!(
                "this machine has other swap, {}: what does not fit a variant's own device goes there, so every variant but \"{}\" holds more than it would alone; swapoff it for comparable results",
                areas.join(", "),
                super::table::NOTHING
            )
        })
    }

    /// The facts as a box of `budget` sees them: the budget is the RAM, there is no other swap, and sysctls have the kernel's
    /// defaults.
    pub(super) fn seen_from_a_box(&self, budget: Bytes) -> Facts {
        Facts {
            ram: budget,
            available: Bytes(budget.0 / 2),
            areas: Vec::new(),
            disk_areas: Vec::new(),
            zram_in_use: Vec::new(),
            // Only the box's own swappiness is set.
            memory_groups_v1: Vec::new(),
            managers: Vec::new(),
            hibernation: None,
            never_swapped: Bytes(0),
            kubelet: None,
            swappiness: Some(KERNELS_SWAPPINESS),
            page_cluster: Some(KERNELS_PAGE_CLUSTER),
            ..self.facts.clone()
        }
    }
}
