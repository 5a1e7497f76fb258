//! Descriptors that outlive the worker: sent to the supervisor over a pair of sockets, with its word that it has them.

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
/// A kind and a node's number.
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
        let mut word = [0; 1];
        let (len, _) = again(|| recv(&*socket, &mut word[..], RecvFlags::empty()))?;
        match (len, word[0]) {
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

/// What a worker said.
#[derive(Debug)]
pub enum Note {
    /// Keep this one.
    Keep(u64, OwnedFd),
    /// It is needed no more.
    Drop(u64),
}

/// The supervisor's side: descriptors by the number of their node.
#[derive(Debug, Default)]
pub struct Kept(HashMap<u64, OwnedFd>);

impl Kept {
    /// Does what one message on `socket` says, and gives the supervisor's word.
    ///
    /// # Errors
    /// `UnexpectedEof` if the worker is gone, `WouldBlock` if nothing is there.
    pub fn serve(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        match receive(socket)? {
            Note::Keep(node, file) => {
                self.0.insert(node, file);
                // A worker that died in between asks no more.
                let _ = again(|| send(socket, &[0], SendFlags::NOSIGNAL | SendFlags::DONTWAIT));
            }
            Note::Drop(node) => drop(self.0.remove(&node)),
        }
        Ok(())
    }

    /// All of them, for a new worker, which is a fork of the supervisor.
    pub fn take(&mut self) -> HashMap<u64, OwnedFd> {
        std::mem::take(&mut self.0)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn receive(socket: BorrowedFd<'_>) -> io::Result<Note> {
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
        (LEN, KEEP, Some(file)) => Ok(Note::Keep(node, file)),
        (LEN, DROP, None) => Ok(Note::Drop(node)),
        _ => refuse(socket),
    }
}

/// A descriptor that could not be received (EMFILE) arrives as a message without one: the worker is told.
fn refuse(socket: BorrowedFd<'_>) -> io::Result<Note> {
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
        let mut kept = Kept::default();
        std::thread::scope(|s| {
            let asked = s.spawn(|| keeper.keep(7, file.as_fd()));
            while kept.is_empty() {
                let _ = kept.serve(ours.as_fd());
            }
            asked.join().unwrap().unwrap();
        });
        let inode = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).unwrap().st_ino;
        assert_eq!(inode(kept.0[&7].as_fd()), inode(file.as_fd()));
        keeper.drop_kept(7);
        kept.serve(ours.as_fd()).unwrap();
        assert!(kept.is_empty());
        drop(keeper);
        assert_eq!(kept.serve(ours.as_fd()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_supervisor_that_is_gone_is_an_error() {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        drop(ours);
        let file = tempfile::tempfile().unwrap();
        assert!(Keeper::new(theirs).keep(7, file.as_fd()).is_err());
    }
}
