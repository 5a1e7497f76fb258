//! The settings around another program's device.

use eke_model::step::{Plan, Prediction, Reason, Step};
use eke_model::units::Bytes;

use super::shared::{SwapIn, lru_gen, page_cluster, prediction, swappiness, zswap_off};
use crate::decide::algorithm::is_usable;
use crate::decide::overflow::{self, Overflow};
use crate::decide::size::times_ram;
use crate::decide::{Given, disk, knobs};
use crate::facts::Facts;
use crate::measure::measurements::AlgorithmMeasurement;

pub(in crate::decide) fn around_adopted(plan: &mut Plan, given: Given<'_>, device: &str) {
    zswap_off(plan, given.facts);
    lru_gen(plan, given);
    let overflow = overflow::of(given.facts);
    let Some(row) = measurement_of(given, device) else {
        if overflow.is_none() {
            unmeasured_page_cluster(plan, given.facts);
        }
        return;
    };
    let size: Bytes = given.facts.areas.iter().filter(|a| a.zram_name().is_some()).map(|a| a.size).sum();
    let mut predicted = prediction(row, row.ratio, times_ram(given.facts, size, row.ratio));
    match overflow {
        None => {
            page_cluster(plan, given.facts, row.load_p50);
            swappiness(plan, given, &SwapIn { cost: row.load_p50, from: device });
        }
        Some(overflow) => mostly_from_disk(plan, given, row, &overflow, &mut predicted),
    }
    plan.prediction = Some(predicted);
}

/// Readahead stays on: neighbours on a disk come with one seek. Without the disk's time nothing tells what a page costs.
fn mostly_from_disk(
    plan: &mut Plan,
    given: Given<'_>,
    row: &AlgorithmMeasurement,
    overflow: &Overflow<'_>,
    predicted: &mut Prediction,
) {
    let Ok(disk) = disk::of(given, overflow.area) else { return };
    let why = match overflow.before_zram {
        Some(_) => "which is not filled first",
        None => "which is small",
    };
    let percent = 100.0 * overflow.in_zram;
    let from = format!("swap (about {percent:.0} % in zram, {why}, the others on {})", overflow.area);
    let cost = knobs::overflowing_swap_in(row.load_p50, disk.p50, overflow.in_zram);
    swappiness(plan, given, &SwapIn { cost, from: &from });
    predicted.load_p99_ns = predicted.load_p99_ns.max(disk.p99.0);
}

/// The measurement of the device's algorithm.
fn measurement_of<'a>(given: Given<'a>, device: &str) -> Option<&'a AlgorithmMeasurement> {
    let stat = given.facts.zram_in_use.iter().find(|z| z.name == device)?;
    let rows = given.measured.algorithms.iter().filter(|r| r.in_zram && r.is_as_shipped() && is_usable(r));
    rows.into_iter().find(|r| r.name == stat.algorithm)
}

fn unmeasured_page_cluster(plan: &mut Plan, facts: &Facts) {
    if facts.page_cluster.is_some_and(|c| c != 0) {
        plan.push(
            Step::set("vm.page-cluster", 0),
            Reason::new("readahead of neighbours gains nothing: in RAM there is no seek to save"),
        );
    }
}
