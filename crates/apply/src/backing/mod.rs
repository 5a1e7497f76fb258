//! The block device behind a zram device: the user's partition, or a file without a name where none is free, encrypted.
//!
//! Nothing of it outlives the zram device, whatever ends first. The file has no name (`O_TMPFILE`, Linux 3.11), so that its file system frees it with
//! the last descriptor, also after a power cut. The loop device lets go of it when it is closed (`LO_FLAGS_AUTOCLEAR`), and the mapping is removed when
//! it is closed (`DM_DEFERRED_REMOVE`, Linux 3.13); zram closes its backing device at its reset. The key is made for this mapping and is in the
//! kernel's memory alone: what is on the disk nobody can read, and no page of a user looks there like a file system or a RAID member. A partition keeps its
//! first and last MiB, where signatures are: without one before, it has none after a power cut either, and the next boot uses it again.

pub(crate) mod device;
pub(crate) mod loop_device;
pub(crate) mod mapping;

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use eke_linux::error::{Error, Result};
use eke_linux::root::Root;
use eke_model::step::UnnamedFile;

use self::device::OpenDevice;
use crate::sys::{self, Sys};

/// The edge of a partition that is left alone: what blkid looks for lies in the first 256 and the last 128 KiB.
const EDGE_BYTES: u64 = 1 << 20;

/// A partition of so much or less has no room between its edges.
pub const EDGES_BYTES: u64 = 2 * EDGE_BYTES;

const MAPPING: &str = "eke-writeback-";

/// The name of the mapping for a zram device.
pub(crate) fn mapping_name(zram: &str) -> String {
    format!("{MAPPING}{zram}")
}

/// Whether a mapping with this name is eke's.
pub fn is_of_eke(mapping: &str) -> bool {
    mapping.starts_with(MAPPING)
}

/// Makes a file, and a device of it, for the zram device `zram`. Drop it after zram has opened it.
///
/// # Errors
/// What the kernel refused; nothing is left then.
pub(crate) fn file(root: &Root, zram: &str, wanted: &UnnamedFile) -> Result<OpenDevice> {
    let (sys, dir) = (sys::of(root), root.path(&wanted.directory));
    let unnamed = sys.unnamed_file(&dir, wanted.size.0);
    let file = unnamed.map_err(|e| Error::io("make a file without a name in", &dir, e))?;
    let on_loop =
        sys.loop_device(&file).map_err(|e| Error::io("make a loop device for a file in", &dir, e))?;
    if wanted.encrypted { encrypted(sys, &on_loop.path, zram, 0..wanted.size.0) } else { Ok(on_loop) }
}

/// Makes a mapping of the block device `device` for `zram`, but for its edges. Drop it after zram has opened it.
///
/// # Errors
/// As [`file`]: EBUSY for a device that is mounted, swapped on or mapped.
pub(crate) fn encrypted_device(root: &Root, zram: &str, device: &str) -> Result<OpenDevice> {
    let path = root.path(device);
    let size = size_of(&path).map_err(|e| Error::io("find the size of", &path, e))?;
    if size <= EDGES_BYTES {
        return Err(Error::Refused(format!("{device} is too small for writeback")));
    }
    encrypted(sys::of(root), &path, zram, EDGE_BYTES..size - EDGE_BYTES)
}

fn size_of(device: &Path) -> io::Result<u64> {
    File::open(device)?.seek(SeekFrom::End(0))
}

fn encrypted(sys: &dyn Sys, below: &Path, zram: &str, bytes: Range<u64>) -> Result<OpenDevice> {
    let mapped = sys.encrypted_device(&mapping_name(zram), below, bytes);
    mapped.map_err(|e| Error::io("encrypt, by dm-crypt,", below, e))
}

/// Removes the mapping of a zram device, if a crash left one that nothing has open. One in use goes with its device anyhow.
///
/// # Errors
/// The kernel's answer.
pub(crate) fn remove(root: &Root, zram: &str) -> Result<()> {
    let name = mapping_name(zram);
    let path = Path::new("/dev/mapper").join(&name);
    sys::of(root).remove_mapping(&name).map_err(|e| Error::io("remove the mapping", &path, e))
}
