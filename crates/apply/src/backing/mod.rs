//! The block device behind a zram device, where no partition is free for writeback: a file without a name, encrypted.
//!
//! Nothing of it outlives the zram device, whatever ends first. The file has no name (`O_TMPFILE`, Linux 3.11), so that its file system frees it with
//! the last descriptor, also after a power cut. The loop device lets go of it when it is closed (`LO_FLAGS_AUTOCLEAR`), and the mapping is removed when
//! it is closed (`DM_DEFERRED_REMOVE`, Linux 3.13); zram closes its backing device at its reset. The key is made for this mapping and is in the
//! kernel's memory alone: what is on the disk nobody can read.

pub(crate) mod device;
pub(crate) mod loop_device;
pub(crate) mod mapping;

use std::path::Path;

use eke_linux::error::{Error, Result};
use eke_linux::root::Root;
use eke_model::step::UnnamedFile;

use self::device::OpenDevice;
use crate::sys::{self, Sys};

/// The name of the mapping for a zram device.
pub(crate) fn mapping_name(zram: &str) -> String {
    format!("eke-writeback-{zram}")
}

/// Makes the device for the zram device `zram`. Drop it after zram has opened it.
///
/// # Errors
/// What the kernel refused; nothing is left then.
pub(crate) fn make(root: &Root, zram: &str, wanted: &UnnamedFile) -> Result<OpenDevice> {
    let (sys, dir) = (sys::of(root), root.path(&wanted.directory));
    let unnamed = sys.unnamed_file(&dir, wanted.size.0);
    let file = unnamed.map_err(|e| Error::io("make a file without a name in", &dir, e))?;
    let on_loop =
        sys.loop_device(&file).map_err(|e| Error::io("make a loop device for a file in", &dir, e))?;
    if wanted.encrypted { encrypted(sys, &on_loop, zram, wanted.size.0) } else { Ok(on_loop) }
}

fn encrypted(sys: &dyn Sys, below: &OpenDevice, zram: &str, bytes: u64) -> Result<OpenDevice> {
    let mapped = sys.encrypted_device(&mapping_name(zram), &below.path, bytes);
    mapped.map_err(|e| Error::io("encrypt, by dm-crypt,", &below.path, e))
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
