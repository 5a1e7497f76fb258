//! Steps of several back ends.

use eke_model::step::{Plan, Prediction, Reason, Step};
use eke_model::units::Nanos;

use crate::decide::{Given, knobs};
use crate::facts::Facts;
use crate::measure::measurements::AlgorithmMeasurement;

/// Less than this share of RAM needs no word.
const WORTH_A_WORD: f64 = 0.1;

/// The RAM that the shares do not count, as the end of a reason; empty if it is little.
pub(super) fn never_swapped(facts: &Facts) -> String {
    let Facts { ram, never_swapped, .. } = facts;
    let all = ram.0.saturating_add(never_swapped.0) as f64;
    if never_swapped.0 as f64 <= all * WORTH_A_WORD {
        return String::new();
    }
    format!(
        "; only {ram} of RAM count, because {never_swapped} are locked or reserved as huge pages, which are never swapped"
    )
}

pub(super) fn zswap_off(plan: &mut Plan, facts: &Facts) {
    if facts.zswap.as_ref().is_some_and(|z| z.enabled) {
        plan.push(
            Step::set("zswap.enabled", "N"),
            Reason::new("zswap in front of zram would compress every page twice"),
        );
    }
}

/// Swaps off every zram device, and no other area.
pub(super) fn existing_off(plan: &mut Plan, facts: &Facts, why: &str) {
    for area in facts.areas.iter().filter(|a| a.zram_name().is_some()) {
        plan.push(
            Step::SwapOff { path: area.path.clone() },
            Reason::new(format!(
                "existing = \"replace\": {why}; `eke down` swaps it on again, with discard only if /etc/fstab or its unit sets it: the kernel does not show it"
            )),
        );
    }
}

pub(super) fn page_cluster(plan: &mut Plan, facts: &Facts, load: Nanos) {
    if facts.page_cluster.is_some_and(|c| c != 0) {
        let text = format!(
            "readahead of neighbours gains nothing: each costs another load of {load}, and there is no seek to save"
        );
        plan.push(Step::set("vm.page-cluster", 0), Reason::new(text).with("load_p50_ns", load.0 as f64));
    }
}

/// Switches the multi-generational LRU on, where the user asks for it, and the kernel has it and left it off, as Debian's does.
pub(super) fn lru_gen(plan: &mut Plan, given: Given<'_>) {
    if given.overrides.settings.lru_gen && given.facts.lru_gen == Some(false) {
        plan.push(
            Step::set("lru_gen.enabled", "0x0007"),
            Reason::new(
                "the kernel's two lists of pages keep in memory what is no longer used while programs wait for what is; generations tell them apart",
            ),
        );
    }
}

/// The cost of a page from swap, and its source.
pub(super) struct SwapIn<'a> {
    pub cost: Nanos,
    pub from: &'a str,
}

/// Sets the machine's swappiness, and on cgroup v1 that of every group that still has the machine's. Without both costs it sets nothing.
pub(super) fn swappiness(plan: &mut Plan, given: Given<'_>, swap_in: &SwapIn<'_>) {
    let (Some(file), Some(before)) = (&given.measured.file_read, given.facts.swappiness) else { return };
    let value = knobs::swappiness(swap_in.cost, file.p50, &given.measured.kernel);
    if swap_in.cost.0 == 0 || file.p50.0 == 0 || value == before {
        return;
    }
    let limit = if knobs::is_before(&given.measured.kernel, (5, 8)) {
        ", and 100 is the most before Linux 5.8"
    } else {
        ""
    };
    let text = format!(
        "a page from {} takes {}, one from a file {}: by the formula of the kernel documentation{limit}",
        swap_in.from, swap_in.cost, file.p50
    );
    let reason =
        Reason::new(text).with("swap_in_ns", swap_in.cost.0 as f64).with("file_read_ns", file.p50.0 as f64);
    plan.push(Step::set("vm.swappiness", value), reason);
    groups(plan, given.facts, before, value);
}

fn groups(plan: &mut Plan, facts: &Facts, before: u32, value: u32) {
    for group in facts.memory_groups_v1.iter().filter(|g| !g.group.is_empty() && g.swappiness == before) {
        let reason =
            Reason::new("on cgroup v1 a group's own value counts, and this one still has the machine's");
        plan.push(Step::set_at("memory.swappiness", &group.group, value), reason);
    }
}

pub(super) fn prediction(row: &AlgorithmMeasurement, ratio: f64, holds_times_ram: f64) -> Prediction {
    Prediction {
        ratio,
        holds_times_ram,
        load_p50_ns: row.load_p50.0,
        load_p99_ns: row.load_p99.0,
        incompressible_share: row.incompressible_share,
    }
}
