//! `FUSE_INIT`: the supervisor answers the kernel's once; every worker's sessions then get one made up from what was agreed
//! on. So all workers are alike, the first as the hundredth.

pub mod bytes;
pub mod grant;
mod handshake;

use std::io;
use std::os::fd::BorrowedFd;

use eke_linux::Root;
use rustix::io::{Errno, read, write};

pub use bytes::{Foreign, Grant, Offer};
pub use grant::{LONGEST_WRITE, grant};
pub use handshake::session;

/// `FUSE_MIN_READ_BUFFER` of the kernel's `uapi/linux/fuse.h`: a shorter one is answered with EINVAL.
const BUFFER: usize = 8192;

/// Reads the kernel's first request from a device that was mounted a moment ago, and agrees to what of `wanted` it can do.
///
/// # Errors
/// What the kernel answers; a kernel that is too old, or that sends something else first.
pub fn agree(live: BorrowedFd<'_>, wanted: u64, root: bool) -> io::Result<Grant> {
    let mut buffer = vec![0; BUFFER];
    let len = loop {
        match read(live, &mut buffer) {
            Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => {}
            other => break other?,
        }
    };
    let offer = bytes::decode(&buffer[..len]).map_err(io::Error::other)?;
    let grant = grant(&offer, wanted, root, Root::host().page_size()).map_err(io::Error::other)?;
    write(live, &bytes::answer(offer.unique, &grant))?;
    Ok(grant)
}
