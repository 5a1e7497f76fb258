//! The settings around another program's device.

use eke_model::step::{Plan, Reason, Step};
use eke_model::units::Bytes;

use super::shared::{SwapIn, lru_gen, page_cluster, prediction, swappiness, zswap_off};
use crate::decide::Given;
use crate::decide::algorithm::is_usable;
use crate::decide::size::times_ram;
use crate::facts::Facts;
use crate::measure::measurements::AlgorithmMeasurement;

pub(in crate::decide) fn around_adopted(plan: &mut Plan, given: Given<'_>, device: &str) {
    zswap_off(plan, given.facts);
    lru_gen(plan, given);
    let Some(row) = measurement_of(given, device) else {
        return unmeasured_page_cluster(plan, given.facts);
    };
    page_cluster(plan, given.facts, row.load_p50);
    swappiness(plan, given, &SwapIn { cost: row.load_p50, from: device });
    let size: Bytes = given.facts.areas.iter().filter(|a| a.zram_name().is_some()).map(|a| a.size).sum();
    plan.prediction = Some(prediction(row, row.ratio, times_ram(given.facts, size, row.ratio)));
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
