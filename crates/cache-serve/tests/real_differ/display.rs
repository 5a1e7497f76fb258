//! Operations as text, like the system calls.

use std::fmt::{Formatter, Result};

use rustix::fs::{Access, FallocateFlags, OFlags, RenameFlags, XattrFlags};

use super::op::Op;

pub fn op(op: &Op, f: &mut Formatter<'_>) -> Result {
    match op {
        Op::Open { slot, at, flags, mode } => {
            let access = ["O_RDONLY", "O_WRONLY", "O_RDWR", "3"][(flags & 3) as usize];
            write!(f, "open #{slot} {at:?} {access} {:?} {mode:o}", OFlags::from_bits_retain(flags & !3))
        }
        Op::Close { slot } => write!(f, "close #{slot}"),
        Op::Mkdir { at, mode } => write!(f, "mkdir {at:?} {mode:o}"),
        Op::Mknod { at, kind, mode } => write!(f, "mknod {at:?} {kind:?} {mode:o}"),
        Op::Symlink { to, at } => write!(f, "symlink to {to:?} at {at:?}"),
        Op::Link { from, to, follow } => write!(f, "link {from:?} to {to:?} follow {follow}"),
        Op::Rename { from, to, flags } => {
            write!(f, "rename {from:?} to {to:?} {:?}", RenameFlags::from_bits_retain(*flags))
        }
        Op::Chmod { at, mode } => write!(f, "chmod {at:?} {mode:o}"),
        Op::Umask { mode } => write!(f, "umask {mode:o}"),
        Op::Fchmod { slot, mode } => write!(f, "fchmod #{slot} {mode:o}"),
        Op::Access { at, mode, effective } => {
            write!(f, "access {at:?} {:?} effective {effective}", Access::from_bits_retain(*mode))
        }
        Op::SetXattr { at, name, len, seed, flags } => {
            let flags = XattrFlags::from_bits_retain(*flags);
            write!(f, "setxattr {at:?} {name:?} {len} bytes of {seed} {flags:?}")
        }
        Op::Fallocate { slot, mode, part } => {
            write!(f, "fallocate #{slot} {:?} {part:?}", FallocateFlags::from_bits_retain(*mode))
        }
        other => rest(other, f),
    }
}

fn rest(op: &Op, f: &mut Formatter<'_>) -> Result {
    match op {
        Op::Unlink { at } => write!(f, "unlink {at:?}"),
        Op::Rmdir { at } => write!(f, "rmdir {at:?}"),
        Op::Readlink { at } => write!(f, "readlink {at:?}"),
        Op::Stat { at, follow } => write!(f, "stat {at:?} follow {follow}"),
        Op::List { at } => write!(f, "list {at:?}"),
        Op::Chdir { at } => write!(f, "chdir {at:?}"),
        Op::Statfs { at } => write!(f, "statfs {at:?}"),
        Op::Chown { at, uid, gid, follow } => write!(f, "chown {at:?} {uid:?}:{gid:?} follow {follow}"),
        Op::Times { at, accessed, modified, follow } => {
            write!(f, "utimens {at:?} {accessed:?} {modified:?} follow {follow}")
        }
        Op::Truncate { at, size } => write!(f, "truncate {at:?} {size}"),
        Op::GetXattr { at, name, room } => write!(f, "getxattr {at:?} {name:?} room {room}"),
        Op::ListXattr { at, room } => write!(f, "listxattr {at:?} room {room}"),
        Op::RemoveXattr { at, name } => write!(f, "removexattr {at:?} {name:?}"),
        Op::SetAcl { at, default, list } => write!(f, "setacl {at:?} default {default} list {list}"),
        Op::Put { at, part, seed } => write!(f, "put {at:?} {part:?} of {seed}"),
        Op::PutMapped { at, part, seed } => write!(f, "put-mapped {at:?} {part:?} of {seed}"),
        Op::DropPages { at } => write!(f, "drop-pages {at:?}"),
        Op::Get { at } => write!(f, "get {at:?}"),
        _ => of_slot(op, f),
    }
}

fn of_slot(op: &Op, f: &mut Formatter<'_>) -> Result {
    match op {
        Op::Read { slot, part } => write!(f, "read #{slot} {part:?}"),
        Op::ReadNext { slot, len } => write!(f, "read-next #{slot} {len}"),
        Op::Write { slot, part, seed } => write!(f, "write #{slot} {part:?} of {seed}"),
        Op::WriteNext { slot, len, seed } => write!(f, "write-next #{slot} {len} of {seed}"),
        Op::Seek { slot, whence, to } => write!(f, "seek #{slot} whence {whence} to {to}"),
        Op::SeekData { slot, hole, from } => write!(f, "seek-data #{slot} hole {hole} from {from}"),
        Op::Ftruncate { slot, size } => write!(f, "ftruncate #{slot} {size}"),
        Op::Fchown { slot, uid, gid } => write!(f, "fchown #{slot} {uid:?}:{gid:?}"),
        Op::Futimens { slot, accessed, modified } => write!(f, "futimens #{slot} {accessed:?} {modified:?}"),
        Op::Fstat { slot } => write!(f, "fstat #{slot}"),
        Op::FgetXattr { slot, name } => write!(f, "fgetxattr #{slot} {name:?}"),
        Op::Fsync { slot, data } => write!(f, "fsync #{slot} data {data}"),
        Op::Map { slot, part, shared, store } => {
            write!(f, "mmap #{slot} {part:?} shared {shared} store {store:?}")
        }
        Op::Copy { from, to, part, at } => write!(f, "copy-range #{from} {part:?} to #{to} at {at}"),
        Op::Lock { slot, by, kind, part } => write!(f, "lock #{slot} {by:?} kind {kind} {part:?}"),
        _ => write!(f, "?"),
    }
}
