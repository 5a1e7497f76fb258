//! A zram device's life: asked for, set up, removed.

use eke_model::step::ZramSpec;

use crate::discard::Discard;
use crate::error::{Error, Result};
use crate::knob::bracketed;
use crate::parse;
use crate::root::Root;
use crate::swap_area;
use crate::write::{locate, write_value};

/// The zram devices that exist, by number.
///
/// # Errors
/// The kernel's answer when `/sys/block` cannot be listed.
pub fn devices(root: &Root) -> Result<Vec<String>> {
    let mut names: Vec<String> =
        root.list("sys/block")?.into_iter().filter(|n| number(n).is_some()).collect();
    names.sort_by_key(|n| number(n));
    Ok(names)
}

/// 3 of `zram3`.
pub fn number(name: &str) -> Option<u32> {
    name.strip_prefix("zram")?.parse().ok()
}

/// The name that `hot_add` will give next: the lowest free number (`idr_alloc` in zram_drv.c).
pub fn next_name(existing: &[String]) -> String {
    let free = (0..).find(|n| !existing.iter().any(|e| number(e) == Some(*n))).unwrap_or(u32::MAX);
    format!("zram{free}")
}

/// Could a device that is made be removed again?
///
/// # Errors
/// The kernel's answer if not: `/sys` is read-only in a container.
pub fn may_remove(root: &Root) -> Result<()> {
    let (_, path) = locate(root, "zram.hot_remove", "")?;
    root.sys().may_write(&path).map_err(|e| Error::io("write", &path, e))
}

/// Makes a device by reading `hot_add`: the read is the act. It is not read where the device could not be removed again:
/// in a container with a read-only `/sys` the read works and makes a device of the host's.
///
/// # Errors
/// The kernel's answer, or `Malformed` if it is not a number.
pub fn hot_add(root: &Root) -> Result<String> {
    may_remove(root)?;
    let (_, path) = locate(root, "zram.hot_add", "")?;
    let bytes = root.sys().read(&path).map_err(|e| Error::io("get a new zram device from", &path, e))?;
    let text = String::from_utf8_lossy(&bytes);
    match text.trim().parse::<u32>() {
        Ok(n) => Ok(format!("zram{n}")),
        Err(_) => Err(Error::Malformed {
            path,
            message: format!("expected a device number, found \"{}\"", text.trim()),
        }),
    }
}

/// The algorithm that this kernel gives a device by itself: what one shows that is not set up, since a reset brings it back
/// (zram_reset_device in zram_drv.c). `None` where every device is in use.
pub fn default_algorithm(root: &Root) -> Option<String> {
    let unused =
        |name: &String| root.read(format!("sys/block/{name}/disksize")).is_ok_and(|s| s.trim() == "0");
    let name = devices(root).ok()?.into_iter().find(unused)?;
    let shown = root.read(format!("sys/block/{name}/comp_algorithm")).ok()?;
    bracketed(&shown).map(str::to_owned)
}

/// Sets up a fresh device, in the order that the kernel asks for: all else before the disksize
/// (Documentation/admin-guide/blockdev/zram.rst), then the swap header and swapon.
///
/// # Errors
/// The first refusal, with path and value; an algorithm that the kernel lacks names those that it has.
pub fn configure(root: &Root, name: &str, spec: &ZramSpec) -> Result<()> {
    if !spec.algorithm.is_empty() {
        set_algorithm(root, name, &spec.algorithm)?;
    }
    if let Some(params) = &spec.params {
        write_value(root, "zram.algorithm_params", name, params)?;
    }
    if let Some(second) = &spec.recompress_with {
        write_value(root, "zram.recomp_algorithm", name, &format!("algo={second} priority=1"))?;
    }
    if let Some(device) = &spec.backing_dev {
        write_value(root, "zram.backing_dev", name, device)?;
    }
    write_value(root, "zram.disksize", name, &spec.disksize.0.to_string())?;
    match spec.swap_priority {
        Some(priority) => swap_on(root, name, spec, priority),
        None => Ok(()),
    }
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

fn swap_on(root: &Root, name: &str, spec: &ZramSpec, priority: i16) -> Result<()> {
    let device = format!("dev/{name}");
    swap_area::write_header(root, &device, spec.disksize.0)?;
    let path = root.path(&device);
    root.sys().swapon(&path, Some(priority), Some(Discard::Both)).map_err(|e| Error::io("swap on", &path, e))
}

/// Resets and removes a device that is no longer swap.
///
/// # Errors
/// The kernel's answer; EBUSY after a bounded number of tries means that somebody holds it open.
pub fn remove(root: &Root, name: &str) -> Result<()> {
    let Some(n) = number(name) else {
        return Err(Error::Refused(format!("\"{name}\" is not a zram device")));
    };
    write_value(root, "zram.reset", name, "1")?;
    write_value(root, "zram.hot_remove", "", &n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_device_has_the_lowest_free_number() {
        let names = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(next_name(&names(&[])), "zram0");
        assert_eq!(next_name(&names(&["zram0", "zram2"])), "zram1");
        assert_eq!(number("zram-control"), None);
    }
}
