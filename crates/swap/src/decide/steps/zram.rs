//! A new zram device, and the settings around it.

use eke_model::step::{Plan, Reason, Step, UnnamedFile, ZramSpec};
use eke_model::units::Bytes;

use super::Chosen;
use super::shared::{
    SwapIn, existing_off, lru_gen, never_swapped, page_cluster, prediction, swappiness, zswap_off,
};
use crate::decide::algorithm::is_usable;
use crate::decide::size;
use crate::decide::writeback::{self, Behind};
use crate::decide::{BadOverride, Given};
use crate::facts::Facts;
use crate::measure::Dictionary;
use crate::measure::measurements::AlgorithmMeasurement;

/// The lowest priority of eke's first device.
const PRIORITY: i16 = 100;

/// The parameter of zram's module: devices are made by `hot_add` alone.
pub const NO_DEVICES: &str = "num_devices=0";

/// A table of this size is named in the plan.
const MUCH: Bytes = Bytes::mib(1024);

/// The least gain in ratio of a second algorithm over the first.
const STRONGER: f64 = 1.05;

/// Switches zswap off before adding the device. Swaps off a replaced device after that, so that its pages have a place to go.
pub(super) fn set_up(plan: &mut Plan, given: Given<'_>, chosen: &Chosen<'_>) -> Result<(), BadOverride> {
    let spec = spec(given, chosen)?;
    if !given.facts.zram.control {
        let module = Step::LoadModule { name: "zram".into(), params: NO_DEVICES.into() };
        plan.push(module, Reason::new("zram is a module of this kernel and is not loaded"));
    }
    zswap_off(plan, given.facts);
    let reason = reason(given, chosen, &spec);
    plan.push(Step::AddZram(spec), reason);
    existing_off(plan, given.facts, "eke's own device replaces it while the plan is applied");
    page_cluster(plan, given.facts, chosen.row.load_p50);
    lru_gen(plan, given);
    swappiness(plan, given, &SwapIn { cost: chosen.row.load_p50, from: "zram" });
    plan.prediction = Some(prediction(chosen.row, chosen.size.ratio_expected, chosen.size.times_ram));
    Ok(())
}

fn reason(given: Given<'_>, chosen: &Chosen<'_>, spec: &ZramSpec) -> Reason {
    let size = chosen.size;
    let capped = size.capped_at.map_or_else(String::new, |most| {
        let times = if most > 2.0 { "three times" } else { "twice" };
        format!("the size is capped at {times} the RAM, and ")
    });
    let doubt = if chosen.choice.trusted {
        String::new()
    } else {
        format!(" ({} pages were measured, too few to trust their ratio)", chosen.row.pages)
    };
    let text = format!(
        "{}; {capped}a full device takes about {:.0} % of RAM, computed with {:.2} to 1{doubt}{}{}{}",
        chosen.choice.reason.text,
        100.0 * size.pool_share,
        size.ratio_used,
        at_once(given.facts, spec.disksize),
        never_swapped(given.facts),
        written_back(given, spec),
    );
    Reason { text, numbers: chosen.choice.reason.numbers.clone() }
        .with("pool_share", size.pool_share)
        .with("ratio_used", size.ratio_used)
}

/// What the device takes before it stores a page, where that is much.
fn at_once(facts: &Facts, disksize: Bytes) -> String {
    let table = size::table(facts, disksize);
    if table < MUCH { String::new() } else { format!("; its table takes {table} of that at once") }
}

/// Where that goes which does not compress.
fn written_back(given: Given<'_>, spec: &ZramSpec) -> String {
    let place = match (&spec.backing_dev, &spec.backing_file) {
        (Some(device), _) => {
            let how = if spec.backing_encrypted { "encrypted" } else { "as they are" };
            match writeback::unstable(given) {
                Some(warning) => format!("{device}, {how} ({warning})"),
                None => format!("{device}, {how}"),
            }
        }
        (None, Some(UnnamedFile { directory, size, encrypted })) => {
            let kind = if *encrypted { "an encrypted" } else { "a plain" };
            format!("{kind} file of {size} in {directory}")
        }
        (None, None) => return String::new(),
    };
    format!("; pages that do not compress are written back to {place}")
}

fn spec(given: Given<'_>, chosen: &Chosen<'_>) -> Result<ZramSpec, BadOverride> {
    let Behind { device, is_encrypted, file } = writeback::behind(given)?;
    Ok(ZramSpec {
        algorithm: chosen.row.name.clone(),
        params: chosen.row.params.clone(),
        dictionary: given
            .measured
            .dictionary
            .as_ref()
            .filter(|_| chosen.row.dictionary)
            .map(Dictionary::path),
        recompress_with: recompress_with(given, chosen.row),
        backing_dev: device,
        backing_encrypted: is_encrypted,
        backing_file: file,
        disksize: chosen.size.holds,
        swap_priority: Some(priority(given.facts)),
    })
}

/// The algorithm with the highest ratio, at any cost: it is for idle pages.
fn recompress_with(given: Given<'_>, first: &AlgorithmMeasurement) -> Option<String> {
    let may = given.overrides.settings.recompress && given.zram_features().is_some_and(|f| f.recompression);
    let rows = given.measured.algorithms.iter().filter(|r| r.in_zram && r.is_as_shipped() && is_usable(r));
    let stronger = rows.filter(|r| may && r.name != first.name && r.ratio > first.ratio * STRONGER);
    stronger.max_by(|a, b| a.ratio.total_cmp(&b.ratio)).map(|r| r.name.clone())
}

/// A priority above every area, also above those that are replaced after it.
fn priority(facts: &Facts) -> i16 {
    let highest = facts.areas.iter().map(|a| a.priority).max().unwrap_or(-1);
    i16::try_from(highest.saturating_add(1)).unwrap_or(i16::MAX).max(PRIORITY)
}
