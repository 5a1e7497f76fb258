//! The extents of a file on the disk: FIEMAP (Documentation/filesystems/fiemap.rst).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::job::Extent;

/// Extents per call: 3.6 KiB on each thread's stack, and more than most files have.
const BATCH: usize = 64;
/// The rest of a file with more extents is read in file order.
const MOST: usize = 16_384;

const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELAYED: u32 = 0x4;
const INLINE: u32 = 0x200;
const UNWRITTEN: u32 = 0x800;
/// `FS_IOC_FIEMAP`.
const FIEMAP: rustix::ioctl::Opcode = rustix::ioctl::opcode::read_write::<Header>(b'f', 11);

/// struct fiemap without its extents (include/uapi/linux/fiemap.h).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
}

/// struct fiemap_extent (same header).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Raw {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Request {
    header: Header,
    extents: [Raw; BATCH],
}

/// The extents of a file of `size` bytes, in file order. Extents without a position of their own (delayed, inline, unwritten) are left out.
///
/// # Errors
/// The kernel's answer: EOPNOTSUPP if the file system has no extents.
pub(crate) fn extents(file: impl AsFd, size: u64) -> io::Result<Vec<Extent>> {
    let mut all = Vec::new();
    let mut start = 0;
    while start < size && all.len() < MOST {
        let (batch, next) = decode(&query(&file, start, size - start)?);
        all.extend(batch);
        match next.filter(|next| *next > start) {
            Some(next) => start = next,
            None => break,
        }
    }
    Ok(all)
}

fn query(file: impl AsFd, start: u64, length: u64) -> io::Result<Vec<Raw>> {
    let header = Header { start, length, count: BATCH as u32, ..Header::default() };
    let mut request = Request { header, extents: [Raw::default(); BATCH] };
    #[expect(unsafe_code, reason = "ioctl(2) has no safe wrapper for FIEMAP")]
    // SAFETY: the kernel writes the header and at most as many extents as its `count`.
    let answer = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), FIEMAP as _, &raw mut request) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let mapped = (request.header.mapped as usize).min(BATCH);
    Ok(request.extents[..mapped].to_vec())
}

/// The extents with a position, and the offset of further ones.
fn decode(raw: &[Raw]) -> (Vec<Extent>, Option<u64>) {
    let placed =
        raw.iter().filter(|e| e.flags & (UNKNOWN | DELAYED | INLINE | UNWRITTEN) == 0 && e.length > 0);
    let extents =
        placed.map(|e| Extent { logical: e.logical, physical: e.physical, bytes: e.length }).collect();
    let more = raw.last().filter(|e| e.flags & LAST == 0).and_then(|e| e.logical.checked_add(e.length));
    (extents, more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(logical: u64, physical: u64, length: u64, flags: u32) -> Raw {
        Raw { logical, physical, length, flags, ..Raw::default() }
    }

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!((size_of::<Header>(), size_of::<Raw>()), (32, 56));
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert_eq!(FIEMAP as u64, 0xC020_660B);
    }

    #[test]
    fn extents_without_a_position_are_left_out() {
        let all = [
            raw(0, 100, 10, 0),
            raw(10, 0, 10, DELAYED | UNKNOWN),
            raw(20, 0, 10, INLINE),
            raw(30, 500, 10, LAST),
        ];
        let (extents, more) = decode(&all);
        assert_eq!(extents.iter().map(|e| e.physical).collect::<Vec<_>>(), [100, 500]);
        assert_eq!(more, None);
        assert_eq!(decode(&all[..2]).1, Some(20));
        assert_eq!(decode(&[]), (Vec::new(), None));
        assert_eq!(decode(&[raw(u64::MAX, 0, 9, 0)]).1, None);
    }

    #[test]
    fn a_written_file_has_a_place_where_its_file_system_tells() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &[1; 100_000]).unwrap();
        file.as_file().sync_all().unwrap();
        match extents(file.as_file(), 100_000) {
            Ok(all) => {
                let bytes: u64 = all.iter().map(|e| e.bytes).sum();
                assert!(bytes >= 100_000 || all.is_empty(), "{all:?}");
                assert!(all.windows(2).all(|pair| pair[0].logical + pair[0].bytes <= pair[1].logical));
            }
            Err(e) => assert!(matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY)), "{e}"),
        }
    }

    #[test]
    fn a_file_with_more_extents_than_one_call_returns_is_complete() {
        use std::os::unix::fs::FileExt;
        let (parts, apart) = (3 * BATCH as u64 + 1, 1 << 20);
        let file = tempfile::tempfile().unwrap();
        (0..parts).for_each(|part| file.write_all_at(&[1; 4096], part * apart).unwrap());
        file.sync_all().unwrap();
        if let Ok(all) = extents(&file, parts * apart) {
            let begins: Vec<u64> = all.iter().map(|e| e.logical).collect();
            assert_eq!(begins, (0..parts).map(|part| part * apart).collect::<Vec<_>>());
        }
    }
}
