//! The devices and the machine's load, as data.

use eke_linux::{Root, read};
use eke_model::config::SwapSettings;
use eke_model::model::Model;
use eke_model::sample::{Sample, ZramStat};
use eke_model::step::ZramSpec;
use eke_model::units::Bytes;

use super::ledger::UNIT;

/// One zram device in use as swap.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Device {
    /// `zram1`.
    pub name: String,
    /// Its swap area's size.
    pub size: Bytes,
    /// Its used bytes.
    pub used: Bytes,
    /// Its swap priority.
    pub priority: i32,
    /// Did eke make it? Devices of other programs count as space and are not touched.
    pub own: bool,
    /// Incompressible pages.
    pub huge_pages: u64,
    /// The priorities of its secondary algorithms (1 to 3), weakest first; empty if it cannot recompress.
    pub recompress_priorities: Vec<u32>,
    /// Has it a backing device and a limit for it?
    pub writeback: bool,
    /// Can its pages be marked idle?
    pub idle: bool,
}

/// The input of decisions beside the load.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// The zram devices that are swap.
    pub devices: Vec<Device>,
    /// The highest priority of the areas that are no zram; `None` without any.
    pub disk_priority: Option<i32>,
    /// Does the machine run on its battery, so that maintenance must wait?
    pub waits_for_mains: bool,
    /// May pages be recompressed?
    pub recompress: bool,
    /// The most bytes to write back per day.
    pub writeback_a_day: Bytes,
    /// Units of [`UNIT`] in a page of the machine: 4 with pages of 16 KiB.
    pub page_units: u64,
    /// May a device be added?
    pub grow: bool,
    /// The largest pool, in percent of RAM,
    pub pool_percent: u32,
    /// without this much, which is locked and never swapped.
    pub locked: Bytes,
}

impl Facts {
    /// A device that is being swapped off takes no more pages: what it does not use is no room.
    pub fn leaves(&mut self, name: &str) {
        let leaving = self.devices.iter_mut().filter(|device| device.name == name);
        leaving.for_each(|device| device.size = device.used);
    }
}

/// The load of the machine, which gates and sizes depend on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MachineLoad {
    /// The percentage of the last 10 s in which some task waited for memory; `None` without PSI.
    pub waiting_avg10_percent: Option<f64>,
    /// Anonymous pages reclaimed per second.
    pub anonymous_reclaim_per_s: f64,
    /// The idle share of all CPUs.
    pub idle_cpu_share: f64,
    /// The available share of RAM.
    pub available_share: f64,
}

impl MachineLoad {
    /// Computes it from the two samples of a tick and their model.
    pub fn new(now: &Sample, before: &Sample, model: &Model) -> Self {
        let stolen = now.vm.pgsteal_anon.saturating_sub(before.vm.pgsteal_anon) as f64;
        let steal_per_s = if model.interval_s > 0.0 { stolen / model.interval_s } else { 0.0 };
        Self {
            waiting_avg10_percent: now.pressure.map(|p| p.some_avg10),
            // pgsteal_anon exists since Linux 5.10; before that, pages swapped out are the same
            anonymous_reclaim_per_s: steal_per_s.max(model.pages_out_per_s),
            idle_cpu_share: model.idle_cpu_share,
            available_share: if now.memory.total.0 > 0 {
                now.memory.available.0 as f64 / now.memory.total.0 as f64
            } else {
                0.0
            },
        }
    }
}

/// Reads the devices and their features; `own` are those that eke made.
pub fn read(root: &Root, settings: &SwapSettings, sample: &Sample, own: &[(String, ZramSpec)]) -> Facts {
    let devices = sample.swaps.iter().filter_map(|area| {
        let name = area.zram_name()?;
        let stat = sample.zram.iter().find(|z| z.name == name)?;
        let own = own.iter().any(|(n, _)| n == name);
        Some(Device { size: area.size, used: area.used, priority: area.priority, ..device(root, stat, own) })
    });
    let disks = sample.swaps.iter().filter(|area| area.zram_name().is_none());
    Facts {
        devices: devices.collect(),
        disk_priority: disks.map(|area| area.priority).max(),
        waits_for_mains: !settings.on_battery && read::on_battery(root) == Some(true),
        recompress: settings.recompress,
        writeback_a_day: Bytes::mib(settings.writeback_mib_per_day.into()),
        page_units: sample.page_bytes / UNIT,
        grow: settings.grow,
        pool_percent: settings.pool_percent,
        locked: sample.memory.unevictable,
    }
}

/// The features of a device, by its files.
fn device(root: &Root, stat: &ZramStat, own: bool) -> Device {
    let has = |file: &str| root.exists(format!("sys/block/{}/{file}", stat.name));
    let text = |file: &str| root.read(format!("sys/block/{}/{file}", stat.name)).unwrap_or_default();
    let recompress_priorities =
        if has("recompress") { recompress_priorities(&text("recomp_algorithm")) } else { Vec::new() };
    Device {
        name: stat.name.clone(),
        own,
        huge_pages: stat.huge_pages,
        recompress_priorities,
        writeback: has("writeback") && has("writeback_limit") && is_backed(&text("backing_dev")),
        idle: has("idle"),
        ..Device::default()
    }
}

/// The priorities in `recomp_algorithm` (Linux 6.2): a line `#1: lzo lz4 [zstd]` for each that is set up.
pub fn recompress_priorities(text: &str) -> Vec<u32> {
    let number = |line: &str| line.strip_prefix('#')?.split_once(':')?.0.trim().parse().ok();
    text.lines()
        .filter(|line| line.contains('['))
        .filter_map(number)
        .filter(|p| (1..=3).contains(p))
        .collect()
}

/// `backing_dev` is `none` without a backing device.
fn is_backed(text: &str) -> bool {
    !matches!(text.trim(), "" | "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secondary_algorithms_are_found_by_their_lines() {
        assert_eq!(recompress_priorities("#1: lzo-rle lz4 [zstd]\n#2: lzo [deflate] zstd\n"), [1, 2]);
        assert_eq!(recompress_priorities(""), [] as [u32; 0]);
        assert_eq!(recompress_priorities("#1: lzo lz4 zstd\n#x: [a]\n#9: [a]\n"), [] as [u32; 0]);
        assert!(is_backed("/dev/loop0\n") && !is_backed("none\n") && !is_backed(""));
    }

    #[test]
    fn a_device_that_leaves_is_full() {
        let device = |name: &str| Device {
            name: name.into(),
            size: Bytes::mib(9),
            used: Bytes::mib(2),
            ..Device::default()
        };
        let mut facts = Facts { devices: vec![device("zram1"), device("zram2")], ..Facts::default() };
        facts.leaves("zram1");
        let sizes: Vec<Bytes> = facts.devices.iter().map(|device| device.size).collect();
        assert_eq!(sizes, [Bytes::mib(2), Bytes::mib(9)]);
    }

    #[test]
    fn reclaim_is_the_larger_of_both_counters() {
        let (mut now, mut model) = (Sample::default(), Model { interval_s: 10.0, ..Model::default() });
        now.vm.pgsteal_anon = 5_000;
        assert_eq!(MachineLoad::new(&now, &Sample::default(), &model).anonymous_reclaim_per_s, 500.0);
        model.pages_out_per_s = 700.0;
        assert_eq!(MachineLoad::new(&now, &Sample::default(), &model).anonymous_reclaim_per_s, 700.0);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_priorities(text in "(?s)[#0-9: \\[a-z\\]\n]{0,60}") {
            proptest::prop_assert!(recompress_priorities(&text).iter().all(|p| (1..=3).contains(p)));
        }
    }
}
