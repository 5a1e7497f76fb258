//! Whether to add a zram device. A disksize cannot be changed while the device is in use.

use eke_model::model::Model;
use eke_model::step::{PlannedStep, Reason, Step, ZramSpec};
use eke_model::units::{Bytes, MIB};

use super::facts::{Device, Facts};
use super::ledger::UNIT;
use crate::measure::ratio::TABLE_BYTES;

/// The areas grow above this fill, by declared size.
pub const FULL: f64 = 0.85;
/// Above this fill they do not wait for maintenance.
pub const URGENT: f64 = 0.95;
/// With less data the ratio is that of a few pages.
const HELD_AT_LEAST: Bytes = Bytes::mib(16);
/// The safety margin of the pool's share of RAM.
const SHARE_MARGIN: f64 = 0.95;
/// The safety margin of the ratio.
const RATIO_MARGIN: f64 = 0.9;
/// The smallest device,
const SMALLEST: Bytes = Bytes::mib(16);
/// also as a share of RAM.
const SMALLEST_SHARE: f64 = 0.02;

/// The device whose settings a further one gets.
#[derive(Debug, Clone, Copy)]
pub struct Like<'a> {
    /// `zram1`.
    pub device: &'a str,
    /// Its settings. The path of its dictionary is of the process that made it.
    pub spec: &'a ZramSpec,
    /// The path of the same dictionary for this process, or why there is none any more.
    pub dictionary: Result<&'a str, &'a str>,
}

/// The device to add, like another one; `None`: add none. `may_wait`: maintenance may free memory first.
pub fn decide(facts: &Facts, model: &Model, like: Like<'_>, may_wait: bool) -> Option<PlannedStep> {
    let (size, used) = areas(&facts.devices);
    let fill = if size.0 > 0 { used.0 as f64 / size.0 as f64 } else { 0.0 };
    if !facts.grow || fill <= FULL || (may_wait && fill <= URGENT) || model.held < HELD_AT_LEAST {
        return None;
    }
    let ratio = model.effective_ratio? * RATIO_MARGIN;
    let disksize = room(facts, model, size, used, ratio);
    let smallest = SMALLEST.max(model.ram.scaled(SMALLEST_SHARE));
    let spec = ZramSpec {
        disksize,
        swap_priority: Some(lower_priority(facts)),
        backing_dev: None,
        backing_encrypted: false,
        backing_file: None,
        dictionary: like.spec.dictionary.as_ref().and(like.dictionary.ok()).map(str::to_owned),
        ..like.spec.clone()
    };
    let mut reason = reason(facts, model, fill, disksize);
    reason.text += &about_dictionary(like);
    (disksize >= smallest).then_some(PlannedStep { step: Step::AddZram(spec), reason })
}

/// What becomes of the older device's dictionary; empty if that has none.
fn about_dictionary(like: Like<'_>) -> String {
    let device = like.device;
    match like.dictionary {
        _ if like.spec.dictionary.is_none() => String::new(),
        Ok(_) => format!(" It gets the dictionary of {device}, too."),
        Err(why) => format!(" It does not get the dictionary of {device}: {why}."),
    }
}

fn areas(devices: &[Device]) -> (Bytes, Bytes) {
    (devices.iter().map(|d| d.size).sum(), devices.iter().map(|d| d.used).sum())
}

/// The size with which the pool reaches its share when all devices are full.
fn room(facts: &Facts, model: &Model, size: Bytes, used: Bytes, ratio: f64) -> Bytes {
    let ram = model.ram.saturating_sub(facts.locked);
    let share = ram.0 as f64 * f64::from(facts.pool_percent) / 100.0 * SHARE_MARGIN;
    let unused = size.saturating_sub(used).0 as f64;
    // zram's table has an entry for each page of the declared size, used or not.
    let table_share = TABLE_BYTES / (facts.page_units.max(1) * UNIT) as f64;
    let promised = model.pool.0 as f64 + unused / ratio + size.0 as f64 * table_share;
    let more = (share - promised).max(0.0) / (1.0 / ratio + table_share);
    Bytes(more as u64 / MIB * MIB)
}

