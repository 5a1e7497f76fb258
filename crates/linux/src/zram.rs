//! The zram devices of a machine.

use crate::error::Result;
use crate::parse::zram::bracketed;
use crate::root::Root;

/// The existing zram devices, by number.
///
/// # Errors
/// The kernel's answer when `/sys/block` cannot be listed.
pub fn devices(root: &Root) -> Result<Vec<String>> {
    let mut names: Vec<String> =
        root.list("sys/block")?.into_iter().filter(|n| number(n).is_some()).collect();
    names.sort_by_key(|n| number(n));
    Ok(names)
}

/// The number of a device: 3 for `zram3`.
pub fn number(name: &str) -> Option<u32> {
    name.strip_prefix("zram")?.parse().ok()
}

/// The name of the next device from `hot_add`: the lowest free number (`idr_alloc` in zram_drv.c).
pub fn next_name(existing: &[String]) -> String {
    let free = (0..).find(|n| !existing.iter().any(|e| number(e) == Some(*n))).unwrap_or(u32::MAX);
    format!("zram{free}")
}

/// The kernel's default algorithm. A device that is not set up shows it, because a reset restores it (zram_reset_device
/// in zram_drv.c). `None` if every device is in use.
pub fn default_algorithm(root: &Root) -> Option<String> {
    let unused =
        |name: &String| root.read(format!("sys/block/{name}/disksize")).is_ok_and(|s| s.trim() == "0");
    let name = devices(root).ok()?.into_iter().find(unused)?;
    let shown = root.read(format!("sys/block/{name}/comp_algorithm")).ok()?;
    bracketed(&shown).map(str::to_owned)
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
