//! The only function that writes a setting.

use std::path::PathBuf;
use std::time::Duration;

use crate::knob::{self, Codec, Knob};
use crate::sys;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// Attempts to write a busy setting: udev may have a new device open briefly (field reports: zram-generator #226,
/// zram-init #62).
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// The knob and its absolute path for `target`.
///
/// # Errors
/// `Refused` for a name that is not in the table, or for a target that does not fit.
pub fn locate(root: &Root, name: &str, target: &str) -> Result<(&'static Knob, PathBuf)> {
    let knob = knob::find(name).ok_or_else(|| {
        Error::Refused(format!("\"{name}\" is not a setting that eke knows (docs/knobs.md has the list)"))
    })?;
    let path = knob
        .path_for(target)
        .ok_or_else(|| Error::Refused(format!("\"{target}\" is not a target for {name} ({})", knob.path)))?;
    Ok((knob, root.path(path)))
}

/// Reads a setting, decoded by its codec.
///
/// # Errors
/// The kernel's answer, with the path.
pub fn read_value(root: &Root, name: &str, target: &str) -> Result<String> {
    let (knob, path) = locate(root, name, target)?;
    let bytes = root.read_at(&path).map_err(|e| Error::io("read", &path, e))?;
    Ok(knob.codec.decode(&String::from_utf8_lossy(&bytes)))
}

/// The same; if the setting has lines per disk, the line of the disk in `value`.
///
/// # Errors
/// The kernel's answer, with the path.
pub fn read_for(root: &Root, name: &str, target: &str, value: &str) -> Result<String> {
    let (knob, path) = locate(root, name, target)?;
    let bytes = root.read_at(&path).map_err(|e| Error::io("read", &path, e))?;
    Ok(knob.codec.decode_for(&String::from_utf8_lossy(&bytes), value))
}

/// Writes `value` (in the knob's unit) in one `write(2)` to an existing setting, retries for at most a second on EBUSY,
/// and reads the setting back.
///
/// # Errors
/// The kernel's answer with path and value; `ReadBack` if the setting then has another value.
pub fn write_value(root: &Root, name: &str, target: &str, value: &str) -> Result<()> {
    let (knob, path) = locate(root, name, target)?;
    write_patiently(root, &path, value)?;
    if knob.codec == Codec::WriteOnly {
        return Ok(());
    }
    let found = read_for(root, name, target, value)?;
    if knob.codec.same(&found, value) {
        Ok(())
    } else {
        Err(Error::ReadBack { path, wrote: value.to_owned(), found })
    }
}

fn write_patiently(root: &Root, path: &std::path::Path, value: &str) -> Result<()> {
    for attempt in 1.. {
        match sys::of(root).write(path, value.as_bytes()) {
            Ok(()) => break,
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && attempt < BUSY_TRIES => root.sleep(BUSY_PAUSE),
            Err(source) => {
                return Err(Error::Io {
                    operation: "write",
                    path: path.to_owned(),
                    value: Some(value.to_owned()),
                    source,
                });
            }
        }
    }
    Ok(())
}
