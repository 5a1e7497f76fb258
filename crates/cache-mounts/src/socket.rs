//! A supervisor's socket. Its name is its file system's number; its directory belongs to its user alone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

use rustix::fs::{AtFlags, OFlags, statat, unlinkat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::at;
use crate::connection::Connection;
use crate::dir::open_on_same_mount;
use crate::{Device, SocketDirs};

/// A listening socket. Drop removes its file.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    dir: OwnedFd,
    name: String,
    /// The file's inode: after the mount's end its number, and so the file's name, may be another mount's.
    inode: Option<u64>,
}

impl Socket {
    /// Listens for requests about the file system with this number. An existing socket of the same name is a dead supervisor's,
    /// since the kernel gives a number to one living file system only: it is replaced.
    ///
    /// # Errors
    /// The directory cannot be made (see [`SocketDirs::make`]), or what bind(2) answers.
    pub fn listen(dirs: &SocketDirs, device: Device) -> io::Result<Self> {
        let (dir, name) = (dirs.make()?, name(device));
        remove(&dir, &name)?;
        let listener = UnixListener::bind(at::inside(dir.as_fd(), &name))?;
        // Only its user and root can connect. A kernel before Linux 6.16 does not refuse them.
        let _ = eke_linux::passed::refuse(&listener);
        let inode = inode(&dir, &name);
        Ok(Self { listener, dir, name, inode })
    }

    /// Closes it without removing its file: for a fork of the process that listens.
    pub fn close_copy(mut self) {
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
            let _ = remove(&self.dir, &self.name);
        }
    }
}

/// Connects to the supervisor of a file system of the user `uid`, without waiting. The stream is non-blocking. `None`: nobody
/// listens.
///
/// # Errors
/// What connect(2) answers otherwise: `EAGAIN` if its queue is full; `EPERM` if another user listens; see [`Connection`].
pub fn connect(dirs: &SocketDirs, device: Device, uid: u32) -> io::Result<Option<Connection>> {
    let name = name(device);
    for dir in dirs.of(uid) {
        match connect_in(dir.as_fd(), &name) {
            Ok(stream) => return check_user(stream, uid).map(Some),
            Err(e) if is_nobody(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

/// Follows no link and enters no other mount: the directory's user may have put either there.
fn connect_in(dir: BorrowedFd<'_>, name: &str) -> io::Result<Connection> {
    let file = open_on_same_mount(dir, name, OFlags::PATH | OFlags::NOFOLLOW)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection =
        Connection::new(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?.into())?;
    rustix::net::connect(&connection, &SocketAddrUnix::new(at::link(file.as_fd()))?)?;
    Ok(connection)
}

/// Removes the socket that a dead supervisor of the user `uid` left.
pub fn remove_dead(dirs: &SocketDirs, device: Device, uid: u32) {
    let name = name(device);
    for dir in dirs.of(uid) {
        // Another mount may have this number by now, and its supervisor lives.
        if connect_in(dir.as_fd(), &name).is_err_and(|e| is_nobody(&e)) {
            let _ = remove(&dir, &name);
        }
    }
}

fn check_user(connection: Connection, uid: u32) -> io::Result<Connection> {
    if Peer::of(&connection)?.uid == uid { Ok(connection) } else { Err(Errno::PERM.into()) }
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn remove(dir: &OwnedFd, name: &str) -> io::Result<()> {
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

/// The process at the other end, as of when it connected or listened (`SO_PEERCRED`, unix(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its user.
    pub uid: u32,
    /// Its number.
    pub pid: u32,
}

impl Peer {
    /// The other end of a connection.
    ///
    /// # Errors
    /// What getsockopt(2) answers.
    pub fn of(connection: impl AsFd) -> io::Result<Self> {
        let peer = rustix::net::sockopt::socket_peercred(connection)?;
        Ok(Self { uid: peer.uid.as_raw(), pid: peer.pid.as_raw_nonzero().get().unsigned_abs() })
    }

    /// May this process unmount a mount of the user `own`, and see its details?
    pub fn may(self, own: u32) -> bool {
        self.uid == own || self.uid == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: Device = Device { major: 0, minor: 57 };

    /// For an ordinary user with a runtime directory.
    fn dirs(runtime: &std::path::Path) -> SocketDirs {
        let own = rustix::process::geteuid().as_raw();
        std::fs::create_dir_all(runtime.join("run")).unwrap();
        SocketDirs::new(runtime, Some(runtime.into()), own)
    }

    #[test]
    fn a_dead_supervisors_socket_does_not_answer_and_is_replaced() {
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
    fn only_the_mounts_user_and_root_may_unmount() {
        let may = |uid, own| Peer { uid, pid: 1 }.may(own);
        assert!(may(1000, 1000) && may(0, 1000) && !may(1000, 0) && !may(1001, 1000));
    }
}
