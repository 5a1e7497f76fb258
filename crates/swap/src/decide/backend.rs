//! Which compressed swap: one back end, never both.

use eke_core::config::{BackendChoice, ExistingChoice, SwapSettings};
use eke_core::step::Reason;
use serde::{Deserialize, Serialize};

use super::BadWish;
use crate::facts::{DiskArea, DiskKind, Facts};

/// The back end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Backend {
    /// A compressed block device in RAM.
    Zram,
    /// A compressed cache in front of this swap area.
    Zswap {
        /// The area.
        area: String,
    },
    /// A zram device that somebody else set up as swap; only the knobs around it are set.
    Adopted {
        /// `zram0`.
        device: String,
    },
    /// None: the reason says why.
    Nothing,
}

/// Chooses, with the reason.
///
/// # Errors
/// A back end that was asked for and that this machine cannot have.
pub fn choose(facts: &Facts, settings: &SwapSettings) -> Result<(Backend, Reason), BadWish> {
    if let Some(container) = &facts.container {
        return nothing(format!(
            "this is a container ({container}): swap belongs to its host, run eke there"
        ));
    }
    if let Some(found) = existing(facts, settings) {
        return Ok(found);
    }
    match settings.backend {
        BackendChoice::Auto => Ok(automatic(facts)),
        BackendChoice::Zram if has_zram(facts) => {
            Ok((Backend::Zram, Reason::new("zram, because the configuration says so")))
        }
        BackendChoice::Zram => {
            Err(BadWish(format!("backend = \"zram\", but {}", why_missing(facts, "zram"))))
        }
        BackendChoice::Zswap => forced_zswap(facts),
    }
}

fn nothing(why: String) -> Result<(Backend, Reason), BadWish> {
    Ok((Backend::Nothing, Reason::new(why)))
}

fn why_missing(facts: &Facts, what: &str) -> String {
    let missing = facts.missing.iter().find(|m| m.what.starts_with(what));
    missing.map_or_else(|| format!("this kernel has no {what}"), |m| format!("{}: {}", m.what, m.why))
}

fn existing(facts: &Facts, settings: &SwapSettings) -> Option<(Backend, Reason)> {
    let area = facts.areas.iter().find(|a| a.zram_name().is_some())?;
    let device = area.zram_name()?.to_owned();
    let owner = facts
        .managers
        .iter()
        .find(|m| m.devices.contains(&device))
        .map_or("somebody else", |m| m.name.as_str());
    match settings.existing {
        ExistingChoice::Adopt => {
            let why = format!(
                "{device} is compressed swap already, set up by {owner}: it is kept, only the settings around it are measured and set (existing = \"replace\" would put eke's own in its place)"
            );
            Some((Backend::Adopted { device }, Reason::new(why)))
        }
        ExistingChoice::Leave => Some((
            Backend::Nothing,
            Reason::new(format!(
                "{device} is compressed swap already, set up by {owner}, and existing = \"leave\""
            )),
        )),
        ExistingChoice::Replace => None,
    }
}

fn automatic(facts: &Facts) -> (Backend, Reason) {
    let durable = facts.disk_areas.iter().find(|a| lasts(a.kind));
    match (durable, &facts.zswap, has_zram(facts)) {
        (Some(area), Some(_), _) => (
            Backend::Zswap { area: area.path.clone() },
            Reason::new(format!(
                "zswap, because there is swap on a disk that does not wear out ({}, {}): hot pages stay in RAM compressed, cold ones move on to the disk",
                area.path,
                describe(area)
            )),
        ),
        (None, _, true) => (Backend::Zram, Reason::new(why_zram(facts))),
        (Some(area), None, true) => (
            Backend::Zram,
            Reason::new(format!("zram before {}, because this kernel has no zswap", area.path)),
        ),
        (Some(_), None, false) | (None, _, false) => {
            (Backend::Nothing, Reason::new(why_missing(facts, "zram")))
        }
    }
}

/// Here, or by loading its module.
fn has_zram(facts: &Facts) -> bool {
    facts.zram.control || facts.zram.loadable
}

fn why_zram(facts: &Facts) -> String {
    match facts.disk_areas.first() {
        None => "zram, because there is no swap on a disk: pages stay in RAM, compressed".into(),
        Some(area) => format!(
            "zram, because the only swap ({}) is on {}: compressed pages stay in RAM and spare it",
            area.path,
            describe(area)
        ),
    }
}

fn forced_zswap(facts: &Facts) -> Result<(Backend, Reason), BadWish> {
    if facts.zswap.is_none() {
        return Err(BadWish(format!("backend = \"zswap\", but {}", why_missing(facts, "zswap"))));
    }
    match facts.disk_areas.first() {
        Some(area) => Ok((Backend::Zswap { area: area.path.clone() }, Reason::new("zswap, because the configuration says so"))),
        None => Err(BadWish("backend = \"zswap\", but zswap is a cache in front of swap on a disk and none is on: `swapon` one first, or use backend = \"zram\"".into())),
    }
}

/// SSDs count as lasting: with a compressed pool in front little reaches them. SD cards, eMMC and USB sticks do not.
/// What is not known (a virtual disk) is not feared.
fn lasts(kind: DiskKind) -> bool {
    matches!(kind, DiskKind::Rotating | DiskKind::Solid | DiskKind::Unknown)
}

fn describe(area: &DiskArea) -> &'static str {
    match area.kind {
        DiskKind::Rotating => "a disk that seeks",
        DiskKind::Solid => "a solid-state disk",
        DiskKind::WearsOut => "a card or stick that wears out",
        DiskKind::Network => "a network disk, where swapping can stall",
        DiskKind::Unknown => "a disk of unknown kind",
    }
}
