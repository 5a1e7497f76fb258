//! Replies to the worker.

use std::os::fd::OwnedFd;

use eke_cache_shared::frame::Reply;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// Sends a reply. A worker that does not read it has died or will be told by its deadline.
pub(crate) fn reply(socket: &OwnedFd, reply: &Reply<'_>) {
    for message in reply.encode() {
        while send(socket, &message, SendFlags::NOSIGNAL) == Err(Errno::INTR) {}
    }
}
