//! Names: creating, renaming, removing, reading.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    Access, AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, accessat, fstatvfs, linkat, makedev, mkdirat,
    mknodat, openat, readlinkat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{chdir, fchdir};

use super::super::op::{At, Kind, Op};
use super::{Answer, Answered, Tree, done};
use crate::common::tree as trees;

pub fn perform(tree: &mut Tree, op: &Op) -> Option<Answered> {
    Some(match op {
        Op::Open { slot, at, flags, mode } => open(tree, usize::from(*slot), *at, *flags, *mode),
        Op::Close { slot } => done(tree.slots[usize::from(*slot)].take().ok_or(Errno::BADF)),
        Op::Chdir { at } => change_directory(tree, *at),
        Op::Umask { mode } => {
            // The umask is the thread's, and so the same for both trees.
            rustix::process::umask(Mode::from_raw_mode(*mode));
            Ok(Answer::Done)
        }
        _ => return make(tree, op).or_else(|| query(tree, op)),
    })
}

fn open(tree: &mut Tree, slot: usize, at: At, flags: u32, mode: u32) -> Answered {
    tree.slots[slot] = None;
    let always = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let (dir, path) = tree.at(at);
    let opened = openat(dir, path, OFlags::from_bits_retain(flags) | always, Mode::from_raw_mode(mode))?;
    tree.slots[slot] = Some(opened);
    Ok(Answer::Done)
}

/// Changes the thread's working directory for a moment, so that the kernel checks whether the user may.
fn change_directory(tree: &mut Tree, at: At) -> Answered {
    let (dir, path) = tree.at(at);
    let opened = openat(dir, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    fchdir(&opened)?;
    let _ = chdir("/");
    tree.working = Some(opened);
    Ok(Answer::Done)
}

fn make(tree: &Tree, op: &Op) -> Option<Answered> {
    Some(match op {
        Op::Mkdir { at, mode } => {
            let (dir, path) = tree.at(*at);
            done(mkdirat(dir, path, Mode::from_raw_mode(*mode)))
        }
        Op::Mknod { at, kind, mode } => {
            let (dir, path) = tree.at(*at);
            let (kind, device) = kind_of(*kind);
            done(mknodat(dir, path, kind, Mode::from_raw_mode(*mode), device))
        }
        Op::Symlink { to, at } => {
            let (dir, path) = tree.at(*at);
            done(symlinkat(to.path(), dir, path))
        }
        Op::Link { from, to, follow } => {
            let ((dir, path), (to_dir, to_path)) = (tree.at(*from), tree.at(*to));
            let flags = if *follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
            done(linkat(dir, path, to_dir, to_path, flags))
        }
        Op::Rename { from, to, flags } => {
            let ((dir, path), (to_dir, to_path)) = (tree.at(*from), tree.at(*to));
            done(renameat_with(dir, path, to_dir, to_path, RenameFlags::from_bits_retain(*flags)))
        }
        Op::Unlink { at } => {
            let (dir, path) = tree.at(*at);
            done(unlinkat(dir, path, AtFlags::empty()))
        }
        Op::Rmdir { at } => {
            let (dir, path) = tree.at(*at);
            done(unlinkat(dir, path, AtFlags::REMOVEDIR))
        }
        _ => return None,
    })
}

fn kind_of(kind: Kind) -> (FileType, u64) {
    match kind {
        Kind::File => (FileType::RegularFile, 0),
        Kind::Pipe => (FileType::Fifo, 0),
        Kind::Socket => (FileType::Socket, 0),
        Kind::NullDevice => (FileType::CharacterDevice, makedev(1, 3)),
    }
}

fn query(tree: &Tree, op: &Op) -> Option<Answered> {
    Some(match op {
        Op::Readlink { at } => {
            let (dir, path) = tree.at(*at);
            readlinkat(dir, path, Vec::new()).map(|to| Answer::Bytes(to.into_bytes()))
        }
        Op::Stat { at, follow } => {
            let (dir, path) = tree.at(*at);
            let flags = if *follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
            statat(dir, path, flags).map(|s| Answer::Text(trees::stat(&s)))
        }
        Op::Access { at, mode, effective } => {
            let (dir, path) = tree.at(*at);
            let flags = if *effective { AtFlags::EACCESS } else { AtFlags::empty() };
            done(accessat(dir, path, Access::from_bits_retain(*mode), flags))
        }
        Op::List { at } => list(tree, *at),
        Op::Statfs { at } => statfs(tree, *at),
        _ => return None,
    })
}

/// A directory's names in order, with their types from readdir(3).
fn list(tree: &Tree, at: At) -> Answered {
    let (dir, path) = tree.at(at);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let dir = Dir::new(openat(dir, path, flags, Mode::empty())?)?;
    let mut names = dir
        .map(|entry| {
            entry.map(|e| format!("{:?} {:?}", OsStr::from_bytes(e.file_name().to_bytes()), e.file_type()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    names.sort();
    Ok(Answer::Text(names.join("\n")))
}

/// The values that do not change while other programs use the disk.
fn statfs(tree: &Tree, at: At) -> Answered {
    let (dir, path) = tree.at(at);
    let s = fstatvfs(openat(dir, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)?;
    let sizes = (s.f_bsize, s.f_frsize, s.f_blocks, s.f_files, s.f_namemax);
    Ok(Answer::Text(format!("{sizes:?}")))
}
