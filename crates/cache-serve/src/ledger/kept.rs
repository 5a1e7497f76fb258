//! Descriptors that outlive the worker: it sends them to the supervisor over a pair of sockets, and the supervisor acknowledges them.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recv, recvmsg, send, sendmsg,
};

const KEEP: u8 = b'k';
const DROP: u8 = b'd';
/// A message's bytes: its kind and a node's number.
const LEN: usize = 9;

/// The worker's side.
#[derive(Debug)]
pub(super) struct Keeper(Mutex<OwnedFd>);

impl Keeper {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self(Mutex::new(socket))
    }

    pub(super) fn keep(&self, node: u64, file: BorrowedFd<'_>) -> io::Result<()> {
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let files = [file];
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
        let message = message(KEEP, node);
        again(|| sendmsg(&*socket, &[IoSlice::new(&message)], &mut ancillary, SendFlags::NOSIGNAL))?;
        let mut status = [0; 1];
        let (len, _) = again(|| recv(&*socket, &mut status[..], RecvFlags::empty()))?;
        match (len, status[0]) {
            (1, 0) => Ok(()),
            (1, errno) => Err(io::Error::from_raw_os_error(errno.into())),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    pub(super) fn drop_kept(&self, node: u64) {
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A supervisor that is gone keeps nothing.
        let _ = again(|| send(&*socket, &message(DROP, node), SendFlags::NOSIGNAL));
    }
}

fn message(kind: u8, node: u64) -> [u8; LEN] {
    let mut bytes = [kind; LEN];
    bytes[1..].copy_from_slice(&node.to_le_bytes());
    bytes
}

fn again<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// A worker's message.
#[derive(Debug)]
enum KeepMessage {
    /// Keep this node's descriptor.
    Keep(u64, OwnedFd),
    /// Close this node's descriptor.
    Drop(u64),
}

/// The supervisor's side: descriptors by the number of their node.
#[derive(Debug, Default)]
pub struct KeptFiles(HashMap<u64, OwnedFd>);

impl KeptFiles {
    /// Receives one message from `socket`, carries it out and acknowledges it.
    ///
    /// # Errors
    /// `UnexpectedEof` if the worker is gone, `WouldBlock` if there is no message.
    pub fn serve(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        match receive(socket)? {
            KeepMessage::Keep(node, file) => {
                self.0.insert(node, file);
                // The worker may have died in between.
                let _ = again(|| send(socket, &[0], SendFlags::NOSIGNAL | SendFlags::DONTWAIT));
            }
            KeepMessage::Drop(node) => drop(self.0.remove(&node)),
        }
        Ok(())
    }

    /// Takes all of them, in a new worker, which is a fork of the supervisor.
    pub fn take(&mut self) -> HashMap<u64, OwnedFd> {
        std::mem::take(&mut self.0)
    }
}

fn receive(socket: BorrowedFd<'_>) -> io::Result<KeepMessage> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; LEN];
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let got = again(|| recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags))?;
    let file = ancillary.drain().find_map(|m| match m {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let node = bytes[1..].try_into().map_or(0, u64::from_le_bytes);
    match (got.bytes, bytes[0], file) {
        (0, ..) => Err(io::ErrorKind::UnexpectedEof.into()),
        (LEN, KEEP, Some(file)) => Ok(KeepMessage::Keep(node, file)),
        (LEN, DROP, None) => Ok(KeepMessage::Drop(node)),
        _ => refuse(socket),
    }
}

/// Answers a message without its descriptor: the supervisor has no room for it (EMFILE).
fn refuse(socket: BorrowedFd<'_>) -> io::Result<KeepMessage> {
    let errno = u8::try_from(Errno::MFILE.raw_os_error()).unwrap_or(u8::MAX);
    let _ = again(|| send(socket, &[errno], SendFlags::NOSIGNAL | SendFlags::DONTWAIT));
    Err(io::Error::new(io::ErrorKind::WouldBlock, "a descriptor could not be kept"))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn a_kept_file_is_the_same_file() {
        let pair = || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = pair().unwrap();
        let keeper = Keeper::new(theirs);
        let file = tempfile::tempfile().unwrap();
        let mut kept = KeptFiles::default();
        std::thread::scope(|s| {
            let sent = s.spawn(|| keeper.keep(7, file.as_fd()));
            while kept.0.is_empty() {
                let _ = kept.serve(ours.as_fd());
            }
            sent.join().unwrap().unwrap();
        });
        let inode = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).unwrap().st_ino;
        assert_eq!(inode(kept.0[&7].as_fd()), inode(file.as_fd()));
        keeper.drop_kept(7);
        kept.serve(ours.as_fd()).unwrap();
        assert!(kept.0.is_empty());
        drop(keeper);
        assert_eq!(kept.serve(ours.as_fd()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn without_a_supervisor_keeping_is_an_error() {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        drop(ours);
        let file = tempfile::tempfile().unwrap();
        assert!(Keeper::new(theirs).keep(7, file.as_fd()).is_err());
    }
}
