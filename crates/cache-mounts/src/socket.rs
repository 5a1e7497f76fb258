//! A supervisor's socket: named by its file system's number, in a directory that is only its user's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::fs::{AtFlags, OFlags, statat, unlinkat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::at;
use crate::dir::without_a_step_elsewhere;
use crate::{Device, Dirs};

/// A listening socket, removed when dropped.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    dir: OwnedFd,
    name: String,
    /// The file that it is: after the mount's end its number, and so the name, may be another's.
    inode: Option<u64>,
}

impl Socket {
    /// Listens for questions about the file system with this number. One with the same name is a dead one's: the kernel gives a
    /// number to one living file system only.
    ///
    /// # Errors
    /// The directory cannot be had (see [`Dirs::make`]), or what bind(2) answers.
    pub fn listen(dirs: &Dirs, device: Device) -> io::Result<Self> {
        let (dir, name) = (dirs.make()?, name(device));
        removed(&dir, &name)?;
        let listener = UnixListener::bind(at::inside(dir.as_fd(), &name))?;
        let inode = inode(&dir, &name);
        Ok(Self { listener, dir, name, inode })
    }

    /// Closes it without removing it: in a process that was forked off the one that listens.
    pub fn let_go(mut self) {
        self.inode = None;
    }

    /// For `accept` and poll(2).
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.inode.is_some() && inode(&self.dir, &self.name) == self.inode {
            let _ = removed(&self.dir, &self.name);
        }
    }
}

/// Connects to the supervisor of a file system of the user `uid`, without waiting; `None`: nobody listens. The stream does not
/// wait either.
///
/// # Errors
/// What connect(2) answers otherwise: `EAGAIN` if as many wait there as may; `EPERM` if another user listens there.
pub fn connect(dirs: &Dirs, device: Device, uid: u32) -> io::Result<Option<UnixStream>> {
    let name = name(device);
    for dir in dirs.of(uid) {
        match connect_in(dir.as_fd(), &name) {
            Ok(stream) => return theirs(stream, uid).map(Some),
            Err(e) if is_nobody(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

/// The user may have put a link at the name, or a file system of that user's own.
fn connect_in(dir: BorrowedFd<'_>, name: &str) -> io::Result<UnixStream> {
    let file = without_a_step_elsewhere(dir, name, OFlags::PATH | OFlags::NOFOLLOW)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&stream, &SocketAddrUnix::new(at::link(file.as_fd()))?)?;
    Ok(stream.into())
}

/// Removes the socket that the dead supervisor of a file system of the user `uid` left.
pub fn remove_dead(dirs: &Dirs, device: Device, uid: u32) {
    let name = name(device);
    for dir in dirs.of(uid) {
        // The number may have been given to another mount meanwhile, whose supervisor lives.
        if connect_in(dir.as_fd(), &name).is_err_and(|e| is_nobody(&e)) {
            let _ = removed(&dir, &name);
        }
    }
}

fn theirs(stream: UnixStream, uid: u32) -> io::Result<UnixStream> {
    if Peer::of(&stream)?.uid == uid { Ok(stream) } else { Err(Errno::PERM.into()) }
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn removed(dir: &OwnedFd, name: &str) -> io::Result<()> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Err(Errno::NOENT) | Ok(()) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

fn inode(dir: &OwnedFd, name: &str) -> Option<u64> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stat.st_ino)
}

fn name(device: Device) -> String {
    format!("{}-{}", device.major, device.minor)
}

/// Who is at the other end (`SO_PEERCRED`, unix(7)): who that was when it connected or listened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its user.
    pub uid: u32,
    /// Its process.
    pub pid: u32,
}

impl Peer {
    /// Of a connection.
    ///
    /// # Errors
    /// What getsockopt(2) answers.
    pub fn of(stream: &UnixStream) -> io::Result<Self> {
        let peer = rustix::net::sockopt::socket_peercred(stream)?;
        Ok(Self { uid: peer.uid.as_raw(), pid: peer.pid.as_raw_nonzero().get().unsigned_abs() })
    }

    /// May this one end a mount of the user `own`, and see its details?
    pub fn may(self, own: u32) -> bool {
        self.uid == own || self.uid == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: Device = Device { major: 0, minor: 57 };

    /// As an ordinary user, with a runtime directory of one's own.
    fn dirs(runtime: &std::path::Path) -> Dirs {
        let own = rustix::process::geteuid().as_raw();
        std::fs::create_dir_all(runtime.join("run")).unwrap();
        Dirs::new(runtime, Some(runtime.into()), own)
    }

    #[test]
    fn a_dead_ones_socket_is_nobody_and_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let dirs = dirs(root.path());
        assert!(connect(&dirs, DEVICE, dirs.own()).unwrap().is_none());
        let mut dead = Socket::listen(&dirs, DEVICE).unwrap();
        dead.name = "somewhere else".into();
        drop(dead);
        assert!(connect(&dirs, DEVICE, dirs.own()).unwrap().is_none());
        let alive = Socket::listen(&dirs, DEVICE).unwrap();
        let stream = connect(&dirs, DEVICE, dirs.own()).unwrap().unwrap();
        assert_eq!(Peer::of(&stream).unwrap(), Peer { uid: dirs.own(), pid: std::process::id() });
        let other = Device { minor: 58, ..DEVICE };
        assert!(connect(&dirs, other, dirs.own()).unwrap().is_none());
        drop(alive);
        assert!(connect(&dirs, DEVICE, dirs.own()).unwrap().is_none());
    }

    #[test]
    fn only_its_user_and_root_may() {
        let may = |uid, own| Peer { uid, pid: 1 }.may(own);
        assert!(may(1000, 1000) && may(0, 1000) && !may(1000, 0) && !may(1001, 1000));
    }
}
