//! Takes a mount over its own directory out of the directory tree, and brings it back.
//!
//! Aside it is at [`mounts::ASIDE`], where nobody looks, so its connection and its worker live. A mount cannot be moved from a place that
//! other mount namespaces share (`do_move_mount` in fs/namespace.c), so a copy is attached at the new place and the mount itself is
//! detached; files that are open there to be read go on until they are closed. The copy has another number.
//!
//! Programs must not use a file by both ways at once if one of them writes or locks: locks would not meet, and changes would be seen late.
//! So it moves only while nobody does more than read ([`super::users`], [`WriterScan`]), and the mount comes and goes with all who see the
//! directory ([`super::views`]). That may change between the look and the move: after a second look the mount goes back.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use eke_cache_mounts::process::{MountNamespace, Process};
use eke_cache_mounts::status::{Refusal, RefusalKind};
use eke_cache_mounts::unmount::{detach, now, top};
use eke_cache_mounts::{Device, Mount, SocketDirs, at, mounts};
use eke_linux::parse::mountinfo;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, fstatvfs, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree};

use super::backing_dir::BackingDir;
use super::check::{Checked, directory, mount_of};
use super::sandboxes::restrict;
use super::users;
use super::views::{View, hindrance, loose};
use super::writers::WriterScan;

/// A move takes milliseconds. A user's request waits for it.
pub const MOVED_WITHIN: Duration = Duration::from_secs(5);

/// Checks that nobody keeps the mount in the directory tree, where it covers the backing directory `dir`.
///
/// # Errors
/// `Busy` if somebody does.
pub fn may_leave(shown: &Mount, dir: &OwnedFd) -> Result<(), Refusal> {
    users::check_kernel(&shown.place)?;
    users::check_none(shown)?;
    check_views(shown, dir, true)
}

/// Checks that all who see the directory see it as it should be while the mount covers it (`serves`), or stands aside.
fn check_views(shown: &Mount, dir: &OwnedFd, serves: bool) -> Result<(), Refusal> {
    let (views, dir) = views(shown, dir);
    hindrance(&views, &dir, shown.device, serves).map_or(Ok(()), users::busy)
}

/// What the mount namespaces show, this process's first, and the backing directory `dir` among it.
fn views(shown: &Mount, dir: &OwnedFd) -> (Vec<View>, BackingDir) {
    let of = |process: &Process| (!process.is_this()).then(|| users::name(process));
    let view = |MountNamespace { process, mountinfo }: MountNamespace| View {
        pid: process.pid,
        of: of(&process),
        mounts: mountinfo::parse(&mountinfo),
    };
    let views: Vec<View> = MountNamespace::all(Path::new("/proc")).into_iter().map(view).collect();
    let here = views.first().map(|view| view.mounts.as_slice()).unwrap_or_default();
    let home = at::mount_without_asking(dir).unwrap_or_default();
    let dir = BackingDir::new(shown.place.clone(), home, here);
    (views, dir)
}

/// Makes the mount over the backing directory `dir` as strict as that in other namespaces: it has come there with its flags from here. The
/// caller must have one thread.
///
/// # Errors
/// `Failed` with the kernel's answer. The mount then permits more in a sandbox than its directory.
pub fn restrict_copies(shown: &Mount, dir: &OwnedFd) -> Result<(), Refusal> {
    let (views, dir) = views(shown, dir);
    let restricted = restrict(&loose(&views, &dir, shown.device));
    restricted.map_err(|e| failed("make it read-only in a sandbox that shows its directory so", &e))
}

/// Leaves the directory tree, where it covers the backing directory `dir`. `ours`: as of [`come_back`].
///
/// # Errors
/// `Busy` if a program does more there than read; else what the kernel answers. The mount is where it was then, unless its path leads
/// elsewhere by now.
pub fn leave(shown: &Mount, dir: &OwnedFd, ours: &[u32]) -> Result<(), Refusal> {
    timely(|| may_leave(shown, dir))?;
    let point = point(shown).map_err(|e| failed("make a place for it", &e))?;
    let moved = move_to(shown, &point).map_err(|e| failed("take it away", &e))?;
    let used = users::check_none(shown).and_then(|()| check_views(shown, dir, false));
    let Err(refusal) = used else { return Ok(()) };
    let home = home(&moved, dir)?;
    let mut scan = WriterScan::new(&home).without(ours);
    let back = move_to(&moved, &home.at).map_err(|e| failed("bring it back", &e))?;
    // Somebody may have begun to write meanwhile, and goes on beside the mount.
    let found = scan.scan(Some(&back)).check_unused(&home);
    found.err().map_or(Ok(()), |e| {
        let what = format!("{}; it was gone for a moment, and now {e}", refusal.what);
        Err(Refusal { what, kind: RefusalKind::Failed })
    })?;
    Err(refusal)
}

