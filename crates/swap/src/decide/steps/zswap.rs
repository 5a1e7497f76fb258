//! zswap in front of a swap area.

use eke_model::step::{Plan, Reason, Step};
use eke_model::units::Bytes;

use super::Chosen;
use super::shared::{SwapIn, existing_off, lru_gen, never_swapped, prediction, swappiness};
use crate::decide::backend::slots;
use crate::decide::disk::{self, SwapDisk, UnknownLatency};
use crate::decide::{Given, knobs};
use crate::facts::{DiskKind, Facts, Hardware, ZswapFacts};

/// The kernel's default of `max_pool_percent`.
const KERNELS_PERCENT: u32 = 20;

/// Swaps zram off before switching zswap on, which would be in front of zram, too.
pub(super) fn set_up(plan: &mut Plan, given: Given<'_>, area: &str, chosen: &Chosen<'_>) {
    let Some(now) = &given.facts.zswap else { return };
    existing_off(plan, given.facts, "zswap replaces it while the plan is applied");
    allocator(plan, now, &given.measured.kernel);
    let why = with_hardware(now, chosen);
    set(plan, "zswap.compressor", Some(&now.compressor), &chosen.row.name, why);
    let pool = Pool::of(given, area, now);
    pool.steps(plan, now);
    shrinker(plan, given.facts, area, now);
    set(plan, "zswap.enabled", Some(if now.enabled { "Y" } else { "N" }), "Y", why_on(now, chosen));
    lru_gen(plan, given);
    let ratio = chosen.size.ratio_expected;
    let mut predicted = prediction(chosen.row, ratio, times_ram(given.facts, pool.percent, ratio));
    if let Ok(disk) = &pool.disk {
        let cost = knobs::zswap_swap_in(chosen.row.load_p50, disk.p50);
        swappiness(plan, given, &SwapIn { cost, from: "zswap (nine of ten assumed in the pool)" });
        // Of a hundred pages ten come from the disk, so the slowest of them do.
        predicted.load_p99_ns = predicted.load_p99_ns.max(disk.p99.0);
    }
    plan.prediction = Some(predicted);
}

/// The algorithm's reason, and the hardware that zswap has compress if zram measured the algorithm on the CPU.
fn with_hardware(now: &ZswapFacts, chosen: &Chosen<'_>) -> Reason {
    let Reason { text, numbers } = chosen.choice.reason.clone();
    let by = Hardware::of(&now.hardware, &chosen.row.name).filter(|_| chosen.row.hardware.is_none());
    let relieved = |by| format!("; these are times of the CPU, and zswap has {by} compress, hardware");
    Reason { text: text + &by.map(relieved).unwrap_or_default(), numbers }
}

/// The reason for switching zswap on, with the algorithm's reason if that has no step of its own.
fn why_on(now: &ZswapFacts, chosen: &Chosen<'_>) -> Reason {
    let on = "pages on their way to the disk are kept compressed in RAM";
    if now.compressor == chosen.row.name {
        let Reason { text, numbers } = with_hardware(now, chosen);
        Reason { text: format!("{on}; {text}"), numbers }
    } else {
        Reason::new(on)
    }
}

fn set(plan: &mut Plan, knob: &str, now: Option<&str>, value: &str, reason: Reason) {
    if now.is_some_and(|now| now != value) {
        plan.push(Step::set(knob, value), reason);
    }
}

fn allocator(plan: &mut Plan, now: &ZswapFacts, kernel: &str) {
    let but = if knobs::zsmalloc_evicts(kernel) {
        ""
    } else {
        ", but writes none of them out before Linux 6.2: new pages go past a full pool"
    };
    if let Some(zpool) = now.zpool.as_ref().filter(|z| *z != "zsmalloc") {
        plan.push(
            Step::set("zswap.zpool", "zsmalloc"),
            Reason::new(format!(
                "{zpool} stores at most two or three pages in one; zsmalloc stores objects of any size{but}"
            )),
        );
    }
}

