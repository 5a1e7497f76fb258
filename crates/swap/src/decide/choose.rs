//! The choice of one back end; never two at once.

use eke_model::config::{BackendChoice, SwapSettings};
use eke_model::step::Reason;
use eke_model::units::Bytes;

use super::backend::{Backend, describe, first_area, is_durable, nothing, slots};
use super::knobs::zsmalloc_evicts;
use super::{BadOverride, existing, groups, overcommit};
use crate::facts::{DiskArea, DiskKind, Facts};
use crate::probe::KUBELET;

/// In front of areas that hold less than this share of RAM, zram takes zswap's place. Both may have the same share of RAM for compressed pages, but
/// zswap needs a slot on the disk for each page, and zram has its own: in front of an installer's 1 GB it holds more than twice as much, and the
/// area stays on behind it. Below this share zswap gains little at any ratio; above it, moving cold pages to the disk counts for more.
const LEAST_SLOTS: f64 = 0.5;

/// Less RAM than this cannot be true: it could not be read.
const LEAST_RAM: Bytes = Bytes::mib(16);

/// Chooses, with the reason. It needs no measurement. `kernel` is its release: the reason says what zswap does there.
///
/// # Errors
/// This machine cannot have the requested back end.
pub fn choose(
    facts: &Facts,
    settings: &SwapSettings,
    kernel: &str,
) -> Result<(Backend, Reason), BadOverride> {
    if let Some(why) = impossible(facts) {
        return Ok(nothing(why));
    }
    if let Some(found) = existing::found(facts, settings)? {
        return Ok(found);
    }
    match settings.backend {
        BackendChoice::Auto => Ok(overcommit::unless_limited(facts, automatic(facts, kernel))),
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
    if let Some(elsewhere) = facts.elsewhere() {
        return Some(format!("this is {elsewhere}"));
    }
    if let Some(missing) = facts.missing.iter().find(|m| m.what == "swap") {
        return Some(missing.why.clone());
    }
    if let Some(why) = no_swap_for_kubelet(facts).filter(|_| facts.areas.is_empty()) {
        return Some(why);
    }
    (facts.ram < LEAST_RAM)
        .then(|| format!("this machine shows {} of RAM, too little for compressed swap", facts.ram))
}

/// Where swap is on already, kubelet lives with it.
fn no_swap_for_kubelet(facts: &Facts) -> Option<String> {
    if let Some(unread) = facts.missing.iter().find(|m| m.what == KUBELET) {
        return Some(unread.why.clone() + if facts.is_root { "" } else { "; run as root" });
    }
    let found = facts.kubelet.as_ref()?;
    Some(format!(
        "kubelet ({found}) does not start again once swap is on, and this machine would leave its cluster: set `failSwapOn: false` in its configuration (kubeadm's is /var/lib/kubelet/config.yaml) and restart it first"
    ))
}

fn why_missing(facts: &Facts, what: &str) -> String {
    let missing = facts.missing.iter().find(|m| m.what == what);
    missing.map_or_else(|| format!("this kernel has no {what}"), |m| format!("{what} is missing: {}", m.why))
}

/// The back end without requests.
fn automatic(facts: &Facts, kernel: &str) -> (Backend, Reason) {
    match (first_area(facts), facts.zswap.is_some(), has_zram(facts)) {
        (Some(area), true, zram) if is_durable(area.kind) && (!zram || has_slots(facts, facts.ram)) => {
            zswap(area, why_zswap(area, kernel))
        }
        (Some(area), true, true)
            if is_durable(area.kind)
                && groups::need_zswap(facts)
                && has_slots(facts, groups::limits(facts)) =>
        {
            zswap(area, groups::why_zswap(facts, area))
        }
        (area, _, true) => (Backend::Zram, why_zram(facts, area)),
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

/// Have the areas on disks enough slots for the pages of so much memory that zswap would compress?
fn has_slots(facts: &Facts, memory: Bytes) -> bool {
    slots(facts) >= memory.scaled(LEAST_SLOTS)
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

fn why_zram(facts: &Facts, area: Option<&DiskArea>) -> Reason {
    let slots = slots(facts);
    let percent = 100.0 * slots.0 as f64 / facts.ram.0.max(1) as f64;
    let text = match area {
        None => "zram, because there is no swap on a disk: pages stay in RAM, compressed".into(),
        Some(area) if is_durable(area.kind) && facts.zswap.is_none() => {
            format!("zram in front of {}, because this kernel has no zswap", area.path)
        }
        Some(area) if is_durable(area.kind) => format!(
            "zram in front of {}, because swap on disks has only {slots}, {percent:.0} % of RAM: zswap needs a slot there for each page that it compresses, and zram has its own",
            area.path
        ),
        Some(area) => format!(
            "zram, because swap is on {} ({}): compressed pages stay in RAM and spare it",
            describe(area.kind),
            area.path
        ),
    };
    Reason::new(text)
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
