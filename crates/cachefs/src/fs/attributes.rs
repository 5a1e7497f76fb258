//! Reading and changing attributes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, Statx, StatxTimestamp, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
    chmodat, chownat, ftruncate, utimensat,
};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use super::{Caller, Fs, error};
use crate::backing::{Stamp, at};
use crate::node::{Access, Node, ROOT, is_foreign};

/// A time to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The time of the change.
    Now,
    /// This time, since 1970.
    At {
        /// Whole seconds, negative before 1970.
        seconds: i64,
        /// Nanoseconds after that.
        nanos: u32,
    },
}

impl From<TimeOrNow> for SetTime {
    /// fuser 0.18 represents a time before 1970 as a distance: the sum of the seconds' magnitude and the nanoseconds. This
    /// recovers both.
    fn from(time: TimeOrNow) -> Self {
        let TimeOrNow::SpecificTime(time) = time else { return Self::Now };
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self::At { seconds: whole(after), nanos: after.subsec_nanos() },
            Err(e) => Self::At { seconds: before(e.duration()), nanos: e.duration().subsec_nanos() },
        }
    }
}

fn whole(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

fn before(duration: Duration) -> i64 {
    0i64.checked_sub_unsigned(duration.as_secs()).unwrap_or(i64::MIN)
}

/// The attributes to change (`FUSE_SETATTR`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttrChange {
    /// Permissions.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// In bytes.
    pub size: Option<u64>,
    /// The time of the last read.
    pub atime: Option<SetTime>,
    /// The time of the last write.
    pub mtime: Option<SetTime>,
}

impl Fs {
    /// The attributes of a node. The root has its inode's number here.
    ///
    /// # Errors
    /// ESTALE; those of statx(2).
    pub fn getattr(&self, number: u64) -> io::Result<FileAttr> {
        if number == ROOT {
            let _ = self.root_asked.get_or_init(Instant::now);
        }
        let node = self.nodes.get(number)?;
        let found = self.nodes.stat(&node);
        Ok(attr(&node, &self.nodes.lost_if_stale(&node, found)?))
    }

    /// Changes attributes, the owner first, because that clears setuid and setgid bits. The kernel has checked the owner by
    /// attributes that may be a second old, so another user's change is checked again on the backing file.
    ///
    /// # Errors
    /// Those of chown(2), chmod(2), ftruncate(2) and utimensat(2).
    pub fn setattr(&self, caller: &Caller, number: u64, change: &AttrChange) -> io::Result<FileAttr> {
        let node = self.nodes.get(number)?;
        let changed = self.change(caller, &node, change);
        Ok(attr(&node, &self.nodes.lost_if_stale(&node, changed)?))
    }

    fn change(&self, caller: &Caller, node: &Arc<Node>, change: &AttrChange) -> io::Result<Statx> {
        let path = self.nodes.path(node)?;
        if change.uid.is_some() || change.gid.is_some() {
            self.keeping_blocks(node, &path, || set_owner(caller, &path, change))?;
        }
        if let Some(mode) = change.mode {
            self.keeping_blocks(node, &path, || set_mode(caller, &path, mode))?;
        }
        if let Some(size) = change.size {
            self.end_lingering(node.number);
            self.truncate(caller, node.number, size)?;
        }
        if change.sets_times() {
            self.keeping_blocks(node, &path, || set_times(caller, &path, change))?;
        }
        at::stat(&path)
    }

    /// Makes a change of a file that leaves its content as it is.
    pub(super) fn keeping_blocks<T>(
        &self,
        node: &Node,
        path: &OwnedFd,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let stat = || Ok(Stamp::of(&at::stat(path)?));
        self.changing(node, |id| self.tier.change_beside(id, stat, change))
    }

    /// The same for a change of a file's name. No descriptor is opened where there is nothing to keep, nor on a remote file system, where it would keep the
    /// name.
    pub(super) fn keeping_blocks_of<T>(
        &self,
        node: Option<&Arc<Node>>,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let keeps = |node: &&Arc<Node>| {
            let is_local = !self.is_remote() && !is_foreign(node.number);
            is_local && self.tier.known_size(self.id(node)).is_some()
        };
        let path = node.filter(keeps).and_then(|node| Some((node, self.nodes.path(node).ok()?)));
        match path {
            Some((node, path)) => self.keeping_blocks(node, &path, change),
            None => change(),
        }
    }

    /// Makes a file longer or shorter.
    ///
    /// # Errors
    /// Those of ftruncate(2).
    pub(super) fn truncate(&self, caller: &Caller, number: u64, size: u64) -> io::Result<()> {
        let node = self.nodes.get(number)?;
        let file = self.file(&node, Access::Write)?;
        let from = size.min(file.stamp()?.size);
        let cut = || caller.changes(false, || Ok(ftruncate(&*file, size)?));
        self.changing(&node, |id| self.tier.change(id, from..u64::MAX, &file, cut))
    }
}

impl AttrChange {
    /// truncate(2) comes with the present time. ftruncate(2) sets that itself, also for a caller who is not the owner.
    fn sets_times(&self) -> bool {
        let now = |time| matches!(time, None | Some(SetTime::Now));
        let any = self.atime.is_some() || self.mtime.is_some();
        any && !(self.size.is_some() && now(self.atime) && now(self.mtime))
    }
}

