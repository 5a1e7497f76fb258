//! Taking a mount away whose supervisor does not.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::mount::{UnmountFlags, unmount as umount2};

/// Unmounts: root by umount2(2), others through `fusermount3`, which is set-user-ID. `lazy`: also while it is busy.
///
/// # Errors
/// What the kernel answers, or what `fusermount3` says.
pub fn unmount(place: &Path, lazy: bool) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        let detach = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
        return Ok(umount2(place, UnmountFlags::NOFOLLOW | detach)?);
    }
    let mut command = Command::new("fusermount3");
    command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(place);
    let out = command.stdin(Stdio::null()).output().map_err(|e| named(&e))?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    let busy = said.to_ascii_lowercase().contains("busy");
    let kind = if busy { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, said))
}

fn named(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("fusermount3 cannot be started: {error}"))
}
