//! `FUSE_INIT`: the supervisor answers the kernel's once. The sessions of every worker then get a synthetic one with what was agreed
//! on, so all workers start alike, the first as the hundredth.

pub mod bytes;
pub mod grant;
mod handshake;

use std::io;
use std::os::fd::BorrowedFd;

use eke_linux::Root;
use rustix::io::{Errno, read, write};

pub use bytes::{Grant, InitError, Offer};
pub use grant::{LONGEST_WRITE, grant};
pub use handshake::session;

/// `FUSE_MIN_READ_BUFFER` of the kernel's `uapi/linux/fuse.h`: read(2) with a shorter buffer fails with EINVAL.
const BUFFER: usize = 8192;

/// Reads the kernel's first request from a newly mounted device, and agrees on what of `requested` it offers. `passes`: see [`grant()`].
///
/// # Errors
/// What the kernel answers; the kernel is too old, or sends something else first.
pub fn agree(live: BorrowedFd<'_>, requested: u64, passes: bool) -> io::Result<Grant> {
    let mut buffer = vec![0; BUFFER];
    let len = loop {
        match read(live, &mut buffer) {
            Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => {}
            other => break other?,
        }
    };
    let offer = bytes::decode(&buffer[..len]).map_err(io::Error::other)?;
    let grant = grant(&offer, requested, passes, Root::host().page_size()).map_err(io::Error::other)?;
    write(live, &bytes::encode_reply(offer.unique, &grant))?;
    Ok(grant)
}