/// A user may give an own file to any of the user's groups. The kernel has checked this with all of them.
fn set_owner(caller: &Caller, path: &OwnedFd, change: &AttrChange) -> io::Result<()> {
    // chown(2) with -1 changes nothing, and the kernel sends no such id.
    if change.uid == Some(u32::MAX) || change.gid == Some(u32::MAX) {
        return Err(Errno::INVAL.into());
    }
    let (uid, gid) = (change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw));
    let set = || Ok(chownat(path, c"", uid, gid, AtFlags::EMPTY_PATH)?);
    let done = caller.acts(set);
    if !caller.is_other() || !error::is(&done, Errno::PERM) {
        return done;
    }
    let statx = at::stat(path)?;
    let stays = change.uid.is_none_or(|uid| uid == statx.stx_uid);
    let owns = statx.stx_uid == caller.uid && stays;
    if owns || caller.holds(CapabilitySet::CHOWN, &[statx]) {
        caller.acts_on_with(CapabilitySet::CHOWN, &[statx], set)
    } else {
        done
    }
}

fn set_mode(caller: &Caller, path: &OwnedFd, mode: u32) -> io::Result<()> {
    let statx = at::stat(path)?;
    let set_gid = mode & libc::S_ISGID != 0;
    let more = if set_gid { caller.leaves_set_gid(&statx) } else { CapabilitySet::empty() };
    let bits = Mode::from_raw_mode(mode & 0o7777);
    let set = || Ok(chmodat(CWD, at::link(path.as_fd()), bits, AtFlags::empty())?);
    caller.acts_on_with(more, &[statx], set)
}

fn set_times(caller: &Caller, path: &OwnedFd, change: &AttrChange) -> io::Result<()> {
    let times = Timestamps { last_access: timespec(change.atime), last_modification: timespec(change.mtime) };
    let statx = at::stat(path)?;
    let set = || Ok(utimensat(CWD, at::link(path.as_fd()), &times, AtFlags::empty())?);
    caller.acts_on(&[statx], set)
}

fn timespec(time: Option<SetTime>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(SetTime::At { seconds, nanos }) => Timespec { tv_sec: seconds, tv_nsec: nanos.into() },
    }
}

fn attr(node: &Node, statx: &Statx) -> FileAttr {
    let number = if node.number == ROOT { node.inode.ino } else { node.number };
    attr_of(number, statx)
}

/// Converts the attributes of statx(2), for the node with this number.
pub fn attr_of(number: u64, statx: &Statx) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: statx.stx_size,
        blocks: statx.stx_blocks,
        atime: time(statx.stx_atime),
        mtime: time(statx.stx_mtime),
        ctime: time(statx.stx_ctime),
        crtime: time(statx.stx_btime),
        kind: kind(rustix::fs::FileType::from_raw_mode(statx.stx_mode.into())),
        perm: statx.stx_mode & 0o7777,
        nlink: statx.stx_nlink,
        uid: statx.stx_uid,
        gid: statx.stx_gid,
        rdev: device(statx.stx_rdev_major, statx.stx_rdev_minor),
        blksize: statx.stx_blksize,
        flags: 0,
    }
}

fn time(time: StatxTimestamp) -> SystemTime {
    let nanos = Duration::from_nanos(time.tv_nsec.into());
    let whole = Duration::from_secs(time.tv_sec.unsigned_abs());
    let second = if time.tv_sec < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    second.and_then(|s| s.checked_add(nanos)).unwrap_or(UNIX_EPOCH)
}

/// The type in fuser's terms.
pub(super) fn kind(kind: rustix::fs::FileType) -> FileType {
    use rustix::fs::FileType as Backing;
    match kind {
        Backing::Directory => FileType::Directory,
        Backing::Symlink => FileType::Symlink,
        Backing::Fifo => FileType::NamedPipe,
        Backing::Socket => FileType::Socket,
        Backing::CharacterDevice => FileType::CharDevice,
        Backing::BlockDevice => FileType::BlockDevice,
        Backing::RegularFile | Backing::Unknown => FileType::RegularFile,
    }
}

/// Encodes a device number for FUSE as the kernel does (`new_encode_dev`).
fn device(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// Decodes it: major and minor.
pub(super) fn halves(rdev: u32) -> (u32, u32) {
    ((rdev >> 8) & 0xfff, (rdev & 0xff) | ((rdev >> 12) & 0xf_ff00))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devices_number_is_encoded_and_decoded() {
        for (major, minor) in [(0, 0), (1, 3), (8, 255), (259, 256), (4095, 0xf_ffff)] {
            assert_eq!(halves(device(major, minor)), (major, minor));
        }
    }

    #[test]
    fn a_time_before_1970_comes_as_the_kernel_sent_it() {
        // fuser's representation of seconds -2 and 800,000,000 nanoseconds.
        let sent = UNIX_EPOCH - Duration::new(2, 800_000_000);
        assert_eq!(
            SetTime::from(TimeOrNow::SpecificTime(sent)),
            SetTime::At { seconds: -2, nanos: 800_000_000 }
        );
        let earliest = UNIX_EPOCH - Duration::from_secs(1 << 63);
        assert_eq!(
            SetTime::from(TimeOrNow::SpecificTime(earliest)),
            SetTime::At { seconds: i64::MIN, nanos: 0 }
        );
    }
}
