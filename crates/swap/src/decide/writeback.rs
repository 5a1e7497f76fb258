//! The user's own disk for incompressible pages: a block device, which zram overwrites, so it must be free; or a directory for a file.

use std::fmt;

use eke_linux::parse::file_system::{Nature, nature};
use eke_model::step::{Reason, UnnamedFile};
use eke_model::units::Bytes;

use super::{BadOverride, Given};
use crate::facts::WritebackDirectory;

/// A file leaves at least this share of its file system free.
const LEFT_FREE: f64 = 0.1;

/// What is behind the new zram device: one of both, or nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Behind {
    /// For `backing_dev`.
    pub device: Option<String>,
    /// Is that encrypted?
    pub is_encrypted: bool,
    /// A file for it.
    pub file: Option<UnnamedFile>,
}

/// What is requested, as in the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request<'a> {
    Device(&'a str),
    Directory(&'a str),
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(path) => write!(f, "writeback_device = \"{path}\""),
            Self::Directory(path) => write!(f, "writeback_directory = \"{path}\""),
        }
    }
}

/// What to put behind the device; nothing if nothing is requested, or the kernel has no writeback.
///
/// # Errors
/// The requested place cannot be used, by the facts. The kernel itself checks whether a device is mounted.
pub(super) fn behind(given: Given<'_>) -> Result<Behind, BadOverride> {
    let settings = &given.overrides.settings;
    if !settings.writeback_device.is_empty() && !settings.writeback_directory.is_empty() {
        let text = "writeback_device and writeback_directory are both set: zram has room for one of them behind a device";
        return Err(BadOverride(text.into()));
    }
    let behind = match requested(given) {
        None => Behind::default(),
        Some(Request::Device(path)) => device(given, path)?,
        Some(Request::Directory(path)) => Behind { file: file(given, path)?, ..Behind::default() },
    };
    Ok(if unused(given).is_none() { behind } else { Behind::default() })
}

/// Why the requested place is not used, for the end of a plan that sets up zram.
pub(super) fn unused(given: Given<'_>) -> Option<Reason> {
    let request = requested(given)?;
    let why = match given.zram_features() {
        Some(features) if features.writeback => absent(given)?,
        Some(_) => "this kernel's zram has no writeback (CONFIG_ZRAM_WRITEBACK, Linux 4.14)".into(),
        None => "without a zram device it is unknown whether this kernel has writeback".into(),
    };
    Some(Reason::new(format!("{request} is not used: {why}")))
}

