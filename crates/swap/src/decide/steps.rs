//! The steps of a decision, each with its reason.

use eke_core::step::{Plan, Prediction, Reason, Step, ZramSpec};
use eke_core::units::Nanos;

use super::Wish;
use super::algorithm::Choice;
use super::backend::Backend;
use super::knobs;
use super::size::Size;
use crate::facts::{Facts, ZswapFacts};
use crate::measure::figures::{AlgorithmFigures, Measured};

/// The priority of eke's first device, if nothing else is above it.
const PRIORITY: i16 = 100;

/// zram's parameter: devices come by `hot_add` alone.
pub(crate) const NO_DEVICES: &str = "num_devices=0";

/// What was chosen.
pub(super) struct Chosen<'a> {
    pub backend: &'a Backend,
    pub figures: &'a AlgorithmFigures,
    pub size: Size,
    pub choice: &'a Choice,
}

pub(super) fn set_up(plan: &mut Plan, facts: &Facts, measured: &Measured, wish: &Wish, chosen: &Chosen<'_>) {
    match chosen.backend {
        Backend::Zswap { .. } => zswap(plan, facts, measured, wish, chosen),
        _ => zram(plan, facts, measured, wish, chosen),
    }
}

fn zram(plan: &mut Plan, facts: &Facts, measured: &Measured, wish: &Wish, chosen: &Chosen<'_>) {
    let (figures, size) = (chosen.figures, chosen.size);
    if !facts.zram.control {
        let module = Step::LoadModule { name: "zram".into(), params: NO_DEVICES.into() };
        plan.push(module, Reason::new("zram is a module of this kernel and is not loaded"));
    }
    zswap_off(plan, facts);
    replaced(plan, facts);
    let text = format!(
        "{}; a full device takes about {:.0} % of RAM, computed with {:.2} to 1{}",
        chosen.choice.reason.text,
        100.0 * size.pool_share,
        size.ratio_used,
        if chosen.choice.trusted { "" } else { " (too few pages were sampled to believe their ratio)" }
    );
    let reason = Reason { text, figures: chosen.choice.reason.figures.clone() };
    plan.push(
        Step::AddZram(spec(facts, measured, wish, figures, size)),
        reason.with("pool_share", size.pool_share).with("ratio_used", size.ratio_used),
    );
    page_cluster(plan, facts, figures);
    swappiness(plan, facts, measured, figures.load_p50, "zram");
    plan.prediction = Some(prediction(figures, size.times_ram));
}

fn spec(facts: &Facts, measured: &Measured, wish: &Wish, figures: &AlgorithmFigures, size: Size) -> ZramSpec {
    let features = measured.zram_features.clone().or_else(|| facts.zram.features.clone()).unwrap_or_default();
    let second = ["zstd", "deflate", "lz4hc"]
        .into_iter()
        .find(|a| *a != figures.name && features.algorithms.iter().any(|o| o == a));
    let writeback = &wish.settings.writeback_device;
    let highest =
        facts.areas.iter().filter(|a| a.zram_name().is_none()).map(|a| a.priority).max().unwrap_or(-1);
    ZramSpec {
        algorithm: figures.name.clone(),
        params: figures.params.clone(),
        recompress_with: second
            .filter(|_| wish.settings.recompress && features.recompression && figures.name != "zstd")
            .map(str::to_owned),
        backing_dev: (!writeback.is_empty() && features.writeback).then(|| writeback.clone()),
        disksize: size.holds,
        swap_priority: Some(i16::try_from(highest + 1).unwrap_or(i16::MAX).max(PRIORITY)),
    }
}

fn zswap_off(plan: &mut Plan, facts: &Facts) {
    if facts.zswap.as_ref().is_some_and(|z| z.enabled) {
        plan.push(
            Step::set("zswap.enabled", "N"),
            Reason::new("zswap before zram would compress every page twice"),
        );
    }
}

fn replaced(plan: &mut Plan, facts: &Facts) {
    for area in facts.areas.iter().filter(|a| a.zram_name().is_some()) {
        plan.push(
            Step::SwapOff { path: area.path.clone() },
            Reason::new("existing = \"replace\": eke's own takes its place while it is up"),
        );
    }
}

fn page_cluster(plan: &mut Plan, facts: &Facts, figures: &AlgorithmFigures) {
    if facts.page_cluster.is_some_and(|c| c != 0) {
        let text = format!(
            "neighbours are not worth waiting for: each costs another {} on the way back, there is no seek to save",
            figures.load_p50
        );
        plan.push(
            Step::set("vm.page-cluster", 0),
            Reason::new(text).with("load_p50_ns", figures.load_p50.0 as f64),
        );
    }
}