/// Switches the shrinker on, unless the disk wears out: a card is written to only when the pool is full.
fn shrinker(plan: &mut Plan, facts: &Facts, area: &str, now: &ZswapFacts) {
    let wears_out = facts.disk_areas.iter().any(|a| a.path == area && a.kind == DiskKind::WearsOut);
    if now.shrinker == Some(false) && !wears_out {
        plan.push(
            Step::set("zswap.shrinker_enabled", "Y"),
            Reason::new("cold pages move to the disk before the pool is full"),
        );
    }
}

/// The pool's size in percent of RAM, and the reason.
struct Pool {
    percent: u32,
    reason: Reason,
    /// What a page costs that the pool lacks, or why that is unknown.
    disk: Result<SwapDisk, UnknownLatency>,
}

impl Pool {
    fn of(given: Given<'_>, area: &str, now: &ZswapFacts) -> Self {
        let most = most_percent(given);
        let disk = disk::of(given, area);
        let (percent, reason) = match &disk {
            Ok(SwapDisk { p50, by_files, .. }) => {
                let files = if *by_files { ", as files on the same disk do" } else { "" };
                let text = format!(
                    "the slower the disk, the larger the pool: a page from {area} costs {p50}{files}"
                );
                let reason = Reason::new(text).with("disk_p50_ns", p50.0 as f64);
                (knobs::zswap_pool_percent(*p50, most), reason)
            }
            Err(UnknownLatency { why, seeks: true }) => (
                most,
                Reason::new(format!(
                    "the slower the disk, the larger the pool: {why}, but it is on a rotating disk"
                )),
            ),
            Err(UnknownLatency { why, seeks: false }) => {
                let percent = now.max_pool_percent.unwrap_or(KERNELS_PERCENT).min(most);
                let settings = given.overrides.settings.pool_percent;
                (percent, Reason::new(format!("pool_percent = {settings}, and {why}")))
            }
        };
        let reason = Reason { text: reason.text + &never_swapped(given.facts), numbers: reason.numbers };
        // A pool that is fuller than the limit is written to the disk at once, so only the user's own setting lowers the limit of a zswap that is on.
        let present = now.max_pool_percent.filter(|_| now.enabled).unwrap_or_default();
        Self { percent: percent.max(present.min(most)), reason, disk }
    }

    fn steps(&self, plan: &mut Plan, now: &ZswapFacts) {
        let is = now.max_pool_percent.map(|p| p.to_string());
        set(plan, "zswap.max_pool_percent", is.as_deref(), &self.percent.to_string(), self.reason.clone());
        let is = now.accept_threshold_percent.map(|p| p.to_string());
        let accept = knobs::zswap_accept_percent(self.percent).to_string();
        let reason = Reason::new(
            "keeps the kernel's gap of 2 % of RAM between a full pool and one that accepts pages again",
        );
        set(plan, "zswap.accept_threshold_percent", is.as_deref(), &accept, reason);
    }
}

/// `pool_percent` of the RAM that can be swapped: zswap counts its pool in percent of all RAM (zswap_max_pages, mm/zswap.c).
fn most_percent(given: Given<'_>) -> u32 {
    let Facts { ram, never_swapped, .. } = given.facts;
    let share = ram.0 as f64 / (ram.0.saturating_add(never_swapped.0)).max(1) as f64;
    ((f64::from(given.overrides.settings.pool_percent) * share) as u32).max(1)
}

/// The pool's capacity at this ratio, and the part that it can use: each of its pages needs a slot in a swap area, too.
pub(in crate::decide) fn could_hold(facts: &Facts, percent: u32, ratio: f64) -> (Bytes, Bytes) {
    let all_ram = Bytes(facts.ram.0.saturating_add(facts.never_swapped.0));
    let fits = all_ram.scaled(f64::from(percent) / 100.0 * ratio);
    (fits, fits.min(slots(facts)))
}

fn times_ram(facts: &Facts, percent: u32, ratio: f64) -> f64 {
    let holds = could_hold(facts, percent, ratio).1.0 as f64;
    let ram = facts.ram.0.max(1) as f64;
    (ram - holds / ratio + holds) / ram
}