/// What is requested. With a budget of 0 MiB a day nothing would ever be written, so it is nothing.
pub(super) fn requested(given: Given<'_>) -> Option<Request<'_>> {
    let settings = &given.overrides.settings;
    let (device, directory) = (settings.writeback_device.as_str(), settings.writeback_directory.as_str());
    let request = match (device, directory) {
        ("", "") => return None,
        ("", directory) => Request::Directory(directory),
        (device, _) => Request::Device(device),
    };
    (settings.writeback_mib_per_day > 0).then_some(request)
}

/// The device; nothing if [`absent`] says that there is none.
fn device(given: Given<'_>, path: &str) -> Result<Behind, BadOverride> {
    if let Some(why) = taken(given, path) {
        let request = Request::Device(path);
        return Err(BadOverride(format!("{request} cannot be used, because zram overwrites it: {why}")));
    }
    let Some(device) = given.facts.writeback.as_ref() else { return Ok(Behind::default()) };
    Ok(Behind { device: Some(path.to_owned()), is_encrypted: device.may_encrypt, file: None })
}

/// The file in the directory; `None` if [`absent`] says why there is none.
fn file(given: Given<'_>, path: &str) -> Result<Option<UnnamedFile>, BadOverride> {
    let settings = &given.overrides.settings;
    let size = Bytes::mib(settings.writeback_file_mib.into());
    let refused = |why: String| BadOverride(format!("{} cannot be used: {why}", Request::Directory(path)));
    let Some(directory) = given.facts.writeback_directory.as_ref() else { return Ok(None) };
    if let Some(why) = no_disk(directory) {
        return Err(refused(why));
    }
    Ok(Some(UnnamedFile { directory: path.to_owned(), size, encrypted: directory.may_encrypt }))
}

/// Pages that left memory must not be in it again, and to load one must not wait for another machine or a program.
fn no_disk(directory: &WritebackDirectory) -> Option<String> {
    let kind = &directory.file_system;
    let why = match nature(kind) {
        Nature::Disk => return None,
        Nature::Memory => "is in memory itself",
        Nature::Network | Nature::Trigger => {
            "is of another machine or a program, for which a page would wait"
        }
        Nature::Overlay | Nature::Opaque => "does not say which disk it is on",
    };
    Some(format!("its file system ({kind}) {why}"))
}

/// What may be so at one boot and not at the next: a disk that is not there, another one under its name, one that got full or is mapped, another kernel. Then swap is set up without writeback.
fn absent(given: Given<'_>) -> Option<String> {
    match requested(given)? {
        Request::Device(path) => match given.facts.writeback.as_ref().filter(|device| device.path == path) {
            None => Some("this machine has no block device of that name".into()),
            Some(device) => {
                let occupied = device.holds.as_ref().map(|holds| occupied(path, holds));
                let unusable = device.unusable.clone().or(occupied);
                unusable.or_else(|| readable(given, device.may_encrypt))
            }
        },
        Request::Directory(_) => match given.facts.writeback_directory.as_ref() {
            None => Some("there is no such directory".into()),
            Some(directory) => readable(given, directory.may_encrypt).or_else(|| no_room(given, directory)),
        },
    }
}

fn readable(given: Given<'_>, may_encrypt: bool) -> Option<String> {
    (!may_encrypt && !given.overrides.settings.writeback_unencrypted).then(|| {
        "this kernel has no dm-crypt, or may not load it, and without it pages of memory would stay readable on the disk \
         (writeback_unencrypted = true allows that)"
            .into()
    })
}

fn no_room(given: Given<'_>, directory: &WritebackDirectory) -> Option<String> {
    // Its space is not known where it may hang, and such a place is refused.
    if directory.size == Bytes(0) {
        return None;
    }
    let size = Bytes::mib(given.overrides.settings.writeback_file_mib.into());
    let left = directory.size.scaled(LEFT_FREE);
    (directory.free.0 < size.0.saturating_add(left.0)).then(|| {
        format!(
            "a file of {size} (writeback_file_mib) would leave less than a tenth of its file system free: {} of {} are",
            directory.free, directory.size
        )
    })
}

/// zram opens the device exclusively, so the kernel refuses what is mounted or swapped on. What it would not refuse: an area for hibernation that is
/// not on, a whole disk whose partitions are not in use, and a file system that is not mounted ([`occupied`]).
fn taken(given: Given<'_>, path: &str) -> Option<String> {
    if !path.starts_with("/dev/") {
        return Some("it is not a block device in /dev (for a file there is writeback_directory)".into());
    }
    let device = given.facts.writeback.as_ref().filter(|device| device.path == path)?;
    let name = device.name.as_str();
    if name.starts_with("zram") {
        return Some("it is compressed memory itself".into());
    }
    swapped_on(given, path, name)
        .or_else(|| hibernated_to(given, path, name))
        .or_else(|| holds_files(given, name))
        .or_else(|| device.is_partitioned.then(|| format!("{name} has partitions: give one of them")))
}

/// Of a device that the kernel would overwrite, as it is not mounted. Also one that was used without encryption, where a page may look like a signature. So
/// it costs the writeback, not the swap.
fn occupied(path: &str, holds: &str) -> String {
    format!(
        "it holds {holds}, which zram would overwrite; if nobody needs that, run `wipefs -a {path}` first"
    )
}

/// A warning if the device is given by the kernel's name.
pub(super) fn unstable(given: Given<'_>) -> Option<String> {
    let device =
        given.facts.writeback.as_ref().filter(|device| device.path == format!("/dev/{}", device.name))?;
    let better = device.lasting.as_ref().map_or_else(String::new, |name| format!("; {name} stays this one"));
    Some(format!("{} may be another disk after a boot{better}", device.path))
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
