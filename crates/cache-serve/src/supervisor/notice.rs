//! Notices to the kernel: what it must not believe any more (`uapi/linux/fuse.h`).

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::net::{SendFlags, send};

/// `FUSE_NOTIFY_INVAL_INODE` and `FUSE_NOTIFY_INVAL_ENTRY`.
const INVAL_INODE: u32 = 2;
const INVAL_ENTRY: u32 = 3;
/// The name is looked up again, and nothing else: without this flag (Linux 6.2), mounts inside would be removed.
const EXPIRE_ONLY: u32 = 1;
/// `struct fuse_out_header`; then a structure, and a name with its end.
const HEADER: usize = 16;
/// The longest notice, in bytes.
pub const LONGEST: usize = HEADER + 16 + 255 + 1;

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// A node's content and attributes; a directory's list.
    Content(u64),
    /// A node's attributes.
    Attributes(u64),
    /// A name in the directory with this number.
    Name(u64, &'a OsStr),
    /// The same, and all that is below it and not in use; mounts inside are removed.
    Tree(u64, &'a OsStr),
}

impl Notice<'_> {
    /// The bytes that the kernel expects; none for a name that it cannot have.
    fn bytes(&self) -> Vec<u8> {
        match *self {
            // Offset and length; a negative offset stands for attributes alone.
            Notice::Content(node) => message(INVAL_INODE, &[node, 0, 0], b""),
            Notice::Attributes(node) => message(INVAL_INODE, &[node, -1_i64 as u64, 0], b""),
            Notice::Name(parent, name) => entry(parent, name, EXPIRE_ONLY),
            Notice::Tree(parent, name) => entry(parent, name, 0),
        }
    }
}

fn entry(parent: u64, name: &OsStr, flags: u32) -> Vec<u8> {
    if name.is_empty() || name.len() > 255 {
        return Vec::new();
    }
    let [l0, l1, l2, l3] = u32::try_from(name.len()).unwrap_or(0).to_ne_bytes();
    let [f0, f1, f2, f3] = flags.to_ne_bytes();
    let both = u64::from_ne_bytes([l0, l1, l2, l3, f0, f1, f2, f3]);
    message(INVAL_ENTRY, &[parent, both], &[name.as_bytes(), b"\0"].concat())
}

fn message(code: u32, words: &[u64], rest: &[u8]) -> Vec<u8> {
    let len = u32::try_from(HEADER + 8 * words.len() + rest.len()).unwrap_or(0);
    let header = [&len.to_ne_bytes()[..], &code.to_ne_bytes(), &[0; 8]].concat();
    let words = words.iter().flat_map(|word| word.to_ne_bytes());
    header.into_iter().chain(words).chain(rest.iter().copied()).collect()
}

/// Sends a notice to the guard; waits for room.
///
/// # Errors
/// EPIPE if the guard is gone.
pub fn send_to(guard: BorrowedFd<'_>, notice: Notice<'_>) -> io::Result<()> {
    let bytes = notice.bytes();
    if !bytes.is_empty() {
        send(guard, &bytes, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// Tells the kernel at once, and waits for it. An error means that it does not know the node or the name, or that the connection ended.
pub fn write_to(device: BorrowedFd<'_>, notice: Notice<'_>) {
    let _ = rustix::io::write(device, &notice.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_have_the_kernels_layout() {
        let attributes = Notice::Attributes(7).bytes();
        assert_eq!(attributes.len(), 40);
        assert_eq!(attributes[..8], [&40_u32.to_ne_bytes()[..], &2_u32.to_ne_bytes()].concat());
        assert_eq!(attributes[16..32], [&7_u64.to_ne_bytes()[..], &(-1_i64).to_ne_bytes()].concat());
        assert_eq!(Notice::Content(7).bytes()[24..40], [0; 16]);
        let name = Notice::Name(9, OsStr::new("ab")).bytes();
        assert_eq!(name.len(), 35);
        assert_eq!(name[..8], [&35_u32.to_ne_bytes()[..], &3_u32.to_ne_bytes()].concat());
        assert_eq!(name[16..24], 9_u64.to_ne_bytes());
        assert_eq!(name[24..32], [&2_u32.to_ne_bytes()[..], &1_u32.to_ne_bytes()].concat());
        assert_eq!(&name[32..], b"ab\0");
        let tree = Notice::Tree(9, OsStr::new("ab")).bytes();
        assert_eq!((&tree[..28], &tree[28..32], &tree[32..]), (&name[..28], &[0; 4][..], &name[32..]));
    }

    #[test]
    fn the_longest_name_fits_and_a_longer_one_is_no_notice() {
        let longest = "n".repeat(255);
        assert_eq!(Notice::Name(1, OsStr::new(&longest)).bytes().len(), LONGEST);
        assert!(Notice::Name(1, OsStr::new(&format!("{longest}n"))).bytes().is_empty());
        assert!(Notice::Name(1, OsStr::new("")).bytes().is_empty());
    }
}
