//! Adds, configures and removes zram devices.

use std::path::Path;

use eke_model::step::ZramSpec;

use crate::backing;
use crate::state;
use crate::swap_area;
use crate::sys;
use crate::write::{locate, write_value};
use eke_linux::discard::Discard;
use eke_linux::error::{Error, Result};
use eke_linux::parse;
use eke_linux::parse::file_system::{Nature, nature};
use eke_linux::parse::mountinfo;
use eke_linux::root::Root;
use eke_linux::zram::number;

/// The directory of kept dictionaries.
const KEPT_IN: &str = "run/eke";

/// Whether an added device could be removed again.
///
/// # Errors
/// The kernel's answer if it could not: in a container, `/sys` is read-only.
pub fn may_remove(root: &Root) -> Result<()> {
    let (_, path) = locate(root, "zram.hot_remove", "")?;
    sys::of(root).may_write(&path).map_err(|e| Error::io("write", &path, e))
}

/// Adds a device by reading `hot_add`; the read itself has the effect. Refuses if the device could not be removed
/// again: in a container with a read-only `/sys`, the read works and adds a device to the host.
///
/// # Errors
/// The kernel's answer, or `Malformed` if it is not a number.
pub fn hot_add(root: &Root) -> Result<String> {
    may_remove(root)?;
    let (_, path) = locate(root, "zram.hot_add", "")?;
    let bytes = root.read_at(&path).map_err(|e| Error::io("get a new zram device from", &path, e))?;
    let text = String::from_utf8_lossy(&bytes);
    match text.trim().parse::<u32>() {
        Ok(n) => Ok(format!("zram{n}")),
        Err(_) => Err(Error::Malformed {
            path,
            message: format!("expected a device number, found \"{}\"", text.trim()),
        }),
    }
}

/// Configures a new device in the order that the kernel requires: the disksize last
/// (Documentation/admin-guide/blockdev/zram.rst), then swap header and swapon.
///
/// # Errors
/// The first refusal, with path and value. For an unknown algorithm, it names those that the kernel offers.
pub fn configure(root: &Root, name: &str, spec: &ZramSpec) -> Result<()> {
    if !spec.algorithm.is_empty() {
        set_algorithm(root, name, &spec.algorithm)?;
    }
    let dictionary = spec.dictionary.as_ref().map(|path| format!("dict={path}"));
    let params: Vec<&str> = spec.params.iter().chain(&dictionary).map(String::as_str).collect();
    if !params.is_empty() {
        write_value(root, "zram.algorithm_params", name, &params.join(" "))?;
    }
    if let Some(second) = &spec.recompress_with {
        write_value(root, "zram.recomp_algorithm", name, &format!("algo={second} priority=1"))?;
    }
    set_backing(root, name, spec)?;
    write_value(root, "zram.disksize", name, &spec.disksize.0.to_string())?;
    let Some(priority) = spec.swap_priority else { return Ok(()) };
    swap_area::write_header(root, &format!("dev/{name}"), spec.disksize.0)?;
    swap_on(root, name, priority)?;
    if let Some(path) = &spec.dictionary {
        // The device works without it; a later one then has no dictionary.
        let _ = keep_dictionary(root, name, Path::new(path));
    }
    Ok(())
}

/// The file with the dictionary of device `name`, for devices that the agent adds later.
pub fn kept_dictionary(name: &str) -> String {
    format!("{KEPT_IN}/dictionary-{name}")
}

/// Copies a dictionary, which ends with the process that trained it: the kernel gives none back. Its bytes are parts of programs' pages, so the copy is
/// root's alone, and only on a file system in memory.
fn keep_dictionary(root: &Root, name: &str, path: &Path) -> Result<()> {
    let mounts = mountinfo::parse(&root.read_bytes("proc/self/mountinfo")?);
    let below = mountinfo::mount_of(&Path::new("/").join(KEPT_IN), &mounts);
    if below.is_none_or(|mount| nature(&mount.kind) != Nature::Memory) {
        return Ok(());
    }
    let bytes = root.read_at(path).map_err(|e| Error::io("read", path, e))?;
    let kept = root.path(kept_dictionary(name));
    sys::of(root).replace(&kept, &bytes, 0o600).map_err(|e| Error::io("write", &kept, e))
}

/// Removes the copy of a device's dictionary; there may be none.
///
/// # Errors
/// The kernel's answer.
pub fn forget_dictionary(root: &Root, name: &str) -> Result<()> {
    let kept = kept_dictionary(name);
    if root.exists(&kept) { state::forget(root, &kept) } else { Ok(()) }
}

fn set_backing(root: &Root, name: &str, spec: &ZramSpec) -> Result<()> {
    // What is made here lasts until zram has opened it, and then as long as zram.
    let made = match (&spec.backing_dev, &spec.backing_file) {
        (Some(device), _) if spec.backing_encrypted => backing::encrypted_device(root, name, device)?,
        (Some(device), _) => return write_value(root, "zram.backing_dev", name, device),
        (None, Some(file)) => backing::file(root, name, file)?,
        (None, None) => return Ok(()),
    };
    write_value(root, "zram.backing_dev", name, &made.path.to_string_lossy())
}

fn set_algorithm(root: &Root, name: &str, algorithm: &str) -> Result<()> {
    write_value(root, "zram.comp_algorithm", name, algorithm).map_err(|e| match e {
        Error::Io { .. } => Error::Refused(format!("{e}; this kernel offers: {}", offered(root, name))),
        other => other,
    })
}

fn offered(root: &Root, name: &str) -> String {
    let text = root.read(format!("sys/block/{name}/comp_algorithm")).unwrap_or_default();
    parse::zram::algorithms(&text).join(", ")
}

/// Swaps a device with a header on. It has no old data: freed pages are discarded, but not the whole area at swapon(2), which would walk every slot.
pub(crate) fn swap_on(root: &Root, name: &str, priority: i16) -> Result<()> {
    swap_area::swap_on(root, &format!("dev/{name}"), Some(priority), Some(Discard::Pages))
}

/// Resets and removes a device that is not swap any more.
///
/// # Errors
/// The kernel's answer; EBUSY after a bounded number of attempts means that another process has it open.
pub fn remove(root: &Root, name: &str) -> Result<()> {
    let Some(n) = number(name) else {
        return Err(Error::Refused(format!("\"{name}\" is not a zram device")));
    };
    write_value(root, "zram.reset", name, "1")?;
    // The device's own copy is gone now, also where another process keeps it open.
    let forgotten = forget_dictionary(root, name);
    write_value(root, "zram.hot_remove", "", &n.to_string())?;
    forgotten
}
