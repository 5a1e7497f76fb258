//! The choice of one back end; never two at once.

use eke_model::config::BackendChoice;
use eke_model::step::Reason;
use eke_model::units::Bytes;

use super::backend::{Backend, describe, first_area, is_durable, nothing};
use super::knobs::zsmalloc_evicts;
use super::{BadOverride, Given, existing};
use crate::facts::{DiskArea, DiskKind, Facts};

/// Less RAM than this cannot be true: it could not be read.
const LEAST_RAM: Bytes = Bytes::mib(16);

/// Chooses, with the reason.
///
/// # Errors
/// This machine cannot have the requested back end.
pub fn choose(given: Given<'_>) -> Result<(Backend, Reason), BadOverride> {
    let (facts, settings) = (given.facts, &given.overrides.settings);
    if let Some(why) = impossible(facts) {
        return Ok(nothing(why));
    }
    if let Some(found) = existing::found(facts, settings)? {
        return Ok(found);
    }
    match settings.backend {
        BackendChoice::Auto => Ok(automatic(facts, &given.measured.kernel)),
        BackendChoice::Zram if has_zram(facts) => {
            Ok((Backend::Zram, Reason::new("zram, because it was requested")))
        }
        BackendChoice::Zram => {
            Err(BadOverride(format!("backend = \"zram\", but {}", why_missing(facts, "zram"))))
        }
        BackendChoice::Zswap => forced_zswap(facts),
    }
}

fn impossible(facts: &Facts) -> Option<String> {
    if let Some(container) = &facts.container {
        return Some(format!("this is a container ({container}): swap belongs to its host, run eke there"));
    }
    if let Some(missing) = facts.missing.iter().find(|m| m.what == "swap") {
        return Some(missing.why.clone());
    }
    (facts.ram < LEAST_RAM)
        .then(|| format!("this machine shows {} of RAM, too little for compressed swap", facts.ram))
}

fn why_missing(facts: &Facts, what: &str) -> String {
    let missing = facts.missing.iter().find(|m| m.what == what);
    missing.map_or_else(|| format!("this kernel has no {what}"), |m| format!("{what} is missing: {}", m.why))
}

fn automatic(facts: &Facts, kernel: &str) -> (Backend, Reason) {
    match (first_area(facts), facts.zswap.is_some(), has_zram(facts)) {
        (Some(area), true, _) if is_durable(area.kind) => zswap(area, why_zswap(area, kernel)),
        (area, _, true) => (Backend::Zram, Reason::new(why_zram(area))),
        (Some(area), true, false) => zswap(
            area,
            format!(
                "zswap in front of {}, because {}: it is on {}, and pages compressed in RAM are not written there",
                area.path,
                why_missing(facts, "zram"),
                describe(area.kind)
            ),
        ),
        (Some(_), false, false) => {
            nothing(format!("{}; {}", why_missing(facts, "zram"), why_missing(facts, "zswap")))
        }
        (None, _, false) => {
            nothing(format!("{}, and zswap needs swap on a disk behind it", why_missing(facts, "zram")))
        }
    }
}

fn zswap(area: &DiskArea, why: String) -> (Backend, Reason) {
    (Backend::Zswap { area: area.path.clone() }, Reason::new(why))
}

/// Has the kernel zram, perhaps after loading its module?
fn has_zram(facts: &Facts) -> bool {
    facts.zram.control || facts.zram.loadable
}

fn why_zswap(area: &DiskArea, kernel: &str) -> String {
    let effect = if zsmalloc_evicts(kernel) {
        "hot pages stay compressed in RAM, and cold ones move to the disk"
    } else {
        "pages stay compressed in RAM until the pool is full, and later ones go to the disk (before Linux 6.2 the pool writes no older ones out)"
    };
    match area.kind {
        DiskKind::Unknown => format!(
            "zswap, because there is swap on a disk ({}), which is not known to wear out: {effect}",
            area.path
        ),
        kind => format!(
            "zswap, because there is swap on a disk that does not wear out ({}, {}): {effect}",
            area.path,
            describe(kind)
        ),
    }
}

fn why_zram(area: Option<&DiskArea>) -> String {
    match area {
        None => "zram, because there is no swap on a disk: pages stay in RAM, compressed".into(),
        Some(area) if is_durable(area.kind) => {
            format!("zram in front of {}, because this kernel has no zswap", area.path)
        }
        Some(area) => format!(
            "zram, because swap is on {} ({}): compressed pages stay in RAM and spare it",
            describe(area.kind),
            area.path
        ),
    }
}

fn forced_zswap(facts: &Facts) -> Result<(Backend, Reason), BadOverride> {
    if facts.zswap.is_none() {
        return Err(BadOverride(format!("backend = \"zswap\", but {}", why_missing(facts, "zswap"))));
    }
    match first_area(facts) {
        Some(area) => Ok(zswap(area, format!("zswap in front of {}, because it was requested", area.path))),
        None => Err(BadOverride("backend = \"zswap\", but zswap is a cache in front of swap on a disk and none is on: `swapon` one first, or use backend = \"zram\"".into())),
    }
}
