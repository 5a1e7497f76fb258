//! The user's own block device for incompressible pages. zram overwrites it, so it must be free.

use eke_model::step::Reason;

use super::{BadOverride, Given};

/// The device for `backing_dev`; `None` if none is requested, or the kernel has no writeback.
///
/// # Errors
/// The device is in use, by the facts. The kernel itself checks whether it is mounted.
pub(super) fn device(given: Given<'_>) -> Result<Option<String>, BadOverride> {
    let Some(requested) = requested(given) else { return Ok(None) };
    if let Some(why) = taken(given, requested) {
        return Err(BadOverride(format!(
            "writeback_device = \"{requested}\" cannot be used, because zram overwrites it: {why}"
        )));
    }
    Ok(given.zram_features().is_some_and(|f| f.writeback).then(|| requested.to_owned()))
}

/// Why the requested device is not used, for the end of a plan that sets up zram.
pub(super) fn unused(given: Given<'_>) -> Option<Reason> {
    let requested = requested(given)?;
    let why = match given.zram_features() {
        Some(features) if features.writeback => return None,
        Some(_) => "this kernel's zram has no writeback (CONFIG_ZRAM_WRITEBACK, Linux 4.14)",
        None => "without a zram device it is unknown whether this kernel has writeback",
    };
    Some(Reason::new(format!("writeback_device = \"{requested}\" is not used: {why}")))
}

/// The requested device. With a budget of 0 MiB a day nothing would ever be written, so there is none.
pub(super) fn requested(given: Given<'_>) -> Option<&str> {
    let settings = &given.overrides.settings;
    let is_requested = !settings.writeback_device.is_empty() && settings.writeback_mib_per_day > 0;
    is_requested.then_some(settings.writeback_device.as_str())
}

/// zram opens the device exclusively, so the kernel refuses what is mounted or swapped on. What it would not refuse: an area for hibernation that is
/// not on, and a whole disk whose partitions are not in use.
fn taken(given: Given<'_>, path: &str) -> Option<String> {
    if !path.starts_with("/dev/") {
        return Some("it is not a block device in /dev (a file needs a loop device)".into());
    }
    let Some(device) = given.facts.writeback.as_ref().filter(|device| device.path == path) else {
        return Some("this machine has no block device of that name".into());
    };
    let name = device.name.as_str();
    if name.starts_with("zram") {
        return Some("it is compressed memory itself".into());
    }
    swapped_on(given, path, name)
        .or_else(|| hibernated_to(given, path, name))
        .or_else(|| holds_files(given, name))
        .or_else(|| device.is_partitioned.then(|| format!("{name} has partitions: give one of them")))
}

fn swapped_on(given: Given<'_>, path: &str, name: &str) -> Option<String> {
    if given.facts.areas.iter().any(|a| a.device.as_deref() == Some(name) || a.path == path) {
        return Some("it is in use as swap".into());
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