/// Returns to the directory tree, over the backing directory `dir`. `ours`: the processes of this mount, which may have files open there.
///
/// # Errors
/// `Busy` if a program writes or works there, or would not get the mount; `Failed` if the path leads elsewhere by now, or with the kernel's
/// answer. The mount is where it was then.
pub fn come_back(shown: &Mount, dir: &OwnedFd, ours: &[u32]) -> Result<(), Refusal> {
    let checked = home(shown, dir)?;
    let mut scan = WriterScan::new(&checked).without(ours);
    timely(|| {
        users::check_kernel(&shown.place)?;
        check_views(shown, dir, false)?;
        scan.scan(None).check_unused(&checked).map_err(Refusal::from)
    })?;
    let moved = move_to(shown, &checked.at).map_err(|e| failed("bring it back", &e))?;
    let strict = restrict_copies(&moved, dir);
    let found = scan.scan(Some(&moved)).check_unused(&checked).map_err(Refusal::from);
    let found = strict.and(found).and_then(|()| check_views(&moved, dir, true));
    let Err(refusal) = found else { return Ok(()) };
    point(&moved).and_then(|point| move_to(&moved, &point)).map_err(|e| failed("take it away again", &e))?;
    Err(refusal)
}

/// Looks, with so much of [`MOVED_WITHIN`] left that the look after the move ends within it, too: who is killed in between moves without that.
fn timely(look: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
    let begun = Instant::now();
    look()?;
    let took = begun.elapsed();
    if took < MOVED_WITHIN / 4 {
        return Ok(());
    }
    let what = format!("it took {:.1} s to look at the open files of all programs", took.as_secs_f64());
    Err(Refusal { what, kind: RefusalKind::Busy })
}

/// The mount as it is now, after an attempt to move it that may have been killed. What such an attempt left aside is unmounted.
///
/// # Errors
/// The kernel's list cannot be read; it is in it no more.
pub fn settle(shown: &Mount) -> io::Result<Mount> {
    let same = |m: &Mount| {
        (m.device, &m.dir, m.uid, &m.place) == (shown.device, &shown.dir, shown.uid, &shown.place)
    };
    let found: Vec<_> = mounts::read()?.into_iter().filter(same).collect();
    let in_tree = found.iter().find(|m| m.aside.is_none());
    let kept = in_tree.or_else(|| found.first()).cloned();
    for left in
        found.iter().filter(|m| m.aside.is_some() && kept.as_ref().is_some_and(|kept| kept.id != m.id))
    {
        detach(left, UnmountFlags::DETACH)?;
    }
    // A directory above it may have been renamed.
    let kept = kept.map_or_else(|| now(shown), |kept| Ok(Some(kept)))?;
    kept.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Where it stands aside: a directory of root's alone.
fn point(shown: &Mount) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = |dir: &OwnedFd, name: &str| match mkdirat(dir, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => openat(dir, name, flags, Mode::empty()),
        Err(e) => Err(e),
    };
    let all = made(&SocketDirs::host().make()?, "aside")?;
    Ok(made(&all, &format!("{}-{}", shown.device.major, shown.device.minor))?)
}

/// Removes the directory where a mount of this file system stood aside. While something is mounted there, it stays.
pub fn clear(device: Device) {
    let _ = unlinkat(CWD, mounts::aside(device), AtFlags::REMOVEDIR);
}

/// Attaches a copy of the mount at a directory, and detaches the mount. Returns the copy.
fn move_to(shown: &Mount, to: &OwnedFd) -> io::Result<Mount> {
    let top = top(shown)?.ok_or(io::ErrorKind::NotFound)?;
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let copy = open_tree(&top, c"", flags)?;
    drop(top);
    let by_descriptors = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&copy, c"", to, c"", by_descriptors)?;
    let id = at::mount_without_asking(&copy).ok_or(io::ErrorKind::NotFound)?;
    let list = std::fs::read("/proc/self/mountinfo")?;
    let moved = mounts::parse(&list).into_iter().find(|m| m.id == id).ok_or(io::ErrorKind::NotFound)?;
    // What was mounted inside in the last moment would go with it.
    let is_free = mountinfo::parse(&list).iter().all(|m| m.parent != shown.id);
    detach(if is_free { shown } else { &moved }, UnmountFlags::DETACH)?;
    if is_free { Ok(moved) } else { Err(io::ErrorKind::ResourceBusy.into()) }
}

/// The directory that it covers, if its path still leads there and nothing else is mounted over it.
fn home(shown: &Mount, dir: &OwnedFd) -> Result<Checked, Refusal> {
    let at = directory(&shown.place)?;
    let same = || -> io::Result<bool> {
        let (here, there) = (fstat(&at)?, fstat(dir)?);
        Ok((here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) && mount_of(&at) == mount_of(dir))
    };
    if !same().map_err(|e| failed("look at its directory", &e))? {
        let what = format!(
            "{} leads to another directory by now, or another mount covers it",
            shown.place.display()
        );
        // Not of the kernel, and perhaps for long: no line in the log at each attempt.
        return Err(Refusal { what, kind: RefusalKind::Busy });
    }
    let (stat, vfs) = (fstat(dir), fstatvfs(dir));
    let read = stat.and_then(|stat| Ok((stat.st_mode, vfs?.f_flag)));
    let (mode, flags) = read.map_err(|e| failed("look at its directory", &e.into()))?;
    let dir = dir.try_clone().map_err(|e| failed("look at its directory", &e))?;
    Ok(Checked { dir, at, place: shown.place.clone(), mode, flags })
}

fn failed(what: &str, error: &io::Error) -> Refusal {
    Refusal { what: format!("cannot {what}: {error}"), kind: RefusalKind::Failed }
}
