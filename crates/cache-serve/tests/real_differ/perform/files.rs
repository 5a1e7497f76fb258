//! Content, of open files and by name.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{
    Advice, FallocateFlags, FileType, FlockOperation, Gid, Mode, OFlags, SeekFrom, Uid, copy_file_range,
    fadvise, fallocate, fchmod, fchown, fcntl_getfl, fdatasync, flock, fstat, fsync, ftruncate, futimens,
    openat, seek,
};
use rustix::io::{Errno, pread, pwrite, read, write};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use super::super::op::{At, LockBy, Op, Part};
use super::attributes::{set_times, times};
use super::{Answer, Answered, Tree, done};
use crate::common::{pattern, tree};

/// Files are read up to here.
const MOST: usize = 1 << 20;

pub fn perform(tree: &Tree, op: &Op) -> Option<Answered> {
    Some(match op {
        Op::Put { at, part, seed } => {
            open(tree, *at, OFlags::WRONLY).and_then(|f| write_part(&f, *part, *seed))
        }
        Op::PutMapped { at, part, seed } => {
            open(tree, *at, OFlags::RDWR).and_then(|f| mapped(&f, *part, true, Some(*seed)))
        }
        Op::Get { at } => {
            open(tree, *at, OFlags::RDONLY).and_then(|f| read_part(&f, Part { at: 0, len: MOST }))
        }
        Op::DropPages { at } => done(open(tree, *at, OFlags::RDONLY).and_then(|f| {
            fdatasync(&f)?;
            fadvise(&f, 0, None, Advice::DontNeed)
        })),
        Op::Read { slot, part } => tree.slot(*slot).and_then(|f| read_part(f, *part)),
        Op::Write { slot, part, seed } => tree.slot(*slot).and_then(|f| write_part(f, *part, *seed)),
        Op::ReadNext { slot, len } => tree.slot(*slot).and_then(|f| read_next(f, *len)),
        Op::WriteNext { slot, len, seed } => tree.slot(*slot).and_then(|f| write_next(f, *len, *seed)),
        Op::Map { slot, part, shared, store } => {
            tree.slot(*slot).and_then(|f| mapped(f, *part, *shared, *store))
        }
        Op::Copy { from, to, part, at } => {
            tree.slot(*from).and_then(|f| copy(f, tree.slot(*to)?, *part, *at))
        }
        _ => return shape(tree, op).or_else(|| attributes(tree, op)),
    })
}

fn shape(tree: &Tree, op: &Op) -> Option<Answered> {
    Some(match op {
        Op::Seek { slot, whence, to } => tree.slot(*slot).and_then(|f| go_to(f, *whence, *to)),
        Op::SeekData { slot, hole, from } => tree.slot(*slot).and_then(|f| data_or_hole(f, *hole, *from)),
        Op::Ftruncate { slot, size } => done(tree.slot(*slot).and_then(|f| ftruncate(f, *size))),
        Op::Fallocate { slot, mode, part } => {
            done(tree.slot(*slot).and_then(|f| {
                fallocate(f, FallocateFlags::from_bits_retain(*mode), part.at, part.len as u64)
            }))
        }
        Op::Fsync { slot, data } => {
            done(tree.slot(*slot).and_then(|f| if *data { fdatasync(f) } else { fsync(f) }))
        }
        Op::Lock { slot, by, kind, part } => tree.slot(*slot).and_then(|f| lock(f, *by, *kind, *part)),
        _ => return None,
    })
}

fn attributes(tree: &Tree, op: &Op) -> Option<Answered> {
    Some(match op {
        Op::Fchmod { slot, mode } => {
            done(tree.slot(*slot).and_then(|f| fchmod(f, Mode::from_raw_mode(*mode))))
        }
        Op::Fchown { slot, uid, gid } => {
            done(tree.slot(*slot).and_then(|f| fchown(f, uid.map(Uid::from_raw), gid.map(Gid::from_raw))))
        }
        Op::Futimens { slot, accessed, modified } => tree.slot(*slot).and_then(|f| {
            futimens(f, &times(*accessed, *modified))?;
            Ok(Answer::Text(set_times(&fstat(f)?, *accessed, *modified)))
        }),
        Op::Fstat { slot } => tree.slot(*slot).and_then(fstat).map(|s| Answer::Text(tree::stat(&s))),
        _ => return None,
    })
}