/// One less than the lowest priority: older devices stay the first choice. Above a disk, however, or the kernel would fill both by turns.
fn lower_priority(facts: &Facts) -> i16 {
    let lowest = facts.devices.iter().map(|d| d.priority).min().unwrap_or(0);
    let above_disks = facts.disk_priority.map_or(i32::MIN, |disk| disk.saturating_add(1));
    i16::try_from((lowest - 1).max(above_disks).min(lowest)).unwrap_or(0).max(0)
}

fn reason(facts: &Facts, model: &Model, fill: f64, disksize: Bytes) -> Reason {
    let ratio = model.effective_ratio.unwrap_or(1.0);
    let text = format!(
        "The zram devices are {:.0} % full, but hold {} in {} (ratio {ratio:.1}), which is less than the {} % of RAM that the pool may take: {disksize} more fit.",
        fill * 100.0,
        model.held,
        model.pool,
        facts.pool_percent
    );
    Reason::new(text)
        .with("fill_share", fill)
        .with("ratio", ratio)
        .with("pool_bytes", model.pool.0 as f64)
        .with("held_bytes", model.held.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like() -> ZramSpec {
        ZramSpec {
            params: Some("level=3".into()),
            dictionary: Some("/proc/self/fd/9".into()),
            backing_dev: Some("/dev/vdb".into()),
            swap_priority: Some(100),
            ..ZramSpec::new("zstd", Bytes::mib(1))
        }
    }

    fn facts(size_mib: u64, used_mib: u64) -> Facts {
        let device = Device {
            name: "zram1".into(),
            size: Bytes::mib(size_mib),
            used: Bytes::mib(used_mib),
            priority: 100,
            own: true,
            ..Device::default()
        };
        Facts { devices: vec![device], grow: true, pool_percent: 50, ..Facts::default() }
    }

    fn model(ram_mib: u64, held_mib: u64, ratio: f64) -> Model {
        let held = Bytes::mib(held_mib);
        Model {
            ram: Bytes::mib(ram_mib),
            held,
            pool: held.scaled(1.0 / ratio),
            effective_ratio: Some(ratio),
            ..Model::default()
        }
    }

    fn as_zram1(spec: &ZramSpec) -> Like<'_> {
        Like { device: "zram1", spec, dictionary: Err("it is gone") }
    }

    fn size(facts: &Facts, model: &Model, may_wait: bool) -> Option<(Bytes, Option<i16>)> {
        match decide(facts, model, as_zram1(&like()), may_wait)?.step {
            Step::AddZram(spec) => Some((spec.disksize, spec.swap_priority)),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_full_device_that_costs_less_than_its_share_gets_a_second() {
        let planned = decide(&facts(1000, 900), &model(1000, 900, 4.0), as_zram1(&like()), false).unwrap();
        let Step::AddZram(spec) = &planned.step else { panic!("{}", planned.step) };
        // (475 MiB share - 225 pool - 100/3.6 unused - 1000/256 table) / (1/3.6 + 1/256)
        assert_eq!((spec.disksize, spec.swap_priority), (Bytes::mib(775), Some(99)));
        assert_eq!(
            (spec.algorithm.as_str(), spec.params.as_deref(), &spec.backing_dev),
            ("zstd", Some("level=3"), &None)
        );
        assert!(
            planned.reason.text.contains("90 % full") && planned.reason.text.contains("ratio 4.0"),
            "{}",
            planned.reason.text
        );
    }

    #[test]
    fn the_dictionary_stays_if_it_was_kept_and_the_reason_says_so() {
        let grown = |spec: &ZramSpec, dictionary| {
            let like = Like { dictionary, ..as_zram1(spec) };
            let planned = decide(&facts(1000, 900), &model(1000, 900, 4.0), like, false).unwrap();
            let Step::AddZram(spec) = planned.step else { panic!("{}", planned.step) };
            let (_, end) = planned.reason.text.split_once("more fit.").unwrap();
            (spec.params, spec.dictionary, end.to_owned())
        };
        let level = Some("level=3".to_owned());
        let (params, dictionary, end) = grown(&like(), Ok("/proc/self/fd/4"));
        assert_eq!((params, dictionary.as_deref()), (level.clone(), Some("/proc/self/fd/4")));
        assert_eq!(end, " It gets the dictionary of zram1, too.");
        let (params, dictionary, end) = grown(&like(), Err("it is gone"));
        assert_eq!((params, dictionary), (level, None), "never the path of a process that is gone");
        assert_eq!(end, " It does not get the dictionary of zram1: it is gone.");
        let without = ZramSpec { dictionary: None, ..like() };
        let (_, dictionary, end) = grown(&without, Ok("/proc/self/fd/4"));
        assert_eq!((dictionary, end.as_str()), (None, ""));
    }

    #[test]
    fn room_is_left_alone_while_there_is_some() {
        assert_eq!(size(&facts(1000, 850), &model(1000, 850, 4.0), false), None);
        assert_eq!(size(&facts(1000, 900), &model(1000, 900, 1.9), false), None, "the pool is at its share");
        assert_eq!(size(&Facts { grow: false, ..facts(1000, 900) }, &model(1000, 900, 4.0), false), None);
        let locked = Facts { locked: Bytes::mib(500), ..facts(1000, 900) };
        assert_eq!(size(&locked, &model(1000, 900, 4.0), false), None, "at its share of what is swapped");
        assert_eq!(size(&facts(0, 0), &model(1000, 900, 4.0), false), None);
        assert_eq!(size(&facts(12, 12), &model(1000, 12, 4.0), false), None, "too little to know the ratio");
    }

    #[test]
    fn maintenance_goes_first_unless_it_is_urgent() {
        assert_eq!(size(&facts(1000, 900), &model(1000, 900, 4.0), true), None);
        assert!(size(&facts(1000, 960), &model(1000, 960, 4.0), true).is_some());
    }

    #[test]
    fn priorities_end_at_zero() {
        let mut facts = facts(1000, 900);
        facts.devices[0].priority = -2;
        assert_eq!(size(&facts, &model(1000, 900, 4.0), false).unwrap().1, Some(0));
    }

    #[test]
    fn disks_stay_behind() {
        let priority = |disk| {
            let facts = Facts { disk_priority: Some(disk), ..facts(1000, 900) };
            size(&facts, &model(1000, 900, 4.0), false).unwrap().1
        };
        assert_eq!([-2, 50, 98].map(priority), [Some(99); 3]);
        assert_eq!([99, 100, i32::MAX].map(priority), [Some(100); 3], "as the older device, not before it");
    }

    proptest::proptest! {
        /// Fill what there is, grow, fill again: the pool stays within its share and growing comes to an end.
        #[test]
        fn growing_ends_within_the_share(ram_mib in 64u64..16_000, first_mib in 16u64..20_000, ratio in 1.0f64..12.0, percent in 10u32..=90) {
            let mut facts = Facts { pool_percent: percent, ..facts(first_mib, first_mib) };
            let mut rounds = 0;
            loop {
                let held = areas(&facts.devices).1;
                let full = Model { held, pool: held.scaled(1.0 / ratio), ..model(ram_mib, 1, ratio) };
                let Some((disksize, priority)) = size(&facts, &full, false) else { break };
                let pool = (held + disksize).0 as f64 / ratio;
                proptest::prop_assert!(pool <= full.ram.0 as f64 * f64::from(percent) / 100.0);
                facts.devices.push(Device { name: "next".into(), size: disksize, used: disksize, priority: priority.unwrap().into(), ..Device::default() });
                rounds += 1;
                proptest::prop_assert!(rounds < 50);
            }
        }

        #[test]
        fn right_after_growing_there_is_no_second_growth(ram_mib in 64u64..16_000, first_mib in 16u64..20_000, ratio in 1.0f64..12.0) {
            let mut facts = facts(first_mib, first_mib);
            let full = model(ram_mib, first_mib, ratio);
            if let Some((disksize, _)) = size(&facts, &full, false) {
                facts.devices.push(Device { name: "next".into(), size: disksize, ..Device::default() });
                proptest::prop_assert!(size(&facts, &full, false).is_none());
            }
        }
    }
}
