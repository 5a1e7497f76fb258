//! The user's own block device for pages that do not compress, if it may be had: zram overwrites it.

use eke_model::step::Reason;

use super::{BadOverride, Given};

/// The device for `backing_dev`; `None` if none is wished or the kernel cannot.
///
/// # Errors
/// A device that is something else already, as far as the facts tell; whether it is mounted the kernel itself checks.
pub(super) fn device(given: Given<'_>) -> Result<Option<String>, BadOverride> {
    let Some(wished) = wished(given) else { return Ok(None) };
    if let Some(why) = taken(given, wished) {
        return Err(BadOverride(format!("writeback_device = \"{wished}\" would be overwritten, but {why}")));
    }
    Ok(given.zram_features().is_some_and(|f| f.writeback).then(|| wished.to_owned()))
}

/// Why the overrides stays without effect, for the end of a plan that sets up zram.
pub(super) fn unused(given: Given<'_>) -> Option<Reason> {
    let wished = wished(given)?;
    let why = match given.zram_features() {
        Some(features) if features.writeback => return None,
        Some(_) => "this kernel's zram has no writeback (CONFIG_ZRAM_WRITEBACK, Linux 4.14)",
        None => "no zram device exists that shows whether this kernel has writeback",
    };
    Some(Reason::new(format!("writeback_device = \"{wished}\" is not used: {why}")))
}

/// A budget of 0 MiB a day means that nothing would ever be written.
pub(super) fn wished(given: Given<'_>) -> Option<&str> {
    let settings = &given.overrides.settings;
    let wanted = !settings.writeback_device.is_empty() && settings.writeback_mib_per_day > 0;
    wanted.then_some(settings.writeback_device.as_str())
}

fn taken(given: Given<'_>, path: &str) -> Option<String> {
    let Some(name) = path.strip_prefix("/dev/") else {
        return Some("it is not a block device in /dev (a file needs a loop device)".into());
    };
    if name.starts_with("zram") {
        return Some("it is compressed memory itself".into());
    }
    swapped_on(given, path, name)
        .or_else(|| hibernated_to(given, path, name))
        .or_else(|| holds_files(given, name))
}

fn swapped_on(given: Given<'_>, path: &str, name: &str) -> Option<String> {
    if given.facts.areas.iter().any(|a| a.device.as_deref() == Some(name) || a.path == path) {
        return Some("it is swap that is on".into());
    }
    let on_it = given.facts.disk_areas.iter().find(|a| a.device.as_deref() == Some(name))?;
    Some(format!("the swap area {} is on it", on_it.path))
}

fn hibernated_to(given: Given<'_>, path: &str, name: &str) -> Option<String> {
    let place = given.facts.hibernation.as_ref()?;
    let same = place.device.as_deref() == Some(name) || place.resume == path;
    same.then(|| format!("the machine hibernates to it ({})", place.source))
}

fn holds_files(given: Given<'_>, name: &str) -> Option<String> {
    let files = given.measured.file_read.as_ref().filter(|f| f.device.as_deref() == Some(name))?;
    Some(format!("the files of {} are on it", files.what))
}