fn open(tree: &Tree, at: At, flags: OFlags) -> Result<OwnedFd, Errno> {
    let (dir, path) = tree.at(at);
    openat(dir, path, flags | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())
}

/// Aligned memory, which O_DIRECT needs.
fn with_room<T>(len: usize, act: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut memory = vec![0; len + 4096];
    let skip = memory.as_ptr().align_offset(4096);
    act(&mut memory[skip..skip + len])
}

fn is_direct(file: &OwnedFd) -> Result<bool, Errno> {
    Ok(fcntl_getfl(file)?.contains(OFlags::DIRECT))
}

/// With O_DIRECT only aligned parts are read or written: ext4 refuses others, FUSE serves them.
fn aligned(file: &OwnedFd, part: Part) -> Result<Part, Errno> {
    if !is_direct(file)? {
        return Ok(part);
    }
    Ok(Part { at: part.at / 4096 * 4096, len: part.len.next_multiple_of(4096) })
}

/// The same at the file's position.
fn aligned_next(file: &OwnedFd, len: usize) -> Result<usize, Errno> {
    if !is_direct(file)? {
        return Ok(len);
    }
    let at = seek(file, SeekFrom::Current(0))?;
    if at % 4096 == 0 { Ok(len.next_multiple_of(4096)) } else { Err(Errno::INVAL) }
}

fn write_next(file: &OwnedFd, len: usize, seed: u8) -> Answered {
    let bytes = pattern(seed, 0, aligned_next(file, len)?);
    with_room(bytes.len(), |buffer| {
        buffer.copy_from_slice(&bytes);
        Ok(Answer::Number(write(file, &*buffer)? as i64))
    })
}

fn write_part(file: &OwnedFd, part: Part, seed: u8) -> Answered {
    let part = aligned(file, part)?;
    let bytes = pattern(seed, part.at, part.len);
    with_room(bytes.len(), |buffer| {
        buffer.copy_from_slice(&bytes);
        Ok(Answer::Number(pwrite(file, buffer, part.at)? as i64))
    })
}

fn read_part(file: &OwnedFd, part: Part) -> Answered {
    let part = aligned(file, part)?;
    with_room(part.len, |bytes| {
        let mut done = 0;
        while done < bytes.len() {
            match pread(file, &mut bytes[done..], part.at + done as u64)? {
                0 => break,
                read => done += read,
            }
            if done % 4096 != 0 {
                break;
            }
        }
        Ok(Answer::Bytes(bytes[..done].to_vec()))
    })
}

fn read_next(file: &OwnedFd, len: usize) -> Answered {
    with_room(aligned_next(file, len)?, |bytes| {
        let done = read(file, &mut *bytes)?;
        Ok(Answer::Bytes(bytes[..done].to_vec()))
    })
}

fn go_to(file: &OwnedFd, whence: i32, to: i64) -> Answered {
    // A directory's position has no common meaning.
    if FileType::from_raw_mode(fstat(file)?.st_mode).is_dir() {
        return Err(Errno::ISDIR);
    }
    let from = match whence % 3 {
        0 => SeekFrom::Start(to as u64),
        1 => SeekFrom::Current(to),
        _ => SeekFrom::End(to),
    };
    Ok(Answer::Number(seek(file, from)? as i64))
}

/// Data and holes depend on when the disk was written. So only this is compared: is there an answer, and is it true?
fn data_or_hole(file: &OwnedFd, hole: bool, from: u64) -> Answered {
    if !FileType::from_raw_mode(fstat(file)?.st_mode).is_file() {
        return Err(Errno::INVAL);
    }
    let back = seek(file, SeekFrom::Current(0))?;
    let found = seek(file, if hole { SeekFrom::Hole(from) } else { SeekFrom::Data(from) });
    seek(file, SeekFrom::Start(back))?;
    let size = fstat(file)?.st_size as u64;
    let found = match found {
        // For tmpfs a page of a hole is data once it was mapped.
        Err(Errno::NXIO) if from < size => size,
        found => found?,
    };
    let (start, end) = if hole { (found, found + 1) } else { (from, found) };
    let end = end.min(size).min(start + MOST as u64);
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
    let empty = match pread(file, &mut bytes, start) {
        Ok(_) => bytes.iter().all(|b| *b == 0),
        // It is open to write only, or O_DIRECT.
        Err(_) => true,
    };
    Ok(Answer::Text(format!("{} to {}", if found >= from { "later" } else { "before" }, empty)))
}