/// The machine's swappiness, and on cgroup v1 that of every group that still had the machine's.
fn swappiness(plan: &mut Plan, facts: &Facts, measured: &Measured, swap_in: Nanos, from: &str) {
    let (Some(file), Some(before)) = (&measured.file_read, facts.swappiness) else { return };
    let value = knobs::swappiness(swap_in, file.p50);
    if value == before {
        return;
    }
    let text = format!(
        "a page from {from} costs {swap_in}, one from a file {}: by the kernel document's formula",
        file.p50
    );
    let reason =
        Reason::new(text).with("swap_in_ns", swap_in.0 as f64).with("file_read_ns", file.p50.0 as f64);
    plan.push(Step::set("vm.swappiness", value), reason);
    for group in facts.memory_groups_v1.iter().filter(|g| !g.group.is_empty() && g.swappiness == before) {
        let reason =
            Reason::new("on cgroup v1 a group's own value counts, and this one still has the machine's");
        plan.push(Step::set_at("memory.swappiness", &group.group, value), reason);
    }
}

fn zswap(plan: &mut Plan, facts: &Facts, measured: &Measured, wish: &Wish, chosen: &Chosen<'_>) {
    let Some(now) = &facts.zswap else { return };
    replaced(plan, facts);
    let disk = measured.swap_disk.as_ref().map(|d| d.p50);
    let pool = disk
        .map_or(wish.settings.pool_percent, |p50| knobs::zswap_pool_percent(p50, wish.settings.pool_percent));
    allocator(plan, now);
    let reason = &chosen.choice.reason;
    plan_set(plan, "zswap.compressor", &now.compressor, &chosen.figures.name, reason.clone());
    pool_percent(plan, now, pool, disk);
    if now.shrinker == Some(false) {
        plan.push(
            Step::set("zswap.shrinker_enabled", "Y"),
            Reason::new("cold pages move on to the disk before the pool is full"),
        );
    }
    let on = Reason::new("pages on their way to the disk are kept compressed in RAM");
    plan_set(plan, "zswap.enabled", if now.enabled { "Y" } else { "N" }, "Y", on);
    let swap_in = disk.map_or(chosen.figures.load_p50, |d| knobs::zswap_swap_in(chosen.figures.load_p50, d));
    swappiness(plan, facts, measured, swap_in, "zswap (nine of ten assumed in the pool)");
    let share = f64::from(pool) / 100.0;
    plan.prediction = Some(prediction(chosen.figures, 1.0 - share + share * chosen.figures.ratio));
}

fn plan_set(plan: &mut Plan, knob: &str, now: &str, value: &str, reason: Reason) {
    if now != value {
        plan.push(Step::set(knob, value), reason);
    }
}

fn allocator(plan: &mut Plan, now: &ZswapFacts) {
    if let Some(zpool) = now.zpool.as_ref().filter(|z| *z != "zsmalloc") {
        plan.push(
            Step::set("zswap.zpool", "zsmalloc"),
            Reason::new(format!("{zpool} holds at most two or three pages in one, zsmalloc packs any size")),
        );
    }
}

fn pool_percent(plan: &mut Plan, now: &ZswapFacts, pool: u32, disk: Option<Nanos>) {
    let why = disk.map_or_else(
        || "the swap disk could not be measured".to_owned(),
        |d| format!("a page from the swap disk costs {d}"),
    );
    if now.max_pool_percent.is_some_and(|p| p != pool) {
        let mut reason = Reason::new(format!("the slower the disk, the larger the pool: {why}"));
        reason = disk.map_or(reason.clone(), |d| reason.with("disk_p50_ns", d.0 as f64));
        plan.push(Step::set("zswap.max_pool_percent", pool), reason);
    }
    let accept = knobs::zswap_accept_percent(pool);
    if now.accept_threshold_percent.is_some_and(|a| a != accept) {
        plan.push(
            Step::set("zswap.accept_threshold_percent", accept),
            Reason::new("keeps the kernel's gap of 2 % of RAM between full and taking pages again"),
        );
    }
}

/// Only the settings around somebody else's device.
pub(super) fn around_adopted(plan: &mut Plan, facts: &Facts, measured: &Measured, device: &str) {
    zswap_off(plan, facts);
    let usable = |r: &&AlgorithmFigures| r.in_zram && r.params.is_none() && r.ratio > 0.0;
    let stat = facts.zram_in_use.iter().find(|z| z.name == device);
    let own = measured.algorithms.iter().filter(usable).find(|r| stat.is_some_and(|z| z.algorithm == r.name));
    let Some(figures) = own.or_else(|| measured.algorithms.iter().find(usable)) else { return };
    page_cluster(plan, facts, figures);
    swappiness(plan, facts, measured, figures.load_p50, device);
    let size =
        facts.areas.iter().filter(|a| a.zram_name() == Some(device)).map(|a| a.size.0).sum::<u64>() as f64;
    let ram = facts.ram.0.max(1) as f64;
    plan.prediction = Some(prediction(figures, (ram + size - size / figures.ratio.max(1.0)) / ram));
}

fn prediction(figures: &AlgorithmFigures, holds_times_ram: f64) -> Prediction {
    Prediction {
        ratio: figures.ratio,
        holds_times_ram,
        load_p50_ns: figures.load_p50.0,
        load_p99_ns: figures.load_p99.0,
        incompressible_share: figures.incompressible_share,
    }
}
