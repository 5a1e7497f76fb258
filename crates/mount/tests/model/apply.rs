//! An operation, done to a tree; what it answered, in a form that two trees can be compared by.

use std::fmt;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, XattrFlags,
    copy_file_range, fallocate, fsync, ftruncate, getxattr, linkat, listxattr, mkdirat, open, readlinkat,
    removexattr, renameat_with, setxattr, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::{Errno, pread, pwrite};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use super::op::{Below, How, Meets, Name, Op, Part, Room};
use super::{pattern, tree};

/// What an operation answered.
#[derive(PartialEq, Eq)]
pub enum Answer {
    Done,
    Number(u64),
    Words(String),
    Bytes(Vec<u8>),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Number(n) => write!(f, "{n}"),
            Self::Words(words) => f.write_str(words),
            Self::Bytes(bytes) => f.write_str(&tree::summary(bytes)),
        }
    }
}

pub type Answered = Result<Answer, Errno>;

/// A tree, and its open files.
pub struct Tree {
    root: PathBuf,
    slots: [Option<File>; 3],
}

impl Tree {
    pub fn new(root: PathBuf) -> Self {
        Self { root, slots: [None, None, None] }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn close_all(&mut self) {
        self.slots = [None, None, None];
    }

    fn at(&self, name: Name) -> PathBuf {
        self.root.join(name.path())
    }

    fn slot(&self, slot: usize) -> Result<&File, Errno> {
        self.slots[slot].as_ref().ok_or(Errno::BADF)
    }

    /// All operations but those below.
    pub fn apply(&mut self, op: &Op) -> Answered {
        match op {
            Op::Open(slot, name, how) => self.open(*slot, *name, *how),
            Op::Close(slot) => done(self.slots[*slot].take().map(drop).ok_or(Errno::BADF)),
            Op::Write(..) | Op::Append(..) | Op::Truncate(..) | Op::Read(_) => self.content(op),
            Op::Below(change) => self.below(change),
            _ => self.names(op).or_else(|| self.attributes(op)).unwrap_or_else(|| self.open_file(op)),
        }
    }

    fn names(&self, op: &Op) -> Option<Answered> {
        Some(match op {
            Op::Make(n) => {
                done(open(self.at(*n), OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, Mode::from(0o640)))
            }
            Op::MakeDirectory(n) => done(mkdirat(CWD, self.at(*n), Mode::from(0o750))),
            Op::RemoveDirectory(n) => done(unlinkat(CWD, self.at(*n), AtFlags::REMOVEDIR)),
            Op::Unlink(n) => done(unlinkat(CWD, self.at(*n), AtFlags::empty())),
            Op::Rename(from, to, meets) => {
                done(renameat_with(CWD, self.at(*from), CWD, self.at(*to), flags_of(*meets)))
            }
            Op::Link(from, to) => done(linkat(CWD, self.at(*from), CWD, self.at(*to), AtFlags::empty())),
            // relative, so that it leads to the same place in both trees
            Op::Symlink(to, n) => done(symlinkat(to.path(), CWD, self.at(*n))),
            Op::ReadLink(n) => {
                readlinkat(CWD, self.at(*n), Vec::new()).map(|to| Answer::Bytes(to.into_bytes()))
            }
            Op::List(n) => tree::list(&self.at(*n)).map(Answer::Words),
            _ => return None,
        })
    }

    fn attributes(&self, op: &Op) -> Option<Answered> {
        Some(match op {
            Op::Stat(n) => {
                statat(CWD, self.at(*n), AtFlags::SYMLINK_NOFOLLOW).map(|s| Answer::Words(tree::stat(&s)))
            }
            Op::Mode(n, mode) => done(rustix::fs::chmod(self.at(*n), Mode::from(*mode))),
            Op::Modified(n, at) => done(utimensat(CWD, self.at(*n), &times(*at), AtFlags::empty())),
            Op::SetAttribute(n, which, value) => {
                done(setxattr(self.at(*n), attribute(*which), value, XattrFlags::empty()))
            }
            Op::GetAttribute(n, which) => sized(|buffer| getxattr(self.at(*n), attribute(*which), buffer)),
            Op::ListAttributes(n) => {
                let mut names = vec![0; 4096];
                listxattr(self.at(*n), &mut names[..]).map(|len| Answer::Words(tree::names(&names[..len])))
            }
            Op::RemoveAttribute(n, which) => done(removexattr(self.at(*n), attribute(*which))),
            _ => return None,
        })
    }

    fn content(&self, op: &Op) -> Answered {
        match op {
            Op::Write(n, part, seed) => {
                write(&open(self.at(*n), OFlags::WRONLY, Mode::empty())?, *part, *seed)
            }
            Op::Append(n, len, seed) => {
                let file = open(self.at(*n), OFlags::WRONLY | OFlags::APPEND, Mode::empty())?;
                write_all(&file, &pattern(*seed, 0, *len))
            }
            Op::Truncate(n, size) => done(truncate(&self.at(*n), *size)),
            Op::Read(n) => read_all(&self.at(*n)),
            _ => unreachable!("{op:?}"),
        }
    }

    fn open(&mut self, slot: usize, name: Name, how: How) -> Answered {
        let mut flags = if how.write { OFlags::RDWR } else { OFlags::RDONLY };
        flags.set(OFlags::APPEND, how.append);
        flags.set(OFlags::CREATE, how.create);
        flags.set(OFlags::EXCL, how.create && how.exclusive);
        flags.set(OFlags::TRUNC, how.truncate);
        self.slots[slot] = None;
        self.slots[slot] = Some(open(self.at(name), flags, Mode::from(0o600))?.into());
        Ok(Answer::Done)
    }

    fn open_file(&self, op: &Op) -> Answered {
        match op {
            Op::SlotRead(s, part) => read_part(self.slot(*s)?, *part),
            Op::SlotWrite(s, part, seed) => write(self.slot(*s)?, *part, *seed),
            Op::SlotMap(s, part) => mapped(self.slot(*s)?, *part, None),
            Op::SlotMapWrite(s, part, seed) => mapped(self.slot(*s)?, *part, Some(*seed)),
            Op::SlotTruncate(s, size) => done(ftruncate(self.slot(*s)?, *size)),
            Op::SlotRoom(s, room, part) => {
                done(fallocate(self.slot(*s)?, flags_of_room(*room), part.at, part.len as u64))
            }
            Op::SlotCopy(from, to, part, at) => copy(self.slot(*from)?, self.slot(*to)?, *part, *at),
            Op::SlotStat(s) => rustix::fs::fstat(self.slot(*s)?).map(|s| Answer::Words(tree::stat(&s))),
            Op::SlotSync(s) => done(fsync(self.slot(*s)?)),
            _ => unreachable!("{op:?}"),
        }
    }

    /// Done directly in this tree, by whoever.
    pub fn below(&self, change: &Below) -> Answered {
        match change {
            Below::Write(n, part, seed) => self.content(&Op::Write(*n, *part, *seed)),
            Below::Append(n, len, seed) => self.content(&Op::Append(*n, *len, *seed)),
            Below::Truncate(n, size) => self.content(&Op::Truncate(*n, *size)),
            Below::MapWrite(n, part, seed) => {
                mapped(&open(self.at(*n), OFlags::RDWR, Mode::empty())?.into(), *part, Some(*seed))
            }
        }
    }
}

fn done<T>(result: Result<T, Errno>) -> Answered {
    result.map(|_| Answer::Done)
}

fn flags_of(meets: Meets) -> RenameFlags {
    match meets {
        Meets::Replaces => RenameFlags::empty(),
        Meets::Fails => RenameFlags::NOREPLACE,
        Meets::Exchanges => RenameFlags::EXCHANGE,
    }
}

fn flags_of_room(room: Room) -> FallocateFlags {
    match room {
        Room::Reserve => FallocateFlags::empty(),
        Room::ReserveInside => FallocateFlags::KEEP_SIZE,
        Room::Punch => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        Room::Zero => FallocateFlags::ZERO_RANGE,
    }
}

fn attribute(which: u8) -> String {
    format!("user.{}", ["one", "two", "three"][usize::from(which)])
}

fn times(at: u32) -> Timestamps {
    let at = Timespec { tv_sec: i64::from(at), tv_nsec: 7 };
    Timestamps { last_access: at, last_modification: at }
}

fn truncate(path: &Path, size: u64) -> Result<(), Errno> {
    let file = File::options().write(true).open(path).map_err(|e| Errno::from_io_error(&e).unwrap())?;
    ftruncate(&file, size)
}

fn sized(get: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) -> Answered {
    let mut value = vec![0; 4096];
    let len = get(&mut value)?;
    value.truncate(len);
    Ok(Answer::Bytes(value))
}

fn write(file: impl AsFd, part: Part, seed: u8) -> Answered {
    let bytes = pattern(seed, part.at, part.len);
    let mut done = 0;
    while done < bytes.len() {
        done += pwrite(&file, &bytes[done..], part.at + done as u64)?;
    }
    Ok(Answer::Done)
}

fn write_all(file: impl AsFd, mut bytes: &[u8]) -> Answered {
    while !bytes.is_empty() {
        bytes = &bytes[rustix::io::write(&file, bytes)?..];
    }
    Ok(Answer::Done)
}

/// Up to the end, in a new open.
pub fn read_all(path: &Path) -> Answered {
    let file = open(path, OFlags::RDONLY, Mode::empty())?;
    read_part(&file.into(), Part { at: 0, len: 1 << 20 })
}

fn read_part(file: &File, part: Part) -> Answered {
    let mut bytes = vec![0; part.len];
    let mut done = 0;
    while done < bytes.len() {
        match pread(file, &mut bytes[done..], part.at + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    bytes.truncate(done);
    Ok(Answer::Bytes(bytes))
}

fn copy(from: &File, to: &File, part: Part, at: u64) -> Answered {
    let (mut from_at, mut to_at) = (part.at, at);
    let mut left = part.len;
    while left > 0 {
        match copy_file_range(from, Some(&mut from_at), to, Some(&mut to_at), left)? {
            0 => break,
            copied => left -= copied,
        }
    }
    Ok(Answer::Number(to_at - at))
}

/// Reads a part that lies in the file by a mapping; with a seed, writes it first and syncs it.
#[expect(unsafe_code, reason = "a mapping of a file")]
fn mapped(file: &File, part: Part, seed: Option<u8>) -> Answered {
    let size = rustix::fs::fstat(file)?.st_size.cast_unsigned();
    let end = size.min(part.at + part.len as u64);
    if part.at >= end {
        return Ok(Answer::Number(size));
    }
    let mut access = ProtFlags::READ;
    access.set(ProtFlags::WRITE, seed.is_some());
    let len = end as usize;
    let bytes = seed.map(|seed| pattern(seed, part.at, (end - part.at) as usize));
    // SAFETY: a new mapping that nobody else knows, taken away before this returns. Nobody makes the file shorter meanwhile.
    unsafe {
        let start = mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, file, 0)?;
        let view = std::slice::from_raw_parts_mut(start.cast::<u8>(), if bytes.is_some() { len } else { 0 });
        if let Some(bytes) = bytes {
            view[part.at as usize..].copy_from_slice(&bytes);
            msync(start, len, MsyncFlags::SYNC)?;
        }
        let seen = std::slice::from_raw_parts(start.cast::<u8>(), len)[part.at as usize..].to_vec();
        munmap(start, len)?;
        Ok(Answer::Bytes(seen))
    }
}