fn copy(from: &OwnedFd, to: &OwnedFd, part: Part, at: u64) -> Answered {
    if is_direct(from)? || is_direct(to)? {
        return Err(Errno::INVAL);
    }
    let (mut from_at, mut to_at) = (part.at, at);
    let mut left = part.len;
    while left > 0 {
        match copy_file_range(from, Some(&mut from_at), to, Some(&mut to_at), left)? {
            0 => break,
            copied => left -= copied,
        }
    }
    Ok(Answer::Number((to_at - at) as i64))
}

/// Reads by a mapping the part that is within the file. With a seed, it first writes that part and syncs it.
#[expect(unsafe_code, reason = "a mapping of a file")]
fn mapped(file: &OwnedFd, part: Part, shared: bool, seed: Option<u8>) -> Answered {
    let size = fstat(file)?.st_size as u64;
    let end = size.min(part.at.saturating_add(part.len as u64)).min(MOST as u64);
    let len = (end as usize).max(1);
    let bytes = seed.map(|seed| pattern(seed, part.at, end.saturating_sub(part.at) as usize));
    let access = if bytes.is_some() { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
    let flags = if shared { MapFlags::SHARED } else { MapFlags::PRIVATE };
    // SAFETY: a new mapping that nobody else uses, removed before this returns. Nobody truncates the file meanwhile.
    unsafe {
        let start = mmap(std::ptr::null_mut(), len, access, flags, file, 0)?;
        let mut seen = Vec::new();
        if part.at < end {
            if let Some(bytes) = &bytes {
                let view = std::slice::from_raw_parts_mut(start.cast::<u8>(), len);
                view[part.at as usize..].copy_from_slice(bytes);
                msync(start, len, MsyncFlags::SYNC)?;
            }
            seen = std::slice::from_raw_parts(start.cast::<u8>(), len)[part.at as usize..].to_vec();
        }
        munmap(start, len)?;
        Ok(Answer::Bytes(seen))
    }
}

fn lock(file: &OwnedFd, by: LockBy, kind: u8, part: Part) -> Answered {
    if by == LockBy::Flock {
        let operation = match kind % 3 {
            0 => FlockOperation::NonBlockingLockShared,
            1 => FlockOperation::NonBlockingLockExclusive,
            _ => FlockOperation::NonBlockingUnlock,
        };
        return done(flock(file, operation));
    }
    let command = match (by, kind / 3 % 2) {
        (LockBy::OpenFile, 0) => libc::F_OFD_SETLK,
        (LockBy::OpenFile, _) => libc::F_OFD_GETLK,
        (_, 0) => libc::F_SETLK,
        _ => libc::F_GETLK,
    };
    range_lock(file, command, kind, part)
}

#[expect(unsafe_code, reason = "rustix has no locks of ranges")]
fn range_lock(file: &OwnedFd, command: i32, kind: u8, part: Part) -> Answered {
    let kind = [libc::F_RDLCK, libc::F_WRLCK, libc::F_UNLCK][usize::from(kind % 3)];
    // SAFETY: plain data, for which zeros are valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as _;
    lock.l_whence = libc::SEEK_SET as _;
    lock.l_start = part.at as _;
    lock.l_len = part.len as _;
    // SAFETY: the kernel reads and writes this structure.
    let result = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw mut lock) };
    if result < 0 {
        let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        return Err(Errno::from_raw_os_error(code));
    }
    let found = (lock.l_type, lock.l_start, lock.l_len);
    let gets = command == libc::F_OFD_GETLK || command == libc::F_GETLK;
    Ok(if gets { Answer::Text(format!("{found:?}")) } else { Answer::Done })
}
