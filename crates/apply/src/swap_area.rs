//! The header of a swap area, and swapping on.

use rustix::rand::{GetRandomFlags, getrandom};

use crate::sys;
use eke_linux::discard::Discard;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// The first page of a swap area: `union swap_header` of include/linux/swap.h, version 1. `size_bytes` is the whole
/// size of the area; the rest of the area needs no preparation.
pub fn header(size_bytes: u64, page_size: usize, uuid: [u8; 16]) -> Vec<u8> {
    let last_page = u32::try_from((size_bytes / page_size as u64).saturating_sub(1)).unwrap_or(u32::MAX);
    let mut page = vec![0; page_size];
    page[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    page[1028..1032].copy_from_slice(&last_page.to_ne_bytes());
    page[1036..1052].copy_from_slice(&uuid);
    page[1052..1055].copy_from_slice(b"eke");
    page[page_size - 10..].copy_from_slice(b"SWAPSPACE2");
    page
}

/// Writes the header to an existing device or file of `size_bytes`.
///
/// # Errors
/// The kernel's answer, with the path.
pub fn write_header(root: &Root, relative: &str, size_bytes: u64) -> Result<()> {
    let mut uuid = [0; 16];
    let _ = getrandom(&mut uuid, GetRandomFlags::empty());
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    let path = root.path(relative);
    let page = header(size_bytes, rustix::param::page_size(), uuid);
    sys::of(root).write(&path, &page).map_err(|e| Error::io("write a swap header to", &path, e))
}

/// Swaps on a device or file that has a header.
///
/// # Errors
/// The kernel's answer, with the path.
pub fn swap_on(root: &Root, relative: &str, priority: Option<i16>, discard: Option<Discard>) -> Result<()> {
    let path = root.path(relative);
    sys::of(root).swapon(&path, priority, discard).map_err(|e| Error::io("swap on", &path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_what_swapon_expects() {
        let page = header(64 << 20, 4096, [7; 16]);
        assert_eq!(page.len(), 4096);
        assert_eq!(&page[4086..], b"SWAPSPACE2");
        assert_eq!(page[1028..1032], 16_383u32.to_ne_bytes());
    }
}
