//! Existing compressed swap: adopted, left alone, or replaced.

use eke_model::config::{BackendChoice, ExistingChoice, SwapSettings};
use eke_model::step::Reason;

use super::BadOverride;
use super::backend::{Backend, first_area, nothing};
use crate::facts::Facts;

/// The decision that follows from existing swap; `None` if none does.
///
/// # Errors
/// zswap is requested, but zram is to be kept.
pub(super) fn found(
    facts: &Facts,
    settings: &SwapSettings,
) -> Result<Option<(Backend, Reason)>, BadOverride> {
    let Some(device) = facts.areas.iter().find_map(|a| a.zram_name()) else {
        return Ok(zswap_left(facts, settings));
    };
    let there = format!("{} already{}", devices(facts), owner(facts, device));
    match (settings.existing, settings.backend) {
        (ExistingChoice::Replace, _) => Ok(None),
        (ExistingChoice::Leave, _) => Ok(Some(nothing(format!("{there}, and existing = \"leave\"")))),
        (ExistingChoice::Adopt, BackendChoice::Zswap) => Err(BadOverride(format!(
            "backend = \"zswap\", but {there}, and both at once are never used: existing = \"replace\" swaps that off first"
        ))),
        (ExistingChoice::Adopt, _) => {
            Ok(Some((Backend::Adopted { device: device.to_owned() }, adopted(&there))))
        }
    }
}

fn adopted(there: &str) -> Reason {
    Reason::new(format!(
        "{there}: it is kept, and only the settings around it are measured and set (existing = \"replace\" would set up eke's own instead)"
    ))
}

fn devices(facts: &Facts) -> String {
    let names: Vec<&str> = facts.areas.iter().filter_map(|a| a.zram_name()).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb} compressed swap", names.join(", "))
}

/// Two programs can claim a device by default; the one that acts at boot counts.
fn owner(facts: &Facts, device: &str) -> String {
    let claims = || facts.managers.iter().filter(|m| m.devices.iter().any(|d| d == device));
    let owner = claims().find(|m| m.active).or_else(|| claims().next());
    owner.map_or(String::new(), |m| format!(", set up by {}", m.name))
}

/// zswap is tuned, not replaced, so only "leave" changes the decision. Without an area behind it zswap does nothing.
fn zswap_left(facts: &Facts, settings: &SwapSettings) -> Option<(Backend, Reason)> {
    let zswap = facts.zswap.as_ref().filter(|z| z.enabled)?;
    let area = first_area(facts).filter(|_| settings.existing == ExistingChoice::Leave)?;
    Some(nothing(format!(
        "zswap ({}) is on already in front of {}, and existing = \"leave\"",
        zswap.compressor, area.path
    )))
}
