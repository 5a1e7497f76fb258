//! What a block device holds, by the magic numbers that blkid looks for.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Behind the last signature at the front: the uberblocks of ZFS.
const FRONT: usize = 256 << 10;
/// mdraid's older superblocks lie within this distance of the end.
const TAIL: u64 = 128 << 10;

/// A name, the offset of its magic number, and that.
type Magic = (&'static str, usize, &'static [u8]);

const MAGICS: &[Magic] = &[
    ("an encrypted volume (LUKS)", 0, b"LUKS\xba\xbe"),
    ("an encrypted volume (BitLocker)", 3, b"-FVE-FS-"),
    ("an xfs file system", 0, b"XFSB"),
    ("an ext file system", 0x438, b"\x53\xef"),
    ("a btrfs file system", 0x1_0040, b"_BHRfS_M"),
    ("an f2fs file system", 0x400, b"\x10\x20\xf5\xf2"),
    ("a jfs file system", 0x8000, b"JFS1"),
    ("a reiserfs file system", 0x1_0034, b"ReIsEr"),
    ("a nilfs2 file system", 0x406, b"\x34\x34"),
    ("a gfs2 file system", 0x1_0000, b"\x01\x16\x19\x70"),
    ("an NTFS file system", 3, b"NTFS    "),
    ("an exFAT file system", 3, b"EXFAT   "),
    ("a FAT file system", 0x36, b"FAT"),
    ("a FAT file system", 0x52, b"FAT32   "),
    ("an HFS+ file system", 0x400, b"H+"),
    ("an HFS+ file system", 0x400, b"HX"),
    ("an APFS volume", 0x20, b"NXSB"),
    ("a squashfs image", 0, b"hsqs"),
    ("an erofs image", 0x400, b"\xe2\xe1\xf5\xe0"),
    ("an ISO 9660 image", 0x8001, b"CD001"),
    ("a UDF file system", 0x8001, b"BEA01"),
    ("an LVM volume", 0, b"LABELONE"),
    ("an LVM volume", 0x200, b"LABELONE"),
    ("an LVM volume", 0x400, b"LABELONE"),
    ("an LVM volume", 0x600, b"LABELONE"),
    ("a part of an mdraid array", 0, MDRAID),
    ("a part of an mdraid array", 0x1000, MDRAID),
    (
        "a bcache or bcachefs device",
        0x1018,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    ("a bcachefs device", 0x1018, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    ("a Ceph volume", 0, b"bluestore block device"),
    ("a partition table (GPT)", 0x200, b"EFI PART"),
    ("a partition table (GPT)", 0x1000, b"EFI PART"),
];

const MDRAID: &[u8] = b"\xfc\x4e\x2b\xa9";
const MDRAID_BIG_ENDIAN: &[u8] = b"\xa9\x2b\x4e\xfc";

/// At the end of the first page, which has any of these sizes.
const PAGES: [usize; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
const SWAP: [&[u8]; 2] = [b"SWAPSPACE2", b"SWAP-SPACE"];
const SUSPENDED: [&[u8]; 4] = [b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"];

/// What the open device holds, as the object of a sentence; `None` if no signature is known.
///
/// # Errors
/// It cannot be read.
pub(super) fn of(device: &File, size: u64) -> io::Result<Option<&'static str>> {
    let read = |at: u64, most: usize| -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(size.saturating_sub(at)).unwrap_or(most).min(most)];
        device.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    };
    if let Some(found) = at_front(&read(0, FRONT)?) {
        return Ok(Some(found));
    }
    let from = size.saturating_sub(TAIL);
    Ok(at_end(&read(from, TAIL as usize)?, from, size))
}

fn has(bytes: &[u8], at: usize, magic: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(magic))
}

fn at_front(front: &[u8]) -> Option<&'static str> {
    let at_page_end = |magic: &[u8]| PAGES.iter().any(|page| has(front, page - 10, magic));
    if SUSPENDED.iter().any(|magic| at_page_end(magic)) {
        return Some("a hibernated system");
    }
    if SWAP.iter().any(|magic| at_page_end(magic)) {
        return Some("a swap area");
    }
    let known = MAGICS.iter().find(|(_, at, magic)| has(front, *at, magic));
    known.map(|(name, ..)| *name).or_else(|| is_zfs(front).then_some("a part of a ZFS pool"))
}

/// Uberblocks (0x00bab10c) fill the second half of a label.
fn is_zfs(front: &[u8]) -> bool {
    let magic = 0x00ba_b10c_u64;
    let mut slots = front.chunks(1 << 10).skip(128);
    slots.any(|slot| slot.starts_with(&magic.to_le_bytes()) || slot.starts_with(&magic.to_be_bytes()))
}

/// mdraid 0.90, in the machine's byte order, and 1.0.
fn at_end(tail: &[u8], from: u64, size: u64) -> Option<&'static str> {
    let places = [(size & !0xffff).checked_sub(0x1_0000), (size & !0xfff).checked_sub(0x2000)];
    let found = places.into_iter().flatten().any(|place| {
        let at = usize::try_from(place.saturating_sub(from)).unwrap_or(usize::MAX);
        has(tail, at, MDRAID) || has(tail, at, MDRAID_BIG_ENDIAN)
    });
    found.then_some("a part of an mdraid array")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn with(size: usize, at: usize, magic: &[u8]) -> Option<&'static str> {
        let mut bytes = vec![0; size];
        bytes[at..at + magic.len()].copy_from_slice(magic);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        of(&file, size as u64).unwrap()
    }

    #[test]
    fn every_signature_is_found_at_its_place_only() {
        for (name, at, magic) in MAGICS {
            let found = with(1 << 20, *at, magic).unwrap_or_default();
            assert!(found == *name, "{name} at {at}: {found}");
            assert_eq!(with(1 << 20, at + 7, magic), None, "{name} at {}", at + 7);
        }
    }

    #[test]
    fn swap_and_a_hibernated_system_are_found_with_any_page_size() {
        for page in PAGES {
            assert_eq!(with(1 << 20, page - 10, SWAP[0]), Some("a swap area"));
            assert_eq!(with(1 << 20, page - 10, SUSPENDED[0]), Some("a hibernated system"));
        }
    }

    #[test]
    fn mdraid_and_zfs_are_found_where_they_lie() {
        let size = (1 << 20) + 512;
        assert_eq!(with(size, (1 << 20) - 0x1_0000, MDRAID), Some("a part of an mdraid array"));
        assert_eq!(with(size, (1 << 20) - 0x2000, MDRAID_BIG_ENDIAN), Some("a part of an mdraid array"));
        assert_eq!(with(size, 200 << 10, b"\x0c\xb1\xba\0\0\0\0\0"), Some("a part of a ZFS pool"));
        assert_eq!(with(size, 60 << 10, b"\x0c\xb1\xba\0\0\0\0\0"), None);
    }

    #[test]
    fn an_empty_device_of_any_size_holds_nothing() {
        for size in [0, 1, 512, 0x1fff, 300 << 10] {
            assert_eq!(with(size, 0, b""), None, "{size}");
        }
    }
}
