//! An operation on a tree as data, which is printed, recorded and replayed.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Few names, so that operations meet. Append new ones: recorded cases contain indices.
pub const NAMES: [&[u8]; 30] = [
    b"a",
    b"b",
    b"c",
    b"n\xff\xfe",
    b"d",
    b"d/a",
    b"d/b",
    b"d/e",
    b"d/e/a",
    b"e",
    b"e/a",
    b"sticky",
    b"sticky/a",
    b"sticky/b",
    b"sticky/d",
    b"group",
    b"group/a",
    b"group/d",
    b"group/d/a",
    b"private",
    b"private/a",
    b".",
    b"a/x",
    b"d/",
    b"d/.",
    b"d/..",
    b"a/",
    b"missing/a",
    LONGEST,
    TOO_LONG,
];

/// The longest name that ext4 and tmpfs take, and one byte more.
const LONGEST: &[u8] = &[b'l'; 255];
const TOO_LONG: &[u8] = &[b'l'; 256];

/// One of [`NAMES`], relative to the tree's root; with `true` its last part, relative to the user's working directory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct At(pub u8, pub bool);

impl At {
    /// The path for a system call.
    pub fn path(self) -> &'static Path {
        let name = Path::new(OsStr::from_bytes(NAMES[usize::from(self.0) % NAMES.len()]));
        if self.1 { name.file_name().map_or(name, Path::new) } else { name }
    }
}

impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path().to_string_lossy();
        let short: String = path.chars().take(12).collect();
        write!(f, "{}{short}", if self.1 { "cwd:" } else { "" })?;
        if path.len() > 12 { write!(f, "…{}", path.len()) } else { Ok(()) }
    }
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub at: u64,
    pub len: usize,
}

/// A time of utimensat(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Time {
    Now,
    Omit,
    At(i64, u32),
}

/// A kind of file that mknod(2) makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    File,
    Pipe,
    Socket,
    NullDevice,
}

/// An extended attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Xattr {
    User,
    Other,
    Trusted,
    Security,
    Capability,
    AccessAcl,
    DefaultAcl,
    System,
    NoPrefix,
}

/// The kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockBy {
    Flock,
    OpenFile,
    Process,
}

/// The tree that an operation is done in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    Mount,
    /// Past the mount, in the backing directory.
    Backing,
}

/// A step: user number `by` of [`super::user::USERS`] does `op`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub by: u8,
    pub via: Via,
    pub op: Op,
}

/// An operation. Flags are those of the system calls.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    Open {
        slot: u8,
        at: At,
        flags: u32,
        mode: u32,
    },
    Close {
        slot: u8,
    },
    Mkdir {
        at: At,
        mode: u32,
    },
    Mknod {
        at: At,
        kind: Kind,
        mode: u32,
    },
    Symlink {
        to: At,
        at: At,
    },
    Link {
        from: At,
        to: At,
        follow: bool,
    },
    Rename {
        from: At,
        to: At,
        flags: u32,
    },
    Unlink {
        at: At,
    },
    Rmdir {
        at: At,
    },
    Readlink {
        at: At,
    },
    Stat {
        at: At,
        follow: bool,
    },
    Access {
        at: At,
        mode: u32,
        effective: bool,
    },
    List {
        at: At,
    },
    Chdir {
        at: At,
    },
    Umask {
        mode: u32,
    },
    Statfs {
        at: At,
    },
    Chmod {
        at: At,
        mode: u32,
    },
    Chown {
        at: At,
        uid: Option<u32>,
        gid: Option<u32>,
        follow: bool,
    },
    Times {
        at: At,
        accessed: Time,
        modified: Time,
        follow: bool,
    },
    Truncate {
        at: At,
        size: u64,
    },
    SetXattr {
        at: At,
        name: Xattr,
        len: usize,
        seed: u8,
        flags: u32,
    },
    GetXattr {
        at: At,
        name: Xattr,
        room: usize,
    },
    ListXattr {
        at: At,
        room: usize,
    },
    RemoveXattr {
        at: At,
        name: Xattr,
    },
    /// One of [`super::perform::attributes::acl`]'s lists.
    SetAcl {
        at: At,
        default: bool,
        list: u8,
    },
    /// Opens, writes, closes.
    Put {
        at: At,
        part: Part,
        seed: u8,
    },
    /// The same by a shared mapping.
    PutMapped {
        at: At,
        part: Part,
        seed: u8,
    },
    /// Opens, reads to the end, closes.
    Get {
        at: At,
    },
    /// Has the kernel drop the file's pages, so that the next read is a request.
    DropPages {
        at: At,
    },
    Read {
        slot: u8,
        part: Part,
    },
    ReadNext {
        slot: u8,
        len: usize,
    },
    Write {
        slot: u8,
        part: Part,
        seed: u8,
    },
    WriteNext {
        slot: u8,
        len: usize,
        seed: u8,
    },
    Seek {
        slot: u8,
        whence: i32,
        to: i64,
    },
    SeekData {
        slot: u8,
        hole: bool,
        from: u64,
    },
    Ftruncate {
        slot: u8,
        size: u64,
    },
    Fallocate {
        slot: u8,
        mode: u32,
        part: Part,
    },
    Fchmod {
        slot: u8,
        mode: u32,
    },
    Fchown {
        slot: u8,
        uid: Option<u32>,
        gid: Option<u32>,
    },
    Futimens {
        slot: u8,
        accessed: Time,
        modified: Time,
    },
    Fstat {
        slot: u8,
    },
    FgetXattr {
        slot: u8,
        name: Xattr,
    },
    Fsync {
        slot: u8,
        data: bool,
    },
    Map {
        slot: u8,
        part: Part,
        shared: bool,
        store: Option<u8>,
    },
    Copy {
        from: u8,
        to: u8,
        part: Part,
        at: u64,
    },
    Lock {
        slot: u8,
        by: LockBy,
        kind: u8,
        part: Part,
    },
}

impl Op {
    /// The names that it uses.
    pub fn names(&self) -> Vec<At> {
        match self {
            Self::Open { at, .. }
            | Self::Mkdir { at, .. }
            | Self::Mknod { at, .. }
            | Self::Symlink { at, .. }
            | Self::Unlink { at }
            | Self::Rmdir { at }
            | Self::Chmod { at, .. }
            | Self::Chown { at, .. }
            | Self::Times { at, .. }
            | Self::Truncate { at, .. }
            | Self::SetXattr { at, .. }
            | Self::RemoveXattr { at, .. }
            | Self::SetAcl { at, .. }
            | Self::Put { at, .. }
            | Self::PutMapped { at, .. } => vec![*at],
            Self::Link { from, to, .. } | Self::Rename { from, to, .. } => vec![*from, *to],
            _ => Vec::new(),
        }
    }

    /// The open files that it changes.
    pub fn slots(&self) -> Vec<u8> {
        match self {
            Self::Open { slot, .. }
            | Self::Write { slot, .. }
            | Self::WriteNext { slot, .. }
            | Self::Ftruncate { slot, .. }
            | Self::Fallocate { slot, .. }
            | Self::Fchmod { slot, .. }
            | Self::Fchown { slot, .. }
            | Self::Futimens { slot, .. }
            | Self::Map { slot, .. } => vec![*slot],
            Self::Copy { to, .. } => vec![*to],
            _ => Vec::new(),
        }
    }

    /// Its name, without operands.
    pub fn kind(&self) -> String {
        let text = format!("{self:?}");
        text.split([' ', '(']).next().unwrap_or_default().to_owned()
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::display::op(self, f)
    }
}
