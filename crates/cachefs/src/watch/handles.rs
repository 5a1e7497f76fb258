//! The inode number in a `struct file_handle`, where the file system puts it there as it is. Pure.
//!
//! A busy file system reports thousands of files a second that are not of the mount, and to open each of them for its number
//! takes three system calls.

use eke_linux::magic;

/// A file system with a known layout of its handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `FILEID_INO32_GEN`: number and generation, 32 bits each (`generic_encode_ino32_fh`, fs/libfs.c).
    Ext4,
    /// The same for small inode numbers, else `XFS_FILEID_INO64_GEN`: 64 bits and 32 (fs/xfs/xfs_export.c).
    Xfs,
}

/// Types of handles (include/linux/exportfs.h, fs/xfs/xfs_export.h).
const INO32_GEN: u32 = 1;
const XFS_INO64_GEN: u32 = 0x81;

impl Layout {
    /// The layout of the file system with this magic number (statfs(2)); `None`: unknown. Others use the same types for other
    /// layouts: tmpfs has the generation first.
    pub fn of(magic: u32) -> Option<Self> {
        match magic {
            magic::EXT => Some(Self::Ext4),
            magic::XFS => Some(Self::Xfs),
            _ => None,
        }
    }

    /// The inode number in this handle: `handle_bytes`, `handle_type`, and the bytes. `None`: it is of another type.
    pub fn inode(self, handle: &[u8]) -> Option<u64> {
        let (len, rest) = word(handle)?;
        let (kind, bytes) = word(rest)?;
        match (self, kind, len, bytes.len()) {
            (_, INO32_GEN, 8, 8) => Some(u64::from(word(bytes)?.0)),
            (Self::Xfs, XFS_INO64_GEN, 12, 12) => Some(u64::from_ne_bytes(*bytes.first_chunk()?)),
            _ => None,
        }
    }
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u32::from_ne_bytes(*word), rest))
}

#[cfg(test)]
mod tests {
    use super::Layout;

    fn handle(kind: u32, bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_ne_bytes(), &kind.to_ne_bytes(), bytes].concat()
    }

    #[test]
    fn a_number_is_taken_only_from_a_known_layout() {
        let small = handle(1, &[&7u32.to_ne_bytes()[..], &9u32.to_ne_bytes()].concat());
        let large = handle(0x81, &[&(7u64 << 40).to_ne_bytes()[..], &9u32.to_ne_bytes()].concat());
        let with_parent = handle(2, &[0; 16]);
        for (layout, handle, number) in [
            (Layout::Ext4, &small, Some(7)),
            (Layout::Xfs, &small, Some(7)),
            (Layout::Xfs, &large, Some(7 << 40)),
            (Layout::Ext4, &large, None),
            (Layout::Ext4, &with_parent, None),
            (Layout::Ext4, &small[..15].to_vec(), None),
            (Layout::Ext4, &Vec::new(), None),
        ] {
            assert_eq!(layout.inode(handle), number, "{layout:?} {handle:?}");
        }
        assert_eq!(Layout::of(0x0102_1994), None, "tmpfs");
    }
}
