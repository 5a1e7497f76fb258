//! Unmounting. Blocks, perhaps until a worker answers: the supervisor does it in a process of its own.

use std::io;
use std::path::Path;

use super::{By, by_fusermount};
use crate::registry;
use crate::status::{Kind, Refusal};

/// Takes the mount at `place` away; `lazy`: from the names at once, and for good when the last file in it is closed.
///
/// # Errors
/// `Busy` if files are open there; else what the kernel or fusermount3 said.
pub fn unmount(place: &Path, by: By, lazy: bool) -> Result<(), Refusal> {
    let done = match by {
        By::Root => registry::unmount(place, lazy),
        By::Fusermount => by_fusermount::unmount(place, lazy),
    };
    done.map_err(|e| {
        let kind = if e.kind() == io::ErrorKind::ResourceBusy { Kind::Busy } else { Kind::Failed };
        Refusal { what: format!("cannot unmount {place:?}: {e}"), kind }
    })
}
