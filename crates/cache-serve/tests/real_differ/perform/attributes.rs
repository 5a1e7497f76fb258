//! Attributes by name: mode, owner, times, size, extended attributes, ACLs.

use std::path::Path;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, XattrFlags, chmodat,
    chownat, fgetxattr, ftruncate, getxattr, listxattr, openat, removexattr, setxattr, statat, utimensat,
};
use rustix::io::Errno;
use rustix::process::{chdir, fchdir};

use super::super::op::{At, Op, Time, Xattr};
use super::super::user::{SHARED, USERS};
use super::{Answer, Answered, Tree, done};
use crate::common::tree::names;

pub fn perform(tree: &Tree, op: &Op) -> Option<Answered> {
    Some(match op {
        Op::Chmod { at, mode } => {
            let (dir, path) = tree.at(*at);
            done(chmodat(dir, path, Mode::from_raw_mode(*mode), AtFlags::empty()))
        }
        Op::Chown { at, uid, gid, follow } => {
            let (dir, path) = tree.at(*at);
            done(chownat(dir, path, uid.map(Uid::from_raw), gid.map(Gid::from_raw), nofollow(*follow)))
        }
        Op::Times { at, accessed, modified, follow } => {
            let (dir, path) = tree.at(*at);
            utimensat(dir, path, &times(*accessed, *modified), nofollow(*follow))
                .and_then(|()| statat(dir, path, nofollow(*follow)))
                .map(|s| Answer::Text(set_times(&s, *accessed, *modified)))
        }
        Op::Truncate { at, size } => {
            let (dir, path) = tree.at(*at);
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            done(openat(dir, path, flags, Mode::empty()).and_then(|file| ftruncate(file, *size)))
        }
        _ => return extended(tree, op),
    })
}

fn nofollow(follow: bool) -> AtFlags {
    if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW }
}

pub fn times(accessed: Time, modified: Time) -> Timestamps {
    let spec = |time| match time {
        Time::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Time::Omit => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Time::At(seconds, nanos) => Timespec { tv_sec: seconds, tv_nsec: nanos.into() },
    };
    Timestamps { last_access: spec(accessed), last_modification: spec(modified) }
}

/// Those of the times that were set to a given value.
pub fn set_times(stat: &Stat, accessed: Time, modified: Time) -> String {
    let known = |time| matches!(time, Time::At(..));
    let a = known(accessed).then_some((stat.st_atime, stat.st_atime_nsec));
    let m = known(modified).then_some((stat.st_mtime, stat.st_mtime_nsec));
    format!("{a:?} {m:?}")
}

fn extended(tree: &Tree, op: &Op) -> Option<Answered> {
    Some(match op {
        Op::SetXattr { at, name, len, seed, flags } => {
            let value = value(*name, *len, *seed);
            let flags = XattrFlags::from_bits_retain(*flags);
            by_path(tree, *at, |path| done(setxattr(path, name_of(*name), &value, flags)))
        }
        Op::SetAcl { at, default, list } => {
            let name = if *default { Xattr::DefaultAcl } else { Xattr::AccessAcl };
            let list = acl(*list);
            by_path(tree, *at, |path| done(setxattr(path, name_of(name), &list, XattrFlags::empty())))
        }
        Op::GetXattr { at, name, room } => {
            by_path(tree, *at, |path| sized(*room, |buffer| getxattr(path, name_of(*name), buffer)))
        }
        Op::ListXattr { at, room } => {
            let listed = by_path(tree, *at, |path| sized(*room, |buffer| listxattr(path, buffer)));
            listed.map(|answer| match answer {
                Answer::Bytes(list) => Answer::Text(names(&list)),
                other => other,
            })
        }
        Op::RemoveXattr { at, name } => by_path(tree, *at, |path| done(removexattr(path, name_of(*name)))),
        Op::FgetXattr { slot, name } => {
            tree.slot(*slot).and_then(|file| sized(4096, |buffer| fgetxattr(file, name_of(*name), buffer)))
        }
        _ => return None,
    })
}

/// These calls take no directory, so it becomes this thread's working directory meanwhile.
fn by_path(tree: &Tree, at: At, call: impl FnOnce(&Path) -> Answered) -> Answered {
    let (dir, path) = tree.at(at);
    fchdir(dir)?;
    let answered = call(path);
    chdir("/")?;
    answered
}

fn sized(room: usize, get: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) -> Answered {
    let mut value = vec![0; room];
    let len = get(&mut value)?;
    if room == 0 {
        return Ok(Answer::Number(len as i64));
    }
    value.truncate(len);
    Ok(Answer::Bytes(value))
}

pub fn name_of(name: Xattr) -> &'static str {
    match name {
        Xattr::User => "user.one",
        Xattr::Other => "user.two",
        Xattr::Trusted => "trusted.one",
        Xattr::Security => "security.eke",
        Xattr::Capability => "security.capability",
        Xattr::AccessAcl => "system.posix_acl_access",
        Xattr::DefaultAcl => "system.posix_acl_default",
        Xattr::System => "system.eke",
        Xattr::NoPrefix => "one",
    }
}

/// A value; for file capabilities mostly a valid one, `VFS_CAP_REVISION_2` with one permitted capability.
fn value(name: Xattr, len: usize, seed: u8) -> Vec<u8> {
    if name == Xattr::Capability && seed % 4 > 0 {
        return [0x0200_0001_u32, 1 << (seed % 8), 0, 0, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    }
    (0..len).map(|n| seed.wrapping_add(n as u8)).collect()
}

/// An access control list: version 2, then tag, permissions and id of each entry. The last ones are invalid.
pub fn acl(list: u8) -> Vec<u8> {
    const NONE: u32 = u32::MAX;
    let (one, two) = (USERS[1].uid, USERS[2].uid);
    let entries: &[(u16, u16, u32)] = match list % 8 {
        0 => &[(1, 6, NONE), (4, 4, NONE), (0x20, 0, NONE)],
        1 => &[(1, 7, NONE), (2, 6, one), (4, 0, NONE), (0x10, 7, NONE), (0x20, 0, NONE)],
        2 => &[(1, 7, NONE), (2, 7, two), (4, 5, NONE), (0x10, 5, NONE), (0x20, 5, NONE)],
        3 => &[(1, 7, NONE), (4, 0, NONE), (8, 7, SHARED[0]), (0x10, 7, NONE), (0x20, 0, NONE)],
        4 => &[(1, 0, NONE), (2, 0, one), (4, 7, NONE), (8, 0, SHARED[1]), (0x10, 6, NONE), (0x20, 7, NONE)],
        5 => &[],
        6 => &[(1, 7, NONE), (2, 6, one), (4, 0, NONE), (0x20, 0, NONE)],
        _ => &[(1, 7, NONE)],
    };
    let entry = |&(tag, perm, id): &(u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &perm.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2_u32.to_le_bytes().to_vec(), entries.iter().flat_map(entry).collect()].concat()
}
